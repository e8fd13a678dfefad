"""A disk that fails or is full: our error and never the driver's, nothing lost, and it heals."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

import stratagem
from stratagem.errors import StorageFull, StorageUnavailable, StratagemError
from tests.faults.conftest import Say
from tests.faults.disk import Call, Disk, in_place
from tests.faults.opening import examine
from tests.faults.workload import Ledger, Worker, step_until_error, verify

FOR_EVER = 10**9

# The disk may fail once more when a connection that never came about is thrown away.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Fault(NamedTuple):
    """How a disk fails: these calls, after some that still pass, so many times."""

    calls: frozenset[Call]
    after: int
    times: int
    full: bool = False

    @property
    def expected(self) -> type[StratagemError]:
        return StorageFull if self.full else StorageUnavailable

    def error(self) -> Exception:
        if self.full:
            return apsw.FullError("database or disk is full")
        return apsw.IOError("disk I/O error")

    def strike(self, disk: Disk) -> None:
        disk.fail(set(self.calls), self.error, after=self.after, times=self.times)


def faults(afters: list[int]) -> Iterator[Fault]:
    kinds: list[Call] = ["read", "write", "sync", "truncate", "open", "size", "delete"]
    for after in afters:
        for times in (1, 3, FOR_EVER):
            for kind in kinds:
                yield Fault(frozenset({kind}), after, times)
            yield Fault(frozenset({"write"}), after, times, full=True)


def reads(db: stratagem.Stratagem) -> list[Callable[[], Any]]:
    memory, store = db.memory, db.runtime.foundation.store
    return [
        lambda: memory.recall("shared/1"),
        lambda: memory.recall("shared/1", as_of="@2"),
        lambda: memory.search("river"),
        lambda: memory.history("shared/1"),
        memory.time_range,
        memory.status,
        memory.branches,
        lambda: memory.diff("trial"),
        lambda: list(store.log()),
        lambda: examine(db),
    ]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """Return a database that faults can be tried on copies of."""
    path = tmp_path / "sound.db"
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.fork("trial")
        db.memory.store("city", "Oslo", branch="trial")
    return path


@contextmanager
def a_copy(sound: Path) -> Iterator[tuple[Disk, Path]]:
    folder = sound.parent / "copy"
    folder.mkdir()
    shutil.copy(sound, folder)
    with in_place(Disk(folder)) as disk:
        yield disk, folder / sound.name
    shutil.rmtree(folder)


def work_through(fault: Fault, disk: Disk, path: Path) -> tuple[int, int]:
    """Work on a disk that fails; return how many errors were met and how many writes are safe."""
    ledger, errors = Ledger(), 0
    with stratagem.open(str(path), embedder="none") as db:
        before = list(db.runtime.foundation.store.log())
        ledger.know(before)
        worker = Worker(db, "w", 1, ledger.note)
        fault.strike(disk)
        for read in [*reads(db), *reads(db)]:
            for _ in range(2):
                errors += raises_only(fault.expected, worker.step)
            errors += raises_only(fault.expected, read)
        store = db.runtime.foundation.store
        errors += raises_only(fault.expected, lambda: store.rebuild(lambda *_: None))
        disk.heal()

        assert step_until_error(worker, 5) is None, "the handle is of no use after the fault"
        for read in reads(db):
            read()
        assert examine(db) == []
    verify(path, ledger)
    return errors, len(ledger.acknowledged)


def raises_only(expected: type[StratagemError], work: Callable[[], Any]) -> bool:
    try:
        work()
    except expected:
        return True
    return False


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "chosen", [10, pytest.param(FOR_EVER, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_errors_of_the_disk_lose_nothing_and_heal(
    sound: Path, seed: int, say: Say, chosen: int
) -> None:
    every = list(faults([*range(16), 20, 30, 50, 80, 130, 210, 340, 550]))
    random.Random(seed).shuffle(every)
    met = safe = 0
    for fault in every[:chosen]:
        with a_copy(sound) as (disk, path):
            try:
                errors, acknowledged = work_through(fault, disk, path)
            except BaseException as error:
                error.add_note(f"with {fault}")
                raise
        met, safe = met + errors, safe + acknowledged
    say(f"{len(every[:chosen])} faults, {met} errors met, {safe} acknowledged writes, none lost")
    assert met


def use(path: Path) -> None:
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.store("city", "Oslo")


@pytest.mark.parametrize("new", [False, True], ids=["existing", "new"])
@pytest.mark.parametrize(
    "chosen", [25, pytest.param(FOR_EVER, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_a_database_whose_opening_failed_opens_later(
    sound: Path, seed: int, chosen: int, *, new: bool
) -> None:
    every = list(faults([*range(40), 50, 60, 80, 100]))
    random.Random(seed).shuffle(every)
    failed = 0
    for fault in every[:chosen]:
        with a_copy(sound) as (disk, copy):
            path = copy.with_name("new.db") if new else copy
            fault.strike(disk)
            failed += raises_only(fault.expected, partial(use, path))
            disk.heal()
            with stratagem.open(str(path), embedder="none") as db:
                db.memory.store("city", "Oslo")
                assert examine(db) == [], fault
    assert failed


def test_a_full_disk_is_said_to_be_full_and_reading_goes_on(sound: Path, seed: int) -> None:
    with a_copy(sound) as (disk, path):
        ledger = Ledger()
        with stratagem.open(str(path), embedder="none") as db:
            ledger.know(db.runtime.foundation.store.log())
            worker = Worker(db, "w", seed, ledger.note)
            for room in (1_500_000, 3_000_000, 6_000_000):
                disk.quota = room
                for _ in range(4):
                    assert isinstance(step_until_error(worker, 5000), StorageFull)
                for read in reads(db):
                    read()
                disk.heal()
                assert step_until_error(worker, 5) is None
        assert len(ledger.acknowledged) > 50
        verify(path, ledger)
