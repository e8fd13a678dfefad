"""Connections to PostgreSQL: shared, bounded, given up when idle, and opened anew after a failure."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import psycopg
import pytest

import stratagem
from stratagem import limits
from stratagem.errors import StorageBusy, StorageUnavailable
from stratagem.storage.postgres.connection import connect
from stratagem.storage.postgres.pool import Pool
from tests import forkserver
from tests.contracts.samples import TESTER, a_note, append, examine, notes, text_of
from tests.faults.proxy import Proxy
from tests.faults.test_postgres import cut_all, opened, through
from tests.postgres import Server, a_workspace, standby_of

PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of this module's own, which may be killed and has a standby."""
    server = Server.create(wal_level="replica", max_wal_senders="2", hot_standby="on")
    yield server
    server.destroy()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def connected(server: Server) -> int:
    """Count our connections."""
    with psycopg.connect(server.address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stratagem'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_server_that_is_away_is_told_at_once_and_used_at_once_when_it_is_back(
    server: Server, stack: ExitStack
) -> None:
    store = opened(stack, server.address, a_workspace())
    append(store, a_note("a", "red"))

    server.stop("immediate")
    begun = time.monotonic()
    try:
        for _ in range(5):
            with pytest.raises((StorageUnavailable, StorageBusy)):
                text_of(store, "a")
            with pytest.raises((StorageUnavailable, StorageBusy)):
                append(store, a_note("a", "blue"))
        away = time.monotonic() - begun
    finally:
        server.start()
    read = text_of(store, "a")
    append(store, a_note("a", "green"))

    # Ten calls that each wait for the server as long as they may would take longer.
    assert away < 5 * limits.SERVER_WAIT_SECONDS
    assert read == "red"
    assert text_of(store, "a") == "green"


def test_maintenance_goes_on_after_connections_were_cut(server: Server, stack: ExitStack) -> None:
    store = opened(stack, server.address, a_workspace())
    append(store, a_note("a", "red"))

    cut_all(server)
    erased = store.purge(TESTER, space=notes(), key="a", sequence=None)
    cut_all(server)
    store.rebuild(lambda *_: None)

    assert erased.events == 1
    assert examine(store) == []


def test_many_workspaces_share_their_connections(server: Server, stack: ExitStack) -> None:
    before = connected(server)
    stores = [opened(stack, server.address, a_workspace()) for _ in range(12)]

    for place, store in enumerate(stores):
        append(store, a_note("a", str(place)))

    assert [text_of(store, "a") for store in stores] == [str(at) for at in range(12)]
    assert connected(server) - before <= 3


def test_the_last_store_to_close_closes_the_connections(server: Server) -> None:
    before = connected(server)
    with ExitStack() as stack:
        first = opened(stack, server.address, a_workspace())
        second = opened(stack, server.address, a_workspace())
        first.close()
        append(second, a_note("a", "red"))
        read = text_of(second, "a")

    assert read == "red"
    # Those of earlier tests may close meanwhile.
    assert eventually(lambda: connected(server) <= before)
    with pytest.raises(StorageUnavailable, match="closed"):
        second.reader().log.head()


def test_statements_stay_prepared_from_one_snapshot_to_the_next(
    server: Server, stack: ExitStack
) -> None:
    store = opened(stack, server.address, a_workspace())
    append(store, a_note("a", "red"))

    for _ in range(8):
        with store.snapshot():
            assert text_of(store, "a") == "red"

    with store._pool.connection() as connection:  # noqa: SLF001 -- only a test asks for it
        prepared = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert any("payload" in statement for (statement,) in prepared)


