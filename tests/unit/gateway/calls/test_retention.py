"""Erasing what is old goes in passes of bounded length."""

from __future__ import annotations

from pathlib import Path

from stratagem.gateway.calls.retention import erase_old
from stratagem.operation import Caller
from tests.behaviour.gateway.workshop import timed
from tests.contracts.samples import Clock


def test_a_pass_is_bounded_and_the_next_one_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    with timed(tmp_path / "aged.db", clock) as gateway:
        for number in range(5):
            gateway.run("calculator", {"expression": f"{number} + 1"})
        gateway.settle()
        clock.advance(100 * 24 * 3600)
        foundation, caller = gateway.database.runtime.foundation, Caller(actor="retention")

        passes = [erase_old(foundation, caller, most=2) for _pass in range(3)]

        assert [each["erased"] for each in passes] == [2, 2, 1]
        assert [each["more"] for each in passes] == [True, True, False]
        assert gateway.database.gateway.executions() == []
