"""What debugging answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stratagem.display import DisplayableResult

__all__ = [
    "IncidentAdded",
    "IncidentMatch",
    "NextAction",
    "OutcomeRecorded",
    "RankedSolution",
    "RankedSolutions",
    "RecommendationStatistics",
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
    """An incident like the one asked about. `relevance` is 1 for the same signature."""

    incident_id: str
    title: str
    relevance: float
    exact: bool
    solutions: int
    summary: str | None = None


@dataclass(slots=True, repr=False)
class RankedSolution(DisplayableResult):
    """A fix, how sure we are of it here, and why it ranks where it does."""

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
    overall: dict[str, int]
    why: str
    variants: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class RankedSolutions(DisplayableResult):
    """The fixes for a problem, best first."""

    lookup_id: str | None
    incidents: list[IncidentMatch]
    ranked_solutions: list[RankedSolution]
    recommended_solution: RankedSolution | None
    next_action: NextAction
    env_bucket: str
    mode: str

    def __iter__(self) -> Iterator[RankedSolution]:
        return iter(self.ranked_solutions)

    def __len__(self) -> int:
        return len(self.ranked_solutions)


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
class RecommendationStatistics(DisplayableResult):
    """How well the recommendations did."""

    incidents: int
    solutions: int
    outcomes: int
    lookups: int
    answered: int
    first_recommendation_worked: int
    hit_rate: float | None
    by_month: list[dict[str, Any]]
    without_solutions: list[dict[str, str]]
    stopped_working: list[dict[str, Any]]
