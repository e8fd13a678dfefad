"""Does the fast comparison of vectors find what comparing all of them would?

Beyond a number of vectors the index picks candidates by one bit of each number, and only those
are compared exactly. Here both ways search the same vectors of real text (passages of bug
reports, asked in their own domain and in a foreign one) and of generated text; the score is how
many of the exact ten best the fast way returns too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final
from unittest import mock

import numpy as np
import orjson
from numpy.typing import NDArray
from rich.progress import track
from rich.table import Table

import stratagem
from benchmarks import texts
from evals.suites import Figure, Options, Outcome, Suite, need
from stratagem.search import ranking
from stratagem.search.vectors import VectorCache

__all__ = ["SUITE"]

THRESHOLD: Final = 98.0
_TOP: Final = 10
_QUERIES_MAX: Final = 100
_PASSAGE_WORDS: Final = 20
_STEP_WORDS: Final = 6
_ITEMS: Final = 1_000


def run(options: Options) -> Outcome:
    """Compare the two ways on each collection."""
    table = Table(
        title=f"Of the exact {_TOP} nearest, found by one bit a number", title_justify="left"
    )
    for column in ("vectors of", "asked by", "how many", "found", "worst", "exact ms", "fast ms"):
        table.add_column(
            column, justify="left" if column in {"vectors of", "asked by"} else "right"
        )
    found: list[float] = []
    for name, passages, asked in _collections(options):
        for by, queries in asked.items():
            shares, exact_ms, fast_ms = _compare(passages, queries, label=f"{name}, {by}")
            mean = 100 * float(np.mean(shares))
            found.append(mean)
            table.add_row(
                name, by, f"{len(passages):,}", f"{mean:.1f} %", f"{100 * min(shares):.0f} %",
                f"{exact_ms:.1f}", f"{fast_ms:.1f}",
            )  # fmt: skip
    return Outcome([Figure("lowest overlap", min(found), THRESHOLD)], [table])


def _collections(options: Options) -> Iterator[tuple[str, list[str], dict[str, list[str]]]]:
    reports = list(_passages(options.data, options.size))
    yield (
        "bug reports",
        reports,
        {"bug reports": _reports(options.data), "chat": _chat(options.data)},
    )
    generated = [text for _key, text in texts.entries(options.size)]
    questions = [query.text for query in texts.queries(_QUERIES_MAX)]
    yield "generated texts", generated, {"generated texts": questions}


def _compare(
    passages: Sequence[str], queries: Sequence[str], *, label: str
) -> tuple[list[float], float, float]:
    """Return for each query the share that was found, and the median cost of both ways."""
    with stratagem.open(":memory:", durability="fast") as db:
        embedder = db.runtime.foundation.index.embedder
        assert embedder is not None
        embedder.load()
        _store(db, passages, label)
        vectors = VectorCache(None, embedder.dimensions)
        exact, fast = _Way(db, vectors, len(passages)), _Way(db, vectors, 0)
        shares = []
        for vector in embedder.embed(list(queries)):
            wanted, found = exact.nearest(vector), fast.nearest(vector)
            shares.append(len(wanted & found) / max(len(wanted), 1))
        return shares, exact.cost_ms, fast.cost_ms


def _store(db: stratagem.Stratagem, passages: Sequence[str], label: str) -> None:
    for begin in track(range(0, len(passages), _ITEMS), f"storing for {label}", transient=True):
        texts_at = enumerate(passages[begin : begin + _ITEMS], start=begin)
        db.memory.store(items=[{"key": str(at), "value": text} for at, text in texts_at])


class _Way:
    """Searching with every vector compared exactly, or only those that the codes choose."""

    def __init__(self, db: stratagem.Stratagem, vectors: VectorCache, exact_max: int) -> None:
        self._store = db.runtime.foundation.store
        self._views = db.runtime.foundation.views
        self._vectors = vectors
        self._exact_max = exact_max
        self._costs: list[float] = []

    @property
    def cost_ms(self) -> float:
        """The median of what a search took, the first left out: it reads all vectors."""
        return 1_000 * median(self._costs[1:])

    def nearest(self, vector: NDArray[np.float32]) -> set[int]:
        """Return the sequences of the nearest."""
        with (
            self._store.snapshot() as reader,
            mock.patch.object(ranking, "EXACT_VECTORS_MAX", self._exact_max),
        ):
            view = self._views.view(reader, "default")
            begin = perf_counter()
            found = self._vectors.compare(
                reader, view, vector, np.zeros(0, np.int64),
                spaces=None, sequences=None, depth=ranking.SEMANTIC_DEPTH,
            )  # fmt: skip
            near, cosines = found.near
            if found.exact is not None:
                cosines = found.exact(near)
            best = near[np.lexsort((-near, -cosines))[:_TOP]]
            self._costs.append(perf_counter() - begin)
            return set(best.tolist())


def _passages(data: Path, count: int) -> Iterator[str]:
    """Yield overlapping windows of the bug reports."""
    made = 0
    for report in _lines(data / "incidents" / "incidents_dev.jsonl"):
        for begin in range(0, max(1, len(report) - _PASSAGE_WORDS // 2), _STEP_WORDS):
            if made == count:
                return
            made += 1
            yield " ".join(report[begin : begin + _PASSAGE_WORDS])


def _reports(data: Path) -> list[str]:
    words = _lines(data / "incidents" / "queries_dev.jsonl")
    return [" ".join(each[: 2 * _PASSAGE_WORDS]) for each in words][:_QUERIES_MAX]


def _chat(data: Path) -> list[str]:
    path = need(data / "recall" / "locomo_dev.json")
    questions = [
        question["question"]
        for conversation in orjson.loads(path.read_bytes())
        for question in conversation["questions"]
    ]
    return questions[:: max(1, len(questions) // _QUERIES_MAX)][:_QUERIES_MAX]


def _lines(path: Path) -> Iterator[list[str]]:
    """Yield the words of each record."""
    with need(path).open("rb") as file:
        for line in file:
            fields = orjson.loads(line).values()
            yield " ".join(each for each in fields if isinstance(each, str)).split()


SUITE: Final = Suite("vectors", "fast comparison of vectors against comparing all", run)
