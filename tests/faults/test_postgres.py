"""Whatever happens to the server or on the way to it: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import orjson
import psycopg
import pytest

from stratagem import limits
from stratagem.errors import StorageBusy, StorageUnavailable, StratagemError
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.postgres.store import PostgresStore
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import (
    KINDS,
    MAIN,
    TESTER,
    Clock,
    Words,
    a_note,
    append,
    events,
    examine,
    live,
    salts,
    text_of,
)
from tests.faults.proxy import Fault, Proxy
from tests.postgres import Server, a_workspace


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of this module's own, which may be killed."""
    server = Server.create(synchronous_commit="on")
    yield server
    server.destroy()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(stack: ExitStack, address: str, workspace: str, **settings: Any) -> PostgresStore:
    store = PostgresStore(
        address,
        workspace=workspace,
        kinds=KINDS,
        indexer=Words(),
        adapters=Adapters(Clock(), salts()),
        **settings,
    )
    return stack.enter_context(closing(store))


def say(store: PostgresStore, word: str) -> str:
    """Write a note under a request id, as often as it takes; return the word once it is written."""

    def work(transaction: Transaction) -> str:
        transaction.append(live(transaction, MAIN), [a_note(word, word)])
        return word

    deadline = time.monotonic() + 60
    while True:
        try:
            return store.write(work, WriteRequest("ada", word, word.encode()))
        except StratagemError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def written(store: PostgresStore) -> Counter[str]:
    return Counter(
        orjson.loads(event.payload)["text"]
        for event in events(store)
        if event.payload is not None and event.kind == "NoteWritten"
    )


def test_a_server_killed_and_restarted_loses_and_doubles_nothing(
    server: Server, stack: ExitStack
) -> None:
    workspace = a_workspace()
    stores = [opened(stack, server.address, workspace) for _ in range(2)]
    done: list[str] = []
    stop = threading.Event()

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            done.append(say(stores[number % 2], f"w{number}-{turn}"))
            turn += 1

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, number) for number in range(4)]
        for _ in range(2):
            wait_for_more(done)
            server.stop("immediate")
            server.start()
        wait_for_more(done)
        stop.set()
        for each in running:
            each.result()

    found = written(stores[0])
    assert set(done) <= set(found)
    assert max(found.values()) == 1
    assert examine(stores[1]) == []


def wait_for_more(done: list[str]) -> None:
    """Wait until each of four writers may have written once more."""
    wanted, end = len(done) + 4, time.monotonic() + 100
    while len(done) < wanted:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_cut_connections_are_opened_anew(server: Server, stack: ExitStack) -> None:
    workspace = a_workspace()
    store = opened(stack, server.address, workspace)
    append(store, a_note("a", "red"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: text_of(store, "a"), range(16)))

    cut_all(server)
    read = text_of(store, "a")
    cut_all(server)
    append(store, a_note("a", "blue"))
    cut_all(server)
    head = store.reader().log.head()

    assert read == "red"
    assert text_of(store, "a") == "blue"
    assert head.sequence == 3


def cut_all(server: Server) -> None:
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND application_name = 'stratagem'"
        )


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port, b"COMMIT")
    yield proxy
    proxy.close()


