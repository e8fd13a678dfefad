"""The groups of developer mode answer alike: here and of a server, called and awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from stratagem import AsyncStratagem, Stratagem, StratagemError, connect, connect_async
from stratagem.bootstrap import Runtime, Settings, start
from stratagem.operation import Caller
from stratagem.sdk.developer_groups import DeveloperGroups
from stratagem.storage.relational.store import Adapters
from stratagem.surfaces.serving.settings import ServerSettings
from tests.contracts.samples import Clock, salts
from tests.sdk.developer_script import DEVELOPER
from tests.sdk.hosting import Prepared, host
from tests.sdk.script import Refusal, arguments_of, refusal, shape
from tests.sdk.test_same import play

# What depends on where a database is, or on how far the thread that embeds has come.
VARYING = {
    *("bytes", "bytes_before", "bytes_after", "freed", "file_bytes_freed", "writes", "commits"),
    *("embedded", "pending"),
}

Start = Callable[[str], Runtime]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """Start databases, each with a folder for bundles."""
    with ExitStack() as stack:

        def start_one(name: str) -> Runtime:
            folder = tmp_path / name
            (folder / "bundles").mkdir(parents=True)
            runtime = start(
                Settings(
                    str(folder / "memory.db"),
                    durability="fast",
                    embedder="static",
                    adapters=Adapters(Clock(), salts()),
                    zone=UTC,
                    bundles=str(folder / "bundles"),
                )
            )
            stack.callback(runtime.close)
            return runtime

        yield start_one


@pytest.fixture
def served(started: Start, tmp_path: Path) -> Iterator[str]:
    """Serve a database; give its address."""
    settings = ServerSettings(str(tmp_path / "served" / "memory.db"))
    with closing(Prepared(settings, started("served"))) as database:
        address = host().add(settings, database)
        yield address
        host().remove(address)


async def play_awaited(db: Any) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for each in DEVELOPER:
        given, named = arguments_of(each, done)
        try:
            method = getattr(getattr(db, each.system), each.method)
            done[each.name] = await method(*given, **named)
        except StratagemError as error:
            done[each.name] = refusal(error)
    return done


def comparable(done: dict[str, Any]) -> dict[str, Any]:
    """Return results without what differs from one place to another."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: stripped(each) for name, each in value.items() if name not in VARYING}
        if isinstance(value, list | tuple):
            return [stripped(each) for each in value]
        return value

    return {name: stripped(shape(each)) for name, each in done.items()}


def play_on_server(url: str) -> dict[str, Any]:
    with connect(url, patience=0) as db:
        return play(db, DEVELOPER)


def play_awaited_on_server(url: str) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with connect_async(url, patience=0) as db:
            return await play_awaited(db)

    return asyncio.run(run())


@pytest.mark.parametrize("way", [play_on_server, play_awaited_on_server])
def test_a_server_answers_as_the_database_here(
    started: Start, served: str, way: Callable[[str], dict[str, Any]]
) -> None:
    here = comparable(play(Stratagem(started("here"), Caller(authority="operator")), DEVELOPER))

    there = comparable(way(served))

    for name, answer in here.items():
        assert there[name] == answer, name


def test_the_database_here_answers_alike_when_awaited(started: Start) -> None:
    caller = Caller(authority="operator")
    here = comparable(play(Stratagem(started("here"), caller), DEVELOPER))

    with ThreadPoolExecutor(1) as threads:
        db = AsyncStratagem(started("awaited"), Caller(authority="operator"), threads)
        awaited = comparable(asyncio.run(play_awaited(db)))

    for name, answer in here.items():
        assert awaited[name] == answer, name


def test_every_method_of_every_group_is_called(started: Start) -> None:
    db = Stratagem(started("here"), Caller(authority="operator"))
    groups = [name for name in vars(DeveloperGroups) if not name.startswith("_")]

    public = {
        (group, name)
        for group in groups
        for name, _each in inspect.getmembers(getattr(db, group), callable)
        if not name.startswith("_")
    }
    done = play(db, DEVELOPER)

    assert {(each.system, each.method) for each in DEVELOPER} == public
    assert len(done) == len(DEVELOPER), "two steps have one name"
    refused = {name for name, each in done.items() if isinstance(each, Refusal)}
    assert refused == {
        *("put wrong", "put none", "list wrong", "json wrong", "cas lost", "collection twice"),
        *("upsert wrong", "no collection", "merge nothing", "space refused", "import nothing"),
        *("erased version", "retention of what", "generate"),
    }
