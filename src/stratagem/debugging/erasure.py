"""Erasing incidents, fixes and outcomes for good, on every branch, with what belongs to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

import orjson

from stratagem.debugging import kinds
from stratagem.debugging.found_records import missing_record
from stratagem.debugging.models import RecordPurged
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Erased, EventContent, Reader

__all__ = ["purge"]


@dataclass(slots=True)
class _Doomed:
    """What is to be erased: records by their ids, and the events of outcomes."""

    kind: str
    incidents: set[str] = field(default_factory=set)
    solutions: set[str] = field(default_factory=set)
    outcomes: dict[str, set[int]] = field(default_factory=dict)

    @property
    def records(self) -> list[tuple[Space, str]]:
        """All records with their spaces; what is known about outcomes goes with them."""
        return [
            (space, key)
            for space, keys in (
                (kinds.INCIDENTS, self.incidents),
                (kinds.SOLUTIONS, self.solutions),
                (kinds.AMENDMENTS, self.outcomes),
            )
            for key in sorted(keys)
        ]

    @property
    def sequences(self) -> list[int]:
        """The events of all outcomes."""
        return sorted(sequence for each in self.outcomes.values() for sequence in each)


def purge(
    foundation: Foundation, caller: Caller, record_id: str, *, confirmed: bool
) -> RecordPurged:
    """Erase a record with what belongs to it, or say what would be erased.

    Raises:
        StratagemError: No branch shows a record with this id.
    """
    with foundation.store.snapshot() as reader:
        collector = _Collector(reader)
        doomed = collector.collect(record_id)
        freed = sorted(collector.merged_into(record_id))
    erased = Erased()
    note = "Nothing was erased: confirm it with confirm=true. It cannot be undone."
    if confirmed:
        erased = foundation.purge_records(caller, doomed.records, doomed.sequences)
        note = erased.note
    results = {"kept_result": erased.results} if erased.results else {}
    return RecordPurged(
        kind=doomed.kind,
        id=record_id,
        purged=confirmed,
        incidents=len(doomed.incidents),
        solutions=len(doomed.solutions),
        outcomes=len(doomed.outcomes),
        erased=erased.events,
        copies={**erased.copies, **results},
        elsewhere=dict(erased.elsewhere),
        note=note,
        stand_again=freed or None,
    )


class _Collector:
    """Finds what belongs to a record on any branch, deleted and hidden ones included."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._views = [
            View(branch, reader.branches.lineage(branch), reader.log.head().at)
            for branch in (*reader.branches.all(), *reader.branches.transactions())
        ]

    def collect(self, record_id: str) -> _Doomed:
        """Return what is to be erased with a record."""
        if self._exists(kinds.INCIDENTS, record_id):
            doomed = _Doomed(kinds.INCIDENT, incidents={record_id})
            doomed.solutions = {
                str(hit.key) for hit in self._with_facet(kinds.facet_incident(record_id))
            }
        elif self._exists(kinds.SOLUTIONS, record_id):
            doomed = _Doomed(kinds.SOLUTION, solutions={record_id})
        else:
            doomed = _Doomed(kinds.OUTCOME)
            self._add_outcomes(doomed, self._with_facet(kinds.facet_outcome(record_id)))
            if not doomed.outcomes:
                raise missing_record(record_id, "on any branch")
        for solution in doomed.solutions:
            self._add_outcomes(doomed, self._with_facet(kinds.facet_solution(solution)))
        return doomed

    def merged_into(self, record_id: str) -> set[str]:
        """Return what points to a record as its replacement."""
        return {str(hit.key) for hit in self._with_facet(kinds.facet_merged_into(record_id))}

    def _add_outcomes(self, doomed: _Doomed, hits: Iterable[EventContent]) -> None:
        for hit in hits:
            outcome_id = orjson.loads(hit.payload)["outcome_id"]
            doomed.outcomes.setdefault(outcome_id, set()).add(hit.sequence)

    def _exists(self, space: Space, key: str) -> bool:
        # Any version on any branch, seen or not: all of them go.
        return bool(self._reader.records.subjects(space, [key]))

    def _with_facet(self, facet: str) -> Iterator[EventContent]:
        found = {
            sequence
            for view in self._views
            for sequence in self._reader.catalogue.with_facet(view, facet)
        }
        yield from self._reader.log.contents(sorted(found)).values()
