"""The reference servers from npm, as real upstreams."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import ExecutionFailed
from stratagem.gateway.definitions.contract import ListedTool
from tests.ports import free_port
from tests.unit.gateway.handlers.upstream.servers import (
    eventually,
    handler_of,
    http_server,
    npm_server,
    run_of,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def reference() -> Callable[[str], tuple[str, str]]:
    def find(name: str) -> tuple[str, str]:
        try:
            return npm_server(name)
        except LookupError as reason:
            pytest.skip(str(reason))

    return find


@pytest.fixture
def everything(reference: Callable[[str], tuple[str, str]]) -> dict[str, Any]:
    node, script = reference("server-everything")
    return {"name": "everything", "transport": "stdio", "command": node, "args": [script, "stdio"]}


@pytest.fixture
def memory(reference: Callable[[str], tuple[str, str]], tmp_path: Path) -> dict[str, Any]:
    node, script = reference("server-memory")
    return {
        "name": "memory",
        "transport": "stdio",
        "command": node,
        "args": [script],
        "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
    }


async def test_tools_of_the_everything_server_are_listed_and_called(
    everything: dict[str, Any],
) -> None:
    async with upstreams_of(everything) as upstreams:
        listed = {tool.name: tool for tool in await upstreams.list_tools("everything")}
        echo = await value_of(upstreams, listed["echo"].handler, run_of({"message": "hello"}))
        structured = await value_of(
            upstreams, listed["get-structured-content"].handler, run_of({"location": "Chicago"})
        )
        with pytest.raises(ExecutionFailed):
            await value_of(upstreams, listed["echo"].handler, run_of({"message": 5}))

    assert "hello" in echo["content"][0]["text"]
    assert isinstance(structured["temperature"], int | float)
    assert upstreams.servers() == []


async def test_progress_of_a_long_operation_is_passed_on(everything: dict[str, Any]) -> None:
    told: list[float | None] = []
    run = run_of({"duration": 0.5, "steps": 5}, progress=lambda done, _message: told.append(done))

    async with upstreams_of(everything) as upstreams:
        await value_of(upstreams, handler_of("everything", "trigger-long-running-operation"), run)

    assert told == [0.2, 0.4, 0.6, 0.8, 1.0]


async def test_a_killed_server_is_started_anew(everything: dict[str, Any]) -> None:
    async with upstreams_of(everything) as upstreams:
        await upstreams.list_tools("everything")
        pid = upstreams.status("everything")["pid"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: not upstreams.status("everything")["connected"])

        echo = await value_of(
            upstreams, handler_of("everything", "echo"), run_of({"message": "again"})
        )

    assert "again" in echo["content"][0]["text"]


async def test_the_memory_server_keeps_what_it_is_told(memory: dict[str, Any]) -> None:
    entity = {"name": "Oslo", "entityType": "city", "observations": ["by the sea"]}

    async with upstreams_of(memory) as upstreams:
        await value_of(
            upstreams, handler_of("memory", "create_entities"), run_of({"entities": [entity]})
        )
        graph = await value_of(upstreams, handler_of("memory", "read_graph"), run_of())

    assert graph["entities"][0]["name"] == "Oslo"


async def test_a_session_that_the_server_forgot_is_opened_anew(
    reference: Callable[[str], tuple[str, str]],
) -> None:
    node, script = reference("server-everything")
    port = free_port()
    command = [node, script, "streamableHttp"]
    server = {"name": "up", "transport": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    told: list[Sequence[ListedTool]] = []
    echo = handler_of("up", "echo")

    async with upstreams_of(
        server, on_change=lambda _name, listed: told.append(listed)
    ) as upstreams:
        with http_server(port, command, PORT=str(port)):
            await value_of(upstreams, echo, run_of({"message": "one"}))
        with http_server(port, command, PORT=str(port)):
            result = await value_of(upstreams, echo, run_of({"message": "two"}))

    assert "two" in result["content"][0]["text"]
    assert len(told) == 1
