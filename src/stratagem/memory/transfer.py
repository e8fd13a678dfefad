"""Export of a branch into one file, and import of files of several formats.

An import reads its source twice. The first pass checks every record and writes nothing, so an
invalid record anywhere means that nothing is imported. The second writes in transactions of a
thousand records. An import can be repeated: an entry that exists is left alone, and an event keeps
its original time and sequence, which identify it. So an interrupted import is completed by running
it again, and nothing is written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments, values
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import Lineage, View
from stratagem.engine.records import Kinds
from stratagem.errors import DatabaseCorrupt, ImportRefused, ValidationFailed
from stratagem.memory.branch_file import BranchFile, write_branch_file
from stratagem.memory.entries import is_expired
from stratagem.memory.importers.formats import SOURCES, recognize_format
from stratagem.memory.kinds import (
    ENTRY,
    EVENT,
    HIDING_DECISIONS,
    PINNED,
    REVIEWS,
    capture_facet,
    logged_events,
)
from stratagem.memory.sources import FORMATS, ORIGIN_FIELDS, Format, Source
from stratagem.note_files import Skipped
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Progress, Reader, RecordReader, Store, Transaction, Version
from stratagem.storage.views import find_branch

__all__ = ["BranchExport", "BranchImport", "export_branch", "import_from"]

_PAGE = 1_000
# Fields that an export has as they are.
_EVENT_FIELDS = ("data", "tags", "session", *ORIGIN_FIELDS)
_ENTRY_FIELDS = ("tags", "session", "index", "imported", *ORIGIN_FIELDS)


@dataclass(frozen=True, slots=True)
class BranchExport:
    """What an export wrote."""

    file: str
    branch: str
    entries: int
    events: int
    bytes: int
    sha256: str
    # State cells, spaces, collections and vectors.
    records: int = 0


@dataclass(frozen=True, slots=True)
class BranchImport:
    """What an import did, or would do: to entries, and to logged events."""

    file: str
    format: Format
    branch: str
    preview: bool
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    logged: int = 0
    known: int = 0
    # Files of a folder that were not taken.
    skipped: tuple[Skipped, ...] = ()
    # The one that everything was imported into, where it was named.
    namespace: str | None = None

    @property
    def total(self) -> int:
        """How many records were dealt with."""
        return self.created + self.updated + self.unchanged + self.logged + self.known

    def plus(self, counts: Mapping[str, int]) -> BranchImport:
        """Return the sum with what one more batch did."""
        more: dict[str, Any] = {name: getattr(self, name) + each for name, each in counts.items()}
        return replace(self, **more)


def export_branch(
    foundation: Foundation,
    path: Path,
    *,
    branch: str,
    progress: Progress,
    as_of: str | int | None = None,
    overwrite: bool = False,
) -> BranchExport:
    """Write all entries and logged events that a view shows into one file.

    What was thrown away or corrected in review is left out, as it is of every search.

    Raises:
        ValidationFailed: There is a file already, and it may not be overwritten.
    """
    if path.exists() and not overwrite:
        raise ValidationFailed(
            f"There is a file at {path} already.",
            field="file",
            hint="Choose another name, or pass --force.",
        )
    with foundation.store.snapshot() as reader:
        view = _end_at_head(reader, foundation.views.view(reader, branch, as_of))
        hidden = _find_hidden(reader, view)
        kinds = Counter(hidden.values())
        counts = {
            "entries": reader.records.count(view, ENTRY) - kinds[ENTRY],
            "events": reader.records.count(view, EVENT) - kinds[EVENT],
            "records": sum(reader.records.count(view, kind) for kind in _portable(reader)),
        }
    header = {"branch": branch, "as_of": as_of, "sequence": view.limit, **counts}
    lines = _check_counts(_records(foundation.store, view, hidden), counts, progress)
    size, digest = write_branch_file(path, header, lines)
    return BranchExport(
        str(path), branch, counts["entries"], counts["events"], size, digest, counts["records"]
    )


def import_from(
    foundation: Foundation,
    caller: Caller,
    path: Path,
    *,
    progress: Progress,
    form: Format | None = None,
    namespace: str | None = None,
    preview: bool = False,
) -> BranchImport:
    """Read entries and logged events from a file or folder into the caller's branch.

    Everything is checked before anything is written. `preview` writes nothing at all.
    `namespace` replaces those that an exported branch names.

    Raises:
        ImportRefused: Something cannot be taken, or the file is damaged. Nothing was written.
    """
    if not path.exists():
        raise ImportRefused(f"There is nothing at {path}.", file=str(path), hint="Check the path.")
    source = _source(
        path, form or recognize_format(path), namespace, caller, foundation.store.kinds
    )
    work = _Import(foundation, caller, preview=preview)
    total = work.check(source, progress)
    done = BranchImport(str(path), source.format, caller.branch, preview, namespace=namespace)
    for batch in _batches(source.drafts(lambda _done, _total: None)):
        done = done.plus(work.take(batch))
        progress(done.total, total, "importing")
    return replace(done, skipped=tuple(getattr(source, "skipped", ())))


class _Import:
    """Writes checked records, leaving alone what is there already."""

    def __init__(self, foundation: Foundation, caller: Caller, *, preview: bool) -> None:
        self._foundation = foundation
        self._caller = caller
        self._preview = preview
        self._known: dict[str, set[tuple[Any, ...]]] = {}
        self._known_to: dict[str, int] = {}

    def check(self, source: Source, progress: Progress) -> int:
        """Read everything once; return how many records there are."""
        with self._foundation.store.snapshot() as reader:
            find_branch(reader.branches, self._caller.branch)
        refuse = self._foundation.check or (lambda _drafts: None)
        count = 0
        for draft in source.drafts(lambda at, of: progress(at, of, "checking")):
            refuse((draft,))
            count += 1
        return count

    def take(self, batch: list[Draft]) -> dict[str, int]:
        """Write what is new of some records, all of it or nothing; return what was done."""
        if self._preview:
            with self._foundation.store.snapshot() as reader:
                lineage = reader.branches.lineage(find_branch(reader.branches, self._caller.branch))
                return self._select_new(reader, lineage, batch)[1]

        def work(transaction: Transaction) -> dict[str, int]:
            target = find_branch(transaction.branches, self._caller.branch)
            drafts, counts = self._select_new(
                transaction, transaction.branches.lineage(target), batch
            )
            if drafts:
                transaction.append(target, drafts)
            return counts

        return self._foundation.write(self._caller, work)

    def _select_new(
        self, reader: Reader, lineage: Lineage, batch: list[Draft]
    ) -> tuple[list[Draft], dict[str, int]]:
        """Return what has to be written, and how many records have which status."""
        self._load_known_events(reader.records, lineage, batch)
        counts: dict[str, int] = {}
        drafts = []
        for draft in batch:
            status, fitted = self._classify(reader.records, lineage, draft)
            counts[status] = counts.get(status, 0) + 1
            if status not in {"unchanged", "known"}:
                drafts.append(fitted)
        return drafts, counts

    def _classify(self, records: RecordReader, lineage: Lineage, draft: Draft) -> tuple[str, Draft]:
        """Return what becomes of a record, and how it is written."""
        assert draft.space is not None
        if draft.key is None:
            known = _identity(draft.content) in self._known[draft.space.namespace]
            return "known" if known else "logged", draft
        there = records.current(lineage, draft.space, draft.key)
        if there is None:
            return "created", draft
        content = orjson.loads(there.payload or b"null")
        draft = _with_pin(draft, content)
        same = values.same(content, draft.content)
        return "unchanged" if same else "updated", draft

    def _load_known_events(
        self, records: RecordReader, lineage: Lineage, batch: list[Draft]
    ) -> None:
        """Load the identities of events logged since the last batch, also by other processes."""
        for namespace in {each.space.namespace for each in batch if each.space and not each.key}:
            known = self._known.setdefault(namespace, set())
            after = self._known_to.get(namespace, 0)
            space = logged_events(namespace)
            while page := records.stream(lineage, space, after=after, limit=_PAGE):
                known.update(_identity(_content_with_origin(version)) for version in page)
                after = page[-1].sequence
            self._known_to[namespace] = after


def _source(path: Path, form: str, namespace: str | None, caller: Caller, kinds: Kinds) -> Source:
    if form == "stratagem":
        return BranchFile(path, namespace, kinds)
    if form not in SOURCES:
        raise ValidationFailed(
            f"There is no format {form!r}.", field="format", allowed=list(FORMATS)
        )
    return SOURCES[form](path, namespace or caller.namespace)


def _with_pin(draft: Draft, there: Any) -> Draft:
    """Keep the pin of an entry that comes again: the other tool knows nothing of it."""
    tags = draft.content.get("tags", [])
    pinned = isinstance(there, dict) and PINNED in there.get("tags", ())
    if not pinned or PINNED in tags:
        return draft
    return replace(draft, content={**draft.content, "tags": sorted({*tags, PINNED})})


def _batches(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    while batch := list(islice(drafts, limits.ITEMS_MAX)):
        yield batch


def _end_at_head(reader: Reader, view: View) -> View:
    """End a view at the head, so that what is written meanwhile does not show in it."""
    limit = min(view.limit, reader.log.head().sequence)
    return View(view.branch, reader.branches.lineage(view.branch, limit), view.time)


def _find_hidden(reader: Reader, view: View) -> dict[int, str]:
    """Return what was thrown away or corrected in review: versions with their kinds."""
    hidden: list[int] = []
    after: str | None = ""
    while after is not None:
        page, after = reader.records.page(view.lineage, REVIEWS, after=after, limit=_PAGE)
        for capture, version in page:
            if orjson.loads(version.payload or b"{}").get("decision") in HIDING_DECISIONS:
                hidden += reader.catalogue.with_facet(view, capture_facet(capture))
    return {at: event.space.kind for at, event in reader.log.contents(hidden).items()}


def _records(store: Store, view: View, hidden: Collection[int]) -> Iterator[dict[str, Any]]:
    """Return a view's entries, then its events, in pages that hold no transaction open."""
    with store.snapshot() as reader:
        spaces = sorted(reader.records.spaces().values())
    for space in spaces:
        if space.kind == ENTRY:
            yield from _entries(store, view, space, hidden)
    for space in spaces:
        if space.kind == EVENT:
            yield from _events(store, view, space, hidden)
    for space in spaces:
        if store.kinds.record(space.kind).portable:
            yield from _portable_records(store, view, space)


