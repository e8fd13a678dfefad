"""Retention: erasing superseded versions that are old, or too many, for good.

A version may be erased if another one has replaced it on its branch, and no branch shows it in its
present: a fork made before may still show it, and keeps it. Its age counts from when it was
replaced, so that the last days can be seen as they were. Versions written in ended transactions,
which are never visible again, may be erased too. Only the content of the event is erased, by the
store's purge: a branch may show a copy that a merge made. The hashes stay, and the chain still
verifies. A read at a moment at which it was current gets an error that it was erased.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.developer.kinds import CELL, VECTOR
from stratagem.developer.models import RetentionApplied
from stratagem.engine import moments
from stratagem.engine.lineage import View
from stratagem.errors import MissingRequired
from stratagem.memory.kinds import ENTRY, EVENT, entries
from stratagem.parameters import Param
from stratagem.places import is_address
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Reader, WriteRequest

__all__ = ["RetentionTools"]

_KINDS = frozenset({ENTRY, CELL, VECTOR})
# Versions that can never be seen again are erased, whatever their kind.
_HIDDEN_KINDS = _KINDS | {EVENT}
_AT_ONCE = 1_000


class _Superseded(NamedTuple):
    """A version that another has replaced, when that was, and how much content it holds.

    `hidden`: it was written in a transaction that is over.
    """

    sequence: int
    subject: tuple[int, str, str, str]
    replaced: int
    kind: str
    size: int
    hidden: bool


class RetentionTools(BoundSystem):
    """Retention, for one caller."""

    def apply(
        self,
        *,
        older_than: Annotated[
            str | float | None,
            Param(
                "Erase versions replaced longer ago than this: 30d, 12h, seconds",
                strict=True,
                time="duration",
            ),
        ] = None,
        keep: Annotated[
            int | None,
            Param("How many of the newest versions of each record stay", ge=1, le=1_000_000),
        ] = None,
        namespace: Annotated[
            str | None, Param("Only this space; default: all", quiet=True, aliases=("space",))
        ] = None,
        preview: Annotated[bool, Param("Only show what would be erased")] = False,
    ) -> RetentionApplied:
        """Erase superseded versions of entries, state cells and vectors for good.

        Those go that were replaced longer ago than `older_than`, or that are not among the newest
        `keep` of their record; also what was written in transactions that are over. What any
        branch shows now stays, and so do logged events. Erasing takes a person's word; without it
        the answer is a preview.
        """
        if older_than is None and keep is None:
            raise MissingRequired(
                "Give the age of the versions to erase, or how many to keep.",
                field="older_than",
                hint="Pass `older_than`, such as 30d, or `keep`, such as 10.",
            )
        self._caller.refuse_in_transaction("Retention")
        note = "Nothing was erased: this is a preview."
        if not preview and not self._caller.speaks_for_person("memory"):
            command = self._command_line(older_than, keep, namespace)
            preview, note = True, f"{note} A person has to confirm the erasure: {command}"
        age = None if older_than is None else moments.duration(older_than, field="older_than")
        with self._store.snapshot() as reader:
            found = list(_find_superseded(reader, namespace))
            doomed = self._choose(reader, found, age, keep)
            shown = _shown_somewhere(reader, doomed, self._store.now())
        free = [each for each in doomed if each.sequence not in shown]
        chosen = free[: limits.RETENTION_VERSIONS_MAX]
        result = RetentionApplied(
            preview=preview,
            versions=len(chosen),
            bytes=sum(each.size for each in chosen),
            by_kind=dict(sorted(Counter(each.kind for each in chosen).items())),
            kept_for_branches=len(doomed) - len(free),
            more=len(free) > len(chosen),
        )
        if preview:
            result.note = note
        elif chosen:
            before = self._store.size()
            self._erase([each.sequence for each in chosen])
            after = self._store.size()
            if before is not None and after is not None:
                result.file_bytes_freed = max(before - after, 0)
        return result

    def _command_line(
        self, older_than: str | float | None, keep: int | None, namespace: str | None
    ) -> str:
        """Say how a person has versions erased."""
        location = self._store.location
        # An address may hold a password, and who is far away has another file of that name.
        is_named = self._caller.local and location != ":memory:" and not is_address(location)
        options = {"--db": location if is_named else None, "--namespace": namespace}
        given = {"--older-than": older_than, "--keep": keep}
        line = shlex.join(["stratagem", *_words(options), "retention-apply", *_words(given)])
        return f"the token of an administrator, or {line}"

    def _choose(
        self, reader: Reader, found: Sequence[_Superseded], age: int | None, keep: int | None
    ) -> list[_Superseded]:
        """Return the versions that are too old, or too many of their record on their branch."""
        until = None if age is None else self._store.now() - age
        records: dict[tuple[int, str, str, str], list[_Superseded]] = defaultdict(list)
        for each in found:
            records[each.subject].append(each)
        chosen = []
        for versions in records.values():
            versions.sort(reverse=True)
            for rank, each in enumerate(versions, 1):
                # The one that has replaced them all is the first of those that are kept.
                many = keep is not None and (each.hidden or rank >= keep)
                if many or (until is not None and (reader.log.wall_of(each.replaced) or 0) < until):
                    chosen.append(each)
        return sorted(chosen)

    def _erase(self, sequences: Sequence[int]) -> None:
        self._foundation.erase_with_copies(
            lambda: self._store.purge(
                WriteRequest(self._caller.actor),
                space=entries(self._caller.namespace),
                key=None,
                sequence=None,
                sequences=sequences,
                copies=False,
            )
        )


def _words(options: Mapping[str, Any]) -> list[str]:
    return [
        word for name, value in options.items() if value is not None for word in (name, str(value))
    ]


def _find_superseded(reader: Reader, namespace: str | None) -> Iterator[_Superseded]:
    """Yield the versions of callers' records that were replaced on their branch, or are hidden."""
    hidden = dict(reader.branches.transaction_versions())
    ends = dict(reader.vectors.superseded_after(0)) | hidden
    sequences = sorted(ends)
    for begin in range(0, len(sequences), _AT_ONCE):
        group = sequences[begin : begin + _AT_ONCE]
        present = [at for at, each in reader.log.versions(group).items() if each.payload]
        for sequence, content in reader.log.contents(present).items():
            space = content.space
            kinds = _HIDDEN_KINDS if sequence in hidden else _KINDS
            if space.kind not in kinds or content.payload == b"{}":
                continue
            where = space.namespace.rpartition("/")[0] if space.kind == VECTOR else space.namespace
            if namespace is not None and where != namespace:
                continue
            subject = (reader.log.branch_of(sequence), *space, content.key or "")
            size = len(content.payload)
            yield _Superseded(
                sequence, subject, ends[sequence], space.kind, size, hidden=sequence in hidden
            )


def _shown_somewhere(reader: Reader, versions: Sequence[_Superseded], now: int) -> set[int]:
    """Return the sequences that the present of any branch shows, deleted and hidden ones too."""
    shown: set[int] = set()
    for branch in (*reader.branches.all(), *reader.branches.transactions()):
        view = View(branch, reader.branches.lineage(branch), now)
        for begin in range(0, len(versions), _AT_ONCE):
            group = [each.sequence for each in versions[begin : begin + _AT_ONCE]]
            shown |= reader.records.visible_among(view, group)
    return shown
