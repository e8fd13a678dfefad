"""Code as a tool: arguments are its inputs, and its failure is the tool's."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    PermissionDenied,
    ValidationFailed,
)
from stratagem.gateway.handlers.code import CodeRunner
from stratagem.gateway.sandbox import Permissions, Sandbox
from tests.unit.gateway.attempts import attempt


@pytest.fixture(scope="module")
def runner() -> CodeRunner:
    return CodeRunner(Sandbox(network=True))


def handler(code: str, language: str = "python", **rest: Any) -> dict[str, Any]:
    return {"type": "code", "language": language, "code": code, **rest}


def test_arguments_are_inputs_and_the_result_comes_back(runner: CodeRunner) -> None:
    async def both() -> list[Any]:
        python = handler("result = {'total': inputs['a'] + inputs['b']}")
        javascript = handler("({total: inputs.a + inputs.b})", "javascript")
        return [await runner.run(each, attempt({"a": 1, "b": 2})) for each in (python, javascript)]

    assert asyncio.run(both()) == [{"total": 3}, {"total": 3}]


def test_output_is_progress(runner: CodeRunner) -> None:
    said: list[str | None] = []

    async def once() -> Any:
        run = attempt({}, lambda _done, words: said.append(words))
        result = await runner.run(handler("print('half way')\n5"), run)
        await runner.close()
        return result

    assert asyncio.run(once()) == 5
    assert "".join(filter(None, said)) == "half way\n"


def test_code_that_fails_fails_the_call_with_what_it_said(runner: CodeRunner) -> None:
    with pytest.raises(ExecutionFailed, match="ZeroDivisionError") as failed:
        asyncio.run(runner.run(handler("1 / inputs['n']"), attempt({"n": 0})))

    assert failed.value.details["exitCode"] != 0
    assert len(failed.value.details["stderr"]) <= limits.FAILURE_CHARS_MAX


def test_time_is_the_least_that_anybody_allows(runner: CodeRunner) -> None:
    endless = handler("while True: pass", permissions={"timeout": 500})
    began = time.monotonic()

    with pytest.raises(ExecutionTimeout):
        asyncio.run(runner.run(endless, attempt({}, permissions=Permissions(seconds=300))))
    with pytest.raises(ExecutionTimeout):
        asyncio.run(
            runner.run(
                handler("while True: pass"), attempt({}, permissions=Permissions(seconds=0.5))
            )
        )

    assert time.monotonic() - began < 60


def test_a_handler_cannot_widen_what_the_tool_has(runner: CodeRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2).close()\n'there'"
        asking = handler(code, permissions={"network": True})
        allowed = attempt({}, permissions=Permissions(network=True))

        with pytest.raises(ExecutionFailed):
            asyncio.run(runner.run(asking, attempt({})))
        with pytest.raises(ExecutionFailed):
            asyncio.run(runner.run(handler(code, permissions={"network": False}), allowed))
        assert asyncio.run(runner.run(asking, allowed)) == "there"


def test_no_code_has_a_network_that_nobody_allowed() -> None:
    guarded = CodeRunner(Sandbox())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2).close()"
        asking = attempt({}, permissions=Permissions(network=True))

        with pytest.raises(PermissionDenied, match="no network here") as caught:
            asyncio.run(guarded.run(handler(code, permissions={"network": True}), asking))
        with pytest.raises(TimeoutError):
            server.accept()

    assert "STRATAGEM_SANDBOX_NETWORK" in caught.value.hint


def test_a_cancelled_call_ends_its_code(runner: CodeRunner) -> None:
    async def once() -> None:
        endless = attempt({}, permissions=Permissions(seconds=300))
        await asyncio.wait_for(runner.run(handler("while True: pass"), endless), 0.5)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(once())

    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"language": "cobol"}, "handler.language"),
        ({"code": ""}, "handler.code"),
        ({"code": None}, "handler.code"),
        ({"code": "#" * (limits.SANDBOX_CODE_BYTES_MAX + 1)}, "handler.code"),
        ({"permissions": {"root": True}}, "handler.permissions.root"),
    ],
)
def test_a_wrong_handler_is_refused(fields: dict[str, Any], field: str, runner: CodeRunner) -> None:
    with pytest.raises(ValidationFailed) as refused:
        runner.check({**handler("1"), **fields})

    assert refused.value.details["field"] == field


def test_code_that_cannot_be_read_is_a_warning(runner: CodeRunner) -> None:
    assert runner.check(handler("result = 1")) == []
    assert runner.check(handler("1 +", "javascript")) == []
    (warning,) = runner.check(handler("def f(:"))
    assert "cannot be read" in warning
