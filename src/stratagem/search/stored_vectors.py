"""Vectors that the store itself compares, beside the words it finds.

Several servers then need no copies of their own, and nothing has to be synchronised. If there are
too few vectors for an index, comparing them takes the store longest: then the process has a copy in
memory, which each search brings up to date, and the store has a fraction of the work. Only so many
workspaces have one at a time.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from stratagem import limits
from stratagem.deferred_modules import np
from stratagem.engine.lineage import View
from stratagem.search.vectors import Nearest, VectorCache
from stratagem.storage.contract import Reader, VectorComparer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StoredVectors"]

# How many workspaces have a copy in this process: each takes up to some fourteen megabytes.
_COPIES_MAX: Final = 16
# How often it is looked whether a copy still is of the log that the database has: that changes only
# where a backup is put back under a running server.
_CHECK_SECONDS: Final = 1.0


class _RecentCopies:
    """The copies in this process, the one that was used last at the end."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._copies: WeakKeyDictionary[VectorCache, None] = WeakKeyDictionary()

    def use(self, copy: VectorCache) -> None:
        """Note that a copy is used; empty those that were used longest ago where there are many."""
        with self._lock:
            self._copies.pop(copy, None)
            self._copies[copy] = None
            oldest = [*self._copies][:-_COPIES_MAX]
            for each in oldest:
                del self._copies[each]
        for each in oldest:
            each.discard()


_recent_copies = _RecentCopies()
if hasattr(os, "register_at_fork"):
    # A thread that is not in the new process may hold the lock.
    os.register_at_fork(after_in_child=_recent_copies.begin)


class StoredVectors:
    """The vectors of a store that compares them."""

    def __init__(self, dimensions: int) -> None:
        self._copy = VectorCache(None, dimensions)
        self._checked_at = -math.inf

    def copy_at_hand(self, reader: Reader) -> VectorCache | None:
        """Return a copy in memory to search in; None where there are too many vectors for it."""
        # No text has more vectors than passages.
        if reader.search.text_count() > limits.SERVER_EXACT_VECTORS_MAX:
            self._copy.discard()
            return None
        _recent_copies.use(self._copy)
        return self._copy

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
        """Discard the copy if it is of another log; `reader` has to see the newest state."""
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_SECONDS:
            self._copy.check(reader)
            self._checked_at = now

    def discard(self) -> None:
        """Forget the copy; it is read from the database again when next needed."""
        self._copy.discard()


def _comparer(reader: Reader) -> VectorComparer:
    assert reader.vector_comparer is not None, "these vectors are used with stores that compare"
    return reader.vector_comparer
