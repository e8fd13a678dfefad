"""Vectors that the store itself compares, beside the words it finds.

Several servers then need no copies of their own, and nothing has to be synchronised. If there are
too few vectors for an index, comparing them takes the store longest: then the process has a copy in
memory, which each search brings up to date, and the store has a fraction of the work. Reading a
large copy takes as long as some searches do without one, so it is made once there were as many. All
copies together have a bounded size.
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
from stratagem.storage.contract import LogReader, Reader, VectorComparer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StoredVectors"]

# How many vectors the copies of this process have together: each takes up to three kilobytes.
_COPIED_MAX: Final = 80_000
# So few are read at the first search, in a tenth of a second.
_COPIED_AT_ONCE_MAX: Final = 5_000
# A command that searches once would read more than it compares.
_SEARCHES_BEFORE_COPY: Final = 32
# How often it is looked whether a copy still is of the log that the database has: that changes only
# where a backup is put back under a running server.
_CHECK_SECONDS: Final = 1.0


class _RecentCopies:
    """The copies in this process with their sizes, the one that was used last at the end."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._sizes: WeakKeyDictionary[VectorCache, int] = WeakKeyDictionary()

    def __contains__(self, copy: VectorCache) -> bool:
        return copy in self._sizes

    def use(self, copy: VectorCache, size: int) -> None:
        """Note that a copy is used, and give up those that there is no room for any more."""
        with self._lock:
            self._sizes.pop(copy, None)
            self._sizes[copy] = size
            oldest = self._without_room()
        for each in oldest:
            self.give_up(each)

    def give_up(self, copy: VectorCache) -> None:
        """Empty a copy."""
        with self._lock:
            self._sizes.pop(copy, None)
        copy.discard()

    def _without_room(self) -> list[VectorCache]:
        """Return the copies that were used longest ago, as far as all together are too large."""
        *others, (_, size) = self._sizes.items()
        oldest = []
        for each, more in reversed(others):
            size += more
            if size > _COPIED_MAX:
                oldest.append(each)
        return oldest


_recent_copies = _RecentCopies()
if hasattr(os, "register_at_fork"):
    # A thread that is not in the new process may hold the lock.
    os.register_at_fork(after_in_child=_recent_copies.begin)


class StoredVectors:
    """The vectors of a store that compares them."""

    def __init__(self, dimensions: int) -> None:
        self._copy = VectorCache(None, dimensions)
        self._searches_without = 0
        self._checked_at = -math.inf

    def copy_at_hand(self, reader: Reader) -> VectorCache | None:
        """Return a copy in memory to search in; None where the store is to compare."""
        # No text has more vectors than passages.
        size = reader.search.text_count()
        if size > limits.SERVER_EXACT_VECTORS_MAX:
            _recent_copies.give_up(self._copy)
            return None
        if size > _COPIED_AT_ONCE_MAX and self._copy not in _recent_copies:
            self._searches_without += 1
            if self._searches_without <= _SEARCHES_BEFORE_COPY:
                return None
        self._searches_without = 0
        _recent_copies.use(self._copy, size)
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

    def belongs_to(self, log: LogReader) -> bool:
        """Whether the copy is not of another log, as far as was looked lately."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return True
        self._checked_at = now
        return self._copy.belongs_to(log)

    def check(self, reader: Reader) -> None:
        """Discard the copy if it is of another log; `reader` has to see the newest state."""
        self._copy.check(reader)

    def discard(self) -> None:
        """Forget the copy; it is read from the database again when next needed."""
        self._copy.discard()


def _comparer(reader: Reader) -> VectorComparer:
    assert reader.vector_comparer is not None, "these vectors are used with stores that compare"
    return reader.vector_comparer
