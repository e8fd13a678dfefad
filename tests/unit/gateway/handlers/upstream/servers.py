"""Starts servers for the tests, and makes calls as the gateway makes them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from stratagem.errors import PermissionDenied
from stratagem.gateway.definitions.contract import ListedTool, Run
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.handlers.upstream import Upstreams
from tests import forkserver
from tests.registries import npm_package
from tests.unit.gateway.attempts import attempt

FOLDER = Path(__file__).parent
SERVER = str(FOLDER / "upstream_server.py")
ODD_SERVER = str(FOLDER / "odd_server.py")


class Granted:
    """Secrets that were granted, each for one origin."""

    def __init__(self, values: Mapping[tuple[str, str], str] | None = None) -> None:
        self.values = values or {}

    def resolve(self, text: str, *, origin: str) -> str:
        for (name, bound), value in self.values.items():
            if bound == origin:
                text = text.replace(f"${{{name}}}", value)
        if "${" in text:
            raise PermissionDenied(f"{text} is not granted for {origin}")
        return text


def granting(
    values: Mapping[tuple[str, str], str] | None = None,
) -> Callable[[ServerDocument, str | None], Awaitable[Granted]]:
    async def secrets_of(_server: ServerDocument, _user: str | None) -> Granted:
        return Granted(values)

    return secrets_of


def run_of(
    arguments: Mapping[str, Any] | None = None,
    *,
    seconds: float = 20,
    progress: Callable[[float | None, str | None], None] = lambda _done, _message: None,
) -> Run:
    return attempt(arguments, progress, seconds=seconds)


async def value_of(upstreams: Upstreams, handler: Mapping[str, Any], run: Run) -> Any:
    """Return what a call gives, as plain JSON."""
    return (await upstreams.run(handler, run)).value


def handler_of(server: str, tool: str, **more: str) -> dict[str, str]:
    return {"type": "mcp", "server": server, "tool": tool, **more}


@contextlib.asynccontextmanager
async def upstreams_of(
    *definitions: Mapping[str, Any],
    secrets: Mapping[tuple[str, str], str] | None = None,
    on_change: Callable[[str, Sequence[ListedTool]], None] | None = None,
) -> AsyncIterator[Upstreams]:
    upstreams = Upstreams(
        http_client=httpx2.AsyncClient,
        secrets=granting(secrets),
        on_change=on_change,
        jitter=lambda: 0.0,
    )
    try:
        for definition in definitions:
            await upstreams.define(definition)
        yield upstreams
    finally:
        await upstreams.close()


def stdio(name: str = "up", *, script: str = SERVER, **env: str) -> dict[str, Any]:
    path, *args = script.split(" ")
    return {
        "name": name,
        "transport": "stdio",
        "command": forkserver.program(),
        "args": [path, *args],
        "env": env,
    }


@contextlib.contextmanager
def http_server(port: int, command: Sequence[str] | None = None, **env: str) -> Iterator[int]:
    """Run a server on HTTP, ready to be called; give the id of its process."""
    process = forkserver.Process(
        command or [sys.executable, SERVER, "--http", str(port)],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that a scripted server received, and the connection that it came by."""

    connection: int
    method: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@contextlib.asynccontextmanager
async def scripted_server(
    answer: Callable[[Sent], tuple[str, str, bytes]],
) -> AsyncIterator[tuple[int, list[Sent]]]:
    """Run an HTTP server that answers by a function: status, headers, body.

    A body without a length in the headers is sent as one chunk, and the stream then ends.
    """
    received: list[Sent] = []
    connections = itertools.count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(connections)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                received.append(Sent(number, head[0].split()[0], headers, body))
                status, more, sent = answer(received[-1])
                if "content-length" not in more:
                    more += "\r\ntransfer-encoding: chunked"
                    sent = (b"%x\r\n%b\r\n" % (len(sent), sent) if sent else b"") + b"0\r\n\r\n"
                writer.write(f"HTTP/1.1 {status}\r\n{more}\r\n\r\n".encode() + sent)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def wait_for_port(port: int) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


async def eventually(condition: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be counted does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def npm_server(name: str) -> tuple[str, str]:
    """Return node and the script of a reference server.

    Raises:
        LookupError: Node is missing, or nothing can be fetched.
    """
    node, package = npm_package(f"@modelcontextprotocol/{name}")
    return node, str(package / "dist" / "index.js")
