"""What debugging answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from stratagem.deferred_dataclasses import dataclass
from stratagem.display import DisplayableResult

__all__ = [
    "IncidentAdded",
    "IncidentMatch",
    "IncidentSplit",
    "ListedIncident",
    "ListedIncidents",
    "ListedOutcome",
    "ListedOutcomes",
    "ListedSolution",
    "ListedSolutions",
    "NextAction",
    "OutcomeRecorded",
    "RankedSolution",
    "RankedSolutions",
    "RecommendationStatistics",
    "RecordChanged",
    "RecordDetails",
    "RecordPurged",
    "RecordVersion",
    "SolutionAdded",
    "SolutionStats",
]


@dataclass(slots=True, repr=False)
class NextAction(DisplayableResult):
    """What the caller should do next."""

    type: str
    instructions: str


@dataclass(slots=True, repr=False)
class IncidentMatch(DisplayableResult):
    """An incident like the one asked about.

    `relevance` is the probability that it is the same problem, 1 for the same signature. `agreed`
    are telling words that both have; `asked_only` and `known_only` those that only one of them has.
    """

    incident_id: str
    title: str
    relevance: float
    exact: bool
    solutions: int
    summary: str | None = None
    agreed: list[str] = field(default_factory=list)
    asked_only: list[str] = field(default_factory=list)
    known_only: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class RankedSolution(DisplayableResult):
    """A fix, how sure we are of it here, and why it ranks where it does.

    `nearest_bucket` counts its outcomes in the environment with evidence that is most like the
    caller's, `here` those in all that do not contradict it.
    """

    solution_id: str
    incident_id: str
    incident_title: str
    steps: list[str]
    best_env_bucket_match: str
    env_match_score: float
    reliability_score: float
    recency_boost: float
    final_solution_score: float
    relevance: float
    effective_sample_size: float
    interval_90: list[float]
    nearest_bucket: dict[str, int]
    here: dict[str, int]
    overall: dict[str, int]
    why: str
    variants: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class RankedSolutions(DisplayableResult):
    """The fixes for a problem, best first.

    Only incidents that are likely the same problem have theirs among them; `note` names the nearest
    of the others where there is none.
    """

    lookup_id: str | None
    incidents: list[IncidentMatch]
    ranked_solutions: list[RankedSolution]
    recommended_solution: RankedSolution | None
    next_action: NextAction
    env_bucket: str
    mode: str
    note: str | None = None

    def __iter__(self) -> Iterator[RankedSolution]:
        return iter(self.ranked_solutions)

    def __len__(self) -> int:
        return len(self.ranked_solutions)

    def __getitem__(self, place: int) -> RankedSolution:
        return self.ranked_solutions[place]


@dataclass(slots=True, repr=False)
class SolutionStats(DisplayableResult):
    """The evidence for a solution, as seen from one environment."""

    worked: int
    failed: int
    reliability_score: float
    effective_sample_size: float
    interval_90: list[float]
    buckets: dict[str, dict[str, int]]


@dataclass(slots=True, repr=False)
class OutcomeRecorded(DisplayableResult):
    """An outcome was recorded, and what it changed."""

    ok: bool
    outcome_id: str
    solution_id: str
    env_bucket: str
    counted: bool
    stats: SolutionStats
    effect: dict[str, Any]
    next_action: NextAction
    note: str | None = None


@dataclass(slots=True, repr=False)
class SolutionAdded(DisplayableResult):
    """A fix was added to an incident."""

    solution_id: str
    incident_id: str
    env_bucket: str
    next_action: NextAction
    note: str | None = None


@dataclass(slots=True, repr=False)
class IncidentAdded(DisplayableResult):
    """An incident was added with its fix and outcome, or its twin was found instead."""

    incident_id: str
    solution_id: str | None
    outcome_id: str | None
    duplicate: bool
    next_action: NextAction
    title: str | None = None
    env_bucket: str | None = None
    similar_incident: dict[str, Any] | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class ListedIncident(DisplayableResult):
    """An incident as lists show it.

    `standing`: "solved" where a fix that still stands has worked, "open" where none has, "retired"
    or "merged". `worked` and `failed` count the outcomes of its fixes that count.
    """

    incident_id: str
    title: str
    standing: str
    solutions: int
    worked: int
    failed: int
    environments: list[str]
    tags: list[str]
    added: str
    changed: str
    version: int
    summary: str | None = None
    error: str | None = None
    merged_into: str | None = None
    split_from: str | None = None
    retired: dict[str, Any] | None = None


@dataclass(slots=True, repr=False)
class ListedSolution(DisplayableResult):
    """A fix as lists show it.

    `standing`: "working" where it worked last, "failing" where it failed last, "untested",
    "retired" or "merged".
    """

    solution_id: str
    incident_id: str
    incident_title: str
    standing: str
    steps: list[str]
    worked: int
    failed: int
    env_bucket: str
    added: str
    changed: str
    version: int
    merged_into: str | None = None
    retired: dict[str, Any] | None = None


@dataclass(slots=True, repr=False)
class ListedOutcome(DisplayableResult):
    """An attempt as lists show it.

    `standing`: "counted"; "claim" where the author of the fix says so, which counts little;
    "repeated" where a later report of the same lookup counts instead; "reset" where the steps
    were other ones; "retired".
    """

    outcome_id: str
    solution_id: str
    incident_id: str
    worked: bool
    standing: str
    env_bucket: str
    at: str
    version: int
    notes: str | None = None
    lookup_id: str | None = None
    retired: dict[str, Any] | None = None


@dataclass(slots=True, repr=False)
class ListedIncidents(DisplayableResult):
    """A page of incidents, those that were changed last first."""

    results: list[ListedIncident]
    as_of: str
    truncated: bool | None = None
    next: str | None = None
    note: str | None = None

    def __iter__(self) -> Iterator[ListedIncident]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> ListedIncident:
        return self.results[place]


@dataclass(slots=True, repr=False)
class ListedSolutions(DisplayableResult):
    """A page of fixes, those that were changed last first."""

    results: list[ListedSolution]
    as_of: str
    truncated: bool | None = None
    next: str | None = None
    note: str | None = None

    def __iter__(self) -> Iterator[ListedSolution]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> ListedSolution:
        return self.results[place]


@dataclass(slots=True, repr=False)
class ListedOutcomes(DisplayableResult):
    """A page of outcomes, those that were written last first."""

    results: list[ListedOutcome]
    as_of: str
    truncated: bool | None = None
    next: str | None = None
    note: str | None = None

    def __iter__(self) -> Iterator[ListedOutcome]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> ListedOutcome:
        return self.results[place]


@dataclass(slots=True, repr=False)
class RecordVersion(DisplayableResult):
    """What was done to a record once, when and by whom."""

    version: int
    at: str
    actor: str
    did: str
    reason: str | None = None


@dataclass(slots=True, repr=False)
class RecordDetails(DisplayableResult):
    """An incident, a fix or an outcome with what belongs to it, and its versions, newest first."""

    kind: str
    id: str
    versions: list[RecordVersion]
    incident: ListedIncident | None = None
    solutions: list[ListedSolution] | None = None
    outcomes: list[ListedOutcome] | None = None
    error_signature: str | None = None
    merged_from: list[str] | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class RecordChanged(DisplayableResult):
    """A record was edited, retired, restored or merged."""

    kind: str
    id: str
    did: str
    standing: str
    version: int
    also: list[str] | None = None
    evidence: str | None = None
    merged_into: str | None = None
    note: str | None = None


@dataclass(slots=True, repr=False)
class IncidentSplit(DisplayableResult):
    """Part of an incident became an incident of its own."""

    incident_id: str
    split_from: str
    solutions: list[str]
    outcomes: list[str]
    note: str | None = None


@dataclass(slots=True, repr=False)
class RecordPurged(DisplayableResult):
    """What was erased for good, or would be: nothing is, unless it was confirmed.

    `stand_again`: what was merged into it, and now stands for itself again.
    """

    kind: str
    id: str
    purged: bool
    incidents: int
    solutions: int
    outcomes: int
    erased: int
    copies: dict[str, int]
    elsewhere: dict[str, int]
    note: str
    stand_again: list[str] | None = None


@dataclass(slots=True, repr=False)
class RecommendationStatistics(DisplayableResult):
    """How well the recommendations worked.

    Only lookups that somebody made count; `automatic` are those the gateway made by itself.
    `calibration` and `by_month` set what was promised (relevance times reliability of the first
    recommendation) against what happened, where an outcome was reported; `calibration_error` is
    the mean difference. Lookups of earlier releases kept no promise.
    """

    incidents: int
    solutions: int
    outcomes: int
    lookups: int
    automatic: int
    answered: int
    first_recommendation_worked: int
    hit_rate: float | None
    promised: float | None
    calibration_error: float | None
    no_match: int
    by_month: list[dict[str, Any]]
    calibration: list[dict[str, Any]]
    no_match_then_added: list[dict[str, str]]
    without_solutions: list[dict[str, str]]
    stopped_working: list[dict[str, Any]]
