"""The loop closed: failures ask the debugging memory, and successes tell it what helped."""

from __future__ import annotations

from pathlib import Path

import pytest

from stratagem import limits
from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves

UNLUCKY = {"query": "unlucky"}
ENVIRONMENT = {"runtime": "gateway", "tool": "search"}


def know_a_fix(shop: Workshop) -> str:
    """Record the incident, and a fix that was seen to work."""
    error = shop.fails("search", UNLUCKY, "first")
    added = shop.ask(
        "add_incident",
        title="search finds nothing for the unlucky",
        error_signature=f"search: {error.message}",
        steps=["Leave the word out."],
        env=ENVIRONMENT,
        worked=True,
    )
    solution: str = added["solution_id"]
    for _time in range(4):
        shop.ask("record_outcome", solution_id=solution, worked=True, env=ENVIRONMENT)
    return solution


def evidence(shop: Workshop) -> float:
    """Return how much speaks for the fix."""
    found = shop.ask(
        "ranked_solutions",
        query_text="search: ValueError: nothing can be found for unlucky",
        env=ENVIRONMENT,
    )
    size: float = found["recommended_solution"]["effective_sample_size"]
    return size


@proves("fix:told")
def test_the_error_carries_the_best_known_fix(shop: Workshop) -> None:
    solution = know_a_fix(shop)

    fix = shop.fails("search", UNLUCKY).details["knownFix"]

    assert fix["solutionId"] == solution
    assert fix["steps"]
    assert fix["reliability"] > 0.5


@proves("fix:told")
@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("nothing can be found for the unlucky", True),
        ("the shop said: nothing can be found for unlucky people", True),
        ("nothing can be found, said the other server", False),
        ("the index is broken", False),
        ("the quota of the unlucky is used up", False),
    ],
)
def test_a_fix_for_another_error_is_not_told(shop: Workshop, message: str, told: bool) -> None:
    know_a_fix(shop)

    def lookup(query: str) -> None:
        raise ValueError(message)

    shop.database.gateway.add(lookup)

    error = shop.fails("lookup", {"query": "x"})

    assert ("knownFix" in error.details) is told


@proves("fix:credit")
def test_a_later_success_of_the_same_caller_counts_for_the_fix(shop: Workshop) -> None:
    know_a_fix(shop)
    before = evidence(shop)
    shop.fails("search", UNLUCKY)
    shop.run("search", {"query": "somebody else"}, "bob")
    assert evidence(shop) == pytest.approx(before, abs=0.01)

    shop.run("search", {"query": "lucky"})

    assert evidence(shop) > before + 0.5


@proves("fix:credit")
def test_one_success_counts_once(shop: Workshop) -> None:
    know_a_fix(shop)
    shop.fails("search", UNLUCKY)
    shop.run("search", {"query": "lucky"})
    after = evidence(shop)

    shop.run("search", {"query": "lucky again"})

    assert evidence(shop) == pytest.approx(after, abs=0.01)


@proves("fix:draft")
def test_a_repeated_failure_becomes_a_draft_once(shop: Workshop) -> None:
    for number in range(2):
        shop.fails("search", {"query": f"unlucky {number}"})
        shop.run("search", {"query": "fine"})
    assert shop.incidents() == []

    for number in range(2, 7):
        shop.fails("search", {"query": f"unlucky {number}"})
        shop.run("search", {"query": "fine"})

    (draft,) = shop.incidents()
    assert "draft" in draft["tags"]
    assert "tool:search" in draft["tags"]
    assert "nothing can be found" in draft["title"]


@proves("fix:draft")
def test_failures_that_are_recorded_together_count_once_each(shop: Workshop) -> None:
    with shop.holding_records():
        for number in range(2):
            shop.fails("search", {"query": f"unlucky {number}"})

    assert shop.incidents() == []


@proves("fix:draft")
def test_a_refused_call_is_no_failure_of_the_tool(shop: Workshop) -> None:
    for _time in range(5):
        shop.fails("search", {"needle": "x"})

    assert shop.incidents() == []


@proves("fix:told")
def test_a_diagnosis_tells_the_fix_too(shop: Workshop) -> None:
    solution = know_a_fix(shop)

    found = shop.ask(
        "error_diagnose", error="ValueError: nothing can be found for unlucky", toolName="search"
    )

    assert found["knownFix"]["solutionId"] == solution


@proves("fix:credit")
def test_a_fix_is_credited_by_a_process_that_was_started_since(tmp_path: Path) -> None:
    place = tmp_path / "loop.db"
    with workshop(place) as first:
        know_a_fix(first)
        first.fails("search", UNLUCKY)
        # A call that was refused in between is no success.
        first.fails("search", {"needle": "x"})
        before = evidence(first)

    with workshop(place) as second:
        second.run("search", {"query": "somebody else"}, "bob")
        assert evidence(second) == pytest.approx(before, abs=0.01)
        second.run("search", {"query": "lucky"})
        after = evidence(second)
        assert after > before + 0.5
        second.run("search", {"query": "lucky again"})
    with workshop(place) as third:
        third.run("search", {"query": "lucky again"})

        assert evidence(third) == pytest.approx(after, abs=0.01)
        assert "OutcomeRepeated" not in third.event_kinds()
        third.fails("search", UNLUCKY)
    with workshop(place) as fourth:
        fourth.run("search", {"query": "lucky once more"})

        assert evidence(fourth) > after + 0.5


@proves("fix:draft")
def test_failures_are_counted_over_several_processes(tmp_path: Path) -> None:
    for number in range(limits.FAILURES_NOTED):
        with workshop(tmp_path / "loop.db") as shop:
            assert shop.incidents() == []
            shop.fails("search", {"query": f"unlucky {number}"})
            shop.settle()

    with workshop(tmp_path / "loop.db") as shop:
        shop.fails("search", {"query": "unlucky again"})
        (draft,) = shop.incidents()

    assert "draft" in draft["tags"]


@proves("fix:draft", "fix:told")
def test_a_draft_that_is_given_a_solution_is_a_known_fix(shop: Workshop) -> None:
    for number in range(3):
        shop.fails("search", {"query": f"unlucky {number}"})
    (draft,) = shop.incidents()
    added = shop.ask(
        "add_solution",
        incident_id=draft["incident_id"],
        steps=["Leave the word out."],
        env=ENVIRONMENT,
    )
    for _time in range(4):
        shop.ask("record_outcome", solution_id=added["solution_id"], worked=True, env=ENVIRONMENT)

    error = shop.fails("search", {"query": "unlucky as never before"}, "somebody else")

    assert error.details["knownFix"]["solutionId"] == added["solution_id"]
