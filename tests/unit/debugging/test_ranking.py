from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stratagem.debugging.environments import Environment, canonical, contradictions, similarity
from stratagem.debugging.ranking import (
    RECENCY_BOOST_MAX,
    Outcome,
    Solution,
    SolutionGroup,
    deduplicate_outcomes,
    rank,
    stats,
)

NOW = 1_790_000_000_000_000
DAY = 24 * 3600 * 1_000_000
LINUX = canonical({"os": "linux", "python": "3.12"})
PLACES = [
    LINUX,
    canonical({"os": "macos", "python": "3.12"}),
    canonical({"os": "linux", "node": "20"}),
    canonical({"os": "windows", "dotnet": "8"}),
    canonical({}),
]

outcomes = st.lists(
    st.tuples(st.booleans(), st.sampled_from(PLACES), st.integers(-DAY, 3000 * DAY)), max_size=12
)


def outcome(worked: bool, place: Environment, age: int, number: int = 0) -> Outcome:
    return Outcome(number, "sol_a", worked, place, NOW - age)


def candidate(
    tried: Sequence[Outcome], *, name: str = "a", relevance: float = 1.0
) -> SolutionGroup:
    solution = Solution(f"sol_{name}", "inc", ("do it",), f"key_{name}", LINUX, 1)
    return SolutionGroup("title", relevance, (solution,), tuple(tried))


def score(tried: Sequence[Outcome], caller: Environment = LINUX, prior: float = 0.5) -> float:
    return rank([candidate(tried)], caller, NOW, priors={"inc": prior})[0].final_solution_score


def made(drawn: list[tuple[bool, Environment, int]]) -> list[Outcome]:
    return [outcome(*each, number) for number, each in enumerate(drawn)]


@given(outcomes, st.sampled_from(PLACES), st.integers(-DAY, 3000 * DAY), st.floats(0.05, 0.75))
def test_a_success_never_lowers_a_score_and_a_failure_never_raises_one(
    drawn: list[tuple[bool, Environment, int]], place: Environment, age: int, prior: float
) -> None:
    before = score(made(drawn), prior=prior)

    better = score([*made(drawn), outcome(True, place, age)], prior=prior)
    worse = score([*made(drawn), outcome(False, place, age)], prior=prior)

    assert better >= before - 1e-6
    assert worse <= before + 1e-6


@given(outcomes, st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(0, 3000 * DAY))
def test_a_success_in_a_nearer_environment_counts_at_least_as_much(
    drawn: list[tuple[bool, Environment, int]], one: Environment, other: Environment, age: int
) -> None:
    near, far = sorted((one, other), key=lambda place: -similarity(LINUX, place))
    # More alike in all and contradicting in more things is neither nearer nor farther.
    assume(contradictions(LINUX, near) <= contradictions(LINUX, far))

    assert (
        score([*made(drawn), outcome(True, near, age)])
        >= score([*made(drawn), outcome(True, far, age)]) - 0.005
    )


@given(outcomes, st.integers(0, 3000 * DAY), st.integers(0, 3000 * DAY))
def test_a_newer_success_counts_at_least_as_much(
    drawn: list[tuple[bool, Environment, int]], one: int, other: int
) -> None:
    newer, older = sorted((one, other))

    assert (
        score([*made(drawn), outcome(True, LINUX, newer)])
        >= score([*made(drawn), outcome(True, LINUX, older)]) - 1e-6
    )


@given(st.floats(0.05, 0.75))
def test_evidence_orders_as_required_whatever_the_base_rate(prior: float) -> None:
    tried = {"9/10": (9, 1), "1/1": (1, 0), "0/0": (0, 0), "0/1": (0, 1), "0/10": (0, 10)}
    candidates = [
        candidate([outcome(True, LINUX, 0)] * won + [outcome(False, LINUX, 0)] * lost, name=name)
        for name, (won, lost) in tried.items()
    ]

    order = rank(reversed(candidates), LINUX, NOW, priors={"inc": prior})

    assert [each.solution_id.removeprefix("sol_") for each in order] == list(tried)


@given(outcomes, st.sampled_from(PLACES))
@settings(max_examples=50)
def test_scores_are_finite_and_an_exact_environment_keeps_its_own_counts(
    drawn: list[tuple[bool, Environment, int]], caller: Environment
) -> None:
    tried = [*made(drawn), outcome(True, caller, DAY)]

    found = rank([candidate(tried)], caller, NOW, priors={"inc": 0.5})[0]

    own = [each for each in tried if each.environment.bucket == caller.bucket]
    assert found.best_env_bucket_match == caller.bucket
    assert found.nearest_bucket["worked"] == sum(each.worked for each in own)
    assert 0 < found.reliability_score < 1
    assert math.isfinite(found.final_solution_score)
    assert found.interval_90[0] <= found.reliability_score <= found.interval_90[1]


def test_relevance_dominates_equal_evidence_and_ties_are_decided_by_id() -> None:
    tried = [outcome(True, LINUX, DAY)]

    order = rank(
        [
            candidate(tried, name="far", relevance=0.3),
            candidate(tried, name="b"),
            candidate(tried, name="a"),
        ],
        LINUX,
        NOW,
        priors={"inc": 0.5},
    )

    assert [each.solution_id for each in order] == ["sol_a", "sol_b", "sol_far"]


