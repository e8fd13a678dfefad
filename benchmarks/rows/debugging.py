"""Ranking fixes in a debug memory, and whether evidence elsewhere slows it down."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from benchmarks.bench import Bench, Row
from benchmarks.debugging import PROMISED_MS, measured
from benchmarks.results import Figure

__all__ = ["ROW"]

# Medians of a hundred lookups differ by as much from run to run.
_NO_SLOWER: Final = 1.5


def ranked_solutions(bench: Bench) -> Iterator[Figure]:
    """Look errors up, then again with twice as many outcomes in the database."""
    for size in bench.sizes(10_000):
        first, second = (median(times) for times in measured(size))
        note = "entries are incidents; the promise is for 100,000: --only debugging --size 100000"
        yield Figure(
            *("debugging", "ranked_solutions, 3 outcomes each", size, first / 1_000, "s"),
            promise=f"< {PROMISED_MS:g} ms",
            passed=first < PROMISED_MS,
            note=note,
        )
        yield Figure(
            *("debugging", "with as many outcomes elsewhere", size, second / 1_000, "s"),
            promise="no slower",
            passed=second < _NO_SLOWER * first,
        )


ROW: Final = Row("debugging", "fixes for an error, ranked by evidence", ranked_solutions)
