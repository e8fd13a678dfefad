"""A database with a few tools whose calls go wrong, and everything that is told about it.

Tests of the gateway call operations, as every surface does. What no operation shows, such as events
and breakers, is asked for here and nowhere else, as a server asks for it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

import stratagem
from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.debugging.kinds import INCIDENTS
from stratagem.engine.events import Space
from stratagem.errors import StratagemError
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts
from tests.surfaces.serving import eventually

Answer = dict[str, Any]


def search(query: str, limit: int = 5, order: Literal["newest", "oldest"] = "newest") -> Answer:
    """Search for something."""
    if "unlucky" in query:
        raise ValueError(f"nothing can be found for {query}")
    return {"query": query, "limit": limit, "order": order}


def send(recipient: str, amount: int) -> Answer:
    """Send an amount to somebody."""
    return {"recipient": recipient, "amount": amount}


def switch(lamp: str, state: Literal["on", "off"]) -> Answer:
    """Switch a lamp."""
    return {"lamp": lamp, "state": state}


class Gateway:
    """An open database, and what a server would know of its gateway."""

    def __init__(self, database: Stratagem) -> None:
        self.database = database
        self.heard: list[tuple[str, Answer]] = []
        self._parts = database.runtime.gateway
        self._parts.events.subscribe(lambda what, data: self.heard.append((what, dict(data))))

    def run(self, tool: str, arguments: Any = None, who: str = "ann", **more: Any) -> Answer:
        """Call a tool in somebody's name."""
        given = {"toolName": tool, "arguments": arguments or {}, **more}
        return self.database.runtime.call("tool_execute", given, Caller(who))

    def fails(
        self, tool: str, arguments: Any = None, who: str = "ann", **more: Any
    ) -> StratagemError:
        """Call a tool, and return the error that comes of it."""
        try:
            answer = self.run(tool, arguments, who, **more)
        except StratagemError as error:
            return error
        raise AssertionError(f"it worked: {answer}")

    def ask(self, operation: str, who: str = "ann", **given: Any) -> Answer:
        """Run an operation, once everything before it is recorded."""
        self.settle()
        return self.database.runtime.call(operation, given, Caller(who))

    @contextmanager
    def holding_records(self) -> Iterator[None]:
        """Have what happens meanwhile recorded together, at the end."""
        released = threading.Event()
        self._parts.recorder.do(released.wait)
        try:
            yield
        finally:
            released.set()

    def settle(self) -> None:
        """Wait until everything is recorded and told."""
        self._parts.recorder.settle()

        async def pause() -> None:
            await asyncio.sleep(0)

        self._parts.home.run(pause)

    def told(self, what: str) -> list[Answer]:
        """Return the data of everything told under a name."""
        self.settle()
        return [data for name, data in self.heard if name == what]

    def cancel(self, who: str = "ann") -> str:
        """Cancel the one call that is under way, once there is one; return its execution."""
        (execution,) = eventually(
            lambda: [each for each in self._parts.work.active if each.startswith("exec_")]
        )

        async def cancel() -> None:
            assert not await self._parts.work.cancel("exec_nobody", Caller(who))
            assert await self._parts.work.cancel(execution, Caller(who))

        self._parts.home.run(cancel)
        return str(execution)

    def metrics(self) -> list[str]:
        """Return the lines of the page for Prometheus."""
        return self._parts.metrics_page().content.decode().splitlines()

    def breaker(self, circuit: str) -> str:
        """Return how the breaker of a tool stands, by the page for Prometheus."""
        states = ("closed", "half-open", "open")
        head = f'stratagem_breaker_state{{tool="{circuit}"}} '
        found = [line.removeprefix(head) for line in self.metrics() if line.startswith(head)]
        return states[int(float(found[0]))] if found else "closed"

    def head(self) -> int:
        """Return the newest sequence of the log."""
        return int(self.ask("strata_status")["head"].partition(":")[0])

    def written(self) -> str:
        """Return everything that the log still says, whoever wrote it."""
        self.settle()
        events = self.database.runtime.foundation.store.log()
        return "\n".join((event.payload or b"").decode() for event in events)

    def event_kinds(self) -> set[str]:
        """Return the kinds of event that the log has."""
        self.settle()
        return {event.kind for event in self.database.runtime.foundation.store.log()}

    def records(self, space: str) -> list[Answer]:
        """Return what the gateway wrote of a kind, oldest first."""
        self.settle()
        foundation = self.database.runtime.foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, "default")
            found = reader.records.stream(view.lineage, Space(space, "gateway"))
        return [json.loads(each.payload or b"") for each in found]

    def incidents(self) -> list[Answer]:
        """Return the incidents of the debugging memory, drafts included."""
        self.settle()
        foundation = self.database.runtime.foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, "default")
            rows, _next = reader.records.page(view.lineage, INCIDENTS)
        return [json.loads(version.payload or b"") for _key, version in rows]

    def rebuild(self) -> None:
        """Make everything that is read anew from the log, as `stratagem rebuild` does."""
        self.settle()
        self.database.runtime.foundation.store.rebuild(lambda *_given: None)


class Workshop(Gateway):
    """With tools to call wrongly."""

    def __init__(self, database: Stratagem) -> None:
        super().__init__(database)
        database.gateway.add(search)
        database.gateway.add(send, category="payments")
        database.gateway.add(switch)
        self.settle()
        self.heard.clear()

    def teach(self, word: str, times: int, who: str = "ann", name: str = "query") -> None:
        """Call by a word that the schema lacks, and then by the right one."""
        for number in range(times):
            value = f"the value {who} {number}"
            self.fails("search", {word: value}, who)
            self.run("search", {name: value}, who)

    def lessons(self, branch: str = "default") -> dict[tuple[str, str], tuple[int, int]]:
        """Return what was learned, by place and meaning: how often it held, and how often not."""
        backup = self.ask("auto_correction_patterns", action="backup", branch=branch)["backup"]
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for each in backup["lessons"]:
            held, fell = found.get(name := (each["path"], each["meaning"]), (0, 0))
            found[name] = held + each["held"], fell + each["fell"]
        return found


@contextmanager
def workshop(path: Path | str, **options: Any) -> Iterator[Workshop]:
    with stratagem.open(str(path), durability="fast", embedder="none", **options) as database:
        yield Workshop(database)


@contextmanager
def timed(path: Path, clock: Clock, *allow_hosts: str) -> Iterator[Gateway]:
    """Open a database whose clock the test sets, and whose tools may call these hosts."""
    settings = Settings(
        str(path),
        durability="fast",
        embedder="none",
        adapters=Adapters(clock, salts()),
        zone=UTC,
        allow_hosts=allow_hosts,
    )
    with Stratagem(start(settings), Caller(authority="operator")) as database:
        yield Gateway(database)
