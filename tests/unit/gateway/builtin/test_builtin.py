"""The built-in tools as a registry sees them: sound definitions, and examples that are true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stratagem.errors import ServiceUnavailable, StratagemError, ToolNotFound, ValidationFailed
from stratagem.gateway.builtin import DEFINITIONS, BuiltinRunner, BuiltinTool, code_executor, tools
from stratagem.gateway.definitions.schemas import Schema, check
from stratagem.gateway.outbound import Outbound
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.sandbox import Permissions, Sandbox
from tests.unit.gateway.attempts import attempt

NOW = 1_772_362_800_000_000


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return Sandbox()


@pytest.fixture(scope="module")
def builtin(sandbox: Sandbox) -> dict[str, BuiltinTool]:
    made = tools(clock=lambda: NOW, sandbox=lambda: sandbox, outbound=lambda: Outbound(()))
    return {tool.definition["name"]: tool for tool in made}


def outcome(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def test_every_definition_has_a_tool_and_the_other_way_round(
    builtin: dict[str, BuiltinTool],
) -> None:
    assert [definition["name"] for definition in DEFINITIONS] == list(builtin)
    assert list(builtin) == [
        "calculator",
        "date_time",
        "data_transformer",
        "file_converter",
        "code_executor",
        "api_caller",
    ]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: str(each["name"]))
def test_a_definition_is_sound(definition: dict[str, Any]) -> None:
    check(definition["inputSchema"], field="inputSchema")
    check(definition["outputSchema"], field="outputSchema")
    tool = Tool({"id": "t", "handler": {"type": "builtin", "name": "t"}, **definition}, 0)

    assert definition["inputSchema"]["additionalProperties"] is False
    assert len(definition["description"]) < 200
    assert tool.configuration.cache == (
        tool.name in {"calculator", "data_transformer", "file_converter"}
    )
    assert tool.configuration.idempotent == (tool.name not in {"code_executor", "api_caller"})


CASES = [
    (definition["name"], example)
    for definition in DEFINITIONS
    for example in definition["examples"]
    if "output" in example
]


@pytest.mark.parametrize(("name", "example"), CASES, ids=[name for name, _ in CASES])
def test_an_example_is_true(
    name: str, example: dict[str, Any], builtin: dict[str, BuiltinTool]
) -> None:
    tool = builtin[name]

    async def once() -> Any:
        return await tool.run(example["input"], attempt(example["input"]))

    result = outcome(once)

    assert result == example["output"]
    assert Schema(tool.definition["inputSchema"]).violations(example["input"]) == []
    assert Schema(tool.definition["outputSchema"]).violations(result) == []


def test_code_that_fails_is_an_answer(sandbox: Sandbox) -> None:
    async def once() -> Any:
        arguments = {"language": "python", "code": "print('so far')\nraise ValueError('no')"}
        return await code_executor.run(arguments, attempt(), sandbox)

    found = outcome(once)

    assert (found["success"], found["killed"], found["result"]) == (False, None, None)
    assert found["exitCode"] != 0
    assert found["stdout"] == "so far\n"
    assert "ValueError: no" in found["stderr"]


def test_code_that_never_ends_is_killed_in_its_time(sandbox: Sandbox) -> None:
    async def once() -> Any:
        arguments = {"language": "python", "code": "while True: pass"}
        return await code_executor.run(
            arguments, attempt(permissions=Permissions(seconds=0.5)), sandbox
        )

    found = outcome(once)

    assert (found["success"], found["killed"]) == (False, "time")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"code": "1"}, "language"),
        ({"language": "cobol", "code": "1"}, "language"),
        ({"language": "python", "code": ""}, "code"),
        ({"language": "python", "code": 1}, "code"),
        ({"language": "python", "code": "1", "files": []}, "files"),
    ],
)
def test_bad_arguments_for_code_are_refused(
    arguments: dict[str, Any], field: str, sandbox: Sandbox
) -> None:
    with pytest.raises(StratagemError) as refused:
        outcome(lambda: code_executor.run(arguments, attempt(), sandbox))

    assert refused.value.details["field"] == field


def test_without_a_sandbox_no_code_is_run() -> None:
    with pytest.raises(ServiceUnavailable):
        outcome(lambda: code_executor.run({"language": "python", "code": "1"}, attempt(), None))

    assert "code_executor" not in {tool.definition["name"] for tool in tools(clock=lambda: NOW)}


def test_the_runner_runs_what_a_handler_names() -> None:
    async def once() -> Any:
        runner = BuiltinRunner(clock=lambda: NOW)
        assert runner.check({"type": "builtin", "name": "calculator"}) == []
        with pytest.raises(ValidationFailed):
            runner.check({"type": "builtin", "name": "abacus"})
        with pytest.raises(ToolNotFound):
            await runner.run({"type": "builtin", "name": "abacus"}, attempt())
        result = await runner.run(
            {"type": "builtin", "name": "calculator"}, attempt({"expression": "6 * 7"})
        )
        await runner.close()
        return result

    assert outcome(once)["result"] == 42
