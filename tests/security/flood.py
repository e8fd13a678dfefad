"""Floods of a server on loopback, and what others notice of them.

Run with `python -m tests.security.flood`: it starts servers by itself, floods each in one way after
the other, and prints how long others wait meanwhile. A flood is a process of its own, bounded in
connections and in time.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil  # type: ignore[import-untyped]

from tests.security.house import ENVELOPE, make_token
from tests.surfaces.serving import Served, serving

LARGE: Final = {"key": "k", "x": [["word"] * 10] * 30_000}
# What one call of each kind is; the bodies are valid JSON of three million bytes.
CALLS: Final[dict[str, tuple[str, Any]]] = {
    "recall": ("/api/memory/strata_recall", {"key": "k"}),
    "search": ("/api/memory/strata_search", {"query": "a word of the text"}),
    "store": ("/api/memory/strata_store", {"key": "k", "value": "a text of some words"}),
    "tool": ("/api/mcp/tools/calculator/execute", {"arguments": {"expression": "6 * 7"}}),
    "bodies": ("/api/memory/strata_recall", LARGE),
    "protocol bodies": (
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "strata_recall", "arguments": LARGE, "_meta": ENVELOPE},
        },
    ),
}
# How each silent or half-spoken flood begins a connection.
CONNECTIONS: Final[dict[str, str]] = {
    "silent": "",
    "heads": "POST /api/memory/strata_status HTTP/1.1\r\nHost: {host}\r\nX-Half: ",
    "bodies": (
        "POST /api/memory/strata_status HTTP/1.1\r\nHost: {host}\r\n"
        'Content-Length: 200000\r\n\r\n{{"x":'
    ),
    "deaf": (
        "POST /api/memory/strata_recall HTTP/1.1\r\nHost: {host}\r\n"
        "x-stratagem-answers: whole\r\nContent-Length: 14\r\n\r\n"
        '{{"key": "big"}}'
    ),
    "sockets": (
        "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: {host}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ),
    "pipelined": "GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n" * 2_000,
}
_FILES: Final = 1_024

_ASKING = """
import asyncio, collections, json, signal, sys, httpx2

async def main(url, token, path, body, at_once):
    seen = collections.Counter()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "strata_recall",
    }
    limits = httpx2.Limits(max_connections=int(at_once))
    async with httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60) as client:
        async def ask():
            while not stop.is_set():
                try:
                    answer = await client.post(path, content=body)
                except httpx2.HTTPError:
                    seen["cut"] += 1
                else:
                    seen[answer.status_code] += 1
        await asyncio.gather(*(ask() for _ in range(int(at_once))))
    print(json.dumps(seen))

body = sys.stdin.buffer.read()
asyncio.run(main(*sys.argv[1:4], body, sys.argv[4]))
"""

# Opens connections, says what it has to say on each and reads nothing. What was closed it opens
# anew, 200 in a second.
_HOLDING = """
import errno, json, resource, select, signal, socket, sys, time

host, port, count, seconds, sent = sys.argv[1:]
count, until = int(count), time.monotonic() + float(seconds)
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
opened, begun, tried, start = {}, 0, 0, time.monotonic()
poll = select.poll()
while not stopped and time.monotonic() < until:
    may = count + int(200 * (time.monotonic() - start)) - tried
    for _ in range(min(50, count - len(opened), may)):
        tried += 1
        connection = socket.socket()
        connection.settimeout(0.5)
        try:
            connection.connect((host, int(port)))
            connection.sendall(sent.encode())
        except OSError:
            connection.close()
            continue
        begun += 1
        opened[connection.fileno()] = connection
        poll.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    for file, _event in poll.poll(20):
        poll.unregister(file)
        opened.pop(file).close()
print(json.dumps({"opened": begun, "held": len(opened)}))
"""


class Flood:
    """A flood that is under way, and how it fared."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._heard: dict[str, int] | None = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop for a while."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def answered(self) -> dict[str, int]:
        """Stop, and return what it counted."""
        if self._heard is None:
            self._process.terminate()
            out = self._process.communicate(timeout=90)[0]
            self._heard = json.loads(out)
        return self._heard


@contextmanager
def _running(program: str, *arguments: str, given: bytes = b"") -> Iterator[Flood]:
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    process.stdin = None
    flood = Flood(process)
    try:
        yield flood
        flood.answered()
    finally:
        process.kill()
        process.wait()


@contextmanager
def flooding(url: str, token: str, kind: str = "recall", at_once: int = 40) -> Iterator[Flood]:
    """Ask on so many connections without a pause, in a process of its own."""
    path, body = CALLS[kind]
    given = json.dumps(body).encode()
    with _running(_ASKING, url, token, path, str(at_once), given=given) as flood:
        yield flood


@contextmanager
def holding(url: str, kind: str, count: int, seconds: float) -> Iterator[Flood]:
    """Hold so many connections open, in a process of its own."""
    host = url.removeprefix("http://")
    name, port = host.split(":")
    sent = CONNECTIONS[kind].format(host=host)
    with _running(_HOLDING, name, port, str(count), str(seconds), sent) as flood:
        yield flood


@dataclass
class Waits:
    """How long somebody waited for answers, in milliseconds; a failure counts as so long too."""

    taken: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.taken)

    @property
    def longest(self) -> float:
        return max(self.taken)

    def measure(self, ask: Callable[[], int]) -> None:
        """Ask once."""
        began = time.perf_counter()
        try:
            self.failed += ask() != 200
        except (httpx2.HTTPError, OSError, HTTPException):
            self.failed += 1
        self.taken.append((time.perf_counter() - began) * 1000)


