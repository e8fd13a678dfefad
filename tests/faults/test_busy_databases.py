"""A database that somebody else holds: an error in time, and no harm afterwards."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem.errors import StorageBusy
from tests.faults.opening import examine, open_with
from tests.faults.processes import Child, Voice, child

WAIT = 0.4
# Far from what it takes on a slow machine, and from what it took by default (30 seconds) or if each
# of many threads waited in its turn.
WAIT_AT_MOST = 20.0
THREADS = 100


@pytest.fixture
def db(tmp_path: Path) -> Iterator[stratagem.Stratagem]:
    with open_with(tmp_path / "busy.db", lock_wait_seconds=WAIT) as db:
        db.memory.store("city", "Oslo")
        yield db


def hold_lock_file(tell: Voice, path: str, release: str) -> None:
    file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    tell("held")
    wait_for(Path(release))


def hold_transaction(tell: Voice, path: str, release: str) -> None:
    connection = apsw.Connection(path)
    connection.execute("BEGIN IMMEDIATE")
    tell("held")
    wait_for(Path(release))
    connection.execute("COMMIT")


def hold_as_writer(tell: Voice, path: str, release: str) -> None:
    """Hold the database in the middle of a write, and complete it when released."""
    with stratagem.open(path, embedder="none") as db:

        def work(_connection: apsw.Connection) -> None:
            tell("held")
            wait_for(Path(release))

        db.runtime.foundation.store.exclusive(work)  # type: ignore[attr-defined]
        db.memory.store("holder", "went on")
    tell("stored")


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)


Holder = Callable[[Voice, str, str], None]
HOLDERS: list[Holder] = [hold_lock_file, hold_transaction, hold_as_writer]


@contextmanager
def held(db: stratagem.Stratagem, holder: Holder) -> Iterator[tuple[Child, Path]]:
    path = Path(db.runtime.foundation.store.location)
    release = path.with_name("release")
    with child(holder, str(path), str(release)) as process:
        assert process.hear() == "held"
        yield process, release


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.__name__)
def test_a_write_says_busy_in_time_and_works_once_the_database_is_free(
    db: stratagem.Stratagem, holder: Holder
) -> None:
    with held(db, holder) as (process, release):
        begun = time.monotonic()
        with pytest.raises(StorageBusy):
            db.memory.store("city", "Bergen")
        assert WAIT * 0.9 <= time.monotonic() - begun < WAIT_AT_MOST
        assert recalled(db, "city") == "Oslo"

        release.touch()
        process.join()

    db.memory.store("city", "Bergen")
    assert recalled(db, "city") == "Bergen"
    assert examine(db) == []


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.__name__)
def test_reading_goes_on_while_somebody_holds_the_database(
    db: stratagem.Stratagem, holder: Holder
) -> None:
    with held(db, holder):
        begun = time.monotonic()
        assert recalled(db, "city") == "Oslo"
        assert len(db.memory.search("Oslo")) == 1
        assert db.memory.status().keys == 1
        location = db.runtime.foundation.store.location
        with stratagem.open(location, embedder="none", read_only=True) as other:
            assert recalled(other, "city") == "Oslo"
        with stratagem.open(location, embedder="none") as other:
            assert recalled(other, "city") == "Oslo"
        assert time.monotonic() - begun < WAIT_AT_MOST


def test_every_waiting_thread_is_told_in_time(db: stratagem.Stratagem) -> None:
    waits: list[float] = []

    def write(number: int) -> None:
        begun = time.monotonic()
        with pytest.raises(StorageBusy):
            db.memory.store(f"key {number}", number)
        waits.append(time.monotonic() - begun)

    with held(db, hold_lock_file):
        threads = [threading.Thread(target=write, args=[number]) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(waits) == THREADS
    assert max(waits) < WAIT_AT_MOST
    assert db.memory.status().keys == 1


def test_a_stopped_process_holds_others_up_only_until_they_say_busy(
    db: stratagem.Stratagem,
) -> None:
    with held(db, hold_as_writer) as (process, release):
        assert process.process.pid is not None
        os.kill(process.process.pid, signal.SIGSTOP)
        release.touch()
        with pytest.raises(StorageBusy):
            db.memory.store("city", "Bergen")

        os.kill(process.process.pid, signal.SIGCONT)
        assert process.hear() == "stored"
        process.join()

    db.memory.store("city", "Bergen")
    assert recalled(db, "city") == "Bergen"
    assert recalled(db, "holder") == "went on"
    assert examine(db) == []


def test_a_killed_holder_holds_nobody_up(db: stratagem.Stratagem) -> None:
    for holder in HOLDERS:
        with held(db, holder) as (process, _):
            process.kill()
            db.memory.store("city", holder.__name__)

    assert recalled(db, "city") == HOLDERS[-1].__name__


def test_a_long_wait_that_ends_well_loses_nothing(tmp_path: Path) -> None:
    with open_with(tmp_path / "busy.db", lock_wait_seconds=30) as db:
        db.memory.store("city", "Oslo")
        with held(db, hold_as_writer) as (_, release):
            waiting = threading.Thread(target=lambda: db.memory.store("city", "Bergen"))
            waiting.start()
            waiting.join(0.2)
            assert waiting.is_alive()

            release.touch()
            waiting.join(60)

        assert recalled(db, "city") == "Bergen"


def recalled(db: stratagem.Stratagem, key: str) -> object:
    entry = db.memory.recall(key)
    return entry.value if entry else None
