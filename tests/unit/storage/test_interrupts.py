"""An interrupt (Ctrl-C) at whatever place leaves a thread that reads and writes as before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import FrameType

import pytest

import stratagem
from stratagem.storage.contract import Store

# Where Python looks for signals: as a function begins, and when one that is not in Python has
# returned.
_PLACES = frozenset({"call", "c_return"})


def is_interrupted(work: Callable[[], object], place: int) -> bool:
    """Do some work, and interrupt it at a place; return whether it has so many."""
    passed = count(1)

    def look(_frame: FrameType, event: str, _about: object) -> None:
        if event in _PLACES and next(passed) == place:
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def db(path: str) -> Iterator[stratagem.Stratagem]:
    with stratagem.open(path, embedder="none", durability="fast") as db:
        yield db


def test_a_thread_whose_read_was_interrupted_sees_what_is_written_later(
    db: stratagem.Stratagem, path: str
) -> None:
    store: Store = db.runtime.foundation.store

    def read() -> int:
        with store.snapshot() as reader:
            return reader.log.head().sequence

    with stratagem.open(path, embedder="none", durability="fast") as other:
        for place in count(1):
            was_interrupted = is_interrupted(read, place)
            written = other.memory.store("city", place)

            found = db.memory.recall("city")
            assert found is not None
            assert (found.value, read()) == (place, written.version)
            if not was_interrupted:
                break


def test_threads_write_on_after_one_whose_write_was_interrupted(
    db: stratagem.Stratagem, path: str
) -> None:
    with (
        stratagem.open(path, embedder="none", durability="fast") as other,
        ThreadPoolExecutor(1) as threads,
    ):
        for place in count(1):
            was_interrupted = is_interrupted(lambda: db.memory.store("city", "Oslo"), place)
            threads.submit(db.memory.store, "town", place).result(60)
            db.memory.store("city", place)

            found = other.memory.recall_many(["city", "town"])
            assert [entry.value for entry in found] == [place, place]
            if not was_interrupted:
                break
