"""A call of an upstream MCP tool: the official client directly, and through our connection.

`python -m benchmarks.upstream`. Both clients hold one connection to the same server process and
call in turns, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters

from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.upstream import Upstreams
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.operation import Caller

SERVER = str(
    Path(__file__).parents[1]
    / "tests"
    / "unit"
    / "gateway"
    / "handlers"
    / "upstream"
    / "upstream_server.py"
)
CALLS = 500
WARM_UP = 50
ARGUMENTS = {"a": 1, "b": 2}
HANDLER = {"type": "mcp", "server": "up", "tool": "add"}


class NoSecrets:
    def resolve(self, text: str, *, origin: str) -> str:
        assert origin
        return text


async def no_secrets(_server: Any, _user: str | None) -> NoSecrets:
    return NoSecrets()


def one_run() -> Run:
    return Run(
        execution_id="e",
        tool="add",
        arguments=ARGUMENTS,
        seconds=30,
        permissions=Permissions(),
        secrets=NoSecrets(),
        caller=Caller(),
        progress=lambda _done, _message: None,
    )


async def in_turns(
    first: Callable[[], Awaitable[Any]], second: Callable[[], Awaitable[Any]]
) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(WARM_UP + CALLS):
        for taken, call in zip(times, (first, second), strict=True):
            start = time.perf_counter()
            await call()
            if turn >= WARM_UP:
                taken.append(time.perf_counter() - start)
    return times


async def measure(name: str, direct: Any, definition: dict[str, Any]) -> None:
    upstreams = Upstreams(http_client=httpx2.AsyncClient, secrets=no_secrets)
    await upstreams.define(definition)
    try:
        async with Client(direct) as client:
            directly, ours = await in_turns(
                lambda: client.call_tool("add", ARGUMENTS),
                lambda: upstreams.run(HANDLER, one_run()),
            )
    finally:
        await upstreams.close()
    row = [
        f"{median(times) * 1e3:.2f} ms (p99 {quantiles(times, n=100)[98] * 1e3:.2f})"
        for times in (directly, ours)
    ]
    ratio = median(ours) / median(directly)
    print(
        f"{name:6} direct {row[0]}, through Upstreams {row[1]}, ratio {ratio:.2f} of {CALLS} calls"
    )


@contextlib.contextmanager
def http_server() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, SERVER, "--http", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    try:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def main() -> None:
    command = StdioServerParameters(command=sys.executable, args=[SERVER])
    stdio = {"name": "up", "transport": "stdio", "command": sys.executable, "args": [SERVER]}
    asyncio.run(measure("stdio", command, stdio))
    with http_server() as url:
        asyncio.run(measure("http", url, {"name": "up", "transport": "http", "url": url}))


if __name__ == "__main__":
    main()
