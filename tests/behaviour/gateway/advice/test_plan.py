"""workflow_plan: steps whose arguments have a source, and that can be run."""

from __future__ import annotations

from typing import Any

import pytest

import stratagem
from tests.behaviour.gateway.advice.registered import add, give
from tests.manifest import proves

TEXT = {"type": "string"}


def plan(db: stratagem.Stratagem, goal: str, **more: Any) -> dict[str, Any]:
    return db.call("workflow_plan", {"goal": goal, **more})


def tools(answer: dict[str, Any]) -> list[str]:
    return [each["tool"] for each in answer["steps"]]


@proves("plan:chain")
def test_a_plan_chains_outputs_to_inputs_and_runs(db: stratagem.Stratagem) -> None:
    answer = plan(
        db,
        "get the weather of the city, then send an email",
        inputs={"city": "Oslo", "recipient": "ada@example.com"},
    )

    assert tools(answer) == ["get_weather", "send_email"]
    assert answer["runnable"] is True
    sources = answer["steps"][1]["sources"]
    assert sources["summary"]["from"] == "step"
    assert sources["summary"]["step"] == "get_weather"
    assert sources["recipient"]["from"] == "input"
    run = db.call(
        "tools_pipeline",
        {
            "steps": answer["definition"]["steps"],
            "input": {"city": "Oslo", "recipient": "ada@example.com"},
        },
    )
    assert run["success"] is True
    executed = db.call("tool_executions", {"toolId": "send_email"})["executions"][0]
    assert executed["arguments"]["summary"] == "cold"


@proves("plan:open")
def test_what_has_no_source_is_asked_for(db: stratagem.Stratagem) -> None:
    answer = plan(db, "send an email")

    assert answer["runnable"] is False
    assert set(answer["missing"]) == {"recipient", "summary"}
    assert answer["inputs"]["properties"]["recipient"] == TEXT


@proves("plan:chain")
def test_a_tool_that_gives_what_is_missing_comes_before(db: stratagem.Stratagem) -> None:
    add(
        db,
        "find_contact",
        "Look up a person.",
        {"person": TEXT},
        ("person",),
        outputSchema={"type": "object", "properties": {"recipient": TEXT}},
        handler=give({"recipient": "ada@example.com"}),
    )

    answer = plan(db, "send an email with a subject", inputs={"person": "Ada", "summary": "Hello"})

    assert tools(answer) == ["find_contact", "send_email"]
    assert answer["steps"][1]["arguments"]["recipient"] == (
        "${{ steps.find_contact.result.recipient }}"
    )
    assert answer["runnable"] is True


@proves("plan:parts")
def test_named_tools_are_kept_in_their_order(db: stratagem.Stratagem) -> None:
    answer = plan(db, "anything", tools=["read_file", "get_weather", "read_file"])

    assert tools(answer) == ["read_file", "get_weather", "read_file"]
    assert [each["id"] for each in answer["steps"]] == ["read_file", "get_weather", "read_file_2"]


@proves("plan:evidence")
def test_a_chain_that_worked_before_is_evidence(db: stratagem.Stratagem) -> None:
    for _ in range(2):
        for tool, arguments in (
            ("get_weather", {"city": "Oslo"}),
            ("send_email", {"recipient": "ada", "summary": "cold"}),
        ):
            db.call("tool_execute", {"toolName": tool, "arguments": arguments})

    answer = plan(db, "weather of a city, then send an email")

    assert answer["steps"][1]["evidence"]["successRate"] == 1.0
    assert answer["knownChains"][0]["sequence"] == ["get_weather", "send_email"]


@proves("plan:open")
@pytest.mark.parametrize("goal", ["qqqq zzzz", "。；。", "x" * 4000, "a, " * 3000])
def test_a_goal_that_nothing_fits_has_no_steps_or_a_valid_plan(
    db: stratagem.Stratagem, goal: str
) -> None:
    answer = plan(db, goal)

    assert (answer["definition"] is None) == (answer["steps"] == [])
