"""Texts of a burst of commits are indexed together, and found by whoever searches before."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.storage.contract import Finding, Transaction, WriteRequest
from stratagem.storage.relational import text_backlog
from stratagem.storage.sqlite import write_bursts


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each commit follow the one before closely, and no burst end by itself."""
    monkeypatch.setattr(write_bursts, "_PAUSE_SECONDS", 600.0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "m.db")


@pytest.fixture
def db(endless: None, path: str) -> Iterator[Stratagem]:
    with stratagem.open(path) as opened:
        opened.runtime.foundation.index.embedder.load()  # type: ignore[union-attr]
        yield opened


def store_each(db: Stratagem, *words: str) -> None:
    for word in words:
        db.memory.store(f"about-{word}", f"The {word} is in the harbour.")


def waiting(db: Stratagem) -> int:
    return db.runtime.foundation.store.reader().search.unindexed_count()


def keys_of(db: Stratagem, query: str) -> set[str | None]:
    return {hit.key for hit in db.memory.search(query, k=30) if query in str(hit.value)}


def wait_until(holds: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < 30
        time.sleep(0.01)


def examine(db: Stratagem) -> list[Finding]:
    return db.runtime.foundation.store.examine(lambda _done, _total, _what: None, None)


def eventually(db: Stratagem, count: int) -> None:
    began = time.monotonic()
    while waiting(db) != count and time.monotonic() - began < 30:
        time.sleep(0.01)
    assert waiting(db) == count


def begin_burst(db: Stratagem) -> None:
    """Store texts until one of them waits to be indexed."""
    for number in range(100):
        store_each(db, f"w{number}")
        if waiting(db):
            break
    assert waiting(db) == 1


def test_a_burst_leaves_texts_until_somebody_searches(db: Stratagem) -> None:
    begin_burst(db)

    store_each(db, "ferry", "crane")

    assert waiting(db) == 3
    assert keys_of(db, "ferry") == {"about-ferry"}
    assert waiting(db) == 0
    assert keys_of(db, "crane") == {"about-crane"}


def test_who_stores_and_searches_in_turn_leaves_next_to_nothing(db: Stratagem) -> None:
    left = 0
    for number in range(60):
        store_each(db, f"boat{number}")
        left += waiting(db)
        assert f"about-boat{number}" in keys_of(db, f"boat{number}")

    assert 0 < left < 6


def test_texts_that_have_waited_have_vectors(db: Stratagem) -> None:
    begin_burst(db)
    store_each(db, "automobile")

    answer = db.memory.search("the car at the port")

    assert waiting(db) == 0
    assert db.runtime.foundation.store.reader().vectors.pending_count() == 0
    assert answer.note is None or "no vector" not in answer.note


def test_a_full_backlog_is_indexed_by_the_commit_that_fills_it(
    db: Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_backlog, "_TEXTS_MAX", 4)
    begin_burst(db)

    left = []
    for number in range(5):
        store_each(db, f"boat{number}")
        left.append(waiting(db))

    assert left == [2, 3, 0, 1, 2]
    assert examine(db) == []


def test_many_texts_or_a_long_one_take_those_that_wait_with_them(db: Stratagem) -> None:
    begin_burst(db)
    store_each(db, "ferry")
    db.memory.store("long", "harbour " * 1_000)
    assert waiting(db) == 0

    store_each(db, "crane")
    db.memory.store(items=[{"key": f"k{number}", "value": "A buoy"} for number in range(100)])

    assert waiting(db) == 0
    assert examine(db) == []


def test_another_handle_finds_what_a_burst_has_left(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry")

    with stratagem.open(path) as other:
        assert keys_of(other, "ferry") == {"about-ferry"}
        assert examine(other) == []
    store_each(db, "crane")
    assert keys_of(db, "crane") == {"about-crane"}
    assert examine(db) == []


def test_two_handles_leave_their_texts_to_each_other(db: Stratagem, path: str) -> None:
    with stratagem.open(path) as other:
        for each in (db, other):
            begin_burst(each)
            each.memory.search("nothing")
        for number in range(100):
            store_each(db if number % 3 else other, f"boat{number}")
        assert waiting(db) > 1

        for each in (db, other):
            assert len(keys_of(each, "boat")) == 30
            assert waiting(each) == 0
            assert examine(each) == []


def test_messages_that_another_handle_indexes_keep_their_context(db: Stratagem, path: str) -> None:
    begin_burst(db)
    for number in range(4):
        said = {"role": "user", "content": f"Part {number} of the zebra story"}
        db.memory.log("message", said, session="s")
    db.memory.fork("trial")
    for number in range(3):
        said = {"role": "user", "content": f"Chapter {number} of the zebra story"}
        db.memory.log("message", said, session="s", branch="trial")
    assert waiting(db) == 8

    with stratagem.open(path) as other:
        keys_of(other, "zebra")

        assert waiting(other) == 0
        assert examine(other) == []


def test_who_only_reads_says_what_it_could_not_search(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry", "crane")

    with stratagem.open(path, read_only=True) as reader:
        answer = reader.memory.search("ferry")
        assert list(answer) == []
        assert "3 texts were stored last and are not searched yet" in (answer.note or "")
        keys_of(db, "ferry")
        answer = reader.memory.search("ferry")

    assert "about-ferry" in [hit.key for hit in answer]
    assert "a moment ago" not in (answer.note or "")


def test_a_lookup_of_fixes_says_what_it_could_not_search(db: Stratagem, path: str) -> None:
    begin_burst(db)
    db.debugging.add_incident("The ferry is late", ["Leave earlier"], env="auto", worked=True)

    with stratagem.open(path, read_only=True) as reader:
        answer = reader.debugging.ranked_solutions("why does the ferry come late", env="auto")

    assert "are not searched yet" in (answer.note or "")


def test_the_end_of_a_burst_indexes_what_it_has_left(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_bursts, "_PAUSE_SECONDS", 0.5)
    with stratagem.open(path, embedder="none") as db:
        begin_burst(db)

        eventually(db, 0)

        store_each(db, "crane")
        assert waiting(db) == 0


def test_closing_indexes_what_is_left(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry")
    db.close()

    with stratagem.open(path, read_only=True) as reader:
        assert waiting(reader) == 0
        assert keys_of(reader, "ferry") == {"about-ferry"}


def test_a_commit_after_a_pause_leaves_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_bursts, "_PAUSE_SECONDS", 0.0)
    with stratagem.open(path, embedder="none") as db:
        for number in range(10):
            store_each(db, f"boat{number}")
            assert waiting(db) == 0


def store_and_be_killed(path: str, embedder: str = "none") -> None:
    """Have a process store ten texts, of which seven wait when it is killed."""
    script = f"""
        import os, stratagem
        from stratagem.storage.sqlite import write_bursts
        write_bursts._PAUSE_SECONDS = 600.0
        db = stratagem.open({path!r}, embedder={embedder!r})
        embedder = db.runtime.foundation.index.embedder
        if embedder is not None:
            embedder.load()
        for number in range(10):
            db.memory.store(f"k{{number}}", f"Boat number {{number}} of the ferry line")
        assert db.runtime.foundation.store.reader().search.unindexed_count() >= 7
        os.kill(os.getpid(), 9)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert ended.returncode == -9


def test_what_a_killed_process_has_left_is_found(endless: None, path: str) -> None:
    store_and_be_killed(path)

    with stratagem.open(path, embedder="none") as db:
        assert waiting(db) == 7
        assert examine(db) == []
        db.memory.store("one-more", "A crane")

        assert waiting(db) == 0
        assert keys_of(db, "ferry") == {f"k{number}" for number in range(10)}
        assert examine(db) == []


def test_whoever_opens_it_indexes_what_a_killed_process_has_left(path: str) -> None:
    store_and_be_killed(path)

    with stratagem.open(path, embedder="none") as db:
        eventually(db, 0)
    with stratagem.open(path, read_only=True) as reader:
        assert keys_of(reader, "ferry") == {f"k{number}" for number in range(10)}


def test_what_waits_counts_as_without_a_vector_and_gets_one(endless: None, path: str) -> None:
    store_and_be_killed(path, "static")

    with stratagem.open(path, embedder="static") as db:
        assert db.memory.status().unembedded >= 7
        db.runtime.foundation.index.embed_waiting(lambda _done, _total, _what: None)

        assert db.memory.status().unembedded == 0
        assert db.runtime.foundation.store.reader().vectors.count() == 10


def test_work_that_fails_beside_other_work_leaves_no_text_to_nobody(db: Stratagem) -> None:
    begin_burst(db)
    store: Any = db.runtime.foundation.store
    queue = store._writers  # noqa: SLF001 -- nothing else says who waits
    go_on = threading.Event()

    def hold(transaction: Transaction) -> None:
        transaction.index_backlog()
        go_on.wait(30)

    def fail(_transaction: Transaction) -> None:
        raise ValidationFailed("No.")

    with ThreadPoolExecutor(4) as threads:
        threads.submit(store.write, hold, WriteRequest("tester"))
        wait_until(queue.leading.locked)
        # Both wait for the same commit.
        stored = threads.submit(store_each, db, "ferry")
        wait_until(lambda: queue.waiting == 1)
        failed = threads.submit(store.write, fail, WriteRequest("tester"))
        wait_until(lambda: queue.waiting == 2)
        go_on.set()
        stored.result()
        with pytest.raises(ValidationFailed):
            failed.result()
    assert waiting(db) == 1

    db.close()

    with stratagem.open(store.location, read_only=True) as reader:
        assert keys_of(reader, "ferry") == {"about-ferry"}


def test_work_that_fails_leaves_nothing(db: Stratagem) -> None:
    begin_burst(db)
    store_each(db, "ferry")

    def fail(_transaction: Transaction) -> None:
        raise ValidationFailed("No.")

    with pytest.raises(ValidationFailed):
        db.runtime.foundation.store.write(fail, WriteRequest("tester"))
    store_each(db, "crane")

    assert keys_of(db, "ferry") == {"about-ferry"}
    assert keys_of(db, "crane") == {"about-crane"}
    assert examine(db) == []


def test_a_transaction_that_searches_sees_what_is_left(db: Stratagem) -> None:
    begin_burst(db)
    store_each(db, "ferry")

    def count(transaction: Transaction) -> dict[str, int]:
        return transaction.search.document_frequencies(["ferri"])

    found = db.runtime.foundation.store.write(count, WriteRequest("tester"))

    assert found == {"ferri": 1}


def test_a_purge_erases_a_text_that_waits(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry", "crane")

    db.memory.purge("about-ferry")

    assert waiting(db) == 0
    assert keys_of(db, "ferry") == set()
    assert keys_of(db, "crane") == {"about-crane"}
    assert examine(db) == []
    assert b"ferry" not in Path(path).read_bytes()


def test_merges_take_over_what_waits(db: Stratagem) -> None:
    begin_burst(db)
    db.memory.fork("trial")
    for number in range(8):
        db.memory.store(f"k{number}", f"The ferry number {number}", branch="trial")
    assert waiting(db) == 9

    db.memory.merge("trial", branch="default")

    assert keys_of(db, "ferry") == {f"k{number}" for number in range(8)}
    assert examine(db) == []


def test_a_backup_and_a_rebuild_hold_what_waits(db: Stratagem, tmp_path: Path) -> None:
    begin_burst(db)
    store_each(db, "ferry")

    db.runtime.foundation.store.rebuild(lambda _done, _total, _what: None)

    assert waiting(db) == 0
    assert keys_of(db, "ferry") == {"about-ferry"}
    assert examine(db) == []


def test_doctor_finds_a_text_that_neither_waits_nor_is_indexed(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry")
    with closing(apsw.Connection(path)) as damaged:
        damaged.execute("DELETE FROM unindexed")

    assert any("index" in finding.what for finding in examine(db))
    db.runtime.foundation.store.repair(lambda _done, _total, _what: None)
    assert keys_of(db, "ferry") == {"about-ferry"}


def test_doctor_finds_what_waits_and_is_no_text(db: Stratagem, path: str) -> None:
    begin_burst(db)
    with closing(apsw.Connection(path)) as damaged:
        damaged.execute("INSERT INTO unindexed VALUES (1), (99)")

    assert [finding.what for finding in examine(db)] == [
        "The read model unindexed differs from the log."
    ]
    keys_of(db, "harbour")
    assert examine(db) == []


def test_an_altered_text_that_waits_keeps_nobody_from_writing(db: Stratagem, path: str) -> None:
    begin_burst(db)
    store_each(db, "ferry", "crane")
    with closing(apsw.Connection(path)) as damaged:
        damaged.execute(
            'UPDATE events SET payload = CAST(\'{"value":"other"}\' AS BLOB) '
            "WHERE seq = (SELECT max(seq) - 1 FROM unindexed)"
        )

    with stratagem.open(path) as other:
        store_each(other, "buoy")
        assert keys_of(other, "buoy") == {"about-buoy"}
        assert keys_of(other, "crane") == {"about-crane"}
        with pytest.raises(StratagemError):
            other.memory.recall("about-ferry")


@pytest.mark.parametrize(
    "damage",
    [
        # The message before the one that waits, which was indexed long ago.
        "UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = (SELECT min(seq) FROM turns)",
        "UPDATE events SET kind = CAST(X'ff41' AS TEXT) WHERE seq = (SELECT max(seq) FROM turns)",
        "UPDATE subjects SET key = CAST(X'ff41' AS TEXT) WHERE key = 'about-ferry'",
    ],
)
def test_what_was_altered_keeps_nobody_from_writing(path: str, damage: str, endless: None) -> None:
    with stratagem.open(path, embedder="none") as db:
        db.memory.log("message", {"role": "user", "content": "An old zebra"}, session="s")
        begin_burst(db)
        store_each(db, "ferry")
        db.memory.log("message", {"role": "user", "content": "And its stripes"}, session="s")
        assert waiting(db) == 3
        with stratagem.open(path, embedder="none") as other:
            with closing(apsw.Connection(path)) as damaged:
                damaged.execute(damage)

            store_each(other, "buoy")

            assert keys_of(other, "buoy") == {"about-buoy"}
            assert waiting(other) == 0


@pytest.mark.parametrize("lock", ["file", "database"])
def test_neither_searches_nor_closing_wait_long_for_another_writer(
    path: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_bursts, "_PAUSE_SECONDS", 600.0)
    monkeypatch.setattr("stratagem.search.index._INDEXING_SECONDS_MAX", 0.3)
    db = stratagem.open(path, embedder="none")
    begin_burst(db)
    with locked(path, lock):
        threads = threading.active_count()
        began = time.monotonic()
        first = db.memory.search("harbour")
        waited = time.monotonic() - began
        for _ in range(10):
            db.memory.search("harbour")
        waited_again = time.monotonic() - began - waited
        assert threading.active_count() == threads
        began = time.monotonic()
        db.close()
        closing_took = time.monotonic() - began

    assert "1 texts were stored a moment ago" in (first.note or "")
    assert 0.3 <= waited < 5
    assert waited_again < 1
    assert closing_took < 5
    with stratagem.open(path, embedder="none") as other:
        assert len(keys_of(other, "harbour")) > 1
        assert waiting(other) == 0


@contextmanager
def locked(path: str, lock: str) -> Iterator[None]:
    """Keep writers out as another process does: by our file, or by SQLite's own lock."""
    if lock == "file":
        with Path(f"{path}.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    else:
        with closing(apsw.Connection(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield


def test_a_burst_ends_after_a_commit_that_was_slow_and_is_ended_again_where_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_bursts, "_PAUSE_SECONDS", 0.02)
    answers: list[bool | Exception] = [True, False, MemoryError(), True, True]
    ended: list[bool | Exception] = []

    def end() -> bool:
        ended.append(answers[len(ended)])
        if isinstance(ended[-1], Exception):
            raise ended[-1]
        return ended[-1]

    bursts = write_bursts.WriteBursts(end)
    for calls in (1, 4, 5):
        bursts.count()
        time.sleep(0.05)
        bursts.await_end()
        began = time.monotonic()
        while len(ended) < calls and time.monotonic() - began < 30:
            time.sleep(0.01)
        assert len(ended) == calls
    bursts.close()
    bursts.await_end()
    time.sleep(0.1)

    assert len(ended) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
def test_a_fork_waits_for_a_commit_that_another_thread_makes(path: str) -> None:
    with stratagem.open(path, embedder="none") as db:
        store = db.runtime.foundation.store
        began, done = threading.Event(), []

        def hold(_transaction: Transaction) -> None:
            began.set()
            time.sleep(0.3)
            done.append(True)

        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(store.write, hold, WriteRequest("tester"))
            assert began.wait(30)
            child = os.fork()
            if not child:
                # It could never write if it had been forked amid a transaction.
                with suppress(BaseException), stratagem.open(path, embedder="none") as own:
                    own.memory.store("child", "A child")
                    os._exit(0 if done else 2)
                os._exit(1)
            writing.result()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        db.memory.store("parent", "A parent")
        assert db.memory.recall("child") is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
def test_a_fork_waits_for_all_stores_together_and_not_for_ever(tmp_path: Path) -> None:
    stores = [stratagem.open(str(tmp_path / f"{n}.db"), embedder="none") for n in range(3)]
    go_on, waiting_too = threading.Event(), threading.Barrier(4)

    def hold(_transaction: Transaction) -> None:
        waiting_too.wait(30)
        go_on.wait(30)

    with ThreadPoolExecutor(3) as threads:
        for each in stores:
            threads.submit(each.runtime.foundation.store.write, hold, WriteRequest("tester"))
        waiting_too.wait(30)
        began = time.monotonic()
        child = os.fork()
        if not child:
            os._exit(0)
        took = time.monotonic() - began
        os.waitpid(child, 0)
        go_on.set()

    assert took < 2.5
    for each in stores:
        each.memory.store("k", "still written")
        each.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
def test_whoever_is_interrupted_while_a_fork_waits_leaves_nothing_locked(tmp_path: Path) -> None:
    script = f"""
        import os, signal, stratagem, threading
        from stratagem.storage.contract import WriteRequest
        stores = [stratagem.open({str(tmp_path)!r} + f"/{{n}}.db", embedder="none") for n in range(3)]
        began, go_on = threading.Event(), threading.Event()
        def hold(_transaction):
            began.set()
            go_on.wait(30)
        def interrupt(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        write = stores[1].runtime.foundation.store.write
        threading.Thread(target=write, args=(hold, WriteRequest("tester"))).start()
        began.wait(30)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        if not os.fork():
            os._exit(0)
        go_on.set()
        for each in stores:
            each.memory.store("k", "still written")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False,
        timeout=60,
        capture_output=True,
    )
    assert ended.returncode == 0, ended.stderr.decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
def test_work_may_fork_within_its_transaction(path: str) -> None:
    with stratagem.open(path, embedder="none") as db:

        def fork(_transaction: Transaction) -> int:
            child = os.fork()
            if not child:
                os._exit(0)
            return os.waitpid(child, 0)[1]

        assert db.runtime.foundation.store.write(fork, WriteRequest("tester")) == 0
        db.memory.store("parent", "A parent")


def test_a_search_does_not_wait_long_for_another_writer(
    db: Stratagem, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stratagem.search.index._INDEXING_SECONDS_MAX", 0.2)
    begin_burst(db)
    store_each(db, "ferry")

    with stratagem.open(path) as other, other.runtime.foundation.store.lock_file():  # type: ignore[attr-defined]
        began = time.monotonic()
        answer = db.memory.search("ferry")
        took = time.monotonic() - began

    assert took < 5
    assert "2 texts were stored a moment ago" in (answer.note or "")
    assert keys_of(db, "ferry") == {"about-ferry"}


def test_threads_of_a_burst_lose_nothing(db: Stratagem) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            store_each(db, f"boat{thread}x{number}")
            assert number % 7 or keys_of(db, f"boat{thread}x{number}")

    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(write, thread) for thread in range(4)]:
            each.result()

    keys_of(db, "boat")
    assert db.runtime.foundation.store.reader().search.text_count() == 80
    assert waiting(db) == 0
    assert examine(db) == []
