"""Reading incidents, solutions and outcomes as a view shows them.

A record that was merged into another points to it (`merged_into`), and keeps everything it has:
its solutions and outcomes are read with those of its replacement, so that nothing is copied and
nothing can count twice. Two branches may have merged two records into each other; of such a circle
the smallest id stands for all, which is the same on every branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar

import orjson

from stratagem import limits
from stratagem.debugging.environments import Environment, canonical, from_bucket
from stratagem.debugging.kinds import (
    AMENDMENT,
    FAILURE,
    INCIDENTS,
    MERGED,
    REPORT,
    SOLUTIONS,
    SUCCESS,
    facet_amended,
    facet_incident,
    facet_lookup,
    facet_merged_into,
    facet_moved_to,
    facet_outcome,
    facet_solution,
)
from stratagem.debugging.ranking import Outcome, Solution, deduplicate_outcomes
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import hashlib
from stratagem.deferred_patterns import deferred_pattern
from stratagem.engine import evidence
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.engine.relevance import LISTED_MIN
from stratagem.errors import IncidentNotFound, LookupNotFound, SolutionNotFound
from stratagem.storage.contract import EventContent, Reader, Version

__all__ = ["IncidentRecords", "Lookup", "environment_of", "solution_of", "steps_key"]

# What a list, a shell or Markdown puts around a step.
_UNMARKED: Final = deferred_pattern(r"(?<!\S)```\w*|`+|\*\*")
# At most 30 words of numbering and courtesy in front of what is to be done.
_LEAD: Final = deferred_pattern(
    r"(?i)^(?:(?:(?:step )?\d{1,3}[.):]|[a-z]\)|[-•*$>#]|first|then|next|now|finally|please|just"
    r"|try|you (?:can|should|need to|have to|must))[,:]?\s+){0,30}"
    r"(?:(?:run|execute|type|enter|use)(?: the (?:following )?command)?:?\s+)?"
)
_SENTENCE_SIGNS: Final = ".,;:!'\""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup: the relevance of its recommended fixes and of its incidents.

    `by_incident` is None of lookups that were kept without.
    """

    by_solution: Mapping[str, float]
    by_incident: Mapping[str, float] | None

    def relevance_of(self, variants: Sequence[Solution], incidents: Iterable[str]) -> float | None:
        """Return how likely a fix was for the problem that was looked up; None if nobody said.

        A fix that was not recommended is as likely as the most likely of its `incidents`; what was
        not listed at all is less likely than anything listed.
        """
        recommended = _relevances_of(self.by_solution, (each.solution_id for each in variants))
        if recommended or self.by_incident is None:
            return max(recommended, default=None)
        return max(_relevances_of(self.by_incident, incidents), default=LISTED_MIN)


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
        """Return an incident, also one that was retired or merged into another.

        Raises:
            IncidentNotFound: The view shows none with this id.
        """
        version = self.current(INCIDENTS, incident_id)
        if version is None:
            raise IncidentNotFound(
                f"There is no incident {incident_id!r} on this branch.",
                field="incident_id",
                incident_id=incident_id,
            )
        content: Mapping[str, Any] = orjson.loads(version.payload or b"")
        return content

    def solution(self, solution_id: str) -> Solution:
        """Return a solution, also one that was retired or merged into another.

        Raises:
            SolutionNotFound: The view shows none with this id.
        """
        version = self.current(SOLUTIONS, solution_id)
        if version is None:
            raise SolutionNotFound(
                f"There is no solution {solution_id!r} on this branch.",
                field="solution_id",
                solution_id=solution_id,
            )
        return solution_of(orjson.loads(version.payload or b""), version.sequence)

    def content(self, space: Space, key: str) -> dict[str, Any]:
        """Return what the newest version of a record says: nothing where there is none."""
        version = self.current(space, key)
        content: dict[str, Any] = orjson.loads(version.payload or b"") if version else {}
        return content

    def current(self, space: Space, key: str) -> Version | None:
        """Return the newest version of a record, or None where the view shows none."""
        version = self.reader.records.current(self.view.lineage, space, key)
        return None if version is None or version.payload is None else version

    def resolve_incident(self, incident_id: str) -> str:
        """Return the incident that an id stands for: its replacement, where it was merged."""
        return self._resolve(INCIDENTS, incident_id)

    def resolve_solution(self, solution_id: str) -> str:
        """Return the solution that an id stands for: its replacement, where it was merged."""
        return self._resolve(SOLUTIONS, solution_id)

    def merged_into(self, space: Space, key: str) -> list[str]:
        """Return a record and all that were merged into it, directly or by way of others."""
        found = [key]
        if self._merged_counts[space.kind]:
            for each in found:
                ids = self._read_by_facet(
                    facet_merged_into(each),
                    lambda hit: (hit.space, hit.key),
                )
                found += [
                    other for of, other in ids if of == space and other and other not in found
                ]
        return found

    def lookup(self, lookup_id: str) -> Lookup:
        """Return what was recommended by a lookup.

        Raises:
            LookupNotFound: The view shows none with this id.
        """
        sequences = self.reader.catalogue.with_facet(self.view, facet_lookup(lookup_id), limit=1)
        if not sequences:
            raise LookupNotFound(
                f"There is no lookup {lookup_id!r} on this branch.",
                field="lookup_id",
                lookup_id=lookup_id,
            )
        content = orjson.loads(self.reader.log.contents(sequences)[sequences[0]].payload)
        # Older lookups were kept without the one or the other.
        pairs = zip(content.get("solutions", ()), content.get("relevances", ()), strict=False)
        listed = content.get("incident_relevances")
        by_incident = (
            None if listed is None else dict(zip(content["incidents"], listed, strict=True))
        )
        return Lookup(dict(pairs), by_incident)

    def lookup_history(
        self, tried: Solution, stands: Solution, lookup_id: str | None
    ) -> tuple[tuple[str, bool] | None, float | None]:
        """Return a lookup's first report on a fix, and how likely it was about the fix's problem.

        `stands` is the fix that what was tried was merged into, or that itself.

        Raises:
            LookupNotFound: The view shows none with this id.
        """
        if lookup_id is None:
            return None, None
        lookup = self.lookup(lookup_id)
        if self._came_of(tried, lookup_id):
            return self.report(stands, lookup_id), None
        incidents = {tried.incident_id, *self.merged_into(INCIDENTS, stands.incident_id)}
        relevance = lookup.relevance_of([tried, *self.variants(stands)], incidents)
        return self.report(stands, lookup_id), relevance

    def _came_of(self, solution: Solution, lookup_id: str) -> bool:
        """Say whether a fix, or its incident, was added for the problem that was looked up."""
        added = (
            self.content(SOLUTIONS, solution.solution_id),
            self.content(INCIDENTS, solution.incident_id),
        )
        return any(content.get("lookup_id") == lookup_id for content in added)

    def solutions(self, incident_id: str) -> list[Solution]:
        """Return the solutions of an incident that stand for themselves, oldest first."""
        return [
            each
            for each in self.every_solution(incident_id)
            if not each.retired and each.merged_into is None
        ]

    def every_solution(self, incident_id: str) -> list[Solution]:
        """Return the solutions of an incident, and of those that were merged into it."""
        stands = self.resolve_incident(incident_id)
        found = [
            replace(
                each,
                incident_id=stands,
                # Of a circle of replacements one stands for itself.
                merged_into=each.merged_into
                and self._other(each.solution_id, self.resolve_solution(each.solution_id)),
            )
            for member in self.merged_into(INCIDENTS, stands)
            for each in self._read_by_facet(
                facet_incident(member),
                lambda hit: solution_of(orjson.loads(hit.payload), hit.sequence),
            )
        ]
        return sorted(found, key=lambda each: each.sequence)

    def outcomes(self, solutions: Sequence[Solution]) -> list[Outcome]:
        """Return the outcomes of some solutions that count, oldest first."""
        return deduplicate_outcomes(
            each for each, counts in self.marked_outcomes(solutions) if counts
        )

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
            for each in self.every_solution(solution.incident_id)
            if each.steps_key == solution.steps_key
            and each.retired == solution.retired
            and each.merged_into is None
        ]

    def prior(self, incident_id: str) -> float:
        """Return the base rate of the other incidents: nothing lifts its own prior.

        What authors claim of their own fixes is no part of it.
        """
        count = self.reader.catalogue.group_counts
        worked = count(self.view.lineage, SUCCESS).get(REPORT, 0)
        failed = count(self.view.lineage, FAILURE).get(REPORT, 0)
        # As many as were tallied, whether they count or not.
        standing = [each for each in self.every_solution(incident_id) if each.merged_into is None]
        own = [each for each in self._outcomes(standing) if not each.repeats and not each.claim]
        own_worked = sum(each.worked for each in own)
        return evidence.base_rate(
            max(0, worked - own_worked), max(0, failed - (len(own) - own_worked))
        )

    def _outcomes(self, solutions: Sequence[Solution]) -> list[Outcome]:
        """Return all outcomes of some solutions, oldest first, whether they count or not."""
        return [each for each, _ in self.marked_outcomes(solutions)]

    def marked_outcomes(self, solutions: Sequence[Solution]) -> list[tuple[Outcome, bool]]:
        """Return the outcomes of some solutions, oldest first, and whether each counts.

        What was merged into a solution is read with it, under its id.
        """
        marked = []
        for solution in solutions:
            own = solution.solution_id
            for member in self.merged_into(SOLUTIONS, own):
                revisions = solution.revisions if member == own else self.solution(member).revisions
                marked += [
                    (
                        each if member == own else replace(each, solution_id=own),
                        each.revision in revisions and not each.retired,
                    )
                    for each in self._reports_on(member)
                ]
        return sorted(marked, key=lambda each: each[0].sequence)

    def _reports_on(self, solution_id: str) -> list[Outcome]:
        """Return what was reported on a solution, with what was moved to it and not from it."""
        reported = self._read_by_facet(facet_solution(solution_id), _outcome)
        if not self._has_amendments:
            return reported
        amendments = self._amendments(facet_amended(solution_id))
        kept = [
            replace(each, retired="retired" in amendments.get(each.outcome_id, {}))
            for each in reported
            if amendments.get(each.outcome_id, {}).get("moved_to", solution_id) == solution_id
        ]
        moved = [
            replace(each, solution_id=solution_id, retired="retired" in amendment)
            for outcome_id, amendment in self._amendments(facet_moved_to(solution_id)).items()
            for each in self._read_by_facet(facet_outcome(outcome_id), _outcome)
            if each.solution_id != solution_id
        ]
        return sorted(kept + moved, key=lambda each: each.sequence)

    def _amendments(self, facet: str) -> dict[str, Mapping[str, Any]]:
        contents: list[Mapping[str, Any]] = self._read_by_facet(
            facet, lambda hit: orjson.loads(hit.payload)
        )
        return {each["outcome_id"]: each for each in contents}

    def _resolve(self, space: Space, key: str) -> str:
        path = [key]
        while self._merged_counts[space.kind]:
            version = self.current(space, path[-1])
            following = orjson.loads(version.payload or b"").get("merged_into") if version else None
            if following is None or self.current(space, following) is None:
                break
            if following in path:
                return min(path[path.index(following) :])
            path.append(following)
        return path[-1]

    @staticmethod
    def _other(own: str, replacement: str) -> str | None:
        return None if own == replacement else replacement

    @cached_property
    def _merged_counts(self) -> dict[str, int]:
        """How many incidents and solutions were merged into others; mostly there are none."""
        return {
            space.kind: self.reader.catalogue.group_counts(self.view.lineage, space.kind).get(
                MERGED, 0
            )
            for space in (INCIDENTS, SOLUTIONS)
        }

    @cached_property
    def _has_amendments(self) -> bool:
        return self.reader.records.count(self.view, AMENDMENT) > 0

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
    """Return the identity of a fix: its words without case, spacing, numbering and punctuation.

    `pip install numpy.`, "1. Run `pip install numpy`" and "$ pip install numpy" are one fix.
    """
    lines = (_UNMARKED.sub("", line) for step in steps for line in step.splitlines())
    words = (word for line in lines for word in _LEAD.sub("", line.strip(), count=1).split())
    # A word of signs alone is an argument, as in `pip install -e .`
    plain = (word.strip(_SENTENCE_SIGNS) or word for word in words)
    return hashlib.sha256(" ".join(plain).casefold().encode()).hexdigest()[:32]


def environment_of(content: Mapping[str, Any]) -> Environment:
    """Return the environment that a record was made in."""
    own = canonical(content.get("env") or {})
    bucket = content.get("env_bucket") or own.bucket
    # The bucket is a summary: it speaks only where it was given instead of the environment.
    named = from_bucket(bucket) if bucket != own.bucket else None
    return named if named is not None else own


def _relevances_of(relevances: Mapping[str, float], ids: Iterable[str]) -> list[float]:
    return [relevances[each] for each in ids if each in relevances]


def solution_of(content: Mapping[str, Any], sequence: int) -> Solution:
    """Return a solution as a version of it tells."""
    return Solution(
        solution_id=content["solution_id"],
        incident_id=content["incident_id"],
        steps=tuple(content["steps"]),
        # Not as it was written: under older rules fewer fixes were one.
        steps_key=steps_key(content["steps"]),
        environment=environment_of(content),
        sequence=sequence,
        revisions=tuple(content.get("evidence_revisions", ("",))),
        retired="retired" in content,
        merged_into=content.get("merged_into"),
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
        revision=content.get("revision", ""),
        relevance=content.get("relevance", 1.0),
    )
