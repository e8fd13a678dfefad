"""Searching vectors of one's own: recall beside NumPy's exact answer, time beside it and usearch.

The vectors lie in clusters, as those of a model do, and have the length one, so that NumPy's exact
answer is one product. All ways answer the same queries in one run, taking turns: with and without a
filter, and at a past moment, which usearch has not.

A million vectors take 1.5 GB of memory here and 5 GB on the disk. Usearch takes minutes for its
index of 100,000; beyond that it is left out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

import stratagem
from benchmarks.bench import Bench, Row
from benchmarks.measuring import Clock, Pair
from benchmarks.results import Figure, seconds

__all__ = ["ROW", "measure_searches"]

_DIMENSIONS: Final = 384
_CLUSTERS: Final = 1_000
_AT_ONCE: Final = 1_000
_MADE_AT_ONCE: Final = 10_000
_QUERIES: Final = 32
_K: Final = 10
_RECALL: Final = 0.98
_OPEN_RATIO: Final = 1.5
_OPENINGS: Final = 5
_USEARCH_MAX: Final = 100_000
# One vector in ten has the value that the filter asks for.
_SHARE: Final = 10
_ROOT: Final = Path(__file__).parents[2]
_OPEN: Final = """
import sys, time, orjson, psutil, numpy as np, stratagem
own = lambda: psutil.Process().memory_full_info().uss / 1e6
begin = time.perf_counter()
with stratagem.open(sys.argv[1], embedder="none") as db:
    took = {"open": time.perf_counter() - begin, "open_mb": own()}
    query = np.frombuffer(bytes.fromhex(sys.argv[2]), np.float32)
    took["hits"] = len(db.vectors.search("docs", query, 10))
    took |= {"search": time.perf_counter() - begin, "search_mb": own()}
