"""The vectors of one collection, as they are compared with a query.

Beyond some thousands of vectors, codes of one bit for each number choose those that are compared.
A code says how near two directions are; with the length of a vector that gives an estimate of its
product with the query, and of its distance.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from stratagem.deferred_modules import np
from stratagem.engine.lineage import View
from stratagem.search import ranking
from stratagem.search.collections import CollectionShape, Metric
from stratagem.search.vector_columns import VectorColumns, VectorSnapshot
from stratagem.search.vectors import Nearest, VectorCache, WantedRows
from stratagem.storage.contract import Reader, VectorRow, VersionSpan

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CollectionCache"]


class _CollectionVectors:
    """The vectors of a collection, read from the log."""

    def __init__(self, shape: CollectionShape) -> None:
        self._shape = shape

    def after(self, reader: Reader, columns: VectorColumns, limit: int) -> list[VectorRow]:
        """See `VectorSource`."""
        # All up to the position were looked at, most of them in vain.
        begin = max(columns.get("last_id"), columns.get("position"))
        while spans := reader.vectors.in_space(self._shape.space, begin, limit):
            if rows := self._rows(reader, spans):
                return rows
            begin = spans[-1].sequence
        return []

    def _rows(self, reader: Reader, spans: Sequence[VersionSpan]) -> list[VectorRow]:
        """Return vectors as rows, but for those of a collection that had the name before."""
        shape = self._shape
        contents = reader.log.contents([each.sequence for each in spans])
        stored = {
            each: b64decode(orjson.loads(contents[each.sequence].payload)["vector"])
            for each in spans
        }
        fitting = {each: raw for each, raw in stored.items() if len(raw) == 4 * shape.dimension}
        vectors, norms = _unit_vectors(list(fitting.values()), shape)
        return [
            VectorRow(
                span.sequence,
                span.sequence,
                span.branch,
                shape.space,
                span.sequence_to,
                vector.tobytes(),
                norm,
            )
            for span, vector, norm in zip(fitting, vectors, norms.tolist(), strict=True)
        ]

    def last(self, _reader: Reader) -> int:
        """See `VectorSource`."""
        return 0

    def count(self, _reader: Reader) -> int:
        """See `VectorSource`."""
        return 0


class CollectionCache(VectorCache):
    """The vectors of one collection, in a file of their own."""

    def __init__(self, path: Path | None, shape: CollectionShape) -> None:
        super().__init__(path, shape.width, _CollectionVectors(shape))
        self._shape = shape

    def nearest(
        self,
        reader: Reader,
        view: View,
        query: NDArray[np.float32],
        among: NDArray[np.int64] | None,
        depth: int,
    ) -> Nearest:
        """Return the visible versions nearest to a query, with their scores."""
        padded = np.zeros(self._shape.width, np.float32)
        padded[: len(query)] = query
        none = np.zeros(0, np.int64)
        return self.compare(
            reader, view, padded, none, spaces=None, sequences=among, depth=depth
        ).near

    def _cosines_for(
        self, snapshot: VectorSnapshot, wanted: WantedRows, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        rows, query = wanted.rows, wanted.query
        length = float(np.sqrt(query @ query))
        if len(rows) > ranking.OWN_EXACT_VECTORS_MAX:
            compared = int(len(rows) * ranking.OWN_RESCORED_SHARE)
            compared = min(max(compared, ranking.OWN_RESCORED_MIN), ranking.OWN_RESCORED_MAX)
            rows = self._worth_comparing(snapshot, wanted, max(4 * count, compared))
        products = snapshot.columns.cosines_of(rows, query)
        scores = _scores(self._shape.metric, products, snapshot.norm[rows], length)
        return rows, scores, np.zeros(0, np.float32)

    def _worth_comparing(
        self, snapshot: VectorSnapshot, wanted: WantedRows, count: int
    ) -> NDArray[np.int64]:
        """Return about so many of the wanted rows: those with the highest estimated scores."""
        rows, query = wanted.rows, wanted.query
        if self._shape.metric == "cosine" or len(rows) <= count:
            return self._by_codes(snapshot, wanted, count)
        most = len(rows) * 4 > snapshot.count
        codes = snapshot.codes if most else snapshot.codes[:, rows]
        products = self._codes.products(codes, query)
        if most and len(rows) < snapshot.count:
            products = products[rows]
        length = float(np.sqrt(query @ query))
        scores = _scores(self._shape.metric, products, snapshot.norm[rows], length)
        return rows[np.argpartition(-scores, count - 1)[:count]]


def _scores(
    metric: Metric,
    products: NDArray[np.float32],
    norms: NDArray[np.float64],
    length: float,
) -> NDArray[np.float32]:
    """Return how near vectors are: `products` are those of their directions with the query."""
    if metric == "cosine":
        return products / np.float32(length or 1.0)
    lengthened = products * norms.astype(np.float32)
    if metric == "dot":
        return lengthened
    squares = norms**2 + length**2 - 2.0 * lengthened
    distances: NDArray[np.float32] = -np.sqrt(np.maximum(squares, 0.0)).astype(np.float32)
    return distances


def _unit_vectors(
    stored: Sequence[bytes], shape: CollectionShape
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return vectors of the length one, and how long they were."""
    vectors = np.zeros((len(stored), shape.width), np.float32)
    raw = np.frombuffer(b"".join(stored), "<f4")
    vectors[:, : shape.dimension] = raw.reshape(len(stored), shape.dimension)
    norms = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    vectors /= np.maximum(norms, np.finfo(np.float32).tiny)[:, np.newaxis].astype(np.float32)
    return vectors, norms