class TestPool:
    def test_one_that_comes_back_after_the_end_is_closed(self, server: Server) -> None:
        pool = Pool(lambda: connect(server.address))
        late, broken = pool.take(), pool.take()
        broken.execute("BEGIN")
        pool.close()

        for each in (late, broken):
            pool.give(each)
            assert each.closed

    def test_an_interruption_takes_no_place_for_ever(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "SERVER_WAIT_SECONDS", 0.1)
        pool = Pool(lambda: connect(server.address), most=1)
        lent = pool.take()
        lent.execute("BEGIN")

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(lent, "rollback", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.give(lent)

        assert lent.closed
        with pool.connection() as another:
            assert another.execute("SELECT 1").fetchone() == (1,)
        pool.close()

    def test_no_more_than_a_number_are_lent(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "SERVER_WAIT_SECONDS", 0.1)
        pool = Pool(lambda: connect(server.address), most=2)
        first, second = pool.take(), pool.take()

        with pytest.raises(StorageBusy):
            pool.take()
        pool.give(first)
        third = pool.take()

        assert third is first
        for each in (second, third):
            pool.give(each)
        pool.close()

    def test_whoever_waits_is_served_when_one_comes_back(self, server: Server) -> None:
        pool = Pool(lambda: connect(server.address), most=1)
        lent = pool.take()
        got: queue.Queue[object] = queue.Queue()
        threading.Thread(target=lambda: got.put(pool.take()), daemon=True).start()

        assert got.empty()
        pool.give(lent)

        assert got.get(timeout=PATIENCE_SECONDS) is lent
        pool.give(lent)
        pool.close()

    def test_a_connection_comes_back_where_no_thread_can_be_started(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        pool = Pool(lambda: connect(server.address), idle_seconds=0.1)
        connection = pool.take()

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            pool.give(connection)

        assert pool.take() is connection
        pool.give(connection)
        # The next that comes back has it closed in time.
        assert eventually(lambda: connection.closed)
        pool.close()

    def test_what_is_idle_for_long_is_closed(self, server: Server) -> None:
        pool = Pool(lambda: connect(server.address), idle_seconds=0.1)
        lent = [pool.take() for _ in range(3)]
        for each in lent:
            pool.give(each)

        assert eventually(lambda: all(each.closed for each in lent))
        with pool.connection() as fresh:
            assert fresh.execute("SELECT 1").fetchone() == (1,)
        pool.close()

    def test_what_was_left_undone_is_undone(self, server: Server) -> None:
        pool = Pool(lambda: connect(server.address))
        with pool.connection() as connection:
            connection.execute("BEGIN; CREATE TABLE left_behind ()")
        with pool.connection() as again:
            found = again.execute("SELECT to_regclass('left_behind')").fetchone()

        assert again is connection
        assert found == (None,)
        pool.close()

    @pytest.mark.parametrize("statement", ["SELECT 1", "SELECT 1 / 0"])
    def test_a_transaction_that_only_read_is_ended_whatever_became_of_it(
        self, server: Server, statement: str
    ) -> None:
        pool = Pool(lambda: connect(server.address))
        with pool.connection() as connection:
            connection.execute("BEGIN READ ONLY")
            with suppress(psycopg.Error):
                connection.execute(statement)
            pool.end_reading(connection)
        with pool.connection() as again:
            found = again.execute("SELECT 1").fetchone()

        assert again is connection
        assert found == (1,)
        pool.close()

    def test_a_connection_that_could_not_be_opened_takes_no_place(self, server: Server) -> None:
        addresses = iter(["postgresql://127.0.0.1:9/none", server.address])
        pool = Pool(lambda: connect(next(addresses)), most=1)

        with pytest.raises(psycopg.OperationalError):
            pool.take()

        with pool.connection() as connection:
            assert not connection.closed
        pool.close()

    def test_a_machine_that_vanished_is_found_out(self, server: Server) -> None:
        with connect(server.address) as connection:
            end = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
            idle = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            silent = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            end.close()

        assert idle == limits.SERVER_WAIT_SECONDS
        assert silent == limits.SERVER_WAIT_SECONDS * 2_000

    def test_an_address_may_say_otherwise(self, server: Server) -> None:
        with connect(f"{server.address}?keepalives_idle=77") as connection:
            end = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
            idle = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            end.close()

        assert idle == 77


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port, b"COMMIT")
    yield proxy
    proxy.close()


def test_a_commit_without_events_is_not_taken_for_done(proxy: Proxy, stack: ExitStack) -> None:
    store = opened(stack, through(proxy), a_workspace())

    proxy.fault = "lose the request"
    with pytest.raises(StorageUnavailable, match="not known"):
        store.write(lambda t: t.settings.set("colour", "red"), TESTER)

    assert proxy.cuts == 1
    assert store.reader().settings.text("colour") is None
    store.write(lambda t: t.settings.set("colour", "blue"), TESTER)
    assert store.reader().settings.text("colour") == "blue"


class TestFollowing:
    def test_what_others_send_under_our_name_does_no_harm(
        self, server: Server, stack: ExitStack
    ) -> None:
        store = opened(stack, server.address, a_workspace())
        told: queue.Queue[int] = queue.Queue()
        stop = store.follow(told.put)
        with psycopg.connect(server.address, autocommit=True) as other:
            for payload in ("", "hello", "x:1", f"{store.number}:x", f"{store.number}:"):
                other.execute("SELECT pg_notify('stratagem', %s)", (payload,))

        last = append(store, a_note("a", "red"))
        heard = [told.get(timeout=PATIENCE_SECONDS)]
        while heard[-1] < last:
            heard.append(told.get(timeout=PATIENCE_SECONDS))
        stop()

        assert heard[-1] == last

    def test_a_listener_whose_connection_was_cut_catches_up(
        self, server: Server, stack: ExitStack
    ) -> None:
        store = opened(stack, server.address, a_workspace())
        told: queue.Queue[int] = queue.Queue()
        stop = store.follow(told.put)
        told.get(timeout=PATIENCE_SECONDS)

        cut_all(server)
        last = append(store, a_note("a", "red"))
        while told.get(timeout=PATIENCE_SECONDS) < last:
            pass
        stop()

    def test_a_standby_is_looked_at(self, server: Server, stack: ExitStack) -> None:
        workspace = a_workspace()
        primary = opened(stack, server.address, workspace)
        with standby_of(server) as standby:
            reading = opened(stack, standby.address, workspace, read_only=True)
            told: queue.Queue[int] = queue.Queue()

            def seconds_to_follow() -> float:
                begun = time.monotonic()
                reading.follow(told.put)()
                return time.monotonic() - begun

            # One that nobody tells that it listens gives up after five seconds, each time.
            is_soon = any(seconds_to_follow() < 4 for _ in range(5))
            stop = reading.follow(told.put)
            last = append(primary, a_note("a", "red"))
            while told.get(timeout=PATIENCE_SECONDS) < last:
                pass
            stop()
            read = text_of(reading, "a")
            reading.close()

        assert is_soon
        assert read == "red"


def test_an_index_that_was_never_finished_is_made_again(server: Server, stack: ExitStack) -> None:
    store = opened(stack, server.address, a_workspace())
    store.write(lambda t: t.vectors.change_embedder("numbers"), TESTER)
    append(store, *(a_note(f"k{number}", "red") for number in range(20)))
    waiting = store.reader().vectors.pending(20)
    vector = np.full(8, 8**-0.5, np.float32).tobytes()
    store.write(lambda t: t.vectors.add(dict.fromkeys(waiting, vector)), TESTER)
    with psycopg.connect(server.address) as holder:
        holder.execute("UPDATE stratagem.vectors SET id = id WHERE workspace = %s", (store.number,))
        building = threading.Thread(target=lambda: _try_to_index(store.index_vectors))
        building.start()
        assert eventually(lambda: _building(server))
        cut_all(server)
        building.join()
        holder.rollback()
    left = _index_of(server, store.number)

    made = store.index_vectors(at_least=10)

    assert left == [False]
    assert made
    assert _index_of(server, store.number) == [True]


def _try_to_index(index: Callable[..., bool]) -> None:
    with pytest.raises(StorageUnavailable):
        index(at_least=10)


def _building(server: Server) -> bool:
    with psycopg.connect(server.address) as connection:
        return bool(
            connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND query LIKE 'CREATE INDEX CONCURRENTLY%'"
            ).fetchall()
        )


