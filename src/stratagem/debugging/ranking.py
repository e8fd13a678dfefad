"""Which fix to try first.

A fix is worth trying when its incident is the one at hand (relevance) and when it worked for
others, most of all in environments like the caller's (reliability). Each outcome is weighted by the
similarity of its environment, its age and its reporter; outcomes in environments that contradict
the caller's count as six at most (`engine.evidence`). An author's claim counts little, and a
failure that was reported on a recommendation is weighted by the relevance of that recommendation. A
fix without evidence gets the base rate of the others.

    final = relevance · (reliability + its lower quartile) / 2 + a little for a recent success

By the mean alone a fix that only its author praises would tie with one that worked for four of
five; the quartile takes into account how little evidence there is. A recent success decides ties;
remaining ties go to the fix made for an environment more like the caller's.

A success can only raise each factor and a failure only lower it. Fixes of one incident with
the same steps are one fix: they pool their evidence, and are represented by the variant made for
the environment most like the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from stratagem.debugging.environments import Environment, contradictions, is_like, similarity
from stratagem.debugging.models import RankedSolution, SolutionStats
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import evidence
from stratagem.engine.evidence import Belief, Observation

__all__ = [
    "Outcome",
    "Solution",
    "SolutionGroup",
    "deduplicate_outcomes",
    "has_only_failed",
    "has_only_failed_here",
    "rank",
    "stats",
]

# Ties only: the difference that one weak outcome makes is larger.
RECENCY_BOOST_MAX: Final = 0.01
RECENCY_HALF_LIFE_DAYS: Final = 90
_DAY_US: Final = 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attempt. `claim`: reported by the fix's author with the fix itself.

    `revision` are the steps that were tried, where the fix was edited since; `retired`: somebody
    has said that it does not count.
    `relevance` is that of the recommendation it was reported on, 1 where there was none.
    """

    sequence: int
    solution_id: str
    worked: bool
    environment: Environment
    at: int
    claim: bool = False
    lookup_id: str | None = None
    outcome_id: str = ""
    repeats: bool = False
    revision: str = ""
    retired: bool = False
    relevance: float = 1.0

    @property
    def trust(self) -> float:
        """Its weight as evidence about the fix."""
        if self.claim:
            return evidence.CLAIM_TRUST
        # A failure for another problem is no failure of the fix; a success always counts.
        return 1.0 if self.worked else self.relevance


@dataclass(frozen=True, slots=True)
class Solution:
    """A fix.

    `revisions` are those of its steps whose outcomes count, the present one last; `merged_into` is
    the fix that replaces it.
    """

    solution_id: str
    incident_id: str
    steps: tuple[str, ...]
    steps_key: str
    environment: Environment
    sequence: int
    revisions: tuple[str, ...] = ("",)
    retired: bool = False
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class SolutionGroup:
    """A fix with all its variants and outcomes, and how well its incident fits, `fit` in words."""

    incident_title: str
    relevance: float
    variants: tuple[Solution, ...]
    outcomes: tuple[Outcome, ...]
    fit: str = "The same error signature"


def deduplicate_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return each outcome once: of several from one lookup for one fix, the last.

    An outcome that was imported on two branches, which were then merged, also counts once.
    """
    last: dict[tuple[str, str], int] = {}
    listed = list({each.outcome_id or each.sequence: each for each in outcomes}.values())
    for outcome in listed:
        if outcome.lookup_id is not None:
            last[outcome.lookup_id, outcome.solution_id] = outcome.sequence
    return [
        outcome
        for outcome in listed
        if outcome.lookup_id is None
        or last[outcome.lookup_id, outcome.solution_id] == outcome.sequence
    ]


def believe(outcomes: Sequence[Outcome], caller: Environment, now: int, *, prior: float) -> Belief:
    """Return how reliable a fix is for a caller."""
    return evidence.believe(
        (_observation(outcome, caller, now) for outcome in outcomes),
        prior=prior,
        prior_weight=evidence.FIX_PRIOR_WEIGHT,
    )


def _observation(outcome: Outcome, caller: Environment, now: int) -> Observation:
    weight = evidence.weight(
        similarity=similarity(caller, outcome.environment),
        age_us=now - outcome.at,
        trust=outcome.trust,
    )
    return Observation(
        outcome.worked, weight, min(evidence.FAR, contradictions(caller, outcome.environment))
    )


def rank(
    candidates: Iterable[SolutionGroup],
    caller: Environment,
    now: int,
    *,
    priors: Mapping[str, float],
) -> list[RankedSolution]:
    """Return the fixes, the one to try first first; `priors` is by incident."""
    ranked = [
        (
            _score_group(candidate, caller, now, priors[candidate.variants[0].incident_id]),
            # No outcome moves it, so that a tie is no way around the evidence.
            similarity(caller, _representative(candidate, caller).environment),
        )
        for candidate in candidates
    ]
    ranked.sort(key=lambda each: (-each[0].final_solution_score, -each[1], each[0].solution_id))
    return [each for each, _ in ranked]


def has_only_failed(best: RankedSolution) -> bool:
    """Say whether all that is known of a fix, in the caller's environment or at all, is failure."""
    everywhere = bool(best.overall["failed"]) and not best.overall["worked"]
    return everywhere or has_only_failed_here(best)


