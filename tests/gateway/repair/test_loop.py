"""The loop closed: failures ask the debugging memory, and successes tell it what helped."""

from __future__ import annotations

import orjson
import pytest

from stratagem.debugging import kinds
from tests.gateway.repair.workshop import Answer, Workshop

UNLUCKY = {"query": "unlucky"}
ENVIRONMENT = {"runtime": "gateway", "tool": "search"}


def incidents(shop: Workshop) -> list[Answer]:
    shop.settle()
    foundation = shop.switchboard.foundation
    with foundation.store.snapshot() as reader:
        view = foundation.views.view(reader, "default")
        rows, _next = reader.records(view.lineage, kinds.INCIDENTS)
    return [orjson.loads(version.payload) for _key, version in rows]


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


def test_the_error_carries_the_best_known_fix(shop: Workshop) -> None:
    solution = know_a_fix(shop)

    fix = shop.fails("search", UNLUCKY).details["knownFix"]

    assert fix["solutionId"] == solution
    assert fix["steps"]
    assert fix["reliability"] > 0.5


def test_a_later_success_of_the_same_caller_counts_for_the_fix(shop: Workshop) -> None:
    know_a_fix(shop)
    before = evidence(shop)
    shop.fails("search", UNLUCKY)
    shop.run("search", {"query": "somebody else"}, "bob")
    assert evidence(shop) == pytest.approx(before, abs=0.01)

    shop.run("search", {"query": "lucky"})

    assert evidence(shop) > before + 0.5


def test_one_success_counts_once(shop: Workshop) -> None:
    know_a_fix(shop)
    shop.fails("search", UNLUCKY)
    shop.run("search", {"query": "lucky"})
    after = evidence(shop)

    shop.run("search", {"query": "lucky again"})

    assert evidence(shop) == pytest.approx(after, abs=0.01)


def test_a_repeated_failure_becomes_a_draft_once(shop: Workshop) -> None:
    for number in range(2):
        shop.fails("search", {"query": f"unlucky {number}"})
        shop.run("search", {"query": "fine"})
    assert incidents(shop) == []

    for number in range(2, 7):
        shop.fails("search", {"query": f"unlucky {number}"})
        shop.run("search", {"query": "fine"})

    (draft,) = incidents(shop)
    assert "draft" in draft["tags"]
    assert "tool:search" in draft["tags"]
    assert "nothing can be found" in draft["title"]


def test_a_refused_call_is_no_failure_of_the_tool(shop: Workshop) -> None:
    for _time in range(5):
        shop.fails("search", {"needle": "x"})

    assert incidents(shop) == []


def test_a_diagnosis_tells_the_fix_too(shop: Workshop) -> None:
    solution = know_a_fix(shop)

    found = shop.ask(
        "error_diagnose", error="ValueError: nothing can be found for unlucky", toolName="search"
    )

    assert found["knownFix"]["solutionId"] == solution
