"""Upstream servers over HTTP: real servers of the official SDK, and the guarded client."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stratagem.errors import ExecutionFailed, PermissionDenied
from stratagem.gateway.definitions.contract import ListedTool
from stratagem.gateway.handlers.upstream import Upstreams
from stratagem.gateway.outbound.client import Outbound
from tests.ports import free_port
from tests.unit.gateway.handlers.upstream.servers import (
    SERVER,
    eventually,
    granting,
    handler_of,
    http_server,
    run_of,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio

ADD = handler_of("up", "add")


def definition(port: int, **headers: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port}/mcp"
    return {"name": "up", "transport": "http", "url": url, "headers": headers}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """Give the port of a server that no test changes, and the file of its notes."""
    notes = tmp_path_factory.mktemp("http") / "notes"
    port = free_port()
    with http_server(port, NOTES=str(notes)):
        yield port, notes


async def test_tools_are_listed_and_called(shared: tuple[int, Path]) -> None:
    told: list[float | None] = []
    run = run_of({"count": 2}, progress=lambda done, _message: told.append(done))

    async with upstreams_of(definition(shared[0])) as upstreams:
        names = [tool.name for tool in await upstreams.list_tools("up")]
        result = await value_of(upstreams, ADD, run_of({"a": 1, "b": 2}))
        await value_of(upstreams, handler_of("up", "steps"), run)
        with pytest.raises(ExecutionFailed, match="out of paper"):
            await value_of(upstreams, handler_of("up", "fail"), run_of())

    assert "add" in names
    assert result == {"total": 3}
    assert told == [0.5, 1.0]


async def test_cancelling_a_call_cancels_the_work_upstream(shared: tuple[int, Path]) -> None:
    port, notes = shared
    async with upstreams_of(definition(port)) as upstreams:
        call = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
        await eventually(lambda: "hanging" in notes.read_text())

        call.cancel()

        await eventually(lambda: "cancelled" in notes.read_text())
        assert await value_of(upstreams, ADD, run_of({"a": 1, "b": 1})) == {"total": 2}


async def test_headers_carry_the_secrets_of_the_server_and_nothing_of_the_caller(
    shared: tuple[int, Path],
) -> None:
    seen: list[httpx2.Headers] = []

    async def note(request: httpx2.Request) -> None:
        seen.append(request.headers)

    upstreams = Upstreams(
        http_client=lambda: httpx2.AsyncClient(event_hooks={"request": [note]}, timeout=60),
        secrets=granting({("KEY", f"http://127.0.0.1:{shared[0]}"): "s3"}),
    )
    await upstreams.define(definition(shared[0], Authorization="Bearer ${KEY}"))
    await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))
    await upstreams.close()

    assert {headers["authorization"] for headers in seen} == {"Bearer s3"}


async def test_requests_go_through_the_guard(shared: tuple[int, Path]) -> None:
    port = shared[0]
    for allow in ((), (f"127.0.0.1:{port}",)):
        outbound = Outbound(allow=allow)
        upstreams = Upstreams(http_client=outbound.client, secrets=granting())
        await upstreams.define(definition(port))
        try:
            if allow:
                assert await value_of(upstreams, ADD, run_of({"a": 1, "b": 1})) == {"total": 2}
            else:
                with pytest.raises(PermissionDenied):
                    await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))
        finally:
            await upstreams.close()
            await outbound.close()


async def test_a_server_that_is_not_there_did_nothing_and_may_be_tried_again() -> None:
    async with upstreams_of(definition(free_port())) as upstreams:
        with pytest.raises(ExecutionFailed) as failed:
            await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))

    assert failed.value.safe


async def test_a_server_that_was_started_anew_is_called_again(tmp_path: Path) -> None:
    port = free_port()
    notes = tmp_path / "notes"
    async with upstreams_of(definition(port)) as upstreams:
        with http_server(port, NOTES=str(notes)) as pid:
            await upstreams.list_tools("up")
            hanging = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
            await eventually(lambda: "hanging" in notes.read_text())
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ExecutionFailed) as cut:
                await hanging
        with pytest.raises(ExecutionFailed) as away:
            await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))
        with http_server(port):
            result = await value_of(upstreams, ADD, run_of({"a": 1, "b": 1}))

    assert not cut.value.safe
    assert away.value.safe
    assert result == {"total": 2}


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Give the test server with another description."""
    script = tmp_path / "changed.py"
    script.write_text(Path(SERVER).read_text().replace("Add two numbers.", "Add, and send files."))
    return script


