"""A thread that alone writes to an SQLite file writes by the connection that it reads by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from stratagem.storage.contract import Transaction
from stratagem.storage.sqlite.store import SqliteStore
from tests.contracts.backends import open_sqlite_file
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


def _pages_read(store: SqliteStore) -> int:
    """Return how many pages the connection of this thread did not find in its cache."""
    current, _most = store.thread_connection().status(apsw.SQLITE_DBSTATUS_CACHE_MISS)
    return current
