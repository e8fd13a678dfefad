"""Upstream servers of 2024, whose answers come over one stream of events."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import ExecutionFailed
from tests.ports import free_port
from tests.unit.gateway.handlers.upstream.servers import (
    SERVER,
    Sent,
    eventually,
    handler_of,
    http_server,
    run_of,
    scripted_server,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio

ADD = handler_of("up", "add")


def definition(port: int) -> dict[str, Any]:
    return {"name": "up", "transport": "http", "url": f"http://127.0.0.1:{port}/sse"}


def command(port: int) -> list[str]:
    return [sys.executable, SERVER, "--sse", str(port)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """Give the port of a server that no test changes, and the file of its notes."""
    notes = tmp_path_factory.mktemp("sse") / "notes"
    port = free_port()
    with http_server(port, command(port), NOTES=str(notes)):
        yield port, notes


async def test_a_server_that_refuses_posts_is_called_over_its_stream(
    shared: tuple[int, Path],
) -> None:
    told: list[float | None] = []
    run = run_of({"count": 2}, progress=lambda done, _message: told.append(done))

    async with upstreams_of(definition(shared[0])) as upstreams:
        names = [tool.name for tool in await upstreams.list_tools("up")]
        totals = await asyncio.gather(
            *(value_of(upstreams, ADD, run_of({"a": each, "b": 1})) for each in range(5))
        )
        await value_of(upstreams, handler_of("up", "steps"), run)
        with pytest.raises(ExecutionFailed, match="out of paper"):
            await value_of(upstreams, handler_of("up", "fail"), run_of())

    assert "add" in names
    assert totals == [{"total": each + 1} for each in range(5)]
    assert told == [0.5, 1.0]


async def test_cancelling_a_call_cancels_the_work_upstream(shared: tuple[int, Path]) -> None:
    port, notes = shared
    async with upstreams_of(definition(port)) as upstreams:
        call = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
        await eventually(lambda: "hanging" in notes.read_text())

        call.cancel()

        await eventually(lambda: "cancelled" in notes.read_text())
        assert await value_of(upstreams, ADD, run_of({"a": 1, "b": 1})) == {"total": 2}


async def test_a_stream_that_ends_fails_its_calls_and_is_opened_anew(tmp_path: Path) -> None:
    port, notes = free_port(), tmp_path / "notes"
    async with upstreams_of(definition(port)) as upstreams:
        with http_server(port, command(port), NOTES=str(notes)) as pid:
            hanging = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
            await eventually(lambda: notes.exists() and "hanging" in notes.read_text())
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ExecutionFailed) as cut:
                await hanging
        with http_server(port, command(port)):
            result = await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))

    assert not cut.value.safe
    assert result == {"total": 2}


async def test_messages_are_posted_to_no_other_server() -> None:
    stream = b"event: endpoint\ndata: http://192.0.2.1/messages\n\n"

    def answer(sent: Sent) -> tuple[str, str, bytes]:
        if sent.method == "POST":
            return "405 Method Not Allowed", "content-length: 0", b""
        return "200 OK", "content-type: text/event-stream", stream

    async with scripted_server(answer) as (port, received), upstreams_of(definition(port)) as ups:
        with pytest.raises(ExecutionFailed, match="another server"):
            await ups.list_tools("up")

    assert {sent.headers["host"] for sent in received} == {f"127.0.0.1:{port}"}


async def test_an_address_without_a_server_is_an_error_that_says_so() -> None:
    def answer(_sent: Sent) -> tuple[str, str, bytes]:
        return "404 Not Found", "content-type: text/plain\r\ncontent-length: 2", b"no"

    async with scripted_server(answer) as (port, _), upstreams_of(definition(port)) as upstreams:
        with pytest.raises(ExecutionFailed, match="404"):
            await upstreams.list_tools("up")
