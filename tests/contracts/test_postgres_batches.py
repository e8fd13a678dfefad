"""Writers that share a commit in PostgreSQL: few statements, and each write whole or not at all."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stratagem.errors import RequestReused, StorageUnavailable, ValidationFailed
from stratagem.storage.contract import Store, Transaction, WriteRequest
from stratagem.storage.postgres import batch_session
from stratagem.storage.postgres.store import PostgresStore
from tests.contracts.backends import open_postgres, open_sqlite_file
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Clock,
    Words,
    a_happening,
    a_note,
    an_erasure,
    append,
    events,
    examine,
    live,
    notes,
    text_of,
)

Work = Callable[[Transaction], Any]


@pytest.fixture
def store(tmp_path: Path, postgres_address: str) -> Iterator[PostgresStore]:
    with closing(open_postgres(tmp_path, Clock(), address=postgres_address)) as store:
        yield store


def together(
    store: PostgresStore,
    *works: Work,
    request: WriteRequest = TESTER,
    keys: str = "",
    first: Work = lambda _transaction: None,
) -> list[Any]:
    """Run works in one commit, in their order; return what each returned or raised.

    `first` is run before all of them, while they queue up. `keys` are those of notes that each is
    said to write.
    """
    begun, go = threading.Event(), threading.Event()

    def lead(transaction: Transaction) -> None:
        first(transaction)
        begun.set()
        assert go.wait(60)

    commits = store.counters().commits
    with ThreadPoolExecutor(len(works) + 1) as pool:
        leader = pool.submit(store.write, lead, TESTER)
        assert begun.wait(60)
        waiting: list[Future[Any]] = []
        for work in works:
            waiting.append(pool.submit(store.write, work, expecting(request, keys)))
            wait_for(store, len(waiting))
        go.set()
        leader.result(60)
        outcomes = [each.exception(60) or each.result(60) for each in waiting]
    assert store.counters().commits == commits + 1
    return outcomes


def expecting(request: WriteRequest, keys: str) -> WriteRequest:
    return request._replace(subjects=[(notes(), key) for key in keys])


def wait_for(store: PostgresStore, count: int) -> None:
    end = time.monotonic() + 60
    while store._writers.waiting < count:  # noqa: SLF001 -- only a test asks who waits
        assert time.monotonic() < end
        time.sleep(0.001)


def log_event(text: str) -> Work:
    return lambda t: t.append(live(t, MAIN), [a_happening(text)])[0].sequence


def log_messages(*texts: str) -> Work:
    """Return work that logs messages of eight sessions, in turn."""
    return lambda t: t.append(
        live(t, MAIN),
        [a_happening(text, session=f"session {at % 8}") for at, text in enumerate(texts)],
    )


def write_note(key: str, text: str) -> Work:
    return lambda t: t.append(live(t, MAIN), [a_note(key, text)])[0].sequence


def erase_note(key: str) -> Work:
    return lambda t: t.append(live(t, MAIN), [an_erasure(key)])[0].sequence


def read_after(work: Work, key: str) -> Work:
    """Return work that looks at what it has written: its rows cannot wait."""

    def read(transaction: Transaction) -> tuple[Any, bool]:
        lineage = transaction.branches.lineage(live(transaction, MAIN))
        written = work(transaction)
        return written, transaction.records.current(lineage, notes(), key) is not None

    return read


def make_branch(name: str) -> Work:
    def fork(transaction: Transaction) -> int:
        head = transaction.log.head().sequence
        parent = live(transaction, MAIN)
        return transaction.branches.create(name, parent=parent, fork_sequence=head).id

    return fork


def failing(work: Work) -> Work:
    """Return work that fails once it has written."""

    def fail(transaction: Transaction) -> None:
        work(transaction)
        raise ValidationFailed("No.", field="key")

    return fail


class Traffic:
    """How many statements were sent, and how many answers were waited for.

    What counts the rows of grown tables in the background is not counted: it may come at any time.
    """

    def __init__(self) -> None:
        self.statements = 0
        self.answers = 0

    def count(self, *, statements: int = 0, answers: int = 0) -> None:
        if threading.current_thread().name != "stratagem-tending":
            self.statements += statements
            self.answers += answers

    def take(self) -> tuple[int, int]:
        taken = self.statements, self.answers
        self.statements = self.answers = 0
        return taken


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    counted = Traffic()
    execute, fetch = psycopg.RawCursor.execute, psycopg.RawCursor.fetchone
    fetch_all = psycopg.RawCursor.fetchall

    def count_statement(cursor: Any, *given: Any, **settings: Any) -> Any:
        counted.count(statements=1)
        return execute(cursor, *given, **settings)

    def count_answer(cursor: Any) -> Any:
        counted.count(answers=1)
        return fetch(cursor)

    def count_answers(cursor: Any) -> Any:
        counted.count(answers=1)
        return fetch_all(cursor)

    monkeypatch.setattr(psycopg.RawCursor, "execute", count_statement)
    monkeypatch.setattr(psycopg.RawCursor, "fetchone", count_answer)
    monkeypatch.setattr(psycopg.RawCursor, "fetchall", count_answers)
    return counted


def test_sixteen_events_take_the_statements_of_one(store: PostgresStore, traffic: Traffic) -> None:
    together(store, log_event("warm"), log_event("warmer"))
    traffic.take()
    together(store, log_event("one"))
    statements, answers = traffic.take()

    together(store, *(log_event(f"event {number}") for number in range(16)))

    assert traffic.take() == (statements, answers)
    # The lock and the head of the log, which come together.
    assert answers == 2
    assert statements <= 16
    assert examine(store) == []


@pytest.mark.parametrize("chars", [20, 2_000])
def test_messages_ask_for_none_of_those_before_them_that_were_just_written(
    store: PostgresStore, traffic: Traffic, chars: int
) -> None:
    store.write(log_messages(*("m" * chars for _ in range(260))), TESTER)
    traffic.take()

    together(store, *(log_messages(*"abcdefgh") for _ in range(4)))

    # The lock and the head of the log.
    assert traffic.take()[1] == 2


def test_new_records_are_asked_for_once(store: PostgresStore, traffic: Traffic) -> None:
    store.write(write_note("warm", "text"), TESTER)
    letters = "abcdefghijklmnop"
    traffic.take()

    together(store, *(write_note(key, "text") for key in letters), keys=letters)

    # The lock, the head of the log, and the numbers of all sixteen.
    assert traffic.take()[1] == 3
    assert {text_of(store, key) for key in letters} == {"text"}
    assert examine(store) == []


def test_a_new_record_is_asked_for_before_the_lock_is_waited_for(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    execute, fetch = psycopg.RawCursor.execute, psycopg.RawCursor.fetchone

    def note_statement(cursor: Any, sql: bytes, *given: Any, **settings: Any) -> Any:
        order.append(sql.decode())
        return execute(cursor, sql, *given, **settings)

    def note_answer(cursor: Any) -> Any:
        order.append("answer")
        return fetch(cursor)

    store.write(write_note("warm", "text"), TESTER)
    monkeypatch.setattr(psycopg.RawCursor, "execute", note_statement)
    monkeypatch.setattr(psycopg.RawCursor, "fetchone", note_answer)
    store.write(write_note("a", "text"), expecting(TESTER, "a"))

    asking = [at for at, each in enumerate(order) if "JOIN subjects" in each]
    assert len(asking) == 1
    assert asking[0] < order.index("answer")


def test_a_key_that_the_database_cannot_hold_harms_nobody_else(store: PostgresStore) -> None:
    outcomes = together(store, write_note("a", "one"), log_event("two"), keys="a\0")

    assert outcomes == [2, 3]


def test_a_record_that_is_written_again_by_the_next_is_closed(store: PostgresStore) -> None:
    together(store, *(write_note("k", f"text {number}") for number in range(5)))

    assert text_of(store, "k") == "text 4"
    assert examine(store) == []


def test_what_fails_leaves_nothing_behind(store: PostgresStore) -> None:
    outcomes = together(
        store,
        write_note("a", "one"),
        failing(write_note("a", "two")),
        failing(read_after(write_note("b", "three"), "b")),
        failing(make_branch("trial")),
        log_event("four"),
        failing(log_event("five")),
        write_note("b", "six"),
    )

    failures = [isinstance(each, ValidationFailed) for each in outcomes]
    assert failures == [False, True, True, True, False, True, False]
    assert [event.kind for event in events(store)] == [
        "BranchCreated",
        "NoteWritten",
        "Happened",
        "NoteWritten",
    ]
    assert (text_of(store, "a"), text_of(store, "b")) == ("one", "six")
    assert examine(store) == []


@pytest.mark.parametrize("reads", [False, True])
def test_the_first_of_a_batch_stays_when_the_next_fails(
    store: PostgresStore, *, reads: bool
) -> None:
    work = write_note("b", "two")

    outcomes = together(
        store,
        failing(read_after(work, "b") if reads else work),
        log_event("three"),
        first=write_note("a", "one"),
    )

    assert isinstance(outcomes[0], ValidationFailed)
    assert (text_of(store, "a"), text_of(store, "b"), outcomes[1]) == ("one", None, 3)
    assert examine(store) == []


def test_vectors_that_were_sent_are_undone_with_what_fails(
    tmp_path: Path, postgres_address: str
) -> None:
    store = open_postgres(tmp_path, Clock(), address=postgres_address, indexer=Words("w"))
    with closing(store):
        store.write(lambda t: t.vectors.change_embedder("w"), TESTER)

        def send_and_fail(transaction: Transaction) -> None:
            transaction.append(live(transaction, MAIN), [a_note("k", "text")])
            assert transaction.vectors.count() == 1
            raise ValidationFailed("No.", field="key")

        with pytest.raises(ValidationFailed):
            store.write(send_and_fail, TESTER)

        assert store.reader().log.head().sequence == 1
        assert store.reader().vectors.count() == 0
        assert examine(store) == []


def test_who_reads_sees_what_was_written_before(store: PostgresStore) -> None:
    append(store, a_note("old", "here"))

    outcomes = together(
        store,
        write_note("a", "one"),
        read_after(log_event("two"), "a"),
        erase_note("a"),
        read_after(log_event("three"), "a"),
        read_after(log_event("four"), "old"),
    )

    assert [outcomes[at][1] for at in (1, 3, 4)] == [True, False, True]


def test_a_request_that_is_repeated_in_one_commit_is_run_once(store: PostgresStore) -> None:
    same = WriteRequest("ada", "request 1", b"arguments")

    outcomes = together(store, log_event("one"), log_event("one"), request=same)

    assert outcomes[0] == outcomes[1]
    assert store.reader().log.head().sequence == 2
    with pytest.raises(RequestReused):
        store.write(log_event("one"), WriteRequest("ada", "request 1", b"others"))


def test_rows_of_many_bytes_are_sent_without_waiting(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_session, "_SIZE_MAX", 1_000)
    long = "word " * 500

    outcomes = together(
        store, log_event("short"), log_event(long), failing(log_event(long)), log_event("short")
    )

    assert outcomes[:2] + outcomes[3:] == [2, 3, 4]
    assert examine(store) == []


@pytest.mark.parametrize("writes", range(8))
def test_a_connection_is_used_again_after_the_server_refused_a_commit(
    store: PostgresStore, postgres_address: str, writes: int
) -> None:
    # The driver has a statement prepared when it is sent for the sixth time: of those that follow
    # a refused one, the server prepares none.
    with pytest.raises(ValidationFailed):
        store.write(failing(log_event("never")), TESTER)
    for number in range(writes):
        append(store, a_happening(f"before {number}"))
    head = store.reader().log.head().sequence

    with psycopg.connect(postgres_address, autocommit=True) as other:
        row = store.number, head + 1
        other.execute(
            "INSERT INTO stratagem.versions (workspace, seq, branch, space, deleted)"
            " VALUES (%s, %s, 1, 1, false)",
            row,
        )
        with pytest.raises(StorageUnavailable):
            append(store, a_happening("refused"))
        other.execute("DELETE FROM stratagem.versions WHERE workspace = %s AND seq = %s", row)

    assert append(store, a_happening("after")) == head + 1
    assert examine(store) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_commit_of_many_writes_what_one_commit_each_would(
    store: PostgresStore, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    with closing(open_sqlite_file(tmp_path, Clock())) as other:
        for turn in range(5):
            works = [any_work(draw, turn, number) for number in range(draw.randrange(2, 12))]

            outcomes = together(store, *works, keys=draw.choice(["", "a", "abcd"]))

            assert [str(each) for each in outcomes] == [str(alone(other, each)) for each in works]
        assert [event.payload for event in events(store)] == [
            event.payload for event in events(other)
        ]
        assert all(text_of(store, key) == text_of(other, key) for key in "abc")
    assert examine(store) == []


def any_work(draw: random.Random, turn: int, number: int) -> Work:
    key = draw.choice("abc")
    work = draw.choice(
        [
            write_note(key, f"text {turn} {number}"),
            log_event(f"event {turn} {number}"),
            erase_note(key),
            make_branch(f"branch {turn} {number}"),
        ]
    )
    if draw.random() < 0.3:
        work = read_after(work, key)
    return failing(work) if draw.random() < 0.3 else work


def alone(store: Store, work: Work) -> Any:
    try:
        return store.write(work, TESTER)
    except ValidationFailed as error:
        return error
