"""A clock that is set back or forth never turns the log's time around."""

from __future__ import annotations

import random
from pathlib import Path

import stratagem
from stratagem.engine import moments
from tests.faults.opening import examine, open_with

MICROSECONDS = 1_000_000
HOUR = 3600 * MICROSECONDS
NOON = 1_800_000_000 * MICROSECONDS


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


def times(db: stratagem.Stratagem) -> list[int]:
    return [event.at for event in db.runtime.foundation.store.log()]


def test_times_go_forwards_whatever_the_clock_does(tmp_path: Path, seed: int) -> None:
    clock, draw = Clock(), random.Random(seed)
    for _ in range(5):
        with open_with(tmp_path / "clock.db", clock=clock) as db:
            for number in range(20):
                clock.now += draw.choice([0, 0, 1, MICROSECONDS, HOUR, -1, -MICROSECONDS, -HOUR])
                before = times(db)[-1]
                stored = db.memory.store(f"key {number}", number)

                assert times(db)[-1] == max(clock.now, before + 1)
                assert stored.timestamp == moments.iso(times(db)[-1])
            assert times(db) == sorted(set(times(db)))
            assert examine(db) == []


def test_status_says_how_far_the_log_is_ahead_of_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        db.memory.store("city", "Oslo")
        assert db.memory.status().clock_ahead_seconds is None

        clock.now -= HOUR
        assert db.memory.status().clock_ahead_seconds == 3600
        db.memory.store("city", "Bergen")
        assert db.memory.status().clock_ahead_seconds == 3600

        clock.now += 2 * HOUR
        assert db.memory.status().clock_ahead_seconds is None


def test_each_write_can_be_seen_as_of_its_own_time_after_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    clock = Clock()
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        written = []
        for number in range(10):
            clock.now -= HOUR
            written.append((db.memory.store("city", number).timestamp, number))

        for timestamp, number in written:
            entry = db.memory.recall("city", as_of=timestamp)
            assert entry is not None
            assert entry.value == number


def test_two_processes_with_different_clocks_agree_on_the_order(tmp_path: Path) -> None:
    early, late = Clock(), Clock()
    late.now += HOUR
    path = tmp_path / "clock.db"
    with open_with(path, clock=early) as one, open_with(path, clock=late) as other:
        for number in range(20):
            (one if number % 2 else other).memory.store("city", number)

        assert times(one) == sorted(set(times(one)))
        entry = one.memory.recall("city")
        assert entry is not None
        assert entry.value == 19
        assert one.memory.status().clock_ahead_seconds == 3600
        assert other.memory.status().clock_ahead_seconds is None
        assert examine(one) == []