print(orjson.dumps(took).decode())
"""

Floats = NDArray[np.float32]
Answer = Callable[[Floats], Sequence[str]]


def measure(bench: Bench) -> Iterator[Figure]:
    """Measure recall and time of searches, and opening a large collection."""
    for size in bench.sizes(100_000):
        path = bench.datasets.folder / f"vectors-{size}.db"
        with stratagem.open(path, embedder="none", durability="fast") as db:
            queries = yield from measure_searches(
                db, size, bench.clock, with_usearch=size <= _USEARCH_MAX
            )
        yield _opening(path, size, queries[0])


def measure_searches(
    db: stratagem.Stratagem, size: int, clock: Clock, *, with_usearch: bool
) -> Generator[Figure, None, Floats]:
    """Fill a database and measure searches in it; return the queries."""
    vectors, queries = _made_up(size, _QUERIES)
    begin = perf_counter()
    version = _fill(db, vectors)
    yield Figure(
        "vectors", "stored, 1,000 at once", size, size / (perf_counter() - begin), "/s",
        note="with the file that the first search makes of them",
    )  # fmt: skip
    cases: list[tuple[str, slice, dict[str, Any]]] = [
        ("all", slice(0, size), {}),
        ("a filter that one in ten fits", slice(0, size, _SHARE), {"filter": {"tenth": True}}),
        ("at a past moment, of half as many", slice(_before_half(size)), {"as_of": f"@{version}"}),
    ]
    for case, wanted, options in cases:
        recall, pair = _compare(
            clock,
            queries,
            lambda query, given=options: _keys(db, query, given),
            lambda query, among=wanted: _exact(vectors, query, among),
        )
        yield Figure(
            "vectors",
            f"recall@{_K}, {case}",
            size,
            recall,
            "",
            promise=f">= {_RECALL}",
            passed=recall >= _RECALL,
            note=f"of NumPy's exact answer, {_DIMENSIONS} dimensions, cosine",
        )
        yield _beside(f"search beside NumPy, {case}", size, pair)
    if with_usearch:
        yield _beside_usearch(db, vectors, queries, clock)
    return queries


def _beside_usearch(
    db: stratagem.Stratagem, vectors: Floats, queries: Floats, clock: Clock
) -> Figure:
    begin = perf_counter()
    index = _usearch(vectors)
    built = perf_counter() - begin
    _, pair = _compare(
        clock, queries, lambda query: _keys(db, query, {}), lambda query: _near(index, query)
    )
    everything = slice(0, len(vectors))
    recall = _recall(
        [_near(index, query) for query in queries],
        [_exact(vectors, query, everything) for query in queries],
    )
    note = (
        f"usearch, an index of the present alone that takes {seconds(built)} to build, has a "
        f"recall@{_K} of {recall:.3f}"
    )
    return _beside("search beside usearch, all", len(vectors), pair, note)


def _beside(case: str, size: int, pair: Pair, note: str = "") -> Figure:
    return Figure(
        "vectors",
        case,
        size,
        pair.ours.median,
        "s",
        pair.plain.median,
        cpu_ratio=pair.cpu_ratio,
        note=note,
    )


def _opening(path: Path, size: int, query: Floats) -> Figure:
    """Open a database and one without vectors in fresh processes, in turns; search it once in each.

    What is counted is memory of the process's own: pages of the file that the kernel has mapped
    are shared by all processes, and given up when something else needs the room.
    """
    empty = path.with_name("no-vectors.db")
    with stratagem.open(empty, embedder="none") as db:
        db.vectors.create_collection("docs", _DIMENSIONS, "cosine")
    runs = [(_open_once(path, query), _open_once(empty, query)) for _ in range(_OPENINGS)]
    took = {name: median(ours[name] for ours, _ in runs) for name in runs[0][0]}
    plain = median(other["open"] for _, other in runs)
    return Figure(
        "vectors",
        "open, beside a database without any",
        size,
        took["open"],
        "s",
        plain,
        f"<= {_OPEN_RATIO} ×",
        passed=took["open"] <= _OPEN_RATIO * plain,
        note=f"a fresh process with {took['open_mb']:.0f} MB of its own; the first search is "
        f"answered after {took['search']:.2f} s, with {took['search_mb']:.0f} MB",
    )


def _open_once(path: Path, query: Floats) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(path), query.tobytes().hex()],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    took: dict[str, float] = orjson.loads(done.stdout)
    return took


def _made_up(size: int, queries: int) -> tuple[Floats, Floats]:
    """Return vectors in clusters, and queries near some of them, all of the length one.

    Some are made at a time, so that nothing as large as all of them is held twice.
    """
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((_CLUSTERS, _DIMENSIONS), np.float32)

    def fill(wanted: Floats) -> None:
        wanted[:] = rng.standard_normal(wanted.shape, np.float32)
        wanted += centres[rng.integers(_CLUSTERS, size=len(wanted))]
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)

    vectors = np.empty((size, _DIMENSIONS), np.float32)
    for begin in range(0, size, _MADE_AT_ONCE):
        fill(vectors[begin : begin + _MADE_AT_ONCE])
    asked = np.empty((queries, _DIMENSIONS), np.float32)
    fill(asked)
    return vectors, asked


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


def _exact(vectors: Floats, query: Floats, among: slice) -> list[str]:
    cosines = vectors[among] @ query
    best = np.argpartition(-cosines, _K)[:_K]
    rows = range(len(vectors))[among]
    return [str(rows[at]) for at in best[np.argsort(-cosines[best])].tolist()]


def _usearch(vectors: Floats) -> Any:
    from usearch.index import Index

    index = Index(ndim=_DIMENSIONS, metric="cos", dtype="f32")
    index.add(np.arange(len(vectors)), vectors)
    return index


def _near(index: Any, query: Floats) -> list[str]:
    return [str(each) for each in index.search(query, _K).keys]


def _compare(clock: Clock, queries: Floats, ours: Answer, other: Answer) -> tuple[float, Pair]:
    """Return the share of another way's answers that ours gives, and the times of both."""
    found: list[Sequence[str]] = []
    wanted: list[Sequence[str]] = []
    ours(queries[0])
    pair = clock.each(
        lambda query: found.append(ours(query)),
        lambda query: wanted.append(other(query)),
        list(queries),
    )
    return _recall(found, wanted), pair


def _recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    pairs = zip(found, exact, strict=True)
    return sum(len({*one} & {*other}) for one, other in pairs) / (_K * len(exact))


ROW: Final = Row("vectors", "vectors of one's own, beside NumPy and usearch", measure)
