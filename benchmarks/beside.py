"""The same work on `stratadb`, beside, if it is installed.

It is measured after everything else, because it works on in the background, and opened as it
opens by default: what it acknowledged last may be lost when the process is killed, and it
indexes no text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from benchmarks import texts
from benchmarks.datasets import batches
from benchmarks.results import Figure

__all__ = ["added"]

# Larger ones take it minutes to make and to fork.
_SIZE_MAX: Final = 100_000
_CHANGES: Final = 1_000
_MANY: Final = 1_000
_REPEATS: Final = 3

_numbers = count()


def added(figures: Sequence[Figure], folder: Path) -> list[Figure]:
    """Return the figures, those with the same work to compare with its time beside."""
    if find_spec("stratadb") is None:
        return list(figures)
    found: dict[tuple[str, str, int], float] = {}
    for size in sorted({figure.size for figure in figures if 0 < figure.size <= _SIZE_MAX}):
        asked = [figure for figure in figures if figure.size == size and _key(figure) in _WORK]
        if asked:
            with _database(folder / f"beside-{size}", size) as db:
                for figure in asked:
                    row, case = _key(figure)
                    found[row, case, size] = _WORK[row, case](db, size)
    return [
        replace(figure, beside=found.get((figure.row, figure.case, figure.size)))
        for figure in figures
    ]


def _key(figure: Figure) -> tuple[str, str]:
    return figure.row, figure.case


@contextmanager
def _database(path: Path, size: int) -> Iterator[Any]:
    """Open a database with the entries of a dataset."""
    import stratadb  # type: ignore[import-not-found]

    db = stratadb.open(path)
    for batch in batches(size):
        db.kv.put_many(batch)
    yield db
    db.close()


def _get(db: Any, size: int) -> float:
    draw = random.Random(size)
    keys = [texts.key_of(draw.randrange(size)) for _ in range(_MANY)]
    return _median(lambda: [db.kv.get(key) for key in keys]) / _MANY


def _put(db: Any, _size: int) -> float:
    fresh = list(texts.entries(_MANY, start=30_000_000))
    return _median(lambda: [db.kv.put(key, text) for key, text in fresh]) / _MANY


def _fork(db: Any, _size: int) -> float:
    return _median(lambda: db.branches.fork("default", f"fork-{next(_numbers)}"))


def _diff(db: Any, size: int) -> float:
    name = _changed(db, size)
    return _median(lambda: db.branches.diff("default", name))


def _merge(db: Any, size: int) -> float:
    return median(_merged(db, _changed(db, size)) for _ in range(_REPEATS))


def _merged(db: Any, name: str) -> float:
    return _seconds(lambda: db.branches.merge(name, "default"))


def _changed(db: Any, size: int) -> str:
    """Make a branch with a thousand changed entries; return its name."""
    turn = next(_numbers)
    name = f"changes-{turn}"
    fresh = texts.entries(_CHANGES, start=40_000_000 + turn * _CHANGES)
    step = max(1, size // _CHANGES)
    changed = [(texts.key_of(place * step), text) for place, (_key, text) in enumerate(fresh)]
    db.branches.fork("default", name)
    db.at(branch=name).kv.put_many(changed)
    return name


def _median(work: Callable[[], object]) -> float:
    return median(_seconds(work) for _ in range(_REPEATS))


def _seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


_WORK: Final[dict[tuple[str, str], Callable[[Any, int], float]]] = {
    ("recall", "depth 1, head"): _get,
    ("store", "one, indexed and embedded"): _put,
    ("fork", "from now"): _fork,
    ("diff", "1,000 changes"): _diff,
    ("merge", "1,000 changes"): _merge,
}
