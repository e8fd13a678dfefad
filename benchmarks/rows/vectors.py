"""Searching vectors of one's own: recall beside NumPy's exact answer, time beside it and usearch.

The vectors lie in clusters, as those of a model do. All ways answer the same queries in one run:
one after the other, with and without a filter, and at a past moment, which usearch has not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

import stratagem
from benchmarks.bench import Bench, Row
from benchmarks.measuring import Times
from benchmarks.results import Figure

__all__ = ["ROW"]

_DIMENSIONS: Final = 384
_CLUSTERS: Final = 1_000
_AT_ONCE: Final = 1_000
_K: Final = 10
_RECALL: Final = 0.98
_OPEN_SECONDS: Final = 0.5
# One vector in ten has the value that the filter asks for.
_SHARE: Final = 10
_ROOT: Final = Path(__file__).parents[2]
_OPEN: Final = """
import sys, time, orjson, numpy as np, stratagem
begin = time.perf_counter()
with stratagem.open(sys.argv[1], embedder="none") as db:
    opened = time.perf_counter() - begin
    query = np.frombuffer(bytes.fromhex(sys.argv[2]), np.float32)
    found = db.vectors.search("docs", query, 10)
    searched = time.perf_counter() - begin
print(orjson.dumps({"open": opened, "search": searched, "found": len(found)}).decode())
"""

Floats = NDArray[np.float32]
Answer = Callable[[Floats], Sequence[str]]


def measure(bench: Bench) -> Iterator[Figure]:
    """Measure recall and time of searches, and opening a large collection."""
    for size in bench.sizes(100_000):
        vectors, queries = _made_up(size, 32)
        folder = bench.datasets.folder / f"vectors-{size}"
        path = folder.with_suffix(".db")
        with stratagem.open(path, embedder="none", durability="fast") as db:
            version = _fill(db, vectors)
            yield from _figures(db, vectors, queries, version)
        yield _opening(path, size, queries[0])


def _figures(
    db: stratagem.Stratagem, vectors: Floats, queries: Floats, version: int
) -> Iterator[Figure]:
    size = len(vectors)
    tenth = np.arange(size) % _SHARE == 0
    past = np.arange(size) < _before_half(size)
    cases: list[tuple[str, NDArray[np.bool_], dict[str, Any]]] = [
        ("all", np.ones(size, bool), {}),
        ("a filter that one in ten fits", tenth, {"filter": {"tenth": True}}),
        ("at a past moment, of half as many", past, {"as_of": f"@{version}"}),
    ]
    for case, wanted, options in cases:
        ours = _timed(lambda query, given=options: _keys(db, query, given), queries)
        exact = _timed(lambda query, among=wanted: _exact(vectors, query, among), queries)
        yield Figure(
            "vectors",
            f"recall@{_K}, {case}",
            size,
            _recall(ours[0], exact[0]),
            "",
            promise=f">= {_RECALL}",
            passed=_recall(ours[0], exact[0]) >= _RECALL,
            note=f"of NumPy's exact answer, {_DIMENSIONS} dimensions, cosine",
        )
        yield Figure("vectors", f"search beside NumPy, {case}", size, ours[1], "s", exact[1])
    index = _usearch(vectors)
    theirs = _timed(lambda query: _near(index, query), queries)
    ours = _timed(lambda query: _keys(db, query, {}), queries)
    exact = _timed(lambda query: _exact(vectors, query, np.ones(size, bool)), queries)
    yield Figure(
        "vectors",
        "search beside usearch, all",
        size,
        ours[1],
        "s",
        theirs[1],
        note=f"usearch, an index of the present alone, has a recall@{_K} of "
        f"{_recall(theirs[0], exact[0]):.3f}",
    )


def _opening(path: Path, size: int, query: Floats) -> Figure:
    """Open a database in a fresh process and search it once."""
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(path), query.tobytes().hex()],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    took = orjson.loads(done.stdout)
    return Figure(
        "vectors",
        "open a database with them",
        size,
        took["open"],
        "s",
        promise="< 0.5 s",
        passed=took["open"] < _OPEN_SECONDS,
        note=f"a fresh process; the first search is answered after {took['search']:.2f} s",
    )


def _made_up(size: int, queries: int) -> tuple[Floats, Floats]:
    """Return vectors in clusters, and queries near some of them."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(_CLUSTERS, _DIMENSIONS)).astype(np.float32)
    near = centres[rng.integers(_CLUSTERS, size=size)]
    vectors = near + rng.normal(size=(size, _DIMENSIONS)).astype(np.float32)
    asked = centres[rng.integers(_CLUSTERS, size=queries)]
    return vectors, asked + rng.normal(size=(queries, _DIMENSIONS)).astype(np.float32)


def _before_half(size: int) -> int:
    """Return how many vectors are stored, in whole groups, when half of them are."""
    return max(size // 2 // _AT_ONCE, 1) * _AT_ONCE


def _fill(db: stratagem.Stratagem, vectors: Floats) -> int:
    """Store the vectors; return the version at which half of them were there."""
    db.vectors.create_collection("docs", _DIMENSIONS, "cosine")
    half = 0
    for begin in range(0, len(vectors), _AT_ONCE):
        items: Any = [
            {"key": str(at), "vector": vectors[at], "metadata": {"tenth": at % _SHARE == 0}}
            for at in range(begin, min(begin + _AT_ONCE, len(vectors)))
        ]
        version = db.vectors.batch_upsert("docs", items).version
        half = version if begin + _AT_ONCE <= _before_half(len(vectors)) else half
    # The file of the collection is made by the first search.
    db.vectors.search("docs", vectors[0], 1)
    return half


def _keys(db: stratagem.Stratagem, query: Floats, options: dict[str, Any]) -> list[str]:
    return [hit.key for hit in db.vectors.search("docs", query, _K, **options)]


def _exact(vectors: Floats, query: Floats, among: NDArray[np.bool_]) -> list[str]:
    rows = np.flatnonzero(among)
    kept = vectors[rows] if len(rows) < len(vectors) else vectors
    cosines = (kept @ query) / np.linalg.norm(kept, axis=1)
    best = np.argpartition(-cosines, _K)[:_K]
    return [str(rows[at]) for at in best[np.argsort(-cosines[best])]]


def _usearch(vectors: Floats) -> Any:
    from usearch.index import Index

    index = Index(ndim=_DIMENSIONS, metric="cos", dtype="f32")
    index.add(np.arange(len(vectors)), vectors)
    return index


def _near(index: Any, query: Floats) -> list[str]:
    return [str(each) for each in index.search(query, _K).keys]


def _timed(answer: Answer, queries: Floats) -> tuple[list[Sequence[str]], float]:
    """Return the answers to queries, and the median of the seconds that each took."""
    times = Times()
    answers = []
    answer(queries[0])
    for query in queries:
        begin = perf_counter()
        answers.append(answer(query))
        times.seconds.append(perf_counter() - begin)
    return answers, times.median


def _recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    pairs = zip(found, exact, strict=True)
    return sum(len({*one} & {*other}) for one, other in pairs) / (_K * len(exact))


ROW: Final = Row("vectors", "vectors of one's own, beside NumPy and usearch", measure)
