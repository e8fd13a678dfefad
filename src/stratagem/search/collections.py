"""Vectors that callers wrote themselves, in collections: each of one length and one metric.

The log is where they are kept. For searching, a file like that of the vectors of texts (`vectors`)
holds those of one collection: it is made from the log, shared by all processes, and read by
system calls, so that opening a collection of a million reads none of them. All vectors in it have
the length one, and beside each stands how long it was: by the two the inner product, the cosine
and the distance are computed alike.

Where the store compares vectors by itself (PostgreSQL), it is asked instead.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import View
from stratagem.storage.contract import Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratagem.search.collection_vectors import CollectionCache

__all__ = ["CollectionIndex", "CollectionShape", "Metric"]

Metric = Literal["cosine", "euclidean", "dot"]
# The digest of a file counts pairs of numbers.
_MULTIPLE: Final = 2
# What is kept of so many collections; others are opened again.
_OPEN_MAX: Final = 32


class CollectionShape(NamedTuple):
    """What all vectors of a collection have in common; `space` is the number of its space."""

    space: int
    dimension: int
    metric: Metric

    @property
    def width(self) -> int:
        """How many numbers a row of its file has."""
        return self.dimension + self.dimension % _MULTIPLE


class CollectionIndex:
    """Finds the nearest vectors of collections. Safe to share between threads.

    `path` is where the files of collections begin; None: in memory of this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._caches: dict[CollectionShape, CollectionCache] = {}

    def nearest(
        self,
        reader: Reader,
        view: View,
        shape: CollectionShape,
        query: NDArray[np.float32],
        *,
        among: NDArray[np.int64] | None,
        depth: int,
    ) -> list[tuple[int, float]]:
        """Return the versions that a view shows nearest to a query, with scores, nearest first.

        `among`, where given, are the only ones that count. A score is the cosine, the inner
        product, or minus the distance.
        """
        comparer = reader.vector_comparer
        if comparer is not None:
            found = comparer.nearest_own(
                view,
                query.tobytes(),
                space=shape.space,
                metric=shape.metric,
                among=None if among is None else among.tolist(),
                depth=depth,
            )
            return [(each.sequence, each.score) for each in found]
        near = self._cache(shape).nearest(reader, view, query, among, depth)
        return list(zip(near.sequences.tolist(), near.cosines.tolist(), strict=True))

    def check(self, reader: Reader, shape: CollectionShape) -> None:
        """Discard vectors of another log; `reader` has to see the newest state."""
        if reader.vector_comparer is None:
            self._cache(shape).check(reader)

    def discard(self) -> None:
        """Drop all cached vectors; they are read from the log again by need."""
        with self._lock:
            caches = list(self._caches.values())
            self._caches.clear()
        for each in caches:
            each.discard()
        if self._path is not None:
            for file in self._path.parent.glob(f"{self._path.name}*"):
                with suppress(OSError):
                    file.unlink()

    def _cache(self, shape: CollectionShape) -> CollectionCache:
        from stratagem.search.collection_vectors import CollectionCache

        with self._lock:
            if shape not in self._caches:
                if len(self._caches) >= _OPEN_MAX:
                    self._caches.pop(next(iter(self._caches)))
                path = self._path
                name = f"{shape.space}-{shape.dimension}"
                named = None if path is None else path.with_name(f"{path.name}{name}")
                self._caches[shape] = CollectionCache(named, shape)
            return self._caches[shape]