def through(proxy: Proxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"


@pytest.mark.parametrize("fault", ["lose the reply", "end the session"])
def test_a_commit_whose_answer_was_lost_is_found_and_acknowledged(
    proxy: Proxy, stack: ExitStack, fault: Fault
) -> None:
    store = opened(stack, through(proxy), a_workspace())
    append(store, a_note("a", "one"))

    proxy.fault = fault
    append(store, a_note("b", "two"))

    assert proxy.cuts == 1
    assert written(store) == {"one": 1, "two": 1}
    assert examine(store) == []


def test_a_commit_that_never_arrived_is_said_to_have_written_nothing(
    proxy: Proxy, stack: ExitStack
) -> None:
    store = opened(stack, through(proxy), a_workspace())

    proxy.fault = "lose the request"
    with pytest.raises(StorageUnavailable, match="nothing was written"):
        append(store, a_note("a", "one"))

    assert proxy.cuts == 1
    assert written(store) == {}
    append(store, a_note("a", "two"))
    assert written(store) == {"two": 1}


def test_a_commit_of_which_nothing_is_known_is_written_once_when_repeated(
    proxy: Proxy, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SERVER_WAIT_SECONDS", 2)
    store = opened(stack, through(proxy), a_workspace())

    def work(transaction: Transaction) -> str:
        transaction.append(live(transaction, MAIN), [a_note("a", "one")])
        return "first"

    proxy.fault, proxy.away_after = "lose the reply", True
    with pytest.raises(StorageUnavailable, match="not known"):
        store.write(work, WriteRequest("ada", "r1", b"f"))
    proxy.come_back()

    assert store.write(work, WriteRequest("ada", "r1", b"f")) == "first"
    assert written(store) == {"one": 1}


def test_lost_answers_among_many_writers_lose_and_double_nothing(
    proxy: Proxy, stack: ExitStack
) -> None:
    store = opened(stack, through(proxy), a_workspace())

    def write(number: int) -> None:
        for turn in range(10):
            if number == 0 and turn % 3 == 0:
                proxy.fault = "lose the reply" if turn % 2 else "lose the request"
            say(store, f"w{number}-{turn}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))

    assert proxy.cuts > 1
    assert written(store) == {f"w{number}-{turn}": 1 for number in range(6) for turn in range(10)}
    assert examine(store) == []


def test_a_server_that_is_away_is_named_without_its_password(stack: ExitStack) -> None:
    with pytest.raises(StorageUnavailable) as caught:
        opened(stack, "postgresql://ada:hunter2@127.0.0.1:9/memory", "team")

    assert caught.value.retryable
    assert caught.value.details["path"] == "postgresql://127.0.0.1:9/memory#team"
    assert "hunter2" not in str(caught.value.envelope())


def test_a_workspace_that_is_held_for_too_long_is_busy(server: Server, stack: ExitStack) -> None:
    workspace = a_workspace()
    store = opened(stack, server.address, workspace, lock_wait_seconds=0.2)
    other = opened(stack, server.address, a_workspace(), lock_wait_seconds=0.2)
    with psycopg.connect(server.address) as holder:
        holder.execute(
            "SELECT 1 FROM stratagem.heads WHERE workspace = %s FOR UPDATE", (store.number,)
        )

        with pytest.raises(StorageBusy):
            append(store, a_note("a", "one"))
        append(other, a_note("a", "one"))
        read = text_of(store, "a")
        holder.rollback()

    assert read is None
    append(store, a_note("a", "two"))
    assert text_of(store, "a") == "two"


def test_many_servers_write_one_chain(server: Server, stack: ExitStack) -> None:
    workspace = a_workspace()
    stores = [opened(stack, server.address, workspace) for _ in range(4)]

    def write(number: int) -> None:
        for turn in range(10):
            append(stores[number % 4], a_note(f"k{turn}", f"w{number}-{turn}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    assert [event.sequence for event in events(stores[0])] == list(range(1, 82))
    assert len(written(stores[0])) == 80
    assert len({event.at for event in events(stores[0])}) == 81
    assert examine(stores[3]) == []


def test_workspaces_see_nothing_of_each_other(server: Server, stack: ExitStack) -> None:
    one = opened(stack, server.address, a_workspace())
    two = opened(stack, server.address, a_workspace())
    append(one, a_note("k", "red"))

    append(two, a_note("k", "blue"))
    one.purge(TESTER, space=a_note("k").space, key="k", sequence=None)  # type: ignore[arg-type]

    assert text_of(one, "k") is None
    assert text_of(two, "k") == "blue"
    assert two.reader().search.text_count() == 1
    assert two.reader().search.document_frequencies(["red"]) == {"red": 0}
    assert examine(two) == examine(one) == []
