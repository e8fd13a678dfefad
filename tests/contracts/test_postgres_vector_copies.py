"""A server of a small PostgreSQL workspace compares a copy of its vectors: does it stay true?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

import stratagem
from stratagem import limits
from stratagem.search import stored_vectors
from stratagem.search.stored_vectors import StoredVectors
from tests.postgres import a_workspace

TEXTS = {
    "pump": "The water pump of the greenhouse leaks at its seal.",
    "rent": "The rent is due on the first of each month.",
    "dog": "Our dog is afraid of thunder.",
    "flight": "The flight to Oslo leaves at noon.",
}
QUESTIONS = ("a leaking pipe", "payment for the flat", "an animal in a storm", "travel to Norway")


OPPOSITE = "UPDATE stratagem.vectors SET vector = vector * array_fill(-1, ARRAY[256])::vector"


@pytest.fixture
def place(postgres_address: str) -> str:
    return f"{postgres_address}#{a_workspace()}"


@pytest.fixture
def servers(place: str) -> Iterator[tuple[Any, Any]]:
    with closing(stratagem.open(place)) as one, closing(stratagem.open(place)) as other:
        for each in (one, other):
            embedder = each.runtime.foundation.index.embedder
            assert embedder is not None
            embedder.load()
        yield one, other


def found(db: Any) -> list[list[tuple[str, float]]]:
    return [
        [(hit.key, round(hit.score, 5)) for hit in db.memory.search(question, k=3, min_score=0)]
        for question in QUESTIONS
    ]


def compared_by_the_store(db: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    with monkeypatch.context() as patched:
        patched.setattr(limits, "SERVER_EXACT_VECTORS_MAX", -1)
        return found(db)


def behind_its_back(place: str, sql: str, workspace: int) -> None:
    with psycopg.connect(place.partition("#")[0], autocommit=True) as connection:
        connection.execute(f"{sql} WHERE workspace = %s".encode(), (workspace,))


def test_a_copy_finds_what_the_store_finds_whoever_wrote_it(
    servers: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
        assert found(other) == compared_by_the_store(other, monkeypatch)
    other.memory.store("pump", "The pump was replaced.")
    other.memory.fork("trial")
    one.memory.store("boat", "A boat to Norway leaves in June.")
    one.memory.forget("rent")

    assert found(one) == compared_by_the_store(one, monkeypatch)
    assert found(other) == found(one)
    assert found(one)[3][0][0] in {"flight", "boat"}


def test_a_copy_forgets_what_another_server_purged(
    servers: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    before = found(other)

    one.memory.purge("dog")

    assert "dog" in {key for key, _ in before[2]}
    assert "dog" not in {key for hits in found(other) for key, _ in hits}
    assert found(other) == compared_by_the_store(other, monkeypatch)


def test_a_copy_of_another_log_is_not_used(
    servers: tuple[Any, Any], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_vectors, "_CHECK_SECONDS", 0.0)
    one, _ = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    found(one)
    number = one.runtime.foundation.store.number

    # As if the database had been put back from a backup, and written to since.
    behind_its_back(place, "UPDATE stratagem.events SET hash = sha256(hash)", number)
    behind_its_back(place, OPPOSITE, number)

    assert found(one) == compared_by_the_store(one, monkeypatch)


def test_what_another_server_marks_as_standing_counts_at_once(servers: tuple[Any, Any]) -> None:
    one, other = servers
    one.memory.store("pump", TEXTS["pump"])
    before = [hit.score for hit in other.memory.search("the pump of the greenhouse", k=1)]

    one.memory.store("tea", "Always answer questions about the greenhouse pump in Dutch.")

    hits = {hit.key: hit.score for hit in other.memory.search("the pump of the greenhouse", k=2)}
    alone = {hit.key: hit.score for hit in one.memory.search("the pump of the greenhouse", k=2)}
    assert before
    assert hits == alone
    assert set(hits) == {"pump", "tea"}


def test_the_copy_that_was_used_longest_ago_is_given_up(
    servers: tuple[Any, Any], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    before = found(one)
    store = one.runtime.foundation.store
    behind_its_back(place, OPPOSITE, store.number)
    unread = found(one)

    monkeypatch.setattr(stored_vectors, "_COPIED_MAX", len(TEXTS))
    with store.snapshot() as reader:
        StoredVectors(256).copy_at_hand(reader)

    assert unread == before
    assert found(one) == compared_by_the_store(one, monkeypatch) != before


def test_a_large_copy_is_made_once_it_pays(
    servers: tuple[Any, Any], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    monkeypatch.setattr(stored_vectors, "_COPIED_AT_ONCE_MAX", 3)
    monkeypatch.setattr(stored_vectors, "_SEARCHES_BEFORE_COPY", len(QUESTIONS))
    before = found(other)
    number = one.runtime.foundation.store.number

    behind_its_back(place, OPPOSITE, number)
    copied = found(other)
    behind_its_back(place, OPPOSITE, number)

    assert copied != before
    assert found(other) == copied


def test_a_search_asks_the_server_little(
    servers: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    one.memory.search("the water pump", k=1)
    asked: list[str] = []
    execute = psycopg.RawCursor.execute

    def note(cursor: Any, query: Any, *given: Any, **settings: Any) -> Any:
        asked.append(str(query))
        return execute(cursor, query, *given, **settings)

    monkeypatch.setattr(psycopg.RawCursor, "execute", note)
    one.memory.search("the water pump", k=1)

    # BEGIN, the state of the workspace, words, what is known of the candidates, and the hits. Each
    # second it is looked whether the log is still the same.
    assert len([query for query in asked if "SELECT hash FROM" not in query]) == 5


def test_texts_that_wait_get_their_vectors_before_a_search(
    servers: tuple[Any, Any], place: str
) -> None:
    one, _ = servers
    for key, text in TEXTS.items():
        one.memory.store(key, text)
    before = found(one)
    store = one.runtime.foundation.store
    waiting = "INSERT INTO stratagem.unembedded SELECT workspace, seq FROM stratagem.vectors"
    behind_its_back(place, waiting, store.number)
    behind_its_back(place, "DELETE FROM stratagem.vectors", store.number)

    assert found(one) == before
    assert store.reader().vectors.count() == len(TEXTS)
