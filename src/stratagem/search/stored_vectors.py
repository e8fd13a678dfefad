"""Vectors that the store itself compares, beside the words it finds.

Several servers then need no copies of their own, and nothing has to be brought up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratagem.deferred_modules import np
from stratagem.engine.lineage import View
from stratagem.search.vectors import Nearest
from stratagem.storage.contract import Reader, VectorComparer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StoredVectors"]


class StoredVectors:
    """The vectors of a store that compares them."""

    def compare(
        self,
        reader: Reader,
        view: View,
        query: NDArray[np.float32],
        known: NDArray[np.int64],
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        depth: int,
    ) -> tuple[Nearest, NDArray[np.float32]]:
        """Return the visible versions nearest to a query, nearest first, and how near some are."""
        given = known.tolist()
        found, cosines = _comparer(reader).compare(
            view, query.tobytes(), given, spaces=spaces, tags=tags, depth=depth
        )
        near = Nearest(
            np.array([each.sequence for each in found], np.int64),
            np.array([each.score for each in found], np.float32),
        )
        return near, np.array([cosines.get(at, np.nan) for at in given], np.float32)

    def cosines(
        self, reader: Reader, sequences: NDArray[np.int64], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return how near some versions are to a query; NaN for those that have no vector."""
        known = _comparer(reader).cosines(sequences.tolist(), query.tobytes())
        return np.array([known.get(at, np.nan) for at in sequences.tolist()], np.float32)

    def check(self, reader: Reader) -> None:
        """Nothing is kept here that could be of another log."""

    def discard(self) -> None:
        """Nothing is kept here that could be forgotten."""


def _comparer(reader: Reader) -> VectorComparer:
    assert reader.vector_comparer is not None, "these vectors are used with stores that compare"
    return reader.vector_comparer
