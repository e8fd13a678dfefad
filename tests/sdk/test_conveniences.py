"""What a person at a prompt meets: what things are called, and what was meant by a slip."""

from __future__ import annotations

import asyncio
import copy
import pickle
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.sdk.remote import Client


def test_everything_says_what_it_is(embedded: Stratagem, remote: Client) -> None:
    assert repr(embedded.memory).startswith("<MemoryMethods of <Stratagem: database ")
    assert repr(embedded.gateway).startswith("<EmbeddedGateway of <Stratagem: database ")
    assert repr(embedded.knowledge).startswith("<KnowledgeMethods of <Stratagem: ")
    assert repr(remote).startswith("<Client: server 'http://127.0.0.1:")
    assert repr(remote.debugging).startswith("<DebuggingMethods of <Client: server ")


def test_a_wrong_keyword_names_the_right_one(embedded: Stratagem, tmp_path: Path) -> None:
    async def slip() -> None:
        async with stratagem.open_async(tmp_path / "async.db") as db:
            await db.memory.store("a", 1, tgas=["x"])  # type: ignore[call-overload]

    with pytest.raises(TypeError, match=r"store\(\) got an .* 'tgas'. Did you mean 'tags'\?"):
        embedded.memory.store("a", 1, tgas=["x"])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"Did you mean 'k'\?"):
        embedded.memory.search("a", limit=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Did you mean 'namespace'\?"):
        stratagem.open(":memory:", nmespace="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="It takes: key, namespace"):
        embedded.memory.explain_miss("a", zebra=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'query'$"):
        embedded.memory.search()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Did you mean 'tags'\?"):
        asyncio.run(slip())


def test_opening_nothing_in_particular_says_what_can_be_opened() -> None:
    with pytest.raises(TypeError, match=r"^open\(\) missing 1 .*'path'. Give the path of a file,"):
        stratagem.open()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^open_async\(\) missing .* `stratagem status` names"):
        stratagem.open_async()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^connect\(\) missing 1 .*'url'. Give the address of a"):
        stratagem.connect()  # type: ignore[call-arg]


def test_a_call_by_name_takes_times_of_python(embedded: Stratagem, remote: Client) -> None:
    for db in (embedded, remote):
        stored = db.call("strata_store", {"key": "a", "value": 1, "ttl": timedelta(hours=1)})
        then = datetime.fromisoformat(stored["timestamp"])
        left = datetime.fromisoformat(stored["expires"]) - then
        assert timedelta(minutes=59) < left <= timedelta(hours=1)
        assert db.call("strata_recall", {"key": "a", "as_of": then})["value"] == 1
        with pytest.raises(stratagem.ValidationFailed):
            db.call("strata_store", {"key": "a", "value": then})


def test_a_date_is_a_day_as_in_words(tmp_path: Path) -> None:
    with stratagem.open(tmp_path / "memory.db", embedder="none") as db:
        stored = db.memory.store("city", "Oslo")
        db.memory.log("moved", 1)
        today = datetime.fromisoformat(stored.timestamp).astimezone().date()

        assert db.memory.recall("city", as_of=today) is not None
        assert db.memory.recall("city", as_of=date(2020, 1, 1)) is None
        assert len(db.memory.events(since=today)) == 1


def test_a_database_that_is_not_awaited_says_how_to_open_it(tmp_path: Path) -> None:
    opening = stratagem.open_async(tmp_path / "memory.db")

    with pytest.raises(AttributeError, match="async with stratagem.open_async"):
        opening.memory  # noqa: B018 -- it is looked up, nothing else
    assert not (tmp_path / "memory.db").exists()


def test_a_missing_database_is_described_in_words_of_python(tmp_path: Path) -> None:
    with pytest.raises(stratagem.DatabaseNotFound) as refused:
        stratagem.open(tmp_path / "nowhere.db", create=False)

    assert "create=False" in refused.value.hint
    assert "--" not in refused.value.hint


def test_a_database_that_is_pickled_or_copied_says_what_to_do(embedded: Stratagem) -> None:
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="open it again"):
            attempt(embedded)


def test_half_of_a_surrogate_pair_is_named_as_such(embedded: Stratagem) -> None:
    with pytest.raises(stratagem.ValidationFailed, match="`key` has half of a surrogate pair"):
        embedded.memory.store("\ud800", 1)


def test_what_can_be_gone_through_is_counted_and_indexed(embedded: Stratagem) -> None:
    for name in ("Loop", "Function"):
        embedded.knowledge.create_concept(name, f"What a {name.casefold()} is for")
    embedded.knowledge.create_relationship("Loop", "Function", "prerequisite")
    embedded.debugging.add_incident("Disk is full", ["Delete caches"], {}, worked=True)
    embedded.memory.fork("trial")

    for results in (
        embedded.memory.branches(),
        embedded.knowledge.search_concepts_exact(name="loop"),
        embedded.knowledge.get_prerequisites("Function"),
        embedded.knowledge.get_learning_path("Function"),
        embedded.debugging.ranked_solutions("Disk is full", {}),
        embedded.debugging.list_incidents(),
    ):
        assert results[0] == next(iter(results))
        assert results[len(results) - 1] == [*results][-1]
