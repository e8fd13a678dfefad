"""Connections that are cut, servers that die: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stratagem import connect, connect_async
from stratagem.errors import ExecutionFailed, ServiceUnavailable
from stratagem.sdk.remote import Client
from tests.faults.proxy import Proxy
from tests.ports import free_port
from tests.sdk.reading import logged
from tests.sdk.script import ENV, TOOL
from tests.surfaces.serving import eventually, serving

WORD = "cut-here"


@dataclass
class Behind:
    """A server, and the proxy before it."""

    proxy: Proxy
    db: Client
    url: str


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    port = free_port()
    proxy = Proxy(port, WORD.encode())
    name = f"127.0.0.1:{proxy.port}"
    database = tmp_path_factory.mktemp("lost") / "lost.db"
    with (
        serving(database, "--port", str(port), "--server-name", name),
        connect(f"http://{name}") as db,
    ):
        yield Behind(proxy, db, f"http://{name}")
    proxy.close()


def count_events(db: Client, word: str) -> int:
    return sum(hit.event == word for hit in db.memory.search(word, k=50))


Write = tuple[Callable[[Client, str], Any], Callable[[Client, str], int]]
WRITES: dict[str, Write] = {
    "an event": (lambda db, word: db.memory.log(word, f"{WORD} {word}"), count_events),
    "an entry": (
        lambda db, word: db.memory.store(word, WORD),
        lambda db, word: len(db.memory.history(word).results),
    ),
    "entries": (
        lambda db, word: db.memory.store(items=[{"key": word, "value": WORD}]),
        lambda db, word: len(db.memory.history(word).results),
    ),
    "a branch": (
        lambda db, word: db.memory.fork(f"{WORD}-{word}"),
        lambda db, word: sum(each.name == f"{WORD}-{word}" for each in db.memory.branches()),
    ),
    "a concept": (
        lambda db, word: db.knowledge.create_concept(word, WORD),
        lambda db, word: len(db.knowledge.search_concepts_exact(name=word)),
    ),
    "an incident": (
        lambda db, word: db.debugging.add_incident(word, WORD, ENV, worked=True, distinct=True),
        lambda db, word: sum(
            each.title == word for each in db.debugging.ranked_solutions(word, ENV).incidents
        ),
    ),
    "a tool": (
        lambda db, word: db.call("tool_register", {**TOOL, "name": word, "tags": [WORD]}),
        lambda db, word: sum(each["name"] == word for each in db.gateway.list()),
    ),
}


@pytest.mark.parametrize("fault", ["lose the reply", "lose the request"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_written_once_whatever_was_lost(behind: Behind, name: str, fault: Any) -> None:
    write, count = WRITES[name]
    word = f"{name}-{fault}".replace(" ", "-")
    before = behind.proxy.cuts
    behind.proxy.fault = fault

    answer = write(behind.db, word)

    assert behind.proxy.cuts == before + 1
    assert answer is not None
    assert count(behind.db, word) == 1


def test_an_awaited_write_is_written_once(behind: Behind) -> None:
    async def write() -> Any:
        async with connect_async(behind.url) as db:
            return await db.memory.log("awaited", WORD)

    behind.proxy.fault = "lose the reply"
    asyncio.run(write())

    assert count_events(behind.db, "awaited") == 1


@pytest.mark.parametrize("fault", ["lose the reply", "lose the request"])
def test_a_call_of_a_tool_whose_answer_was_lost_is_run_once(behind: Behind, fault: Any) -> None:
    calls = len(behind.db.gateway.executions(limit=100))
    behind.proxy.fault = fault
    # The word is in the label, which says nothing to the tool.
    answer = behind.db.gateway.execute(
        "calculator", {"expression": "1 + 1"}, context={"agentId": WORD}
    )

    assert answer["result"]["result"] == 2
    eventually(lambda: len(behind.db.gateway.executions(limit=100)) == calls + 1)


@pytest.mark.parametrize("fault", ["none", "lose the reply"])
def test_a_call_that_failed_is_told_at_once(behind: Behind, fault: Any) -> None:
    """The server says 502 for the tool: it is well itself, and has no other answer to give."""
    name = f"unreachable-{fault}".replace(" ", "-")
    handler = {"type": "webhook", "url": "https://unreachable.invalid/"}
    behind.db.call("tool_register", {**TOOL, "name": name, "handler": handler})
    behind.proxy.fault = fault
    began = time.monotonic()
    with pytest.raises(ExecutionFailed) as failed:
        behind.db.gateway.execute(name, {}, context={"agentId": WORD})

    assert time.monotonic() - began < 20
    assert failed.value.details.get("repeated") == (True if fault != "none" else None)
    assert len(behind.db.gateway.executions(tool_id=name)) == 1


@pytest.mark.parametrize("fault", ["lose the reply", "lose the request"])
def test_several_calls_whose_answer_was_lost_are_not_repeated(behind: Behind, fault: Any) -> None:
    calls = len(behind.db.gateway.executions(limit=100))
    each = {"toolName": "calculator", "arguments": {"expression": "1 + 1"}}
    behind.proxy.fault = fault
    with pytest.raises(ServiceUnavailable, match="cannot be reached"):
        behind.db.gateway.batch([each], context={"agentId": WORD})

    arrived = 1 if fault == "lose the reply" else 0
    eventually(lambda: len(behind.db.gateway.executions(limit=100)) == calls + arrived)


def test_a_server_that_is_killed_and_started_again_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    place = tmp_path / "killed.db"
    acknowledged: list[tuple[str, Any]] = []
    answers: list[Any] = []

    def write(mark: int) -> None:
        with connect(url, patience=60) as db:
            for number in range(15):
                db.memory.log(f"w{mark}", number)
                acknowledged.append((f"w{mark}", number))

    def calculate() -> None:
        with connect(url, patience=60) as db:
            answers.append(db.gateway.execute("calculator", {"expression": "6 * 7"}))

    with ThreadPoolExecutor(5) as threads:
        with serving(place, "--port", port) as first:
            writing = [threads.submit(write, mark) for mark in range(4)]
            eventually(lambda: len(acknowledged) > 10, 30)
            first.kill()
        at_the_kill = len(acknowledged)
        # It was surely not sent: a call of a tool, too, waits for the server.
        waiting = threads.submit(calculate)
        with serving(place, "--port", port):
            for each in (*writing, waiting):
                each.result(60)

    assert at_the_kill < len(acknowledged) == 60
    assert sorted(logged(str(place))) == sorted(acknowledged)
    assert answers[0]["result"]["result"] == 42
