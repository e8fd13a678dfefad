"""A database with a few tools whose calls go wrong, and everything that is told about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import stratagem
from stratagem import Stratagem
from stratagem.errors import StratagemError
from stratagem.gateway.learning.corrector import LearningCorrector
from stratagem.gateway.parts import GatewayParts
from stratagem.operation import Caller

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


class Workshop:
    """What the tests work with."""

    def __init__(self, database: Stratagem) -> None:
        self.database = database
        self.heard: list[tuple[str, Answer]] = []
        database.gateway.add(search)
        database.gateway.add(send, category="payments")
        database.gateway.add(switch)
        self._listener = self.gateway.events.subscribe(
            lambda what, data: self.heard.append((what, dict(data)))
        )

    @property
    def gateway(self) -> GatewayParts:
        return self.database.runtime.gateway

    @property
    def corrector(self) -> LearningCorrector:
        return self.gateway.corrector

    def run(self, tool: str, arguments: Any, who: str = "ann", **more: Any) -> Answer:
        """Call a tool in somebody's name."""
        given = {"toolName": tool, "arguments": arguments, **more}
        return self.database.runtime.call("tool_execute", given, Caller(who))

    def fails(self, tool: str, arguments: Any, who: str = "ann", **more: Any) -> StratagemError:
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

    def settle(self) -> None:
        """Wait until everything is recorded and told."""
        self.gateway.recorder.settle()

        async def pause() -> None:
            await asyncio.sleep(0)

        self.gateway.home.run(pause)

    def told(self, what: str) -> list[Answer]:
        """Return the data of everything told under a name."""
        self.settle()
        return [data for name, data in self.heard if name == what]

    def teach(self, word: str, times: int, who: str = "ann", name: str = "query") -> None:
        """Call by a word that the schema lacks, and then by the right one."""
        for number in range(times):
            value = f"the value {who} {number}"
            self.fails("search", {word: value}, who)
            self.run("search", {name: value}, who)


@contextmanager
def workshop(path: Path, **options: Any) -> Iterator[Workshop]:
    with stratagem.open(str(path), durability="fast", embedder="none", **options) as database:
        yield Workshop(database)
