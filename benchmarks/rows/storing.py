"""Storing entries, one commit each and in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import ITEMS, Dataset, batches, open_ours, store_batch
from benchmarks.measuring import Pair
from benchmarks.results import Figure

__all__ = ["BULK", "STORE"]

_LIMIT: Final = 8.0
_PER_ROUND: Final = 100
_ROUNDS: Final = 20
_BULK_SIZE: Final = 50_000
_BULK_SIZE_QUICK: Final = 10_000
_RATES: Final = (("embedded", True, 4_000), ("lexical only", False, 20_000))


def store(bench: Bench) -> Iterator[Figure]:
    """Store new entries, each with its commit, beside those that are there."""
    for size in bench.sizes(100_000):
        dataset = bench.datasets.copy(size, embedded=True, name=f"store-{size}")
        pair = _stored(bench, dataset)
        yield Figure(
            "store",
            "one, indexed and embedded",
            size,
            pair.ours.median,
            "s",
            pair.plain.median,
            f"≤ {_LIMIT:g} × plain",
            cpu_ratio=pair.cpu_ratio,
            passed=pair.ratio <= _LIMIT,
            note="one commit each, fast durability; plain: an insert, and one into FTS5",
        )


def _stored(bench: Bench, dataset: Dataset) -> Pair:
    count = bench.rounds(_ROUNDS)
    fresh = list(texts.entries(count * _PER_ROUND, start=10_000_000))
    rounds = [fresh[at : at + _PER_ROUND] for at in range(0, len(fresh), _PER_ROUND)]
    plain = dataset.plain()
    with dataset.ours() as db:
        pair = bench.clock.alternate(lambda entry: db.memory.store(*entry), plain.put, rounds)
    plain.close()
    return pair


def bulk(bench: Bench) -> Iterator[Figure]:
    """Fill an empty database in groups of a thousand."""
    size = _BULK_SIZE_QUICK if bench.quick else _BULK_SIZE
    for case, embedded, wanted in _RATES:
        pair = _filled(bench, size, embedded=embedded)
        # All of the time counts, a slow group with a checkpoint in it too.
        ours, plain = (ITEMS / fmean(times.seconds) for times in (pair.ours, pair.plain))
        yield Figure(
            "bulk",
            case,
            size,
            ours,
            "/s",
            plain,
            f"≥ {wanted:,}/s",
            cpu_ratio=pair.cpu_ratio,
            passed=ours >= wanted,
            note=f"{case}, 1,000 entries a commit, into an empty database; "
            f"{ITEMS / fmean(pair.ours.cpu_seconds):,.0f} entries a second of processor time",
        )


def _filled(bench: Bench, size: int, *, embedded: bool) -> Pair:
    dataset = bench.datasets.empty(f"bulk-{embedded}")
    pair = Pair()
    plain = dataset.plain()
    with open_ours(dataset.ours_path, embedded=embedded) as db:
        for batch in batches(size):
            bench.clock.ours(lambda each: store_batch(db, each), [batch], pair.ours)
            bench.clock.plain(plain.put_many, [batch], pair.plain)
    plain.close()
    return pair


STORE: Final = Row("store", "one entry, searchable by words and meaning at once", store)
BULK: Final = Row("bulk", "many entries at once", bulk)
