"""A connected client answers as the embedded SDK does: the same models, the same errors."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from stratagem import Stratagem, StratagemError, connect_async
from stratagem.debugging.curation import CuratedDebugging
from stratagem.knowledge.service import Knowledge
from stratagem.memory.service import Memory
from stratagem.sdk.generated.gateway import GatewayOperations
from stratagem.sdk.remote import Client
from tests.sdk.script import SCRIPTS, Step, arguments_of, refusal, shape

SYSTEMS = {
    "memory": Memory,
    "debugging": CuratedDebugging,
    "knowledge": Knowledge,
    "gateway": GatewayOperations,
}


def play(db: Any, script: tuple[Step, ...]) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for each in script:
        given, named = arguments_of(each, done)
        try:
            done[each.name] = getattr(getattr(db, each.system), each.method)(*given, **named)
        except StratagemError as error:
            done[each.name] = refusal(error)
    return done


async def play_async(url: str, script: tuple[Step, ...]) -> dict[str, Any]:
    done: dict[str, Any] = {}
    async with connect_async(url, patience=0) as db:
        for each in script:
            given, named = arguments_of(each, done)
            try:
                method = getattr(getattr(db, each.system), each.method)
                done[each.name] = await method(*given, **named)
            except StratagemError as error:
                done[each.name] = refusal(error)
    return done


def assert_same(one: dict[str, Any], other: dict[str, Any], *, timed: bool) -> None:
    for name, result in one.items():
        assert shape(other[name], timed=timed) == shape(result, timed=timed), name


@pytest.mark.parametrize("system", SCRIPTS)
def test_every_method_answers_as_the_embedded_one(
    system: str, embedded: Stratagem, remote: Client
) -> None:
    script = SCRIPTS[system]

    assert_same(play(embedded, script), play(remote, script), timed=system == "gateway")


@pytest.mark.parametrize("system", SCRIPTS)
def test_every_method_answers_as_the_embedded_one_when_awaited(
    system: str, embedded: Stratagem, url: str
) -> None:
    script = SCRIPTS[system]
    awaited = asyncio.run(play_async(url, script))

    assert_same(play(embedded, script), awaited, timed=system == "gateway")


@pytest.mark.parametrize("system", SCRIPTS)
def test_no_method_is_left_out(system: str) -> None:
    public = {
        name
        for name, each in inspect.getmembers(SYSTEMS[system], callable)
        if not name.startswith("_")
    }

    assert {each.method for each in SCRIPTS[system]} == public


@pytest.mark.parametrize("system", SCRIPTS)
def test_the_scripts_have_something_to_compare(system: str, embedded: Stratagem) -> None:
    done = play(embedded, SCRIPTS[system])
    refused = [name for name, each in done.items() if type(each).__name__ == "Refusal"]

    assert len(done) == len(SCRIPTS[system]), "two steps have one name"
    assert 0 < len(refused) < len(done) / 2, refused


def test_what_no_system_has_is_no_method(remote: Client) -> None:
    with pytest.raises(AttributeError, match="remember"):
        remote.memory.remember  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        remote.memory.recall()  # type: ignore[call-arg]


def test_any_operation_can_be_called_by_its_name(embedded: Stratagem, remote: Client) -> None:
    for db in (embedded, remote):
        db.call("strata_store", {"key": "k", "value": 1})

    there, here = (db.call("strata_recall", {"key": "k"}) for db in (remote, embedded))
    assert (there.pop("actor"), here.pop("actor")) == ("rest", "sdk")
    assert there == here
    with pytest.raises(StratagemError, match="no operation named 'nonsense'"):
        remote.call("nonsense")
