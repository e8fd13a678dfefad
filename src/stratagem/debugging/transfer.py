"""Export incidents, fixes and evidence to a file, and import them (format: `portable`).

Ids are unique across databases, so importing a file twice changes nothing. An incident of the file
whose signature the database already has is treated as the same incident: its fixes are added to
the existing one. Incidents within one file are never joined with each other. Imported records
carry their origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem.debugging import kinds, portable
from stratagem.debugging.drafts import outcome_event
from stratagem.debugging.kinds import facet_signature, facet_solution
from stratagem.debugging.portable import Content, Record
from stratagem.debugging.records import IncidentRecords
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import View
from stratagem.errors import StorageUnavailable
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, RecordReader, Transaction

__all__ = ["TransferResult", "export_file", "import_file"]

_BATCH: Final = 1_000


@dataclass(slots=True)
class TransferResult:
    """How many records were exported or imported, and to or from which file."""

    file: str
    incidents: int = 0
    solutions: int = 0
    outcomes: int = 0
    known: int = 0
    joined: int = 0
    branch: str = field(default="")


def export_file(foundation: Foundation, path: Path, *, branch: str) -> TransferResult:
    """Write every incident that a branch shows, with its fixes and evidence, into a file."""
    done = TransferResult(str(path), branch=branch)
    source = next(foundation.store.log()).hash.hex()[:16]
    aside = path.with_name(f".{path.name}.part")
    try:
        with foundation.store.snapshot() as reader, aside.open("wb") as file:
            view = foundation.views.view(reader, branch)
            portable.write(file, source, _export_lines(reader, view, done))
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise StorageUnavailable(f"{path} cannot be written: {error}.", path=str(path)) from error
    return done


def import_file(foundation: Foundation, caller: Caller, path: Path) -> TransferResult:
    """Import incidents, fixes and evidence from a file; the whole file is checked first.

    Raises:
        ImportRefused: The file was cut, or a line of it is wrong. Nothing was written.
    """
    source, records = portable.read(path, foundation.redaction)
    done = TransferResult(str(path), branch=caller.branch)
    importer = _Importer(records, {"source": source, "file": path.name}, done)
    for begin in range(0, len(records), _BATCH):
        batch = records[begin : begin + _BATCH]

        def work(transaction: Transaction, batch: Sequence[Record] = batch) -> None:
            importer.write(transaction, foundation.views.view(transaction, caller.branch), batch)

        foundation.write(caller, work)
    return done


class _Importer:
    """Writes the records of a file, batch by batch, and counts them."""

    def __init__(
        self, records: Sequence[Record], origin: Mapping[str, str], done: TransferResult
    ) -> None:
        self._own = {content["incident_id"] for kind, content in records if kind == "incident"}
        self._origin = origin
        # The incidents of the file that the database has under another id.
        self._same: dict[str, str] = {}
        # The outcomes that the database has, by solution; those of this file included.
        self._outcomes: dict[str, set[str]] = {}
        self._done = done

    def write(self, transaction: Transaction, view: View, batch: Sequence[Record]) -> None:
        """Append what is new of a batch."""
        drafts = []
        for kind, content in batch:
            draft = self._draft(transaction, view, kind, dict(content))
            if draft is None:
                self._done.known += 1
            else:
                setattr(self._done, f"{kind}s", getattr(self._done, f"{kind}s") + 1)
                drafts.append(draft)
        if drafts:
            transaction.append(view.branch, drafts)

    def _draft(
        self, transaction: Transaction, view: View, kind: str, content: Content
    ) -> Draft | None:
        """Return the event for a record, or None where it is known."""
        content.setdefault("origin", dict(self._origin))
        owner = content["incident_id"]
        if kind == "incident":
            if _exists(transaction.records, view, kinds.INCIDENTS, owner):
                return None
            if (twin := self._twin(transaction, view, content)) is not None:
                self._same[owner] = twin
                self._done.joined += 1
                return None
            return Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, owner)
        content["incident_id"] = self._same.get(owner, owner)
        if kind == "solution":
            key = content["solution_id"]
            known = _exists(transaction.records, view, kinds.SOLUTIONS, key)
            return None if known else Draft(kinds.SOLUTION_ADDED, content, kinds.SOLUTIONS, key)
        if self._knows_outcome(transaction, view, content):
            return None
        # A time in the future comes from a wrong clock elsewhere.
        content["at"] = min(content["at"], transaction.wall)
        return outcome_event(content)

    def _twin(self, reader: Reader, view: View, content: Content) -> str | None:
        """Return the incident with the same signature that was here before."""
        if not content.get("fingerprint"):
            return None
        sequences = reader.catalogue.with_facet(view, facet_signature(content["fingerprint"]))
        hits = reader.log.contents(sequences)
        ids = [orjson.loads(hits[sequence].payload)["incident_id"] for sequence in sequences]
        return next((each for each in ids if each not in self._own), None)

    def _knows_outcome(self, reader: Reader, view: View, content: Content) -> bool:
        solution_id, outcome_id = content["solution_id"], content["outcome_id"]
        if solution_id not in self._outcomes:
            self._outcomes[solution_id] = {
                each["outcome_id"]
                for _, each in _contents(reader, view, facet_solution(solution_id))
            }
        known = outcome_id in self._outcomes[solution_id]
        self._outcomes[solution_id].add(outcome_id)
        return known


def _exists(records: RecordReader, view: View, space: Space, key: str) -> bool:
    return records.current(view.lineage, space, key) is not None


def _export_lines(reader: Reader, view: View, done: TransferResult) -> Iterator[dict[str, Any]]:
    """Return the records to export: duplicates under their replacement, without retired ones."""
    records = IncidentRecords(reader, view, snapshot=True)
    after: str | None = ""
    while after is not None:
        page, after = reader.records.page(view.lineage, kinds.INCIDENTS, after=after)
        for incident_id, version in page:
            content = orjson.loads(version.payload or b"{}")
            if "retired" not in content and records.resolve_incident(incident_id) == incident_id:
                done.incidents += 1
                yield {"type": "incident", **content}
                yield from _export_solutions(records, incident_id, done)


def _export_solutions(
    records: IncidentRecords, incident_id: str, done: TransferResult
) -> Iterator[dict[str, Any]]:
    for solution in records.solutions(incident_id):
        done.solutions += 1
        content = records.content(kinds.SOLUTIONS, solution.solution_id)
        yield {"type": "solution", **content, "incident_id": incident_id}
        standing = [each.sequence for each, counts in records.marked_outcomes([solution]) if counts]
        for at, outcome in _events(records.reader, standing):
            done.outcomes += 1
            # When it happened, not when it was taken in: evidence ages.
            own = {"solution_id": solution.solution_id, "incident_id": incident_id}
            yield {"type": "outcome", "at": at, **outcome, **own}


def _events(reader: Reader, sequences: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    hits = reader.log.contents(sequences)
    for sequence in sequences:
        yield hits[sequence].at, orjson.loads(hits[sequence].payload)


def _contents(reader: Reader, view: View, facet: str) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from _events(reader, reader.catalogue.with_facet(view, facet))