def has_only_failed_here(best: RankedSolution) -> bool:
    """Say whether all that is known of a fix in environments like the caller's is failure.

    In the very same environment it is enough to have failed, wherever else it worked.
    """
    counts = [best.here, *([best.nearest_bucket] if best.env_match_score >= 1 else [])]
    return any(here["failed"] and not here["worked"] for here in counts)


def stats(
    outcomes: Sequence[Outcome], caller: Environment, now: int, *, prior: float
) -> SolutionStats:
    """Return the evidence for a fix, as a caller sees it."""
    belief = believe(outcomes, caller, now, prior=prior)
    buckets: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        bucket = buckets.setdefault(outcome.environment.bucket, {"worked": 0, "failed": 0})
        bucket["worked" if outcome.worked else "failed"] += 1
    overall = _counts(outcomes)
    return SolutionStats(
        worked=overall["worked"],
        failed=overall["failed"],
        reliability_score=round(belief.mean, 6),
        effective_sample_size=round(belief.sample_size, 3),
        interval_90=[round(belief.low, 4), round(belief.high, 4)],
        buckets=buckets,
    )


def _score_group(
    candidate: SolutionGroup, caller: Environment, now: int, prior: float
) -> RankedSolution:
    belief = believe(candidate.outcomes, caller, now, prior=prior)
    representative = _representative(candidate, caller)
    nearest = _nearest_environment(candidate, caller)
    counts = _counts(
        each for each in candidate.outcomes if each.environment.bucket == nearest.bucket
    )
    here = _counts(each for each in candidate.outcomes if is_like(caller, each.environment))
    boost = _recency_boost(candidate.outcomes, now)
    likeness = similarity(caller, nearest)
    final = min(1.0, candidate.relevance * belief.cautious + boost)
    return RankedSolution(
        solution_id=representative.solution_id,
        incident_id=representative.incident_id,
        incident_title=candidate.incident_title,
        steps=list(representative.steps),
        best_env_bucket_match=nearest.bucket,
        env_match_score=round(likeness, 4),
        reliability_score=round(belief.mean, 6),
        recency_boost=round(boost, 6),
        final_solution_score=round(final, 6),
        relevance=round(candidate.relevance, 4),
        effective_sample_size=round(belief.sample_size, 3),
        interval_90=[round(belief.low, 4), round(belief.high, 4)],
        nearest_bucket=counts,
        here=here,
        overall=_counts(candidate.outcomes),
        why=_explain_rank(candidate, nearest.bucket, likeness, counts),
        variants=[
            each.solution_id
            for each in candidate.variants
            if each.solution_id != representative.solution_id
        ],
    )


def _representative(candidate: SolutionGroup, caller: Environment) -> Solution:
    """Return the variant that was made for the environment most like the caller's."""
    return max(
        candidate.variants,
        key=lambda each: (similarity(caller, each.environment), -each.sequence),
    )


def _nearest_environment(candidate: SolutionGroup, caller: Environment) -> Environment:
    """Return the environment most like the caller's for which there is any evidence."""
    known = [each.environment for each in candidate.outcomes]
    known = known or [each.environment for each in candidate.variants]
    return max(known, key=lambda each: (similarity(caller, each), each.bucket))


def _recency_boost(outcomes: Sequence[Outcome], now: int) -> float:
    """Return the boost of the newest success; failures never give one."""
    newest = max((each.at for each in outcomes if each.worked), default=None)
    if newest is None:
        return 0.0
    age_days = max(0.0, (now - newest) / _DAY_US)
    return float(RECENCY_BOOST_MAX * 2.0 ** (-age_days / RECENCY_HALF_LIFE_DAYS))


def _counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    results = [each.worked for each in outcomes]
    return {"worked": sum(results), "failed": len(results) - sum(results)}


def _explain_rank(
    candidate: SolutionGroup, bucket: str, likeness: float, here: Mapping[str, int]
) -> str:
    """Say in a sentence why a fix ranks where it does."""
    problem = candidate.fit
    overall = _counts(candidate.outcomes)
    tried = overall["worked"] + overall["failed"]
    if not tried:
        return f"{problem}; nobody has reported on this fix yet."
    total: Any = f"{overall['worked']} of {tried}"
    near = here["worked"] + here["failed"]
    place = f"in {bucket or 'an unknown environment'} (match {likeness:.2f})"
    if near == tried:
        return f"{problem}; it worked in {total} attempts, {place}."
    return f"{problem}; it worked in {total} attempts, {here['worked']} of {near} of them {place}."
