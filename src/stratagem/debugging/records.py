"""Reading incidents, solutions and outcomes as a view shows them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from stratagem import limits
from stratagem.debugging.environments import Environment, canonical, from_bucket
from stratagem.debugging.kinds import (
    FAILURE,
    INCIDENTS,
    SOLUTIONS,
    SUCCESS,
    facet_incident,
    facet_lookup,
    facet_solution,
)
from stratagem.debugging.ranking import Outcome, Solution, deduplicate_outcomes
from stratagem.engine import evidence
from stratagem.engine.lineage import View
from stratagem.errors import IncidentNotFound, LookupNotFound, SolutionNotFound
from stratagem.storage.contract import EventContent, Reader

__all__ = ["IncidentRecords"]

T = TypeVar("T")


class IncidentRecords:
    """Incidents, solutions and outcomes as one view shows them.

    With `snapshot`, the reader's data cannot change meanwhile, and what was read is cached.
    """

    def __init__(self, reader: Reader, view: View, *, snapshot: bool = False) -> None:
        self.reader = reader
        self.view = view
        self._snapshot = snapshot
        self._read: dict[str, list[Any]] = {}

    def incident(self, incident_id: str) -> Mapping[str, Any]:
        """Return an incident.

        Raises:
            IncidentNotFound: The view shows none with this id.
        """
        version = self.reader.records.current(self.view.lineage, INCIDENTS, incident_id)
        if version is None or version.payload is None:
            raise IncidentNotFound(
                f"There is no incident {incident_id!r} on this branch.",
                field="incident_id",
                incident_id=incident_id,
            )
        content: Mapping[str, Any] = orjson.loads(version.payload)
        return content

    def solution(self, solution_id: str) -> Solution:
        """Return a solution.

        Raises:
            SolutionNotFound: The view shows none with this id.
        """
        version = self.reader.records.current(self.view.lineage, SOLUTIONS, solution_id)
        if version is None or version.payload is None:
            raise SolutionNotFound(
                f"There is no solution {solution_id!r} on this branch.",
                field="solution_id",
                solution_id=solution_id,
            )
        return _solution(orjson.loads(version.payload), version.sequence)

    def require_lookup(self, lookup_id: str) -> None:
        """Check that a lookup was made on this branch.

        Raises:
            LookupNotFound: The view shows none with this id.
        """
        if not self.reader.catalogue.with_facet(self.view, facet_lookup(lookup_id), limit=1):
            raise LookupNotFound(
                f"There is no lookup {lookup_id!r} on this branch.",
                field="lookup_id",
                lookup_id=lookup_id,
            )

    def solutions(self, incident_id: str) -> list[Solution]:
        """Return the solutions of an incident, oldest first."""
        return self._read_by_facet(
            facet_incident(incident_id),
            lambda hit: _solution(orjson.loads(hit.payload), hit.sequence),
        )

    def outcomes(self, solutions: Sequence[Solution]) -> list[Outcome]:
        """Return the outcomes of some solutions that count, oldest first."""
        return deduplicate_outcomes(self._outcomes(solutions))

    def report(self, solution: Solution, lookup_id: str) -> tuple[str, bool] | None:
        """Return the first report of a lookup on a fix: its id, and what the last one says."""
        reports = [
            outcome for outcome in self._outcomes([solution]) if outcome.lookup_id == lookup_id
        ]
        return (reports[0].outcome_id, reports[-1].worked) if reports else None

    def variants(self, solution: Solution) -> list[Solution]:
        """Return the solutions of one incident that have the same steps as this one."""
        return [
            each
            for each in self.solutions(solution.incident_id)
            if each.steps_key == solution.steps_key
        ]

    def prior(self, incident_id: str) -> float:
        """Return the base rate of the other incidents: nothing lifts its own prior."""
        worked = self.reader.records.count(self.view, SUCCESS)
        failed = self.reader.records.count(self.view, FAILURE)
        # As many as were tallied, whether they count or not.
        own = [each for each in self._outcomes(self.solutions(incident_id)) if not each.repeats]
        own_worked = sum(each.worked for each in own)
        return evidence.base_rate(
            max(0, worked - own_worked), max(0, failed - (len(own) - own_worked))
        )

    def _outcomes(self, solutions: Sequence[Solution]) -> list[Outcome]:
        """Return all outcomes of some solutions, oldest first, whether they count or not."""
        outcomes = [
            outcome
            for solution in solutions
            for outcome in self._read_by_facet(facet_solution(solution.solution_id), _outcome)
        ]
        return sorted(outcomes, key=lambda outcome: outcome.sequence)

    def _read_by_facet(self, facet: str, parse: Callable[[EventContent], T]) -> list[T]:
        if facet in self._read:
            return self._read[facet]
        sequences = self.reader.catalogue.with_facet(
            self.view, facet, limit=limits.OUTCOMES_READ_MAX
        )
        hits = self.reader.log.contents(sequences)
        found = [parse(hits[sequence]) for sequence in sequences]
        if self._snapshot:
            self._read[facet] = found
        return found


def steps_key(steps: Sequence[str]) -> str:
    """Return what tells fixes apart: their words, whatever the case, spacing and numbering."""
    words = " ".join(" ".join(steps).casefold().split())
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def environment_of(content: Mapping[str, Any]) -> Environment:
    """Return the environment that a record was made in."""
    own = canonical(content.get("env") or {})
    bucket = content.get("env_bucket") or own.bucket
    # The bucket is a summary: it speaks only where it was given instead of the environment.
    named = from_bucket(bucket) if bucket != own.bucket else None
    return named if named is not None else own


def _solution(content: Mapping[str, Any], sequence: int) -> Solution:
    return Solution(
        solution_id=content["solution_id"],
        incident_id=content["incident_id"],
        steps=tuple(content["steps"]),
        steps_key=content["steps_key"],
        environment=environment_of(content),
        sequence=sequence,
    )


def _outcome(hit: EventContent) -> Outcome:
    content = orjson.loads(hit.payload)
    return Outcome(
        sequence=hit.sequence,
        solution_id=content["solution_id"],
        worked=content["worked"],
        environment=environment_of(content),
        at=content.get("at", hit.at),
        claim=content.get("claim", False),
        lookup_id=content.get("lookup_id"),
        outcome_id=content["outcome_id"],
        repeats="repeats" in content,
    )
