"""Many agents at once: MCP clients over HTTP on SQLite and on PostgreSQL, with one process and two.

Run with `python -m benchmarks.load`; it starts the servers by itself. Every client waits for its
answer and then asks again: half of the calls write, three in ten recall, two in ten search. At the
end every write that was acknowledged is looked up in the database. The clients speak the protocol
with as little work as possible, for they share the processors with what they measure.

Three columns say how many milliseconds of processor time a call took in the workers, in PostgreSQL
and in the clients, and `allowed/s` how many calls a second the processors of this machine allow at
these times, had they nothing else to do: no worker has more than one of them, and all share them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import psutil  # type: ignore[import-untyped]
from psycopg.conninfo import conninfo_to_dict

import stratagem
from benchmarks import texts
from benchmarks.stores import server

_VERSION: Final = "2026-07-28"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ADDRESS: Final = re.compile(r"listening on http://([^:/]+):(\d+)/mcp")
_SEEDED: Final = 500


@dataclass
class Tally:
    """What became of the calls."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--store", choices=["SQLite", "PostgreSQL"], nargs="*")
    parser.add_argument("--db", help="The address of a PostgreSQL server.")
    given = parser.parse_args()
    stores = given.store or ["SQLite", "PostgreSQL"]
    print(f"{given.clients} clients, {given.seconds:g} s each, {os.cpu_count()} processors")
    print(
        f"{'store':<11}{'workers':>8}{'calls/s':>9}{'p50 ms':>8}{'p99 ms':>8}"
        f"{'calls':>9}{'errors':>8}{'written':>9}{'missing':>9}"
        f"{'worker':>8}{'server':>8}{'client':>8}{'allowed/s':>10}"
    )
    bad = 0
    with tempfile.TemporaryDirectory() as folder, server(given.db) as address:
        for store in stores:
            for workers in given.workers:
                name = f"load-{os.getpid()}-{store.lower()}-{workers}"
                file = str(Path(folder) / f"{name}.db")
                place = file if store == "SQLite" else f"{address}#{name}"
                bad += measure(store, place, workers, given.clients, given.seconds)
    return 1 if bad else 0


def measure(store: str, place: str, workers: int, clients: int, seconds: float) -> int:
    """Print a row; return how many calls failed and how many writes are missing."""
    seed(place)
    with serving(place, workers) as (process, host, port):
        processors = Processors(process, place if store == "PostgreSQL" else None)
        tally = asyncio.run(loaded(host, port, clients, seconds, processors))
    missing = lost(place, tally.written)
    spent = [each / len(tally.seconds) for each in processors.spent]
    allowed = min(workers / spent[0], (os.cpu_count() or 1) / sum(spent))
    print(
        f"{store:<11}{workers:>8}{len(tally.seconds) / seconds:>9,.0f}"
        f"{1000 * tally.percentile(0.5):>8.1f}{1000 * tally.percentile(0.99):>8.1f}"
        f"{len(tally.seconds):>9,}{len(tally.errors):>8}{len(tally.written):>9,}{missing:>9}"
        f"{''.join(f'{1000 * each:>8.2f}' for each in spent)}{allowed:>10,.0f}",
        flush=True,
    )
    for error in tally.errors[:3]:
        print(f"  {error[:300]}")
    return len(tally.errors) + missing


def seed(place: str) -> None:
    with stratagem.open(place) as db:
        items: Any = [{"key": key, "value": text} for key, text in texts.entries(_SEEDED)]
        db.memory.store(items=items)


def lost(place: str, written: list[str]) -> int:
    """Return how many of the acknowledged writes the database does not have."""
    missing = 0
    with stratagem.open(place, read_only=True, embedder="none") as db:
        for at in range(0, len(written), 500):
            keys = written[at : at + 500]
            missing += len(keys) - len(db.memory.recall_many(keys))
    return missing


class Processors:
    """The processor time of the workers, of PostgreSQL if it is used, and of this process."""

    def __init__(self, server: int, place: str | None) -> None:
        self._workers = psutil.Process(server)
        self._database = None if place is None else _listening_process(place)
        self.spent = [0.0, 0.0, 0.0]

    def begin(self) -> None:
        self._before = self._used()

    def end(self) -> None:
        after = self._used()
        self.spent = [each - before for each, before in zip(after, self._before, strict=True)]

    def _used(self) -> list[float]:
        database = self._database
        return [
            _time_with_children(self._workers),
            0.0 if database is None else _time_with_children(database),
            time.process_time(),
        ]


