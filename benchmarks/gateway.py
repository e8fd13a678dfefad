"""The gateway beside the least that the same job needs, over HTTP on loopback.

`python -m benchmarks.gateway` prints its figures, each with its promise. Calls that are compared
are made in turns, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import httpx2
import socketio
from mcp import Client

import stratagem
from benchmarks.results import Figure

__all__ = ["main", "measure"]

_ROOT: Final = Path(__file__).parents[1]
_UPSTREAM: Final = str(
    _ROOT / "tests" / "unit" / "gateway" / "handlers" / "upstream" / "upstream_server.py"
)
_ROW: Final = "gateway"
_UPSTREAM_TIMES: Final = 2.0
_REST_TIMES: Final = 2.0
_TAIL_TIMES: Final = 10.0
_BATCH_TIMES: Final = 5.0
_CALLERS: Final = 200
_CALLS_EACH: Final = 5
_BATCH: Final = 50
_WAIT_SECONDS: Final = 0.02
_WARM_UP: Final = 30
# A result from the cache would be no call.
_CALCULATION: Final = {"arguments": {"expression": "2 + 2"}, "options": {"skipCache": True}}
_WAITS: Final[dict[str, Any]] = {
    "name": "waits",
    "description": "Waits.",
    "inputSchema": {"type": "object"},
    "handler": {"type": "python", "callable": "benchmarks.gateway:waits"},
}
_EMPTY: Final = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Given(BaseModel):
    arguments: dict

app = FastAPI()

@app.post("/empty")
async def empty(given: Given) -> dict:
    return {"success": True}

uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
"""


@dataclass(frozen=True, slots=True)
class Sides:
    """Where everything listens."""

    ours: str
    upstream: str
    empty: str


def measure(*, rounds: int = 300) -> list[Figure]:
    """Return every figure."""
    with tempfile.TemporaryDirectory() as folder, _running(Path(folder)) as sides:
        return asyncio.run(_measure(sides, rounds))


async def _measure(sides: Sides, rounds: int) -> list[Figure]:
    async with httpx2.AsyncClient(base_url=sides.ours, timeout=60, trust_env=False) as ours:
        return [
            *await _upstream(sides, ours, rounds),
            await _rest(sides, ours, rounds),
            await _crowd(sides),
            await _batch(ours),
        ]


async def waits() -> dict[str, float]:
    """Wait, as a tool does that asks somebody else."""
    await asyncio.sleep(_WAIT_SECONDS)
    return {"seconds": _WAIT_SECONDS}


async def _upstream(sides: Sides, rest: httpx2.AsyncClient, rounds: int) -> list[Figure]:
    """Call a tool of an MCP server directly, and through the gateway on each of its surfaces."""
    given = {"a": 1, "b": 2}
    named = {"toolName": "add", "arguments": given}
    sockets = socketio.AsyncClient()
    await sockets.connect(sides.ours, transports=["websocket"])
    async with (
        Client(f"{sides.upstream}/mcp") as direct,
        Client(f"{sides.ours}/mcp") as through,
    ):
        theirs, *ours = await _in_turns(
            rounds,
            lambda: direct.call_tool("add", given),
            lambda: through.call_tool("tool_execute", named),
            lambda: _post(rest, "/api/mcp/tools/add/execute", {"arguments": given}),
            lambda: sockets.call("mcp:tool:execute", named),
        )
    await sockets.disconnect()
    return [
        _compared(
            f"upstream MCP tool through the gateway, {surface}", times, theirs, _UPSTREAM_TIMES
        )
        for surface, times in zip(("MCP", "REST", "Socket.IO"), ours, strict=True)
    ]


async def _rest(sides: Sides, ours: httpx2.AsyncClient, rounds: int) -> Figure:
    async with httpx2.AsyncClient(base_url=sides.empty, trust_env=False) as theirs:
        plain, mine = await _in_turns(
            rounds,
            lambda: _post(theirs, "/empty", _CALCULATION),
            lambda: _calculated(ours),
        )
    return _compared("built-in tool over REST, beside an empty route", mine, plain, _REST_TIMES)


