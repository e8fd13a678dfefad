"""Writers of one process: who leads, who waits, and what an interruption leaves behind."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from stratagem.errors import StorageUnavailable
from stratagem.storage.contract import WriteRequest
from stratagem.storage.relational.group_commit import Ticket, WriterQueue

ME = WriteRequest("tester")
# Of many threads together.
WRITES = 5_000


class Committing:
    """Commits batches when it is let, and notes how many tickets each had."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.sizes: list[int] = []
        self.seconds = seconds
        self.open = threading.Event()
        self.begun = threading.Event()

    def __call__(self, batch: list[Ticket]) -> None:
        self.begun.set()
        self.sizes.append(len(batch))
        assert self.open.wait(60)
        time.sleep(self.seconds)
        for ticket in batch:
            ticket.result = ticket.work(None)  # type: ignore[arg-type]
            ticket.done = True


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


def queued(writers: WriterQueue, count: int) -> None:
    """Wait until so many stand in the queue."""
    end = time.monotonic() + 60
    while writers.waiting < count:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_those_who_wait_are_committed_together(threads: ThreadPoolExecutor) -> None:
    committing = Committing()
    writers = WriterQueue(committing)
    first = threads.submit(writers.write, lambda _: "first", ME)
    committing.begun.wait(60)
    others = [threads.submit(writers.write, lambda _, n=n: n, ME) for n in range(9)]
    queued(writers, 9)

    committing.open.set()

    assert first.result(60) == "first"
    assert [each.result(60) for each in others] == list(range(9))
    assert committing.sizes == [1, 9]


def test_those_who_queue_up_while_a_commit_begins_are_admitted(
    threads: ThreadPoolExecutor,
) -> None:
    committing = Committing()
    writers: WriterQueue

    def commit(batch: list[Ticket]) -> None:
        if not committing.begun.is_set():
            committing.begun.set()
            assert committing.open.wait(20)
        writers.admit(batch)
        committing(batch)

    writers = WriterQueue(commit, batch_max=8)
    first = threads.submit(writers.write, lambda _: "first", ME)
    committing.begun.wait(10)
    others = [threads.submit(writers.write, lambda _, n=n: n, ME) for n in range(9)]
    queued(writers, 9)

    committing.open.set()

    assert first.result(10) == "first"
    assert [each.result(10) for each in others] == list(range(9))
    assert committing.sizes == [8, 2]


def test_a_group_has_a_limit(threads: ThreadPoolExecutor) -> None:
    committing = Committing()
    writers = WriterQueue(committing, batch_max=4)
    first = threads.submit(writers.write, lambda _: None, ME)
    committing.begun.wait(60)
    others = [threads.submit(writers.write, lambda _: None, ME) for _ in range(9)]
    queued(writers, 9)

    committing.open.set()

    for each in (first, *others):
        each.result(60)
    assert committing.sizes == [1, 4, 4, 1]


def test_those_who_come_back_with_more_share_commits_again(threads: ThreadPoolExecutor) -> None:
    committing = Committing(seconds=0.003)
    committing.open.set()
    writers = WriterQueue(committing)

    def work(_: int) -> None:
        for _again in range(20):
            writers.write(lambda _: None, ME)

    list(threads.map(work, range(16)))

    assert sum(committing.sizes) == 16 * 20
    # Half of them at least, each time: one at a time there would be 320 commits.
    assert len(committing.sizes) < 16 * 20 / 5


