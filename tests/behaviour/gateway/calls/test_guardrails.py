"""Guardrails: checks before and after a call, each on what the one before has left."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import pytest

from stratagem import (
    ExecutionFailed,
    GuardrailBlocked,
    GuardrailFailed,
    PermissionDenied,
    Stratagem,
    StratagemError,
    ValidationFailed,
)
from stratagem.operation import Caller
from tests.manifest import proves

EMAIL = "write to ada@example.com"


def echo(text: str) -> dict[str, str]:
    """Repeat a text."""
    return {"said": text}


@pytest.fixture
def tools(db: Stratagem) -> Stratagem:
    db.gateway.add(echo)
    return db


def define(db: Stratagem, name: str, when: str, check: Mapping[str, Any], **more: Any) -> None:
    db.call("guardrail_define", {"name": name, "when": when, "check": dict(check), **more})


def said(db: Stratagem, text: str = EMAIL) -> Any:
    return db.gateway.execute("echo", {"text": text})["result"]


@proves("guardrail:mask")
def test_what_goes_in_and_what_comes_out_is_masked(tools: Stratagem) -> None:
    seen: list[str] = []

    def noting(text: str) -> str:
        """Note a text."""
        seen.append(text)
        return text

    tools.gateway.add(noting)
    define(tools, "hide-in", "before", {"type": "mask"}, match={"tools": ["noting"]})
    define(tools, "hide-out", "after", {"type": "mask"}, match={"tools": ["ec*"]})

    tools.gateway.execute("noting", {"text": EMAIL})

    assert seen == ["write to [email]"]
    assert said(tools) == {"said": "write to [email]"}


@proves("guardrail:block")
def test_a_call_that_is_blocked_is_not_made(tools: Stratagem) -> None:
    made: list[int] = []

    def working() -> int:
        """Work."""
        made.append(1)
        return 1

    tools.gateway.add(working)
    check = {"type": "block", "reason": "not on Fridays"}
    define(tools, "no-work", "before", check, match={"tools": ["working"]})

    with pytest.raises(GuardrailBlocked) as met:
        tools.gateway.execute("working", {})

    assert made == []
    assert "not on Fridays" in met.value.message
    assert met.value.details["guardrail"] == "no-work"
    assert tools.gateway.executions(tool_id="working")[0]["error"]["code"] == "guardrail_blocked"


@proves("guardrail:function")
def test_a_function_decides_and_rewrites(tools: Stratagem) -> None:
    told: list[dict[str, Any]] = []

    def polite(call: dict[str, Any]) -> dict[str, Any] | None:
        """Have everybody say please."""
        told.append(call)
        text = call["arguments"]["text"]
        if "forbidden" in text:
            return {"action": "block", "reason": "that is forbidden"}
        if text.endswith("please"):
            return None
        return {"action": "rewrite", "arguments": {"text": f"{text}, please"}}

    tools.gateway.add(polite)
    define(
        tools, "polite", "before", {"type": "python", "name": "polite"}, match={"tools": ["echo"]}
    )

    assert said(tools, "tea") == {"said": "tea, please"}
    assert said(tools, "tea, please") == {"said": "tea, please"}
    with pytest.raises(GuardrailBlocked, match="that is forbidden"):
        said(tools, "forbidden tea")
    assert told[0]["tool"] == "echo"
    assert told[0]["when"] == "before"
    assert told[0]["caller"] == "sdk"


@proves("guardrail:tool")
def test_a_registered_tool_decides_about_results(tools: Stratagem) -> None:
    def judge(call: dict[str, Any]) -> dict[str, Any]:
        """Shout what was said."""
        return {"action": "rewrite", "result": {"said": call["result"]["said"].upper()}}

    tools.gateway.add(judge)
    define(tools, "loud", "after", {"type": "tool", "tool": "judge"}, match={"tools": ["echo"]})

    assert said(tools, "tea") == {"said": "TEA"}
    records = tools.gateway.executions(tool_id="judge")
    assert records[0]["caller"] == "guardrail"


@proves("guardrail:failure")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ValueError("broken"), id="it raises"),
        pytest.param({"verdict": "fine"}, id="it says nothing"),
        pytest.param("allow", id="it says it in other words"),
        pytest.param({"action": "rewrite"}, id="it rewrites nothing"),
        pytest.param({"action": "rewrite", "arguments": {"text": 5}}, id="it writes nonsense"),
    ],
)
def test_a_guardrail_that_does_not_work_refuses_the_call(tools: Stratagem, answer: Any) -> None:
    def broken(call: dict[str, Any]) -> Any:
        """Fail."""
        if isinstance(answer, Exception):
            raise answer
        return answer

    tools.gateway.add(broken)
    define(
        tools, "broken", "before", {"type": "python", "name": "broken"}, match={"tools": ["echo"]}
    )

    with pytest.raises(GuardrailFailed) as met:
        said(tools)

    assert met.value.details["guardrail"] == "broken"
    assert met.value.details["ran"] is False


@proves("guardrail:failure")
def test_one_that_fails_after_the_call_withholds_the_result(tools: Stratagem) -> None:
    define(tools, "gone", "after", {"type": "python", "name": "nowhere"}, match={"tools": ["echo"]})

    with pytest.raises(GuardrailFailed, match="withheld") as met:
        said(tools)

    assert met.value.details["ran"] is True
    assert "ada@" not in str(met.value.details)


@proves("guardrail:error")
def test_what_a_tool_says_when_it_fails_is_checked_too(tools: Stratagem) -> None:
    def failing(text: str) -> None:
        """Fail."""
        raise LookupError(f"no such user: {text}")

    tools.gateway.add(failing)
    define(tools, "hide-out", "after", {"type": "mask"}, match={"tools": ["failing"]})

    with pytest.raises(ExecutionFailed) as met:
        tools.gateway.execute("failing", {"text": EMAIL})

    record = tools.gateway.executions(tool_id="failing")[0]
    shown = "".join(traceback.format_exception(met.value))
    assert "no such user: write to [email]" in met.value.message
    assert "ada@example.com" not in f"{met.value}{met.value.details}{record['error']}{shown}"


@proves("guardrail:error")
@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (None, "execution_error", "no such user"),
        ({"action": "block", "reason": "never mind"}, "guardrail_blocked", "never mind"),
        ({"action": "rewrite", "error": {"message": "It failed."}}, "execution_error", "It fai"),
        ({"action": "rewrite", "result": 1}, "guardrail_failed", "refused"),
        (17, "guardrail_failed", "refused"),
    ],
)
def test_a_function_decides_about_what_a_failure_says(
    tools: Stratagem, answer: Any, code: str, message: str
) -> None:
    asked: list[Any] = []

    def failing() -> None:
        """Fail."""
        raise LookupError("no such user")

    def judge(call: dict[str, Any]) -> Any:
        """Decide."""
        asked.append((call["result"], call["error"]["code"], call["error"]["message"]))
        return answer

    tools.gateway.add(failing)
    tools.gateway.add(judge)
    define(
        tools, "judged", "after", {"type": "python", "name": "judge"}, match={"tools": ["fail*"]}
    )

    with pytest.raises(StratagemError) as met:
        tools.gateway.execute("failing", {})

    assert asked[0][:2] == (None, "execution_error")
    assert "no such user" in asked[0][2]
    assert met.value.code == code
    assert message in met.value.message
    assert (answer is None) == ("no such user" in str(met.value))


@proves("guardrail:order")
def test_they_run_in_their_order_on_cached_results_too(tools: Stratagem) -> None:
    def first(call: dict[str, Any]) -> dict[str, Any]:
        """Add a one."""
        return {"action": "rewrite", "result": call["result"] + "1"}

    def second(call: dict[str, Any]) -> dict[str, Any]:
        """Add a two."""
        return {"action": "rewrite", "result": call["result"] + "2"}

    def plain() -> str:
        """Say nothing."""
        return ""

    for each in (first, second):
        tools.gateway.add(each)
    tools.gateway.add(plain, configuration={"cache": True})
    mine = {"tools": ["plain"]}
    define(tools, "b", "after", {"type": "python", "name": "second"}, match=mine, order=20)
    define(tools, "a", "after", {"type": "python", "name": "first"}, match=mine, order=10)

    answers = [tools.gateway.execute("plain", {}) for _ in range(2)]

    assert [each["result"] for each in answers] == ["12", "12"]
    assert [each["metadata"]["cached"] for each in answers] == [False, True]


@proves("guardrail:match")
def test_they_are_about_the_calls_that_fit(tools: Stratagem) -> None:
    block = {"type": "block"}
    define(tools, "others", "before", block, match={"callers": ["token:*"], "tools": ["echo"]})
    define(tools, "tagged", "before", block, match={"tags": ["dangerous"]})
    define(tools, "elsewhere", "before", block, match={"sources": ["some-server"]})

    assert said(tools)
    shown = tools.gateway.get("echo")["guardrails"]
    assert [each["name"] for each in shown] == ["sent-secrets", "others"]
    assert shown[1]["callers"] == ["token:*"]
    listed = tools.gateway.guardrails()["guardrails"]
    assert [each["name"] for each in listed] == ["sent-secrets", "elsewhere", "others", "tagged"]


@proves("guardrail:ask")
def test_one_may_ask_a_person(tools: Stratagem) -> None:
    define(
        tools,
        "think",
        "before",
        {"type": "ask", "reason": "it costs money"},
        match={"tools": ["calculator"]},
    )
    runtime = tools._runtime  # noqa: SLF001 -- a caller that is a model
    model = Caller("mcp:model", authority="agent")
    call = {"toolName": "calculator", "arguments": {"expression": "1 + 1"}}

    with pytest.raises(PermissionDenied, match="it costs money") as met:
        runtime.call("tool_execute", call, model)
    tools.call("approval_decide", {"id": met.value.details["approvalId"], "decision": "approve"})

    assert runtime.call("tool_execute", call, model)["result"]


@proves("guardrail:definition")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"when": "after", "check": {"type": "ask"}}, "when"),
        ({"when": "before", "check": {"type": "mask", "tool": "x"}}, "check.tool"),
        ({"when": "before", "check": {"type": "tool"}}, "check.tool"),
        ({"when": "before", "check": {"type": "python"}}, "handler"),
    ],
)
def test_one_that_could_not_work_is_refused(
    tools: Stratagem, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationFailed) as met:
        tools.call("guardrail_define", {"name": "odd", **given})

    assert met.value.details["field"] == field


@proves("guardrail:definition")
def test_one_is_removed(tools: Stratagem) -> None:
    define(tools, "never", "before", {"type": "block"}, match={"tools": ["echo"]})

    tools.gateway.remove_guardrail("never")

    assert said(tools)
