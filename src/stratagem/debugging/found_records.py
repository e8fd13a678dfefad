"""Records of debugging by their ids, whatever their kind."""

from __future__ import annotations

from typing import Any, Final

import orjson

from stratagem.debugging import kinds
from stratagem.debugging.records import IncidentRecords
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.errors import (
    IncidentNotFound,
    OutcomeNotFound,
    SolutionNotFound,
    StratagemError,
    ValidationFailed,
)
from stratagem.storage.contract import EventContent

__all__ = [
    "SPACES",
    "Content",
    "FoundRecord",
    "amendment_of",
    "find_record",
    "missing_record",
    "past_of",
    "refuse_merged",
    "require_kind",
    "resolve",
]

Content = dict[str, Any]

SPACES: Final = {kinds.INCIDENT: kinds.INCIDENTS, kinds.SOLUTION: kinds.SOLUTIONS}
_ARTICLES: Final = {
    kinds.INCIDENT: "an incident",
    kinds.SOLUTION: "a solution",
    kinds.OUTCOME: "an outcome",
}
_DID: Final = {
    "Added": "added",
    "Edited": "edited",
    "Retired": "retired",
    "Restored": "restored",
    "Merged": "merged",
    "Moved": "moved",
    "Amended": "amended",
}


class FoundRecord(NamedTuple):
    """A record by its id, whatever its kind."""

    kind: str
    id: str
    hit: EventContent

    @property
    def content(self) -> Content:
        """What the record says."""
        content: Content = orjson.loads(self.hit.payload)
        return content

    @property
    def space(self) -> Space:
        """Where versions of the record are; of an outcome, those of the record about it."""
        return SPACES.get(self.kind, kinds.AMENDMENTS)


def find_record(
    records: IncidentRecords, record_id: str, *, field: str = "record_id"
) -> FoundRecord:
    """Return an incident, a solution or an outcome by its id.

    Raises:
        StratagemError: The view shows none with this id.
    """
    for kind, space in SPACES.items():
        version = records.current(space, record_id)
        if version is not None:
            hit = records.reader.log.contents([version.sequence])[version.sequence]
            return FoundRecord(kind, record_id, hit)
    sequences = records.reader.catalogue.with_facet(records.view, kinds.facet_outcome(record_id))
    if sequences:
        hit = records.reader.log.contents(sequences[:1])[sequences[0]]
        return FoundRecord(kinds.OUTCOME, record_id, hit)
    raise missing_record(record_id, "on this branch", field)


def missing_record(record_id: str, where: str, field: str = "record_id") -> StratagemError:
    """Return the error for a missing record; the kind is known from its id."""
    missing: dict[str, type[StratagemError]] = {"sol_": SolutionNotFound, "out_": OutcomeNotFound}
    return missing.get(record_id[:4], IncidentNotFound)(
        f"There is no incident, solution or outcome {record_id!r} {where}.",
        field=field,
        hint="list_incidents, list_solutions and list_outcomes show the ids.",
    )


def require_kind(records: IncidentRecords, record_id: str, kind: str) -> FoundRecord:
    """Return a record that has to be of a kind.

    Raises:
        StratagemError: There is none with this id, or it is of another kind.
    """
    field = f"{kind}_id"
    found = find_record(records, record_id, field=field)
    if found.kind != kind:
        raise ValidationFailed(
            f"{record_id!r} is {_ARTICLES[found.kind]}, not {_ARTICLES[kind]}.",
            field=field,
        )
    return found


def resolve(records: IncidentRecords, found: FoundRecord) -> str:
    """Return the id of what a record stands for: its replacement, where it was merged."""
    if found.kind == kinds.INCIDENT:
        return records.resolve_incident(found.id)
    return records.resolve_solution(found.id) if found.kind == kinds.SOLUTION else found.id


def refuse_merged(records: IncidentRecords, found: FoundRecord) -> None:
    """Refuse to change a record that was merged into another.

    Raises:
        ValidationFailed: It was; the error names its replacement.
    """
    stands = resolve(records, found)
    if stands != found.id:
        raise ValidationFailed(
            f"{found.id!r} was merged into {stands!r}.",
            field="record_id",
            merged_into=stands,
            hint=f"Use {stands}, or undo the merge: restore_record {found.id}.",
        )


def amendment_of(records: IncidentRecords, found: FoundRecord) -> Content:
    """Return what is known about an outcome besides what it says itself."""
    own = {"outcome_id": found.id, "solution_id": found.content["solution_id"]}
    return records.content(kinds.AMENDMENTS, found.id) or own


def past_of(event: str) -> str:
    """Return what an event did to its record, in a word."""
    return next(word for end, word in _DID.items() if event.endswith(end))
