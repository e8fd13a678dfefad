"""Many processes on one file: nothing lost, nobody stuck, everybody sees everything."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import stratagem
from tests.faults.conftest import Say
from tests.faults.opening import examine
from tests.faults.processes import Voice, child

# Far more than anybody should wait, and less than the store is willing to.
STUCK_SECONDS = 20.0


class Report(NamedTuple):
    """What one process did and saw."""

    name: str
    written: list[int]
    seen: dict[str, int]
    searches: int
    worst_write_seconds: float
    worst_read_seconds: float


class Watch:
    """The longest that anything took."""

    def __init__(self) -> None:
        self.worst = 0.0

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.worst = max(self.worst, time.monotonic() - self._begun)


def write_and_read(tell: Voice, path: str, name: str, names: list[str], seconds: float) -> None:
    """Write a counter, and read and search what the others count.

    It goes on until the time is over and it has seen something of each: on a busy machine one of them may
    begin when the time of another is over.
    """
    embedder = "static" if int(name[1:]) % 2 else "none"
    db = stratagem.open(path, embedder=embedder, actor=name)
    tell("ready")
    memory, writing, reading = db.memory, Watch(), Watch()
    written: list[int] = []
    seen: Counter[str] = Counter()
    searches = 0
    others = [other for other in names if other != name]
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(seen) < len(others):
        count = len(written) + 1
        with writing:
            text = f"the word {name}word{count}x"
            stored = memory.store(f"{name}/count", {"count": count, "text": text})
            written.append(stored.version)
        other = others[count % len(others)]
        with reading:
            entry = memory.recall(f"{other}/count")
        if entry is None:
            continue
        # A counter that went back, or a text without its index, was never committed so.
        assert entry.value["count"] >= seen[other], "something seen has gone again"
        seen[other] = entry.value["count"]
        if count % 5 == 0:
            with reading:
                hits = memory.search(entry.value["text"], as_of=f"@{entry.version}", k=50)
            assert any(hit.version == entry.version for hit in hits), "not found"
            searches += 1
    with stratagem.open(path, embedder="none", read_only=True) as late:
        for other in others:
            entry = late.memory.recall(f"{other}/count")
            seen[other] = max(seen[other], entry.value["count"] if entry else 0)
    tell(Report(name, written, dict(seen), searches, writing.worst, reading.worst))
    db.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("processes", "seconds"), [(4, 1.5), pytest.param(8, 60.0, marks=pytest.mark.slow)]
)
def test_processes_share_a_file_without_loss_or_standstill(
    tmp_path: Path, say: Say, processes: int, seconds: float
) -> None:
    path, names = tmp_path / "shared.db", [f"p{number}" for number in range(processes)]
    with ExitStack() as stack:
        children = [
            stack.enter_context(child(write_and_read, str(path), name, names, seconds))
            for name in names
        ]
        for each in children:
            assert each.hear() == "ready"
        reports: list[Report] = [each.hear(seconds + 60) for each in children]
        for each in children:
            each.join()

    check(path, reports)
    total = sum(len(report.written) for report in reports)
    say(
        f"{processes} processes, {seconds:g} s: {total / seconds:.0f} durable writes/s, "
        f"{sum(report.searches for report in reports)} searches of each other's writes"
    )
    for report in reports:
        say(
            f"  {report.name}: {len(report.written)} writes, worst wait to write "
            f"{report.worst_write_seconds * 1000:.0f} ms, to read "
            f"{report.worst_read_seconds * 1000:.0f} ms"
        )


def test_sqlite_itself_does_not_lose_what_two_processes_write() -> None:
    # Before 3.51.3 a checkpoint beside a write could lose pages: sqlite.org/wal.html#walresetbug
    assert apsw.sqlite3_sourceid() >= "2026-03-13"


def check(path: Path, reports: list[Report]) -> None:
    by_actor: dict[str, list[int]] = defaultdict(list)
    with stratagem.open(str(path), embedder="none") as db:
        for event in db.runtime.foundation.store.log():
            by_actor[event.actor].append(event.sequence)
        assert examine(db) == []
    for report in reports:
        assert by_actor[report.name] == report.written, "an acknowledged write is missing"
        assert report.written, "a process never had its turn"
        assert report.worst_write_seconds < STUCK_SECONDS
        assert report.worst_read_seconds < STUCK_SECONDS
        assert all(report.seen.values()), "a process never saw another's writes"
