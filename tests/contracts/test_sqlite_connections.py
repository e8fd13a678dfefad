"""A thread that alone writes to an SQLite file writes by the connection that it reads by."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from stratagem.storage.contract import Reader, Transaction
from stratagem.storage.sqlite.store import SqliteStore
from tests.contracts.backends import open_sqlite_file, open_sqlite_memory
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Clock,
    a_note,
    append,
    examine,
    live,
    matching,
    text_of,
)

# More commits than it takes to be the only thread that writes.
MANY = 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_sqlite_file(tmp_path, Clock())
    for number in range(MANY):
        append(store, a_note(f"key {number}", f"text {number}"))
    yield store
    store.close()


def test_what_was_read_before_a_commit_is_still_in_memory_after_it(store: SqliteStore) -> None:
    for number in range(MANY):
        text_of(store, f"key {number}")
    append(store, a_note("another", "text"))
    before = _pages_read(store)

    for number in range(MANY):
        text_of(store, f"key {number}")

    assert _pages_read(store) == before


def test_each_snapshot_shows_the_commits_before_it(store: SqliteStore) -> None:
    for number in range(MANY):
        written = append(store, a_note("one", f"unlike{number}"))

        with store.snapshot() as reader:
            assert reader.log.head().sequence == written
        assert text_of(store, "one") == f"unlike{number}"
        assert matching(store, f"unlike{number}")


def test_what_is_read_beside_a_transaction_was_committed(store: SqliteStore) -> None:
    def work(transaction: Transaction) -> str | None:
        transaction.append(live(transaction, MAIN), [a_note("one", "new")])
        return text_of(store, "one")

    append(store, a_note("one", "old"))

    assert [store.write(work, TESTER) for _ in range(3)] == ["old", "new", "new"]
    assert text_of(store, "one") == "new"


def test_in_memory_work_may_ask_for_a_reader_without_waiting_for_itself(tmp_path: Path) -> None:
    with closing(open_sqlite_memory(tmp_path, Clock(), lock_wait_seconds=0.1)) as in_memory:

        def work(transaction: Transaction) -> bool:
            transaction.append(live(transaction, MAIN), [a_note("one", "text")])
            return in_memory.reader().vector_comparer is None

        for number in range(MANY):
            append(in_memory, a_note(f"key {number}", f"text {number}"))
        with ThreadPoolExecutor(1) as another_thread:
            in_another = another_thread.submit(in_memory.write, work, TESTER).result()

        assert in_memory.write(work, TESTER)
        assert in_another


def test_work_that_fails_leaves_nothing_to_be_read(store: SqliteStore) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append(live(transaction, MAIN), [a_note("one", "half")])
        raise ValueError("half way")

    head = store.reader().log.head()
    with pytest.raises(ValueError, match="half way"):
        store.write(work, TESTER)

    assert store.reader().log.head() == head
    assert text_of(store, "one") is None
    append(store, a_note("one", "whole"))
    assert text_of(store, "one") == "whole"
    assert examine(store) == []


def test_a_snapshot_stays_as_it_was_while_its_thread_writes(store: SqliteStore) -> None:
    with store.snapshot() as reader:
        before = reader.log.head()
        append(store, a_note("one", "within"))

        assert reader.log.head() == before

    assert text_of(store, "one") == "within"
    append(store, a_note("one", "after"))
    assert text_of(store, "one") == "after"


def test_no_statement_keeps_its_connection_in_the_past(store: SqliteStore) -> None:
    def fail(transaction: Transaction) -> None:
        transaction.branches.by_name("nowhere")
        transaction.settings.number("vector_generation")
        raise ValueError("after a look")

    def states() -> list[int]:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(text_of, store, "key 1").result()
            connections = list(store._connections)  # noqa: SLF001 -- only a test asks for them
            return [each.txn_state("main") for each in connections]

    text_of(store, "key 1")
    text_of(store, "nothing")
    store.reader().settings.number("vector_generation")
    with store.snapshot():
        pass
    after_reading = states()
    with pytest.raises(ValueError, match="after a look"):
        store.write(fail, TESTER)
    after_failing = states()
    append(store, a_note("one", "text"))

    assert {*after_reading, *after_failing, *states()} == {apsw.SQLITE_TXN_NONE}


def test_threads_that_write_in_turn_see_each_other(store: SqliteStore) -> None:
    def write_beside() -> None:
        for number in range(MANY):
            append(store, a_note("theirs", f"text {number}"))

    for number in range(3):
        beside = threading.Thread(target=write_beside)
        beside.start()
        append(store, a_note("ours", f"text {number}"))
        beside.join()
        append(store, a_note("ours", f"again {number}"))

        assert text_of(store, "theirs") == f"text {MANY - 1}"
        assert text_of(store, "ours") == f"again {number}"
    assert examine(store) == []


def test_an_interruption_after_the_lock_leaves_no_transaction_open(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, interrupts = store.connect, threading.Event()
    monkeypatch.setattr(store, "connect", lambda: _Interrupted(connect(), interrupts))
    with ThreadPoolExecutor(1) as thread:
        for number in range(MANY):
            thread.submit(append, store, a_note("one", f"text {number}")).result()
        interrupts.set()
        with pytest.raises(KeyboardInterrupt):
            thread.submit(append, store, a_note("one", "half")).result()
        interrupts.clear()

        append(store, a_note("one", "whole"))
        assert thread.submit(text_of, store, "one").result() == "whole"


def test_a_closed_store_refers_to_no_connection(store: SqliteStore) -> None:
    connections: list[weakref.ref[apsw.Connection]] = []

    def write_and_end() -> None:
        for number in range(MANY):
            append(store, a_note("one", f"text {number}"))
        connections.append(weakref.ref(store.thread_connection()))

    thread = threading.Thread(target=write_and_end)
    thread.start()
    thread.join()

    store.close()

    gc.collect()
    assert [connection() for connection in connections] == [None]


def test_a_long_walk_of_writers_is_seen_as_by_a_connection_that_has_read_nothing(
    store: SqliteStore, tmp_path: Path
) -> None:
    """No answer that a thread, or its store, remembers outlives a commit of whomever."""
    chance = random.Random(94)
    beside = open_sqlite_file(tmp_path, Clock())
    with closing(beside), ThreadPoolExecutor(1) as another_thread:
        for number in range(60):
            who = chance.choice(["own", "own", "own", "thread", "beside", "rebuild"])
            for _ in range(chance.randint(1, 6)):
                note = a_note(f"key {chance.randint(0, 9)}", f"walk{number} walk{number % 7}")
                if who == "rebuild":
                    store.rebuild(lambda _done, _total, _what: None)
                    break
                if who == "thread":
                    another_thread.submit(append, store, note).result()
                else:
                    append(beside if who == "beside" else store, note)
            # A thread would index the texts of a burst between two of the answers.
            store.index_backlog(wait_seconds=5)
            with closing(open_sqlite_file(tmp_path, Clock())) as fresh:
                expected = _answers(fresh, number)
            assert _answers(store, number) == expected
            assert _answers(beside, number) == expected
            assert another_thread.submit(_answers, store, number).result() == expected


class _Interrupted:
    """A connection, or its cursor, whose user can be interrupted after it has locked writers out."""

    def __init__(
        self, connection: apsw.Connection | apsw.Cursor, interrupts: threading.Event
    ) -> None:
        self._connection = connection
        self._interrupts = interrupts

    def cursor(self) -> _Interrupted:
        assert isinstance(self._connection, apsw.Connection)
        return _Interrupted(self._connection.cursor(), self._interrupts)

    def execute(self, sql: str, *parameters: Any) -> apsw.Cursor:
        cursor = self._connection.execute(sql, *parameters)
        if sql == "BEGIN IMMEDIATE" and self._interrupts.is_set():
            raise KeyboardInterrupt
        return cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _answers(store: SqliteStore, number: int) -> list[object]:
    """Return what readers of a store remember until the next commit, in a snapshot and outside."""
    terms = [f"walk{number}", f"walk{number % 7}", "nowhere"]

    def ask(reader: Reader) -> list[object]:
        return [
            reader.log.head(),
            reader.settings.number("vector_generation"),
            reader.branches.by_name(MAIN),
            reader.search.text_count(),
            sorted(reader.search.document_frequencies(terms).items()),
        ]

    with store.snapshot() as reader:
        within = ask(reader)
    texts = [text_of(store, f"key {place}") for place in range(10)]
    found = [matching(store, term) for term in terms]
    return [within, ask(store.reader()), texts, found]


def _pages_read(store: SqliteStore) -> int:
    """Return how many pages the connection of this thread did not find in its cache."""
    current, _most = store.thread_connection().status(apsw.SQLITE_DBSTATUS_CACHE_MISS)
    return current
