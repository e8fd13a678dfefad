"""Fork, diff and merge: what must not grow with the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Final

import stratagem
from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import store_batch
from benchmarks.measuring import Pair
from benchmarks.plain import PlainSqlite
from benchmarks.results import Figure

__all__ = ["DIFF", "FORK", "MERGE"]

_SIZES: Final = (10_000, 100_000, 1_000_000)
_CHANGES: Final = 1_000
_FORK_SECONDS: Final = 1e-3
_FORKS_PER_ROUND: Final = 3
# Twice the time at a hundred times the size is the caches of a larger file, not growth.
_FLAT: Final = 2.0

_numbers = count()


def fork(bench: Bench) -> Iterator[Figure]:
    """Fork the whole database."""
    for size in bench.sizes(*_SIZES):
        with _opened(bench, size) as (db, plain):
            pair = Pair()
            for _turn in range(bench.rounds(30)):
                names = [f"fork-{next(_numbers)}" for _ in range(_FORKS_PER_ROUND)]
                bench.clock.ours(db.memory.fork, names, pair.ours)
                bench.clock.plain(plain.one_row_commit, names, pair.plain)
        yield Figure(
            "fork",
            "from now",
            size,
            pair.ours.median,
            "s",
            pair.plain.median,
            "< 1 ms",
            cpu_ratio=pair.cpu_ratio,
            passed=pair.ours.median < _FORK_SECONDS,
            note="sync aside (fast durability), lexical only; plain: the commit of one row",
        )


def diff(bench: Bench) -> Iterator[Figure]:
    """Compare a branch that changed a thousand entries with the one it came from."""
    compared = list(_diffs(bench))
    yield from _flat([first for first, _again in compared])
    yield from _flat([again for _first, again in compared])


def _diffs(bench: Bench) -> Iterator[tuple[Figure, Figure]]:
    """Yield how long the first diff after a write takes, and how long the same one does then."""
    for size in bench.sizes(*_SIZES):
        first, again = Pair(), Pair()
        with _opened(bench, size) as (db, plain):
            branch = _changed(db, plain, size)
            assert len(db.memory.diff(branch).results) == _CHANGES
            for turn in range(bench.rounds(15)):
                # A comparison is kept until something is written.
                db.memory.store(texts.key_of(0), turn, branch=branch)
                for pair in (first, again):
                    bench.clock.ours(db.memory.diff, [branch], pair.ours)
                    bench.clock.plain(plain.compare_overlay, [branch], pair.plain)
        yield _figure("diff", size, first), _figure("diff", size, again, ", asked again")


def merge(bench: Bench) -> Iterator[Figure]:
    """Merge a thousand changed entries."""
    yield from _flat(list(_merges(bench)))


def _merges(bench: Bench) -> Iterator[Figure]:
    for size in bench.sizes(*_SIZES):
        pair = Pair()
        with _opened(bench, size) as (db, plain):
            for _turn in range(bench.rounds(9)):
                branch = _changed(db, plain, size)
                bench.clock.ours(db.memory.merge, [branch], pair.ours)
                bench.clock.plain(plain.apply_overlay, [branch], pair.plain)
                assert not db.memory.diff(branch).results
        yield _figure("merge", size, pair)


def _changed(db: stratagem.Stratagem, plain: PlainSqlite, size: int) -> str:
    """Make a branch with a thousand changed entries, spread over all of them; return its name."""
    turn = next(_numbers)
    name = f"changes-{turn}"
    step = max(1, size // _CHANGES)
    fresh = texts.entries(_CHANGES, start=20_000_000 + turn * _CHANGES)
    batch = [(texts.key_of(place * step), text) for place, (_key, text) in enumerate(fresh)]
    db.memory.fork(name)
    store_batch(db, batch, branch=name)
    plain.overlay(name, batch)
    return name


def _figure(row: str, size: int, pair: Pair, how: str = "") -> Figure:
    return Figure(
        row,
        f"{_CHANGES:,} changes{how}",
        size,
        pair.ours.median,
        "s",
        pair.plain.median,
        cpu_ratio=pair.cpu_ratio,
        note=f"lexical only; flat: at most {_FLAT:g} times the time at the smallest size",
    )


def _flat(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Judge each size by the smallest."""
    first, *rest = figures
    yield first
    for figure in rest:
        growth = figure.ours / first.ours
        yield replace(
            figure,
            promise=f"flat: {growth:.2f} × at {first.size:,}",
            passed=growth <= _FLAT,
        )


@contextmanager
def _opened(bench: Bench, size: int) -> Iterator[tuple[stratagem.Stratagem, PlainSqlite]]:
    dataset = bench.datasets.get(size, embedded=False)
    plain = dataset.plain()
    with dataset.ours() as db:
        yield db, plain
    plain.close()


FORK: Final = Row("fork", "a branch of everything", fork)
DIFF: Final = Row("diff", "what a branch changed", diff)
MERGE: Final = Row("merge", "take over what a branch changed", merge)