def wait_for(seconds: float, asked: Sequence[tuple[Callable[[], int], Waits]]) -> None:
    """Ask for each in turn, for some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for ask, waits in asked:
            waits.measure(ask)
        time.sleep(0.015)


def health_of(server: Served) -> Callable[[], int]:
    """Ask on a connection of its own, as somebody new does."""
    host, port = server.url.removeprefix("http://").split(":")

    def ask() -> int:
        connection = HTTPConnection(host, int(port), timeout=60)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        finally:
            connection.close()

    return ask


@dataclass(frozen=True, slots=True)
class Beside:
    """What another token notices of a flood."""

    kind: str
    alone: float
    beside: float
    health: Waits
    failed: int
    answered: dict[str, int]

    @property
    def ratio(self) -> float:
        return self.beside / self.alone


def beside_a_flood(server: Served, greedy: str, kind: str, seconds: float = 6) -> Beside:
    """Flood a server with one token, and ask as another: for the same, or to recall.

    The flood is stopped again and again, and what is asked meanwhile is compared with: whatever
    else the machine does then is the same for both.
    """
    path, body = CALLS["recall" if kind.endswith("bodies") else kind]

    def ask() -> int:
        return server.client.post(path, json=body).status_code

    alone, beside, health = Waits(), Waits(), Waits()
    wait_for(1, [(ask, Waits())])
    with flooding(server.url, greedy, kind) as flood:
        time.sleep(2)
        end = time.monotonic() + 2 * seconds
        while time.monotonic() < end:
            wait_for(0.7, [(ask, beside), (health_of(server), health)])
            with flood.paused():
                # What it had asked for is answered first.
                time.sleep(0.3)
                wait_for(0.4, [(ask, alone)])
            time.sleep(0.2)
        answered = flood.answered()
    return Beside(kind, alone.median, beside.median, health, beside.failed, answered)


@dataclass(frozen=True, slots=True)
class Held:
    """What somebody new notices while connections are held."""

    kind: str
    count: int
    health: Waits
    lines: int
    cpu: float
    fared: dict[str, int]


def beside_held(server: Served, kind: str, count: int, seconds: float = 6) -> Held:
    """Hold connections, and ask whether the server is there."""
    process = psutil.Process(server.process.pid)
    before = server.log.read_bytes().count(b"\n")
    health = Waits()
    with holding(server.url, kind, count, seconds + 30) as flood:
        time.sleep(2)
        process.cpu_percent()
        wait_for(seconds, [(health_of(server), health)])
        cpu = process.cpu_percent()
        fared = flood.answered()
    lines = server.log.read_bytes().count(b"\n") - before
    return Held(kind, count, health, lines, cpu, fared)


def seconds_to_end(server: Served) -> float:
    """Tell a server to end, and return how long it took."""
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    return time.monotonic() - began


@contextmanager
def with_few_files(path: Path) -> Iterator[Served]:
    """Run a server that needs no token and may open 1,024 files."""
    with serving(path, limits={resource.RLIMIT_NOFILE: _FILES}) as server:
        value = "x" * 400_000
        given = {"key": "big", "value": value}
        assert server.client.post("/api/memory/strata_store", json=given).status_code == 200
        yield server


@contextmanager
def with_tokens(path: Path) -> Iterator[tuple[Served, str]]:
    """Run a server for two tokens; return it, asking as one, and the other."""
    scopes = ("*:write", "gateway:execute")
    greedy, modest = (make_token(path, name, *scopes) for name in ("greedy", "modest"))
    with serving(path) as server:
        server.client.headers["authorization"] = f"Bearer {modest}"
        for number in range(200):
            given = {"key": f"k{number or ''}", "value": f"a text of some words, number {number}"}
            server.client.post("/api/memory/strata_store", json=given)
        yield server, greedy


HELD: Final = (
    ("silent", 1_500),
    ("heads", 1_500),
    ("bodies", 300),
    ("bodies", 1_000),
    ("deaf", 200),
    ("sockets", 500),
    ("pipelined", 20),
)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6)
    for name in ("--calls", "--held"):
        parser.add_argument(name, nargs="*", help="only these floods, or none of this kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if options.calls is None or options.calls:
            server, greedy = stack.enter_context(with_tokens(Path(folder) / "tokens.db"))
            _print("flood by one token", "alone ms", "beside ms", "ratio", "health p50", "max", "")
            for kind in options.calls or CALLS:
                row = beside_a_flood(server, greedy, kind, options.seconds)
                figures = (row.alone, row.beside, row.ratio, row.health.median, row.health.longest)
                _print(kind, *(f"{each:.2f}" for each in figures), str(row.answered))
        if options.held is None or options.held:
            few = stack.enter_context(with_few_files(Path(folder) / "few.db"))
            _print("held connections", "health p50", "max ms", "failed", "log lines", "cpu %", "")
            for kind, count in HELD:
                if options.held and kind not in options.held:
                    continue
                held = beside_held(few, kind, count, options.seconds)
                _print(
                    f"{count:,} {kind}",
                    f"{held.health.median:.2f}",
                    f"{held.health.longest:.0f}",
                    str(held.health.failed),
                    str(held.lines),
                    f"{held.cpu:.0f}",
                    str(held.fared),
                )
            with holding(few.url, "bodies", 1_100, 30) as _flood:
                time.sleep(2)
                seconds = seconds_to_end(few)
            _print("SIGTERM, 1,100 half-sent", f"{seconds:.2f} s to end", "", "", "", "", "")


def _print(first: str, *columns: str) -> None:
    *figures, last = columns
    print(  # noqa: T201 -- the table is what this is for
        f"{first:<26}" + "".join(f"{each:>12}" for each in figures) + f"  {last}",
        flush=True,
    )


if __name__ == "__main__":
    main()
