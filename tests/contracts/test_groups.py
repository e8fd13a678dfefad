"""Many threads share one store: their writes share commits, and none undoes another's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stratagem import limits
from stratagem.storage.contract import Store, Transaction
from tests.contracts.backends import Backend
from tests.contracts.samples import (
    MAIN,
    TESTER,
    a_happening,
    a_note,
    append,
    events,
    examine,
    fork,
    live,
    matching,
    notes,
    text_of,
)


@pytest.fixture
def _restless() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run work in threads that start together; return the results or errors in order."""
    together = threading.Barrier(count)

    def run(number: int) -> Any:
        together.wait()
        try:
            return work(number)
        except Exception as error:  # noqa: BLE001 -- handed back, to be looked at
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_writes_of_many_threads_are_all_there(store: Store) -> None:
    sequences = at_once(32, lambda number: append(store, a_note(f"k{number}", str(number))))

    assert sorted(sequences) == list(range(2, 34))
    assert [text_of(store, f"k{number}") for number in range(32)] == list(map(str, range(32)))
    assert examine(store) == []


def test_writes_that_share_a_commit_keep_times_of_their_own(store: Store) -> None:
    at_once(16, lambda number: append(store, a_note("a", str(number)), a_note("b", str(number))))

    times = [event.at for event in events(store)[1:]]

    assert len(set(times)) == 16
    assert times == sorted(times)


def test_failing_work_does_not_undo_that_of_others(store: Store) -> None:
    def work(number: int) -> int:
        def write(transaction: Transaction) -> int:
            draft = a_note(f"k{number}", "text", namespace=f"n{number % 4}")
            sequence = transaction.append(live(transaction, MAIN), [draft])[0].sequence
            if number % 2:
                raise LookupError(number)
            return sequence

        return store.write(write, TESTER)

    results = at_once(32, work)

    assert [type(result) for result in results] == [int, LookupError] * 16
    assert len(events(store)) == 17
    assert examine(store) == []


def test_each_writer_gets_its_own_error(store: Store) -> None:
    def work(number: int) -> None:
        def write(_transaction: Transaction) -> None:
            raise LookupError(number)

        store.write(write, TESTER)

    errors = at_once(16, work)

    assert [error.args for error in errors] == [(number,) for number in range(16)]


@pytest.mark.usefixtures("_restless")
@pytest.mark.parametrize("most", [1, 3])
def test_no_writer_is_left_out_of_a_group_that_is_full(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(limits, "GROUP_COMMIT_MAX", most)

    sequences = at_once(48, lambda number: append(store, a_note(f"k{number}")))

    assert sorted(sequences, key=str) == sorted(range(2, 50), key=str)


def test_readers_never_see_half_of_a_transaction(store: Store) -> None:
    append(store, a_note("a", "0"), a_note("b", "0"))
    done = threading.Event()

    def read(_number: int) -> int:
        torn = 0
        while not done.is_set():
            with store.snapshot() as reader:
                lineage = reader.branches.lineage(live(reader, MAIN))
                pair = {
                    version.payload
                    for key in "ab"
                    if (version := reader.records.current(lineage, notes(), key)) is not None
                }
            torn += len(pair) != 1
        return torn

    def write(_number: int) -> int:
        for number in range(100):
            append(store, a_note("a", str(number)), a_note("b", str(number)))
        done.set()
        return 0

    torn = at_once(4, lambda number: write(number) if number == 0 else read(number))

    assert torn == [0, 0, 0, 0]


def test_threads_read_write_fork_and_search_side_by_side(store: Store) -> None:
    def work(number: int) -> list[int]:
        name = f"b{number}"
        fork(store, name)
        for turn in range(5):
            append(store, a_note(f"k{turn}", f"word{number}"), branch=name)
            append(store, a_happening(f"word{number}", session=name), branch=name)
        return matching(store, f"word{number}", name)

    found = at_once(8, work)

    assert [len(each) for each in found] == [10] * 8
    assert examine(store) == []


def test_what_one_thread_wrote_all_others_see(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.reader().log.head(), range(4)))

        append(store, a_note("a", "new"))

        assert list(pool.map(lambda _: text_of(store, "a"), range(8))) == ["new"] * 8


def test_a_snapshot_keeps_its_state_while_others_commit(backend: Backend, store: Store) -> None:
    if not backend.reads_beside_writes:
        pytest.skip("a snapshot of this store makes writers wait")
    append(store, a_note("a", "one"))

    with store.snapshot() as reader:
        before = reader.log.head()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(append, store, a_note("a", "two")).result()
        during = reader.log.head()

    assert during == before
    assert text_of(store, "a") == "two"
