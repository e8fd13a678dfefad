"""Appending to a log in a database that speaks SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import orjson

from stratagem.engine.ancestry import Vector
from stratagem.engine.events import SALT_BYTES, Draft, Head, Space, content_hash, event_hash
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, Branch, Lineage
from stratagem.engine.records import Kinds
from stratagem.errors import RequestReused
from stratagem.storage.contract import Appended, Indexer, Remembered, Request
from stratagem.storage.relational.outboxing import SqlOutbox
from stratagem.storage.relational.projecting import (
    BRANCH_CREATED,
    BRANCH_DELETED,
    BRANCH_MERGED,
    BRANCH_RESTORED,
    Fact,
    Projector,
)
from stratagem.storage.relational.reading import Held, SqlReader
from stratagem.storage.relational.requests import is_repeat, sealed
from stratagem.storage.relational.sessions import Session

__all__ = ["Adapters", "SqlTransaction"]


# By space and key: the number of a subject, and whether it is new.
_Subjects = dict[tuple[int, str], tuple[int, bool]]


class Adapters(NamedTuple):
    """What the store takes from the world: the time, and bytes nobody can guess."""

    clock: Callable[[], int]
    entropy: Callable[[int], bytes]


class SqlTransaction(SqlReader, SqlOutbox):
    """See `stratagem.storage.contract.Transaction`."""

    projector: ClassVar[type[Projector]]
    _names: Held

    def __init__(
        self,
        session: Session,
        kinds: Kinds,
        names: Held,
        *,
        indexer: Indexer | None,
        adapters: Adapters,
        request: Request,
        head: Head,
    ) -> None:
        super().__init__(session, kinds, names)
        self._adapters = adapters
        self._indexer = indexer
        self._request = request
        self._head = head
        self._projector = self.projector(session, self, indexer)
        self.wall = adapters.clock()
        self._first = head.sequence + 1
        # Later than every earlier transaction, even when the clock was set back.
        self.at = max(self.wall, head.at + 1)

    def head(self) -> Head:
        return self._head

    def branch(self, name: str) -> Branch | None:
        known = self._names.named.get(name)
        if known is None:
            known = super().branch(name)
            if known is not None:
                self._names.named[name] = known
        return known

    def branch_changed(self) -> None:
        self._names.named.clear()

    def append(self, branch: Branch, drafts: Sequence[Draft]) -> list[Appended]:
        return self._append(branch.id, drafts)

    def create_branch(self, name: str, *, parent: Branch | None, fork_sequence: int) -> Branch:
        content = {
            "name": name,
            "parent": parent.id if parent else None,
            "fork_sequence": fork_sequence if parent else None,
        }
        # A branch is named after the event that creates it, and owns that event.
        branch = self._head.sequence + 1
        self._append(branch, [Draft(BRANCH_CREATED, content)])
        return self.branch_by_id(branch)

    def delete_branch(self, branch: Branch) -> None:
        self._append(branch.id, [Draft(BRANCH_DELETED, {"name": branch.name})])

    def restore_branch(self, branch: Branch) -> None:
        self._append(branch.id, [Draft(BRANCH_RESTORED, {"name": branch.name})])

    def record_merge(self, target: Branch, source: Branch, vector: Vector) -> int:
        known = {str(branch): sequence for branch, sequence in sorted(vector.items())}
        content = {"source": source.name, "source_id": source.id, "knows": known}
        return self._append(target.id, [Draft(BRANCH_MERGED, content)])[0].sequence

    def add_vectors(self, vectors: Mapping[int, bytes]) -> None:
        self._session.executemany(self._sql["insert_waiting_vector"], list(vectors.items()))
        self._session.executemany(self._sql["delete_unembedded"], [(at,) for at in vectors])

    def change_embedder(self, name: str) -> None:
        self.set_setting("embedder", name)
        self._execute(self._sql["delete_vectors"])
        self._execute(self._sql["queue_all_texts"])
        self.set_setting("vector_generation", (self.setting("vector_generation") or 0) + 1)

    def setting(self, name: str) -> Any:
        kept = self._names.settings
        if name not in kept:
            kept[name] = super().setting(name)
        return kept[name]

    def tally_of(self, lineage: Lineage, kind: str) -> int:
        whole = lineage[0].limit == OPEN_END
        known = self._names.tallies.get((lineage[0].branch, kind)) if whole else None
        return super().tally_of(lineage, kind) if known is None else known

    def tallied(self, branch: int, kind: str, live: int) -> None:
        self._names.tallies[branch, kind] = live

    def set_setting(self, name: str, value: Any) -> None:
        self._names.settings[name] = value
        self._execute(self._sql["set_setting"], (name, value))

    def erase(self, sequences: Sequence[int]) -> None:
        """Remove what some events said, and whatever quotes them."""
        for name in ("erase_events", "erase_results", "erase_vectors"):
            self._execute(self._sql[name], (self._array(sequences),))

    def erase_request(self, actor: str, request: str) -> None:
        """Remove the remembered result of a request; that it was answered stays known."""
        self._execute(self._sql["erase_request"], (actor, request))

    def erase_subject(self, subject: int, name: str) -> None:
        """Give a subject a name that says nothing."""
        self._execute(self._sql["erase_subject"], (subject, name))
        self._execute(self._sql["purge_outbox"], (subject,))

    def remembered(self) -> bytes | None:
        """Return the result of an earlier request with this id, as JSON, or None."""
        if self._request.id is None:
            return None
        row = self._row("request", self._request.actor, self._request.id)
        if row is None:
            return None
        kept = Remembered(self._request.actor, self._request.id, *row)
        if kept.result is None:
            raise RequestReused(
                "This request was answered before, and its result has been purged since.",
                field="request_id",
                request_id=self._request.id,
            )
        if not is_repeat(kept, self._request.fingerprint):
            raise RequestReused(
                "This request id was used before, with other arguments.",
                field="request_id",
                request_id=self._request.id,
            )
        return kept.result

    def finish(self, result: Any) -> None:
        """Complete the read models and remember the result."""
        if self._head.sequence >= self._first:
            self._projector.end_transaction(self._head.sequence)
        if self._request.id is not None:
            request = self._request
            kept = Remembered(
                request.actor, self._request.id, request.fingerprint, orjson.dumps(result),
                self._first, self._head.sequence,
            )  # fmt: skip
            self._execute(self._sql["insert_request"], sealed(kept))

    def _append(self, branch: int, drafts: Sequence[Draft]) -> list[Appended]:
        salts = self._adapters.entropy(SALT_BYTES * len(drafts))
        subjects = self._intern_subjects(drafts)
        rows, facts = [], []
        for place, draft in enumerate(drafts):
            salt = salts[place * SALT_BYTES : (place + 1) * SALT_BYTES]
            row, fact = self._chain(branch, draft, salt, subjects)
            rows.append(row)
            facts.append(fact)
        self._session.executemany(self._sql["insert_event"], rows)
        replaced = self._projector.apply(facts, self.wall)
        self._post(branch, facts)
        return [
            Appended(fact.sequence, self.at, before)
            for fact, before in zip(facts, replaced, strict=True)
        ]

    def _post(self, branch: int, facts: Sequence[Fact]) -> None:
        """Put into the outbox what read models elsewhere have to be told."""
        changes = [
            (fact.sequence, fact.subject, fact.space.kind)
            for fact in facts
            if fact.subject is not None and fact.space is not None
        ]
        if changes and self.branch_by_id(branch).name == DEFAULT_BRANCH:
            self.post(changes)

    def _chain(
        self, branch: int, draft: Draft, salt: bytes, subjects: _Subjects
    ) -> tuple[tuple[Any, ...], Fact]:
        space_id = self._intern_space(draft.space) if draft.space else None
        subject, fresh = None, False
        if draft.key is not None:
            assert space_id is not None
            subject, fresh = subjects[space_id, draft.key]
            # A second draft about a new subject is no longer the first.
            subjects[space_id, draft.key] = (subject, False)
        sequence = self._head.sequence + 1
        payload = orjson.dumps(draft.content)
        content = content_hash(salt, draft.space, draft.key, payload)
        request = self._request
        link = event_hash(
            self._head.hash,
            sequence=sequence,
            at=self.at,
            wall=self.wall,
            branch=branch,
            kind=draft.kind,
            actor=request.actor,
            request=request.id,
            origin=draft.origin,
            content=content,
        )
        self._head = Head(sequence, self.at, link)
        row = (
            sequence, self.at, self.wall, branch, draft.kind, space_id, subject, request.actor,
            request.id, draft.origin, payload, salt, content, link,
        )  # fmt: skip
        fact = Fact(
            sequence, branch, draft.kind, space_id, draft.space, subject, draft.key, fresh,
            draft.content,
        )  # fmt: skip
        return row, fact

    def _intern_space(self, space: Space) -> int:
        number = self.space_id(space)
        if number is None:
            number = int(self._execute(self._sql["insert_space"], space).fetchone()[0])
            self._names.spaces[space] = number
        return number

    def _intern_subjects(self, drafts: Sequence[Draft]) -> _Subjects:
        """Return the number of each draft's subject, and whether it is new.

        New ones are numbered and inserted together: one by one costs as much as the event.
        """
        wanted = {
            (self._intern_space(draft.space), draft.key): None
            for draft in drafts
            if draft.space is not None and draft.key is not None
        }
        subjects: _Subjects = {}
        if len(wanted) == 1:
            ((space, key),) = wanted
            if (number := self._one("subject_id", space, key)) is not None:
                return {(space, key): (number, False)}
        for space in {space for space, _ in wanted} if len(wanted) > 1 else ():
            keys = self._array([key for of, key in wanted if of == space])
            for number, key in self._execute(self._sql["subject_ids"], (space, keys)):
                subjects[space, key] = (number, False)
        missing = [name for name in wanted if name not in subjects]
        if missing:
            last = self._names.subject_last
            if last is None:
                last = self._one("subject_last") or 0
            self._names.subject_last = last + len(missing)
            numbered = [(last + place, *name) for place, name in enumerate(missing, 1)]
            self._session.executemany(self._sql["insert_subject"], numbered)
            subjects |= {(space, key): (number, True) for number, space, key in numbered}
        return subjects
