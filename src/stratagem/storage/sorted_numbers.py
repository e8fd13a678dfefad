"""Where some numbers are among many that ascend.

A binary search reads as many far places of memory for each number as the many have bits. What is
asked again and again is looked up in a table instead, which says of each number where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SortedNumbers"]

# Making the table takes as long as some searches.
_ASKED_BEFORE_TABLE: Final = 8
# The table has four bytes for each number from the first to the last, so that these must not be
# many more than there are.
_SPAN_MAX: Final = 4


class SortedNumbers:
    """Distinct numbers in ascending order, at least one.

    Their lowest `bits` count up from zero, mostly, where the others are the same.
    """

    def __init__(self, numbers: NDArray[np.int64], bits: int = 0) -> None:
        self._numbers = numbers
        self._bits = bits
        self._first, self._last = int(numbers[0]) >> bits, int(numbers[-1]) >> bits
        self._asked = 0
        self._table: NDArray[np.int32] | None = None

    def find(self, wanted: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which of some numbers are there, and the places of all; any for the others."""
        if self._table is None:
            self._asked += 1
            if self._asked > _ASKED_BEFORE_TABLE and self._is_dense():
                self._table = self._make_table()
        if self._table is not None:
            there, places = self._compare(wanted, self._look_up(wanted, self._table))
            if not self._bits or there.all():
                return there, places
        # In order they are found three times as fast: each is near the one before it.
        ascending = np.argsort(wanted)
        places = np.empty(len(wanted), np.int64)
        places[ascending] = self._numbers.searchsorted(wanted[ascending])
        return self._compare(wanted, places)

    def _look_up(self, wanted: NDArray[np.int64], table: NDArray[np.int32]) -> NDArray[np.int64]:
        heads = (wanted >> self._bits) - self._first
        places = table.take(heads, mode="clip").astype(np.int64)
        if self._bits:
            places += wanted & (1 << self._bits) - 1
        return places

    def _compare(
        self, wanted: NDArray[np.int64], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        np.minimum(places, len(self._numbers) - 1, out=places)
        return self._numbers[places] == wanted, places

    def _is_dense(self) -> bool:
        return self._last - self._first <= _SPAN_MAX * len(self._numbers)

    def _make_table(self) -> NDArray[np.int32]:
        """Return where the numbers begin that have each of the highest bits."""
        counts = np.bincount((self._numbers >> self._bits) - self._first)
        table: NDArray[np.int32] = (counts.cumsum() - counts).astype(np.int32)
        return table
