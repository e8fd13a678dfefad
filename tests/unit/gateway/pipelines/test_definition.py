"""A definition is checked as a whole before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.gateway.pipelines.definition import parse_pipeline
from stratagem.gateway.pipelines.preview import dry_run

DOCUMENTED: dict[str, Any] = {
    "name": "code_analysis",
    "steps": [
        {"tool": "code_parser", "arguments": {"repository": "github.com/user/repo"}},
        {"tool": "complexity_analyzer", "arguments": {"threshold": 10}},
        {"tool": "security_scanner", "arguments": {"rules": "owasp-top-10"}},
        {"tool": "report_generator", "arguments": {"format": "pdf"}},
    ],
}


def step(**fields: Any) -> dict[str, Any]:
    return {"tool": "t", **fields}


def test_the_documented_pipeline_is_read() -> None:
    pipeline = parse_pipeline(DOCUMENTED)

    assert [each.id for each in pipeline.steps] == [
        "code_parser",
        "complexity_analyzer",
        "security_scanner",
        "report_generator",
    ]


def test_a_step_without_an_id_is_called_after_its_tool() -> None:
    steps = [step(), step(), {"tool": "a.b c", "id": None}, {"tool": "9"}, step(id="t_2")]

    ids = [each.id for each in parse_pipeline({"steps": steps}).steps]

    assert ids == ["t", "t_3", "a_b_c", "_9", "t_2"]


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        ({"steps": []}, "steps"),
        ({"steps": "t"}, "steps"),
        ({"steps": [step()] * 101}, "steps"),
        ({"steps": [step()], "stepps": []}, "stepps"),
        ({"steps": [step(argumnts={})]}, "steps[0].argumnts"),
        ({"steps": [step(id="a b")]}, "steps[0].id"),
        ({"steps": [step(id="a"), step(id="a")]}, "steps[1].id"),
        ({"steps": [step(when="steps.later.result"), step(id="later")]}, "steps[0].when"),
        (
            {"steps": [step(id="me", arguments={"x": "${{ steps.me.result }}"})]},
            "steps[0].arguments.x",
        ),
        ({"steps": [step(arguments={"x": [{"$ref": "setps.a"}]})]}, "steps[0].arguments.x[0]"),
        ({"steps": [step(arguments={"x": "${{ item.a }}"})]}, "steps[0].arguments.x"),
        ({"steps": [step(), step(when="item.a", forEach="previous")]}, "steps[1].when"),
        ({"steps": [step(id="a"), step(when="steps.a.items")]}, "steps[1].when"),
        ({"steps": [step(id="a"), step(when="$.steps.b.result")]}, "steps[1].when"),
        ({"steps": [step(when="a..b")]}, "steps[0].when"),
        ({"steps": [step(retry={"attempts": 0})]}, "steps[0].retry.attempts"),
        ({"steps": [step(retry={"attempts": 11})]}, "steps[0].retry.attempts"),
        ({"steps": [step(retry={"attempts": "3"})]}, "steps[0].retry.attempts"),
        ({"steps": [step(timeout=0)]}, "steps[0].timeout"),
        ({"steps": [step(concurrency=17)]}, "steps[0].concurrency"),
        ({"steps": [step(onError={})]}, "steps[0].onError"),
        ({"steps": [step(onError={"fallback": 1, "tool": "t"})]}, "steps[0].onError"),
        (
            {"steps": [step(onError={"fallback": "${{ errror.code }}"})]},
            "steps[0].onError.fallback",
        ),
        ({"steps": [step()], "output": "${{ steps.gone.result }}"}, "output"),
        ({"steps": [step(arguments={"x": "a" * limits.PIPELINE_BYTES_MAX})]}, "pipeline"),
        ({"steps": [step(arguments={"x": float("nan")})]}, "pipeline"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_place(definition: Any, field: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        parse_pipeline(definition)

    assert refused.value.details["field"] == field


def test_a_step_without_a_tool_is_refused() -> None:
    with pytest.raises(MissingRequired) as refused:
        parse_pipeline({"steps": [{"arguments": {}}]})

    assert refused.value.details["field"] == "steps[0].tool"


def test_on_error_is_not_guessed() -> None:
    with pytest.raises(ValidationFailed) as refused:
        parse_pipeline({"steps": [step(onError="ignore")]})

    assert refused.value.details["field"].startswith("steps[0].onError")


SCHEMAS: dict[str, dict[str, Any]] = {
    "read": {"type": "object", "required": ["path"]},
    "count": {"type": "object", "required": ["text", "unit"]},
}


def test_a_dry_run_shows_what_is_known() -> None:
    definition = {
        "name": "words",
        "steps": [
            {"tool": "read", "arguments": {"mode": "${{ input.mode }}"}},
            {
                "tool": "count",
                "arguments": {"unit": "word", "all": {"$ref": "steps.read.result.text"}},
                "when": "input.mode == 'r'",
            },
            {"tool": "send", "forEach": "input.people", "arguments": {"to": "${{ item }}"}},
            {"tool": "read", "forEach": "previous", "when": "steps.send.result"},
        ],
    }

    shown = dry_run(definition, {"mode": "r", "path": "a.txt", "people": ["x", "y"]}, SCHEMAS.get)

    read, count, send, again = shown["steps"]
    assert not shown["valid"]
    assert read["arguments"] == {"mode": "r", "path": "a.txt"}
    assert (read["runs"], read["items"], read["problems"]) == (True, 1, [])
    assert count["arguments"] == {"unit": "word", "all": {"$ref": "steps.read.result.text"}}
    assert (count["fromPreviousResult"], count["runs"]) == (["text"], True)
    assert (send["toolExists"], send["items"]) == (False, 2)
    assert send["problems"] == ["There is no tool 'send'."]
    assert (again["runs"], again["items"]) == (None, None)


def test_a_dry_run_tells_what_is_missing() -> None:
    steps = [
        {"tool": "read"},
        {
            "tool": "count",
            "arguments": {"text": "x${{ input.no }}", "unit": "w"},
            "when": "sum(input.mode)",
        },
        {"tool": "count", "forEach": "input.mode", "onError": {"tool": "gone"}},
    ]

    shown = dry_run({"steps": steps}, {"mode": "r"}, SCHEMAS.get)

    assert not shown["valid"]
    assert [len(each["problems"]) for each in shown["steps"]] == [1, 2, 2]