def _listening_process(address: str) -> Any:
    """Return the process that listens at an address; None where it is on another machine."""
    port = int(conninfo_to_dict(address.partition("#")[0]).get("port") or 5432)
    owners = [each.pid for each in psutil.net_connections("tcp") if _listens_at(each, port)]
    return psutil.Process(owners[0]) if owners else None


def _listens_at(connection: Any, port: int) -> bool:
    return bool(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port)


def _time_with_children(process: Any) -> float:
    """Return the processor time of a process, of its children, and of those that ended."""
    used = process.cpu_times()
    spent = float(used.user + used.system + used.children_user + used.children_system)
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            spent += _time_with_children(child)
    return spent


@contextmanager
def serving(place: str, workers: int) -> Iterator[tuple[int, str, int]]:
    command = [sys.executable, "-m", "stratagem", "--db", place, "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := _ADDRESS.search(line.decode()):
                    break
            else:
                raise RuntimeError("the server did not start")
            yield process.pid, found[1], int(found[2])
        finally:
            process.terminate()
            process.wait(30)


async def loaded(
    host: str, port: int, clients: int, seconds: float, processors: Processors
) -> Tally:
    tally = Tally()
    opened = await asyncio.gather(*(Agent.connect(host, port, at) for at in range(clients)))
    # Each process opens its database, and reads what finds by meaning, before the clock runs.
    warming = Tally()
    until = time.perf_counter() + min(5.0, seconds)
    await asyncio.gather(*(agent.work(warming, until) for agent in opened))
    tally.written += warming.written
    tally.errors += warming.errors
    processors.begin()
    until = time.perf_counter() + seconds
    await asyncio.gather(*(agent.work(tally, until) for agent in opened))
    processors.end()
    for agent in opened:
        agent.close()
    return tally


class Agent:
    """A client that keeps one connection and waits for each answer."""

    def __init__(self, streams: Any, host: str, number: int) -> None:
        self._reader, self._writer = streams
        self._host = host
        self._number = number
        self._calls = 0
        self._random = random.Random(number)
        self._own: list[str] = []

    @classmethod
    async def connect(cls, host: str, port: int, number: int) -> Agent:
        end = time.monotonic() + 60
        while True:
            try:
                return cls(await asyncio.open_connection(host, port), f"{host}:{port}", number)
            except OSError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.1)

    def close(self) -> None:
        self._writer.close()

    async def work(self, tally: Tally, until: float) -> None:
        while (begun := time.perf_counter()) < until:
            tool, arguments = self._next()
            error = await self._call(tool, arguments)
            tally.seconds.append(time.perf_counter() - begun)
            if error is not None:
                tally.errors.append(f"{tool}: {error}")
            elif tool == "strata_store":
                self._own.append(arguments["key"])
                tally.written.append(arguments["key"])

    def _next(self) -> tuple[str, dict[str, Any]]:
        self._calls += 1
        draw = self._random.random()
        if draw < 0.5 or not self._own:
            key = f"agent-{self._number}-{self._calls}"
            text = f"Agent {self._number} noted {self._random.choice(_WORDS)} {self._calls}."
            return "strata_store", {"key": key, "value": text}
        if draw < 0.8:
            return "strata_recall", {"key": self._random.choice(self._own)}
        return "strata_search", {"query": self._random.choice(_WORDS), "k": 5}

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str | None:
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": self._calls, "method": "tools/call", "params": params}
        body = orjson.dumps(message)
        self._writer.write(
            (
                f"POST /mcp HTTP/1.1\r\nhost: {self._host}\r\n"
                "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
                f"mcp-protocol-version: {_VERSION}\r\nmcp-method: tools/call\r\n"
                f"mcp-name: {tool}\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            ).encode()
            + body
        )
        try:
            status, answer = await self._response()
        except (OSError, asyncio.IncompleteReadError) as error:
            return f"{type(error).__name__} {error}"
        return _fault(status, answer, self._calls)

    async def _response(self) -> tuple[int, bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        if "transfer-encoding: chunked" not in head:
            length = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
            return status, await self._reader.readexactly(length)
        body = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        return status, body


_WORDS: Final = ("schedule", "invoice", "latency", "migration", "harbour", "checksum", "garden")


def _fault(status: int, answer: bytes, number: int) -> str | None:
    """Return what is wrong with an answer, if anything is."""
    if status != 200:
        return f"{status} {answer[:200]!r}"
    if not answer.startswith(b"{"):
        answer = answer.partition(b"data: {")[2].partition(b"\n")[0]
        answer = b"{" + answer
    message = orjson.loads(answer)
    if message.get("id") != number or "result" not in message or message["result"].get("isError"):
        return answer[:300].decode()
    return None


if __name__ == "__main__":
    sys.exit(main())
