"""Recall by key through the SDK, against a bare point read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import DEEP_BRANCH, ITEMS, Dataset
from benchmarks.measuring import Pair
from benchmarks.results import Figure

__all__ = ["ROW"]

_KEYS: Final = 2_000
_ROUNDS: Final = 15


def run(bench: Bench) -> Iterator[Figure]:
    """Read the same keys both ways, in several views."""
    for size in bench.sizes(100_000):
        dataset = bench.datasets.get(size, embedded=False)
        draw = random.Random(size)
        half = (dataset.size + 1) // 2
        keys = [texts.key_of(draw.randrange(half)) for _ in range(_KEYS)]
        yield from _views(bench, dataset, keys)


def _views(bench: Bench, dataset: Dataset, keys: list[str]) -> Iterator[Figure]:
    plain = dataset.plain()
    with dataset.ours() as db:
        past: dict[str, Any] = {"as_of": dataset.middle}
        deep = {"branch": DEEP_BRANCH}
        cases: tuple[tuple[str, dict[str, Any], float], ...] = (
            ("depth 1, head", {}, 2.5),
            ("depth 3, head", deep, 3.0),
            ("depth 1, as_of", past, 2.5),
            ("depth 3, as_of", past | deep, 3.0),
        )
        for case, view, limit in cases:
            pair = _alternate(bench, _reader(db.memory.recall, view), plain.get, keys)
            yield Figure(
                "recall",
                case,
                dataset.size,
                pair.ours.median,
                "s",
                pair.plain.median,
                f"≤ {limit:g} × plain",
                passed=pair.ratio <= limit,
            )
        yield _moving(bench, dataset, db.memory.recall, plain.get, keys[:200])
    plain.close()


def _reader(recall: Callable[..., object], view: dict[str, Any]) -> Callable[[str], object]:
    """Return the operation with its view; the head needs no wrapping, and gets none."""
    if not view:
        return recall

    def read(key: str) -> object:
        return recall(key, **view)

    return read


def _moving(
    bench: Bench,
    dataset: Dataset,
    recall: Callable[..., object],
    get: Callable[[str], object],
    keys: list[str],
) -> Figure:
    """Recall at a moment that was never asked for before, each time."""
    moments = count(dataset.size // 2 + ITEMS)

    def read(key: str) -> object:
        return recall(key, as_of=f"@{next(moments)}")

    pair = _alternate(bench, read, get, keys)
    return Figure(
        "recall",
        "depth 1, another as_of each time",
        dataset.size,
        pair.ours.median,
        "s",
        pair.plain.median,
    )


def _alternate(
    bench: Bench, ours: Callable[[str], object], plain: Callable[[str], object], keys: list[str]
) -> Pair:
    assert ours(keys[0]) is not None
    return bench.clock.alternate(ours, plain, keys, bench.rounds(_ROUNDS))


ROW: Final = Row("recall", "an entry by its key, now and in the past", run)
