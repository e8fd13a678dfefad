"""The databases that are measured: ours and the yardstick, with the same entries in both."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.progress import Progress

import stratagem
from benchmarks import texts
from benchmarks.plain import PlainSqlite

__all__ = ["DEEP_BRANCH", "ITEMS", "Dataset", "Datasets", "batches", "open_ours", "store_batch"]

ITEMS: Final = 1_000
# A branch of a branch of `default`: reading it walks three.
DEEP_BRANCH: Final = "branch-of-branch"


@dataclass(slots=True)
class Dataset:
    """Two databases with the same entries."""

    folder: Path
    size: int
    embedded: bool
    middle: str = ""

    @property
    def ours_path(self) -> Path:
        """Our database."""
        return self.folder / "ours.db"

    @property
    def plain_path(self) -> Path:
        """The yardstick's database."""
        return self.folder / "plain.db"

    @property
    def embedder(self) -> str:
        """What ours is opened with."""
        return "static" if self.embedded else "none"

    def ours(self) -> stratagem.Stratagem:
        """Open our database."""
        return open_ours(self.ours_path, embedded=self.embedded)

    def plain(self) -> PlainSqlite:
        """Open the yardstick's."""
        return PlainSqlite(self.plain_path)


class Datasets:
    """The datasets of one run, each made when it is first asked for."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.folder = Path(tempfile.mkdtemp(prefix="stratagem-benchmarks-"))
        self._made: dict[tuple[int, bool], Dataset] = {}

    def get(self, size: int, *, embedded: bool) -> Dataset:
        """Return the dataset of a size."""
        known = self._made.get((size, embedded))
        if known is None:
            folder = self.folder / f"{size}-{'embedded' if embedded else 'lexical'}"
            folder.mkdir()
            known = self._made[size, embedded] = Dataset(folder, size, embedded)
            _fill(known, self._progress)
        return known

    def copy(self, size: int, *, embedded: bool, name: str) -> Dataset:
        """Return a copy of a dataset, to be written to."""
        original = self.get(size, embedded=embedded)
        folder = self.folder / name
        shutil.copytree(original.folder, folder)
        return Dataset(folder, size, embedded, original.middle)

    def empty(self, name: str) -> Dataset:
        """Return a dataset with nothing in it."""
        folder = self.folder / name
        folder.mkdir()
        return Dataset(folder, 0, embedded=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def open_ours(path: Path, *, embedded: bool) -> stratagem.Stratagem:
    """Open a database of ours with the durability of the yardstick, its embedder ready."""
    db = stratagem.open(str(path), durability="fast", embedder="static" if embedded else "none")
    embedder = db.runtime.foundation.index.embedder
    if embedder is not None:
        embedder.load()
    return db


def batches(count: int, *, start: int = 0) -> Iterator[list[tuple[str, str]]]:
    """Yield entries in groups of the size that one store takes."""
    entries = texts.entries(count, start=start)
    while batch := list(islice(entries, ITEMS)):
        yield batch


def store_batch(
    db: stratagem.Stratagem, batch: Sequence[tuple[str, str]], branch: str | None = None
) -> str:
    """Store a group of entries; return when."""
    stored = db.memory.store(
        items=[{"key": key, "value": text} for key, text in batch], branch=branch
    )
    return stored.timestamp


def _fill(dataset: Dataset, progress: Progress) -> None:
    kind = "embedded" if dataset.embedded else "lexical only"
    task = progress.add_task(f"storing {dataset.size:,} entries, {kind}", total=dataset.size)
    plain = dataset.plain()
    done = 0
    with dataset.ours() as db:
        for batch in batches(dataset.size):
            stored_at = store_batch(db, batch)
            plain.put_many(batch)
            done += len(batch)
            progress.update(task, completed=done)
            if not dataset.middle or 2 * done <= dataset.size:
                dataset.middle = stored_at
        db.memory.fork("branch")
        db.memory.store("on-branch", "of the branch", branch="branch")
        db.memory.fork(DEEP_BRANCH, branch="branch")
        db.memory.store("on-branch", "of the branch of the branch", branch=DEEP_BRANCH)
    plain.close()
    progress.remove_task(task)
