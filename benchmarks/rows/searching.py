"""Search by words and meaning, and by words alone, against the FTS5 query alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import open_ours
from benchmarks.measuring import Pair
from benchmarks.results import Figure, seconds

__all__ = ["LEXICAL", "SEARCH"]

_QUERIES: Final = 150
_ALLOWANCE_SECONDS: Final = 12e-3
_LEXICAL_SECONDS: Final = 5e-3


def hybrid(bench: Bench) -> Iterator[Figure]:
    """Ask questions of rare, middling and common words."""
    for size in bench.sizes(100_000):
        pair = _asked(bench, size, texts.queries(bench.rounds(_QUERIES)), embedded=True)
        limit = 2 * pair.plain.median + _ALLOWANCE_SECONDS
        yield Figure(
            "search",
            "hybrid, p50",
            size,
            pair.ours.median,
            "s",
            pair.plain.median,
            f"≤ {seconds(limit)}",
            cpu_ratio=pair.cpu_ratio,
            passed=pair.ours.median <= limit,
            note=f"promise: 2 × the FTS5 query alone + 12 ms; p95 {seconds(pair.ours.p95)}",
        )


def lexical(bench: Bench) -> Iterator[Figure]:
    """Ask questions whose words are in under one in a hundred texts."""
    for size in bench.sizes(100_000):
        queries = texts.queries(bench.rounds(_QUERIES), ("rare", "mid"))
        pair = _asked(bench, size, queries, embedded=False)
        yield Figure(
            "lexical",
            "rare terms, p50",
            size,
            pair.ours.median,
            "s",
            pair.plain.median,
            "< 5 ms",
            cpu_ratio=pair.cpu_ratio,
            passed=pair.ours.median < _LEXICAL_SECONDS,
            note=f"terms in under 1 % of the texts; p95 {seconds(pair.ours.p95)}",
        )


def _asked(bench: Bench, size: int, queries: list[texts.Query], *, embedded: bool) -> Pair:
    dataset = bench.datasets.get(size, embedded=True)
    plain = dataset.plain()
    with open_ours(dataset.ours_path, embedded=embedded) as db:
        mode = db.memory.search(queries[0].text).mode
        assert mode == ("hybrid" if embedded else "lexical"), mode
        plain.match(queries[0].text)
        pair = bench.clock.each(db.memory.search, plain.match, [query.text for query in queries])
    plain.close()
    return pair


SEARCH: Final = Row("search", "ten best hits by words and meaning", hybrid)
LEXICAL: Final = Row("lexical", "ten best hits by rare words", lexical)
