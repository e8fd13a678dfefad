"""Recall by key through the SDK, against a bare point read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, Final

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import DEEP_BRANCH, Dataset
from benchmarks.measuring import Pair
from benchmarks.results import Figure

__all__ = ["ROW"]

_KEYS_PER_ROUND: Final = 2_000
_ROUNDS: Final = 20


def run(bench: Bench) -> Iterator[Figure]:
    """Read the same keys both ways, in several views."""
    for size in bench.sizes(100_000):
        dataset = bench.datasets.get(size, embedded=False)
        yield from _views(bench, dataset)


def _views(bench: Bench, dataset: Dataset) -> Iterator[Figure]:
    rounds = _keys(dataset.size, bench.rounds(_ROUNDS))
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
            pair = _alternate(bench, _reader(db.memory.recall, view), plain.get, rounds)
            yield Figure(
                "recall",
                case,
                dataset.size,
                pair.ours.median,
                "s",
                pair.plain.median,
                f"≤ {limit:g} × plain",
                cpu_ratio=pair.cpu_ratio,
                passed=pair.ratio <= limit,
            )
        yield _moving(bench, dataset, db.memory.recall, plain.get, rounds)
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
    rounds: list[list[str]],
) -> Figure:
    """Recall at a moment that was never asked for before, each time."""
    # From the middle on, every key that is asked for is there.
    moments = cycle(range(dataset.size // 2 + 2, dataset.size))

    def read(key: str) -> object:
        return recall(key, as_of=f"@{next(moments)}")

    pair = _alternate(bench, read, get, [keys[:200] for keys in rounds])
    return Figure(
        "recall",
        "depth 1, another as_of each time",
        dataset.size,
        pair.ours.median,
        "s",
        pair.plain.median,
        cpu_ratio=pair.cpu_ratio,
    )


def _alternate(
    bench: Bench,
    ours: Callable[[str], object],
    plain: Callable[[str], object],
    rounds: list[list[str]],
) -> Pair:
    assert ours(rounds[0][0]) is not None
    return bench.clock.alternate(ours, plain, rounds)


def _keys(size: int, rounds: int) -> list[list[str]]:
    """Return keys of the first half, which is there in the middle of the log too."""
    draw = random.Random(size)
    half = (size + 1) // 2
    return [
        [texts.key_of(draw.randrange(half)) for _ in range(_KEYS_PER_ROUND)] for _ in range(rounds)
    ]


ROW: Final = Row("recall", "an entry by its key, now and in the past", run)
