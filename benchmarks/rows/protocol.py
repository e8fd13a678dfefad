"""A call over the protocol on stdio, against a two-tool server on the same SDK."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import orjson
import psutil  # type: ignore[import-untyped]

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import Dataset
from benchmarks.results import Figure

__all__ = ["ROW"]

_LIMIT: Final = 2.0
_START_SECONDS: Final = 1.0
_START_SHARE: Final = 0.5
_TOOL_LIST_CHARS: Final = 12_000
_CALLS_PER_ROUND: Final = 60
_ROUNDS: Final = 12
_ROOT: Final = Path(__file__).parents[2]
_VERSION: Final = "2025-11-25"


@dataclass(frozen=True, slots=True)
class Side:
    """A server, and the names of its two tools."""

    command: Sequence[str]
    store: str
    search: str


class Connection:
    """A client of one server process that waits for each answer."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._process = subprocess.Popen(
            [sys.executable, "-m", *side.command],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0

    @property
    def cpu_seconds(self) -> float:
        """The processor time that the server has taken so far."""
        taken = psutil.Process(self._process.pid).cpu_times()
        return float(taken.user + taken.system)

    def greet(self) -> None:
        """Shake hands."""
        client = {"name": "benchmark", "version": "1"}
        hello = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}
        self.ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        while True:
            line = _pipe(self._process.stdout).readline()
            if not line:
                raise RuntimeError(f"{' '.join(self.side.command)} ended without an answer.")
            message = orjson.loads(line)
            if message.get("id") == self._last:
                result: dict[str, Any] = message["result"]
                return result

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool that must succeed."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    def _send(self, message: dict[str, Any]) -> None:
        stdin = _pipe(self._process.stdin)
        stdin.write(orjson.dumps(message) + b"\n")
        stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait(timeout=30)
        _pipe(self._process.stdout).close()


def run(bench: Bench) -> Iterator[Figure]:
    """Measure the start, the tool list, and both calls."""
    for size in bench.sizes(10_000):
        dataset = bench.datasets.copy(size, embedded=True, name=f"protocol-{size}")
        ours, plain = _sides(dataset)
        yield from _starts(bench, size, ours, plain)
        with Connection(ours) as our, Connection(plain) as their:
            our.greet()
            their.greet()
            yield _tool_list(our, their)
            yield from _calls(bench, size, our, their)


def _sides(dataset: Dataset) -> tuple[Side, Side]:
    numbered = dataset.plain()
    numbered.number_entries(dataset.size)
    numbered.close()
    ours = ("stratagem", "--db", str(dataset.ours_path), "--durability", "fast", "mcp")
    plain = ("benchmarks.fts_server", str(dataset.plain_path))
    return Side(ours, "strata_store", "strata_search"), Side(plain, "store", "search")


def _starts(bench: Bench, size: int, ours: Side, plain: Side) -> Iterator[Figure]:
    pairs = [(_start(ours), _start(plain)) for _ in range(bench.rounds(9))]
    mine, theirs = (median(each.seconds for each in side) for side in zip(*pairs, strict=True))
    cpu, plain_cpu = (
        median(each.cpu_seconds for each in side) for side in zip(*pairs, strict=True)
    )
    yield Figure(
        "mcp",
        "start to a tool's first answer, CPU",
        size,
        cpu,
        "s",
        plain_cpu,
        f"≤ {_START_SHARE:g} × plain",
        passed=cpu / plain_cpu <= _START_SHARE,
    )
    yield Figure(
        "mcp",
        "start to a tool's first answer",
        size,
        mine,
        "s",
        theirs,
        "< 1 s",
        passed=mine < _START_SECONDS,
        note="stdio; plain: a server of two tools over FTS5 on the same SDK",
    )


class Start(NamedTuple):
    """How long a server takes from its start to its first answer, and how much of a processor."""

    seconds: float
    cpu_seconds: float


def _start(side: Side) -> Start:
    begin = perf_counter()
    with Connection(side) as server:
        server.greet()
        server.call(side.search, {"query": "schedule"})
        return Start(perf_counter() - begin, server.cpu_seconds)


def _tool_list(our: Connection, their: Connection) -> Figure:
    mine, theirs = (
        len(orjson.dumps(server.ask("tools/list", {})["tools"]).decode()) for server in (our, their)
    )
    return Figure(
        "mcp",
        "default tool list",
        0,
        mine,
        "chars",
        theirs,
        promise=f"< {_TOOL_LIST_CHARS:,}",
        passed=mine < _TOOL_LIST_CHARS,
    )


def _calls(bench: Bench, size: int, our: Connection, their: Connection) -> Iterator[Figure]:
    rounds = bench.rounds(_ROUNDS)
    calls = (rounds + 1) * _CALLS_PER_ROUND
    entries = texts.entries(calls, start=50_000_000)
    stores = [{"key": key, "value": text} for key, text in entries]
    searches = [{"query": query.text} for query in texts.queries(calls)]
    for case, arguments in (("store", stores), ("search", searches)):
        mine, theirs = _cpu(our, their, case, arguments)
        yield Figure(
            "mcp",
            f"{case}, CPU a call",
            size,
            mine,
            "s",
            theirs,
            f"≤ {_LIMIT:g} × plain",
            passed=mine / theirs <= _LIMIT,
        )


def _cpu(
    our: Connection, their: Connection, case: str, arguments: Sequence[dict[str, Any]]
) -> tuple[float, float]:
    """Return the processor seconds of a call on each side; the first round warms up.

    The kernel counts in steps of ten milliseconds: only the sum over all rounds is exact enough.
    """
    sums = [0.0, 0.0]
    rest = iter(arguments)
    warm = True
    while batch := list(islice(rest, _CALLS_PER_ROUND)):
        for place, server in enumerate((our, their)):
            before = server.cpu_seconds
            tool = server.side.store if case == "store" else server.side.search
            for each in batch:
                server.call(tool, each)
            if not warm:
                sums[place] += server.cpu_seconds - before
        warm = False
    calls = len(arguments) - _CALLS_PER_ROUND
    return sums[0] / calls, sums[1] / calls


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


ROW: Final = Row("mcp", "tools over the protocol on stdio", run)
