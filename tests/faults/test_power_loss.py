"""A power failure loses nothing that was acknowledged with full durability.

With `durability="fast"` it may lose the latest writes, but what is left is what the log was
at some moment: its beginning, whole, with read models that belong to it.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import stratagem
from stratagem.storage.sqlite import maintenance
from tests.faults.conftest import Say
from tests.faults.disk import Disk, in_place
from tests.faults.opening import examine
from tests.faults.workload import Acknowledged, Durability, Told, Worker

THREADS = 3
CHECKPOINTS = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)


class Recorded(NamedTuple):
    """A stretch of work on a disk that remembers."""

    path: Path
    disk: Disk
    hashes: list[bytes]
    # How much had happened to the disk when the log was known to be this long.
    acknowledged: list[tuple[int, int]]

    def safe_at(self, moment: int) -> int:
        """Return how much of the log was acknowledged by then."""
        return max((length for when, length in self.acknowledged if when <= moment), default=0)


def record(folder: Path, handles: Sequence[Durability], seed: int, rounds: int) -> Recorded:
    """Work with several threads, checkpoints and reopenings, and remember all of it.

    Only what the first of the handles acknowledges counts.
    """
    path, draw = folder / "power.db", random.Random(seed)
    acknowledged: list[tuple[int, int]] = []
    hashes: list[bytes] = []
    with in_place(Disk(folder, remember=True)) as disk:

        def tell(told: Told) -> None:
            if isinstance(told, Acknowledged):
                length = told.answer.get("version") or told.answer.get("sequence") or 0
                acknowledged.append((disk.moment, length))

        for number in range(3):
            with ExitStack() as stack:
                opened = [
                    stack.enter_context(
                        stratagem.open(str(path), durability=durability, embedder="none")
                    )
                    for durability in handles
                ]
                db = opened[0]
                workers = [
                    Worker(each, f"{number}.{place}.{thread}", seed, [tell, keep_quiet][place])
                    for place, each in enumerate(opened)
                    for thread in range(THREADS)
                ]
                for _ in range(rounds):
                    work_at_once(workers, 3)
                    if draw.random() < 0.3:
                        checkpoint(path, draw.choice(CHECKPOINTS))
                hashes = [event.hash for event in db.runtime.foundation.store.log()]
    return Recorded(path, disk, hashes, acknowledged)


def keep_quiet(_told: Told) -> None:
    """Tell nobody."""


def work_at_once(workers: list[Worker], steps: int) -> None:
    def work(worker: Worker) -> None:
        for _ in range(steps):
            worker.step()

    threads = [threading.Thread(target=work, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def checkpoint(path: Path, mode: int) -> None:
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=mode)
    connection.close()


def cut_the_power(
    recorded: Recorded, folder: Path, seed: int, cuts: int
) -> Iterator[tuple[int, int]]:
    """Cut the power at random moments; yield how much was acknowledged, and how much is left."""
    draw = random.Random(seed)
    moments = [draw.randint(0, recorded.disk.moment) for _ in range(cuts)]
    for moment, survival, files in recorded.disk.power_losses(moments, draw):
        cut = folder / "cut"
        cut.mkdir()
        for name, content in files.items():
            (cut / Path(name).name).write_bytes(content)
        with stratagem.open(str(cut / recorded.path.name), embedder="none") as db:
            hashes = [event.hash for event in db.runtime.foundation.store.log()]
            assert examine(db) == [], (moment, survival)
            db.memory.store("after", "the power came back")
        shutil.rmtree(cut)
        # A log that was never synced at all is begun anew.
        left = 0 if hashes[0] != recorded.hashes[0] else len(hashes)
        assert hashes == recorded.hashes[:left] or (not left and len(hashes) == 1), survival
        yield recorded.safe_at(moment), left


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "handles", [["full"], ["full", "fast"]], ids=["alone", "beside a fast one"]
)
@pytest.mark.parametrize(
    ("rounds", "cuts"), [(6, 12), pytest.param(30, 300, marks=pytest.mark.slow)]
)
def test_full_durability_keeps_every_acknowledged_write(
    tmp_path: Path, seed: int, say: Say, *, handles: list[Durability], rounds: int, cuts: int
) -> None:
    recorded = record(tmp_path, handles, seed, rounds)

    checked = 0
    for safe, left in cut_the_power(recorded, tmp_path, seed, cuts):
        assert left >= safe
        checked += safe

    say(f"{cuts} power cuts, {checked} acknowledged events checked, none lost")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("rounds", "cuts"), [(6, 20), pytest.param(30, 300, marks=pytest.mark.slow)]
)
def test_fast_durability_keeps_a_beginning_of_the_log(
    tmp_path: Path, seed: int, say: Say, rounds: int, cuts: int
) -> None:
    recorded = record(tmp_path, ["fast"], seed, rounds)

    lost = Counter(left < safe for safe, left in cut_the_power(recorded, tmp_path, seed, cuts))

    # The disk would hardly be tried if it never forgot anything.
    assert lost[True] > 0
    say(f"{cuts} power cuts, {lost[True]} with writes lost, every log a whole beginning")


def test_a_log_that_outgrows_its_checkpoint_is_safe_too(tmp_path: Path, seed: int) -> None:
    """Write enough for SQLite to checkpoint of itself, and cut the power around that."""
    path, acknowledged = tmp_path / "power.db", []
    draw = random.Random(seed)
    with in_place(Disk(tmp_path, remember=True)) as disk:
        with stratagem.open(str(path), embedder="none") as db:
            for number in range(22):
                text = draw.randbytes(400_000).hex()
                stored = db.memory.store(f"key {number}", text, index=False)
                acknowledged.append((disk.moment, stored.version))
            hashes = [event.hash for event in db.runtime.foundation.store.log()]
            synced = [entry.name for entry in disk.entries if entry.call == "sync"]
            assert synced.count(str(path)) > 1, "no checkpoint was made"
        recorded = Recorded(path, disk, hashes, acknowledged)

    for safe, left in cut_the_power(recorded, tmp_path, seed, 12):
        assert left >= safe


def test_what_was_flushed_beside_a_reader_is_safe(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_READERS_WAIT_MS", 10)
    path, acknowledged = tmp_path / "power.db", []
    with in_place(Disk(tmp_path, remember=True)) as disk:
        with (
            stratagem.open(str(path), embedder="none", durability="fast") as db,
            stratagem.open(str(path), embedder="none") as other,
            other.runtime.foundation.store.snapshot() as reader,
        ):
            reader.log.head()
            for number in range(4):
                stored = db.memory.store("city", number)
                db.database.flush()
                acknowledged.append((disk.moment, stored.version))
            hashes = [event.hash for event in db.runtime.foundation.store.log()]
            end = disk.moment
        # What comes later, as the files are closed, saves nothing.
        del disk.entries[end:]
        recorded = Recorded(path, disk, hashes, acknowledged)

    for safe, left in cut_the_power(recorded, tmp_path, seed, 20):
        assert left >= safe