def test_an_error_of_the_commit_reaches_everybody_in_it(threads: ThreadPoolExecutor) -> None:
    committing = Committing()
    writers = WriterQueue(committing)
    first = threads.submit(writers.write, lambda _: None, ME)
    committing.begun.wait(60)

    def broken(_: Any) -> None:
        raise OSError("the disk")

    others = [threads.submit(writers.write, broken, ME) for _ in range(3)]
    queued(writers, 3)
    committing.open.set()

    first.result(60)
    assert [str(each.exception(60)) for each in others] == ["the disk"] * 3
    assert writers.write(lambda _: "next", ME) == "next"


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupting() -> Iterator[None]:
    def interrupt(_number: int, _frame: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("interrupting")
def test_one_who_is_interrupted_is_not_waited_for(threads: ThreadPoolExecutor) -> None:
    committing = Committing()
    writers = WriterQueue(committing)
    first = threads.submit(writers.write, lambda _: None, ME)
    committing.begun.wait(60)
    main = threading.main_thread().ident
    assert main == threading.get_ident()

    def interrupt() -> None:
        queued(writers, 1)
        signal.pthread_kill(main, signal.SIGUSR1)

    interruption = threads.submit(interrupt)
    with pytest.raises(Interrupted):
        # It would have been the next to lead.
        writers.write(lambda _: None, ME)
    interruption.result(60)
    last = threads.submit(writers.write, lambda _: "last", ME)
    queued(writers, 1)
    committing.open.set()

    first.result(60)
    assert last.result(60) == "last"
    assert committing.sizes == [1, 1]


class Ended(BaseException):
    """Ends a thread, as an interruption from the keyboard does."""


def test_an_interrupted_leader_interrupts_nobody_else(threads: ThreadPoolExecutor) -> None:
    committing = Committing()
    writers = WriterQueue(committing)
    first = threads.submit(writers.write, lambda _: None, ME)
    committing.begun.wait(60)

    def end(_: Any) -> None:
        raise Ended

    leader = threads.submit(writers.write, end, ME)
    queued(writers, 1)
    others = [threads.submit(writers.write, lambda _: None, ME) for _ in range(5)]
    queued(writers, 6)
    committing.open.set()

    first.result(60)
    assert isinstance(leader.exception(60), Ended)
    errors = [each.exception(60) for each in others]
    assert [type(each) for each in errors] == [StorageUnavailable] * 5
    assert all("request id" in str(each.hint) for each in errors)  # type: ignore[union-attr]
    assert writers.write(lambda _: "next", ME) == "next"


def test_an_error_of_ones_own_is_told_even_where_the_commit_fails(
    threads: ThreadPoolExecutor,
) -> None:
    begun, let = threading.Event(), threading.Event()

    def commit(batch: list[Ticket]) -> None:
        begun.set()
        assert let.wait(60)
        for ticket in batch:
            try:
                ticket.result = ticket.work(None)  # type: ignore[arg-type]
            except ValueError as error:
                ticket.error = error
        raise OSError("the disk")

    writers = WriterQueue(commit)
    first = threads.submit(writers.write, lambda _: None, ME)
    begun.wait(60)
    wrong = threads.submit(writers.write, lambda _: int("x"), ME)
    queued(writers, 1)
    right = threads.submit(writers.write, lambda _: None, ME)
    queued(writers, 2)
    let.set()

    assert isinstance(first.exception(60), OSError)
    assert isinstance(wrong.exception(60), ValueError)
    assert isinstance(right.exception(60), OSError)


def test_many_threads_are_interrupted_and_none_is_left_waiting() -> None:
    kept: list[tuple[int, int]] = []
    known: list[tuple[int, int]] = []

    def commit(batch: list[Ticket]) -> None:
        made = [ticket.work(None) for ticket in batch]  # type: ignore[arg-type]
        kept.extend(made)
        for ticket, result in zip(batch, made, strict=True):
            ticket.result, ticket.done = result, True

    writers = WriterQueue(commit)

    def write(thread: int) -> None:
        chance = random.Random(thread)
        turn = 0
        while len(known) < WRITES:
            turn += 1
            with suppress(Ended, OSError, StorageUnavailable):
                known.append(writers.write(partial(_work, chance, (thread, turn)), ME))

    def alone() -> None:
        while len(known) < WRITES:
            with writers.leading:
                time.sleep(0.001)
            time.sleep(0.01)

    running = [threading.Thread(target=write, args=(each,), daemon=True) for each in range(32)]
    running.append(threading.Thread(target=alone, daemon=True))
    for each in running:
        each.start()
    for each in running:
        each.join(60)

    assert not any(each.is_alive() for each in running)
    assert sorted(known) == sorted(set(kept) & set(known))
    assert len(kept) == len(set(kept))


def _work(chance: random.Random, number: tuple[int, int], _: Any) -> tuple[int, int]:
    if chance.random() < 0.05:
        raise chance.choice([Ended, OSError])
    return number