async def _crowd(sides: Sides) -> Figure:
    """Let many callers call at once, each on a connection of its own; none may be refused."""
    limits = httpx2.Limits(max_connections=_CALLERS, max_keepalive_connections=_CALLERS)
    async with httpx2.AsyncClient(
        base_url=sides.ours, limits=limits, timeout=60, trust_env=False
    ) as client:
        await asyncio.gather(*(client.get("/health") for _each in range(_CALLERS)))

        async def caller() -> list[float]:
            return [await _timed(lambda: _calculated(client)) for _call in range(_CALLS_EACH)]

        times = [
            each
            for own in await asyncio.gather(*(caller() for _each in range(_CALLERS)))
            for each in own
        ]
    half, tail = median(times), quantiles(times, n=100)[98]
    return Figure(
        _ROW,
        f"{_CALLERS} callers at once, p99 beside p50",
        0,
        tail,
        "s",
        half,
        f"p99 ≤ {_TAIL_TIMES:g} × p50, no error",
        passed=tail <= _TAIL_TIMES * half,
    )


async def _batch(ours: httpx2.AsyncClient) -> Figure:
    calls = [{"toolName": "waits", "arguments": {}}] * _BATCH

    async def run(*, parallel: bool) -> Any:
        answer = await ours.post("/api/mcp/batch", json={"executions": calls, "parallel": parallel})
        assert answer.json()["data"]["succeeded"] == _BATCH, answer.text[:500]

    await run(parallel=True)
    in_order, at_once = [], []
    for _round in range(3):
        in_order.append(await _timed(lambda: run(parallel=False)))
        at_once.append(await _timed(lambda: run(parallel=True)))
    ours_, theirs = median(at_once), median(in_order)
    return Figure(
        _ROW,
        f"batch of {_BATCH} that wait, beside in order",
        0,
        ours_,
        "s",
        theirs,
        f"≥ {_BATCH_TIMES:g} × faster",
        passed=ours_ * _BATCH_TIMES <= theirs,
    )


def _compared(case: str, ours: list[float], plain: list[float], times: float) -> Figure:
    mine, theirs = median(ours), median(plain)
    return Figure(
        _ROW, case, 0, mine, "s", theirs, f"≤ {times:g} × plain", passed=mine <= times * theirs
    )


async def _in_turns(rounds: int, *calls: Callable[[], Awaitable[Any]]) -> list[list[float]]:
    times: list[list[float]] = [[] for _call in calls]
    for turn in range(_WARM_UP + rounds):
        for taken, call in zip(times, calls, strict=True):
            took = await _timed(call)
            if turn >= _WARM_UP:
                taken.append(took)
    return times


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    begin = time.perf_counter()
    await call()
    return time.perf_counter() - begin


async def _post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text[:500]


async def _calculated(client: httpx2.AsyncClient) -> None:
    await _post(client, "/api/mcp/tools/calculator/execute", _CALCULATION)


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[Sides]:
    ports = [_free_port() for _side in range(3)]
    upstream, empty, ours = ports
    path = str(folder / "bench.db")
    serve = [sys.executable, "-m", "stratagem", "--db", path, "serve"]
    options = ["--port", str(ours), "--allow-host", f"127.0.0.1:{upstream}"]
    with contextlib.ExitStack() as started:

        def start(command: list[str], port: int) -> None:
            process = subprocess.Popen(
                command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            started.callback(process.wait, timeout=20)
            started.callback(process.terminate)
            _wait_for(port)

        start([sys.executable, _UPSTREAM, "--http", str(upstream)], upstream)
        # Code on the server, and servers behind it, are nothing that anybody may add over HTTP.
        with stratagem.open(path, embedder="none") as db:
            db.call("tool_register", _WAITS)
        added = {"name": "up", "url": f"http://127.0.0.1:{upstream}/mcp"}
        subprocess.run(
            [sys.executable, "-m", "stratagem", "--db", path, "call", "server_add", dumps(added)],
            env={**os.environ, "STRATAGEM_ALLOW_HOSTS": f"127.0.0.1:{upstream}"},
            cwd=_ROOT,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        start([sys.executable, "-c", _EMPTY, str(empty)], empty)
        allowed = ["--allow-callable", _WAITS["handler"]["callable"]]
        start([*serve, *options, *allowed, "--toolsets", "gateway"], ours)
        yield Sides(*(f"http://127.0.0.1:{port}" for port in (ours, upstream, empty)))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


def main() -> int:
    """Print the figures; 0 when no promise was missed."""
    from rich.console import Console

    from benchmarks import results

    figures = measure()
    Console(width=120).print(results.report(figures))
    return 1 if any(figure.passed is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
