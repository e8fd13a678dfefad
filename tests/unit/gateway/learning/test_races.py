"""Corrections and lessons while others call, write and lose races."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from stratagem.gateway.calls.call import BegunElsewhereError, Call
from stratagem.operation import Caller
from tests.behaviour.gateway.workshop import Workshop, workshop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path / "shop.db") as opened:
        yield opened


class Gate:
    """Holds whoever comes to it, until it is opened."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._reached.set()
        assert self._opened.wait(60)

    def await_arrival(self) -> None:
        assert self._reached.wait(60)

    def open(self) -> None:
        self._opened.set()


def test_a_lesson_that_waits_to_be_written_is_counted_all_the_same(shop: Workshop) -> None:
    # Lessons are read before any of these, so that each is counted on top.
    shop.lessons()
    first, second, third = Gate(), Gate(), Gate()
    recorder = shop.database.runtime.gateway.recorder
    recorder.do(first)
    first.await_arrival()
    recorder.do(second)
    shop.teach("haystack", 1)
    recorder.do(third)
    first.open()
    second.await_arrival()
    # One is written now, though nobody has heard of it yet, and another is taught.
    shop.teach("needle", 1)
    second.open()
    third.await_arrival()
    # The other still waits, when it is taught again.
    shop.teach("needle", 1)
    third.open()

    assert len(shop.told("pattern:learned")) == 2
    (evolved,) = shop.told("pattern:evolved")
    assert evolved["changes"]["successes"] == [1, 2]


def test_a_correction_whose_call_is_run_elsewhere_is_no_evidence(shop: Workshop) -> None:
    async def begin(execution_id: str) -> None:
        raise BegunElsewhereError(execution_id)

    gateway = shop.database.runtime.gateway
    for _ in range(3):
        call = Call(
            "send", {"recipient": "bob", "amount": "12"}, Caller("ann"), "default", begin=begin
        )
        with pytest.raises(BegunElsewhereError):
            gateway.home.run(partial(gateway.executor.execute, call))
        del call
    for number in range(20):
        # Objects of calls that are gone have their places taken by these.
        shop.run("send", {"recipient": "bob", "amount": number}, "bob")

    status = shop.ask("auto_correction_status")
    assert status["activeCorrections"] == []
    assert status["metrics"]["totalCorrections"] == 0