@given(outcomes, st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_of_equal_evidence_the_more_relevant_incident_comes_first(
    drawn: list[tuple[bool, Environment, int]], one: float, other: float
) -> None:
    less, more = sorted((one, other))
    # By name alone the less relevant one would win.
    candidates = [
        candidate(made(drawn), name="a", relevance=less),
        candidate(made(drawn), name="b", relevance=more + 0.05),
    ]

    order = rank(candidates, LINUX, NOW, priors={"inc": 0.5})

    assert order[0].solution_id == "sol_b"


def test_no_record_makes_up_for_the_wrong_problem() -> None:
    perfect = [outcome(True, LINUX, 0)] * 50
    fair = [outcome(True, LINUX, DAY), outcome(False, LINUX, DAY)]

    order = rank(
        [candidate(perfect, name="a", relevance=0.4), candidate(fair, name="b")],
        LINUX,
        NOW,
        priors={"inc": 0.5},
    )

    assert [each.solution_id for each in order] == ["sol_b", "sol_a"]
    assert order[1].final_solution_score < 0.4 + RECENCY_BOOST_MAX


def test_old_evidence_counts_less_for_and_against() -> None:
    years = 3 * 365 * DAY

    worked, failed = (
        [
            rank([candidate([outcome(how, LINUX, age)])], LINUX, NOW, priors={"inc": 0.5})[0]
            for age in (0, years)
        ]
        for how in (True, False)
    )

    assert worked[0].reliability_score > worked[1].reliability_score > 0.5
    assert failed[0].reliability_score < failed[1].reliability_score < 0.5
    assert worked[0].effective_sample_size == 1.0
    assert worked[1].effective_sample_size == 0.125


def test_a_recent_success_decides_a_tie_and_a_failure_never_does() -> None:
    def boost(how: bool, age: int) -> float:
        found = rank([candidate([outcome(how, LINUX, age)])], LINUX, NOW, priors={"inc": 0.5})
        return found[0].recency_boost

    assert [boost(True, days * DAY) for days in (-1, 0, 90, 180)] == [0.01, 0.01, 0.005, 0.0025]
    assert boost(False, 0) == 0.0
    # Beta(1.5, 0.5): half of the way from its lower quartile to its mean.
    assert score([outcome(True, LINUX, 0)]) == pytest.approx((0.75 + 0.597149) / 2 + 0.01, abs=1e-6)


def test_what_an_author_claims_counts_a_fifth() -> None:
    claimed = Outcome(1, "sol_a", True, LINUX, NOW, claim=True)

    assert stats([claimed], LINUX, NOW, prior=0.5).effective_sample_size == 0.2
    assert stats([outcome(True, LINUX, 0)], LINUX, NOW, prior=0.5).effective_sample_size == 1.0


def test_a_failure_counts_as_far_as_the_recommendation_was_about_the_problem() -> None:
    doubtful, sure = (
        Outcome(1, "sol_a", False, LINUX, NOW, lookup_id="look", relevance=relevance)
        for relevance in (0.4, 1.0)
    )
    worked = Outcome(1, "sol_a", True, LINUX, NOW, lookup_id="look", relevance=0.4)

    sizes = [
        stats([each], LINUX, NOW, prior=0.5).effective_sample_size
        for each in (doubtful, sure, worked)
    ]

    assert sizes == [0.4, 1.0, 1.0]


def test_ten_failures_here_outweigh_two_hundred_successes_elsewhere() -> None:
    windows = canonical({"os": "windows", "python": "3.12"})
    popular = [outcome(True, LINUX, 0)] * 200 + [outcome(False, windows, 0)] * 10
    local = [outcome(True, windows, 0)] * 4

    order = rank(
        [candidate(popular, name="popular"), candidate(local, name="local")],
        windows,
        NOW,
        priors={"inc": 0.5},
    )

    assert [each.solution_id for each in order] == ["sol_local", "sol_popular"]
    assert order[0].reliability_score == pytest.approx(0.9)
    assert order[1].reliability_score < 0.4


def test_of_a_tie_the_fix_made_for_an_environment_like_the_callers_comes_first() -> None:
    def made_for(place: Environment, name: str) -> SolutionGroup:
        return SolutionGroup(
            "t", 1.0, (Solution(f"sol_{name}", "inc", ("x",), name, place, 1),), ()
        )

    order = rank([made_for(PLACES[1], "a"), made_for(LINUX, "b")], LINUX, NOW, priors={"inc": 0.5})

    assert [each.solution_id for each in order] == ["sol_b", "sol_a"]


def test_what_came_in_twice_counts_once() -> None:
    reports = [Outcome(number, "sol_a", True, LINUX, NOW, outcome_id="out") for number in (1, 2)]

    assert len(deduplicate_outcomes(reports)) == 1


def test_with_many_outcomes_reliability_tends_to_the_rate() -> None:
    tried = [outcome(number % 4 != 0, LINUX, 0) for number in range(2_000)]

    assert abs(stats(tried, LINUX, NOW, prior=0.5).reliability_score - 0.75) < 0.01


def test_of_several_reports_from_one_lookup_the_last_counts() -> None:
    reports = [
        Outcome(number, "sol_a", worked, LINUX, NOW, lookup_id="look")
        for number, worked in enumerate((True, True, False))
    ]

    assert [each.worked for each in deduplicate_outcomes(reports)] == [False]