async def test_a_server_that_came_back_as_another_is_noticed_before_a_call(changed: Path) -> None:
    port = free_port()
    async with upstreams_of(definition(port)) as upstreams:
        with http_server(port):
            approved = next(
                tool.handler for tool in await upstreams.list_tools("up") if tool.name == "add"
            )
            await value_of(upstreams, approved, run_of({"a": 1, "b": 1}))
            await eventually(lambda: upstreams.status("up")["followsChanges"])
        await eventually(lambda: not upstreams.status("up")["followsChanges"])
        with (
            http_server(port, [sys.executable, str(changed), "--http", str(port)]),
            pytest.raises(PermissionDenied, match="changed since"),
        ):
            await value_of(upstreams, approved, run_of({"a": 1, "b": 1}))


async def test_a_failing_request_does_not_disturb_the_calls_beside_it(
    shared: tuple[int, Path],
) -> None:
    class Flaky(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if b"words" in request.content:
                raise httpx2.ReadError("cut", request=request)
            return await super().handle_async_request(request)

    upstreams = Upstreams(
        http_client=lambda: httpx2.AsyncClient(transport=Flaky()),
        secrets=granting(),
    )
    await upstreams.define(definition(shared[0]))
    beside = asyncio.create_task(
        value_of(upstreams, handler_of("up", "steps"), run_of({"count": 200}))
    )

    with pytest.raises(ExecutionFailed, match="cut") as failed:
        await value_of(upstreams, handler_of("up", "words"), run_of())

    assert await beside == {"result": "done"}
    assert not failed.value.safe
    await upstreams.close()


async def test_a_changed_description_is_heard_of_and_its_tool_refused() -> None:
    told: list[Sequence[ListedTool]] = []
    port = free_port()
    with http_server(port):
        async with upstreams_of(
            definition(port), on_change=lambda _server, listed: told.append(listed)
        ) as upstreams:
            listed = await upstreams.list_tools("up")
            approved = next(tool.handler for tool in listed if tool.name == "add")
            await eventually(lambda: upstreams.status("up")["followsChanges"])

            await value_of(upstreams, handler_of("up", "rewrite"), run_of())
            await eventually(lambda: len(told) == 2)

            with pytest.raises(PermissionDenied):
                await value_of(upstreams, approved, run_of({"a": 1, "b": 1}))


async def test_something_that_is_no_mcp_server_is_an_error_that_says_so() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, upstreams_of(definition(port)) as upstreams:
        with pytest.raises(ExecutionFailed, match="content type"):
            await upstreams.list_tools("up")


async def test_arguments_are_repeated_in_headers_where_the_schema_says_so() -> None:
    seen: list[httpx2.Headers] = []

    async def note(request: httpx2.Request) -> None:
        seen.append(request.headers)

    port = free_port()
    upstreams = Upstreams(
        http_client=lambda: httpx2.AsyncClient(event_hooks={"request": [note]}, timeout=60),
        secrets=granting(),
    )
    await upstreams.define(definition(port))
    with http_server(port):
        await value_of(upstreams, handler_of("up", "grow"), run_of())
        seen.clear()
        # The list does not have it yet: the server refuses, the list is read, the call sent again.
        result = await value_of(upstreams, handler_of("up", "travel"), run_of({"city": "Oslo"}))
        await upstreams.close()

    assert result == {"result": "Oslo"}
    assert [headers["mcp-method"] for headers in seen][:3] == [
        "tools/call",
        "tools/list",
        "tools/call",
    ]
    assert [headers.get("mcp-param-city") for headers in seen][:3] == [None, None, "Oslo"]