def _portable(reader: Reader) -> list[str]:
    """Return the kinds of record, besides memory's own, that an export holds."""
    return [name for name, kind in reader.kinds.records.items() if kind.portable]


def _portable_records(store: Store, view: View, space: Space) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    while after is not None:
        with store.snapshot() as reader:
            page, after = reader.records.page(view.lineage, space, after=after, limit=_PAGE)
        for key, version in page:
            place = {"type": "record", "kind": space.kind, "namespace": space.namespace, "key": key}
            yield {**place, "content": orjson.loads(version.payload or b"{}")}


def _entries(
    store: Store, view: View, space: Space, hidden: Collection[int]
) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    while after is not None:
        with store.snapshot() as reader:
            page, after = reader.records.page(view.lineage, space, after=after, limit=_PAGE)
        for key, version in page:
            content = orjson.loads(version.payload or b"{}")
            if not is_expired(content, view.time) and version.sequence not in hidden:
                yield _entry_line(space.namespace, key, version, content)


def _events(
    store: Store, view: View, space: Space, hidden: Collection[int]
) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        with store.snapshot() as reader:
            page = reader.records.stream(view.lineage, space, after=after, limit=_PAGE)
        if not page:
            return
        yield from (
            _event_line(space.namespace, _content_with_origin(version))
            for version in page
            if version.sequence not in hidden
        )
        after = page[-1].sequence


