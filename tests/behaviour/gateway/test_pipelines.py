"""Steps that pass results on, on every surface; how each kind of step runs is tried in `unit`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


def step(name: str, expression: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "calculator", "arguments": {"expression": expression}, **more}


@proves("pipeline:references")
def test_a_step_has_the_input_and_every_result_before_it(call: Call) -> None:
    run = call(
        "tools_pipeline",
        name="sums",
        input={"a": 2},
        steps=[
            step("one", "${{ input.a }} + 1"),
            step("two", "${{ steps.one.result.result }} * 10"),
        ],
        output={"sum": "${{ steps.two.result.result }}"},
    )

    assert run["success"] is True
    assert run["output"] == {"sum": 30}
    assert [each["status"] for each in run["steps"]] == ["finished", "finished"]


@proves("pipeline:conditions")
def test_a_step_whose_condition_does_not_hold_is_skipped(call: Call) -> None:
    run = call(
        "tools_pipeline",
        name="when",
        steps=[
            step("one", "1"),
            step("two", "2", when="steps.one.result.result > `1000`"),
        ],
    )

    assert [each["status"] for each in run["steps"]] == ["finished", "skipped"]
    assert run["output"]["result"] == 1


@proves("pipeline:each")
def test_a_step_is_called_for_each_element_in_order(call: Call) -> None:
    run = call(
        "tools_pipeline",
        name="each",
        input=["2 + 2", "1 / 0", "3!"],
        steps=[
            step(
                "each",
                "${{ item }}",
                forEach="input",
                onError={"fallback": {"result": "no number"}},
            )
        ],
        output="${{ previous[*].result }}",
    )

    assert run["output"] == [4, "no number", 6]
    assert [each["status"] for each in run["steps"][0]["items"]] == [
        "finished",
        "recovered",
        "finished",
    ]


@proves("pipeline:failure")
@pytest.mark.parametrize(
    ("on_error", "statuses", "success"),
    [
        ("stop", ["failed", "not_run"], False),
        ("continue", ["failed", "finished"], True),
        ({"fallback": 7}, ["recovered", "finished"], True),
        (
            {"tool": "calculator", "arguments": {"expression": "7"}},
            ["recovered", "finished"],
            True,
        ),
    ],
    ids=["stop", "continue", "fallback", "another tool"],
)
def test_a_failed_step_does_what_it_was_told(
    call: Call, on_error: Any, statuses: list[str], success: bool
) -> None:
    run = call(
        "tools_pipeline",
        name="failing",
        steps=[step("one", "1 / 0", onError=on_error), step("two", "2")],
    )

    assert run["success"] is success
    assert [each["status"] for each in run["steps"]] == statuses


@proves("pipeline:checked")
@pytest.mark.parametrize(
    ("steps", "field"),
    [
        ([step("one", "1", unheard=1)], "steps[0].unheard"),
        ([step("one", "1"), step("one", "2")], "steps[1].id"),
        ([step("one", "${{ steps.two.result }}"), step("two", "2")], "steps[0].arguments"),
        ([step("one", "${{ input. }}")], "steps[0].arguments"),
    ],
    ids=["unknown field", "id twice", "later step", "unreadable"],
)
def test_a_pipeline_that_cannot_run_is_refused_before_its_first_step(
    call: Call, steps: list[dict[str, Any]], field: str
) -> None:
    error = call.refusal("tools_pipeline", name="wrong", steps=steps)

    assert error["details"]["field"].startswith(field)
    assert call("tool_executions")["executions"] == []


@proves("pipeline:preview")
def test_a_preview_shows_what_is_known_and_calls_nothing(call: Call) -> None:
    plan = call(
        "tools_pipeline",
        name="plan",
        dryRun=True,
        input={"price": 5},
        steps=[
            step("one", "${{ input.price }} * 2"),
            {"tool": "send_mail", "arguments": {"text": "${{ previous.text }}"}},
        ],
    )

    assert plan["valid"] is False
    assert plan["steps"][0]["arguments"] == {"expression": "5 * 2"}
    assert plan["steps"][1]["problems"] == ["There is no tool 'send_mail'."]
    assert call("tool_executions")["executions"] == []


@proves("pipeline:saved")
def test_a_pipeline_is_saved_as_a_tool(call: Call) -> None:
    call("tools_pipeline", saveAs="twice", steps=[step("two", "${{ input.n }} * 2")])

    answer = call("tool_execute", toolName="twice", arguments={"n": 21})

    assert answer["result"]["result"] == 42


@proves("batch:results")
@pytest.mark.parametrize("parallel", [True, False])
def test_a_batch_has_a_result_for_each_call(call: Call, parallel: bool) -> None:
    calls = [
        {"toolName": "calculator", "arguments": {"expression": text}}
        for text in ("1 + 1", "1 / 0", "3")
    ]

    whole = call("tools_batch", executions=calls, parallel=parallel)

    assert [each["success"] for each in whole["results"]] == [True, False, True]
    assert (whole["total"], whole["succeeded"], whole["failed"]) == (3, 2, 1)


@proves("batch:stops")
def test_a_batch_in_order_can_stop_at_the_first_failure(call: Call) -> None:
    calls = [
        {"toolName": "calculator", "arguments": {"expression": text}} for text in ("1 / 0", "3")
    ]

    cut = call("tools_batch", executions=calls, parallel=False, stopOnError=True)

    assert (cut["failed"], cut["skipped"]) == (1, 1)