def _index_of(server: Server, workspace: int) -> list[bool]:
    with psycopg.connect(server.address) as connection:
        rows = connection.execute(
            "SELECT indisvalid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid"
            " WHERE relname = %s",
            (f"vectors_near_{workspace}_8",),
        )
        return [row[0] for row in rows]


FORKING = """
import os, sys, stratagem
address, workspace = sys.argv[1:]
db = stratagem.open(address, workspace=workspace, embedder="none")
with db.runtime.foundation.store.snapshot() as reader:
    before = reader.log.head()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert reader.log.head() == before, "the child ended the snapshot of its parent"
if child == 0:
    try:
        db.memory.recall("a")
        sys.exit("what was inherited must not be used")
    except stratagem.StratagemError:
        pass
    db.close()
    with stratagem.open(address, workspace=workspace, embedder="none") as own:
        own.memory.store("child", 1)
    sys.exit()
db.memory.store("parent", db.memory.recall("child").value)
db.close()
"""


def test_a_forked_process_leaves_its_parents_connections_alone(
    server: Server, tmp_path: Path
) -> None:
    script, workspace = tmp_path / "forking.py", a_workspace()
    script.write_text(FORKING)

    # From 3.12 on Python warns whoever forks with threads, as the driver has them.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(script)]
    done = subprocess.run(
        [*command, server.address, workspace],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    with stratagem.open(server.address, workspace=workspace, embedder="none") as db:
        entry = db.memory.recall("parent")
        assert entry is not None
        assert entry.value == 1


INTERRUPTED = """
import sys, psycopg, stratagem
address, workspace = sys.argv[1:]
with stratagem.open(address, workspace=workspace, embedder="none") as db:
    db.memory.store("k", 1)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND application_name = 'stratagem'"
        )
    db.memory.store("k", 2)
    print(db.memory.recall("k").value)
"""


def test_a_connection_that_is_opened_anew_leaves_no_words_of_the_driver(server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, server.address, a_workspace()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("2\n", "")


APPENDING = """
import sys, stratagem
address, workspace, count, name = sys.argv[1:]
with stratagem.open(address, workspace=workspace, embedder="none") as db:
    for turn in range(int(count)):
        db.memory.store(f"k{turn}", f"{name}-{turn}")
"""


@pytest.mark.parametrize("turns", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_many_processes_write_one_chain(server: Server, tmp_path: Path, turns: int) -> None:
    script, workspace = tmp_path / "appending.py", a_workspace()
    script.write_text(APPENDING)
    command = [sys.executable, str(script), server.address, workspace, str(turns)]
    processes = [forkserver.Process([*command, f"p{at}"]) for at in range(4)]

    ended = [each.wait(60) for each in processes]

    assert ended == [0, 0, 0, 0]
    with stratagem.open(server.address, workspace=workspace, embedder="none") as db:
        store = db.runtime.foundation.store
        events = list(store.log())
        assert [event.sequence for event in events] == list(range(1, 4 * turns + 2))
        assert len({event.at for event in events}) == len(events)
        assert store.examine(lambda *_: None, None) == []