def _entry_line(
    namespace: str, key: str, version: Version, content: Mapping[str, Any]
) -> dict[str, Any]:
    line = {"type": "entry", "key": key, "namespace": namespace, "value": content["value"]}
    line |= {name: content[name] for name in _ENTRY_FIELDS if name in content}
    if "expires_at" in content:
        line["expires"] = moments.iso(content["expires_at"])
    return line | {"version": version.sequence, "timestamp": moments.iso(version.at)}


def _event_line(namespace: str, content: Mapping[str, Any]) -> dict[str, Any]:
    line = {"type": "event", "event": content["event"], "namespace": namespace}
    line |= {name: content[name] for name in _EVENT_FIELDS if name in content}
    return {**line, **content["imported"]}


def _content_with_origin(version: Version) -> dict[str, Any]:
    """Return what an event says, with the time and sequence it had where it was logged."""
    content: dict[str, Any] = orjson.loads(version.payload or b"{}")
    own = {"timestamp": moments.iso(version.at), "sequence": version.sequence}
    return {"imported": own, **content}


def _identity(content: Mapping[str, Any]) -> tuple[Any, ...]:
    origin = content["imported"]
    return (origin["timestamp"], origin["sequence"], content["event"])


def _check_counts(
    lines: Iterable[dict[str, Any]], counts: Mapping[str, int], progress: Progress
) -> Iterator[dict[str, Any]]:
    """Pass lines on, and make sure that there are as many as the header says."""
    found = {"entry": 0, "event": 0, "record": 0}
    total = sum(counts.values())
    for done, line in enumerate(lines, 1):
        found[line["type"]] += 1
        yield line
        if done % _PAGE == 0 or done == total:
            progress(done, total, "exporting")
    if tuple(found.values()) != (counts["entries"], counts["events"], counts["records"]):
        raise DatabaseCorrupt(
            f"The branch shows {found['entry']} entries, {found['event']} events and "
            f"{found['record']} other records; its tallies say {counts['entries']}, "
            f"{counts['events']} and {counts['records']}. Nothing was exported.",
            hint="Something may have been purged meanwhile: try again; if it happens again, "
            "run `stratagem doctor`.",
        )
