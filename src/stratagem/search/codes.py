"""One bit for each number of a vector: which vectors are worth comparing in full.

Only the signs of a vector's numbers are kept, after a rotation that spreads its information evenly
over them; without it a few large numbers would carry most of the information and count no more than
the others. The query keeps more: the sign of each number and, in two bits, its size. The sum of the
sizes at the places where the signs differ says how far a vector is from it.

The rotation is made of Hadamard matrices and fixed signs, so that it is the same everywhere and
for ever. Of the ten nearest of 64,000 to 100,000 vectors, comparing the best 4,000 in full then
finds 99.3 to 99.9 %, also for queries of another domain, where unrotated signs find 79 %; the best
2,000 of 60,000 have 99.2 to 99.7 %.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import hashlib, np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Codes"]

_WORD_BITS: Final = 64
# Sizes above two and a half times the mean are all the same: that much larger.
_SIZE_TOP: Final = 2.5
_LEVELS: Final = 3
# Where so many times the rows are more than all, all are gone through: that is faster than picking.
_MOST: Final = 4
_SAMPLED: Final = 8
_SAMPLED_FROM: Final = 20_000
# Of a random number, with the variance 1: the square root of 2/pi.
_MEAN_SIZE: Final = 0.7978845608


class Codes:
    """Makes codes for vectors of some dimensions, and compares them with queries."""

    def __init__(self, dimensions: int) -> None:
        side = _WORD_BITS
        while side < dimensions:
            side *= 2
        self.words = side // _WORD_BITS
        self._side = side
        self._dimensions = dimensions

    @cached_property
    def _rotation(self) -> NDArray[np.float32]:
        return _make_rotation(self._side, self._dimensions)

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        """Return the codes of vectors, a word of bits in each row."""
        return np.ascontiguousarray(_pack_bits(vectors @ self._rotation > 0).T)

    def products(
        self, codes: NDArray[np.uint64], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return estimates of the products of a query with vectors of the length one.

        Where signs agree, the query's number counts for the vector, elsewhere against it. The
        numbers of a rotated vector are like random ones, and of these the sum of the sizes is
        the square root of 2/pi of the most it could be.
        """
        level, step = self._levels(np.abs(query @ self._rotation))
        apart = self.apart(codes, query)
        agreeing = np.float32(level.sum()) - 2.0 * apart.astype(np.float32)
        scale = step / (np.sqrt(self._side) * _MEAN_SIZE)
        estimates: NDArray[np.float32] = agreeing * np.float32(scale)
        return estimates

    @staticmethod
    def _levels(sizes: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
        """Return sizes in whole steps, and how large a step is."""
        step = float(_SIZE_TOP * sizes.mean() or 1.0) / _LEVELS
        return np.rint(sizes / step).clip(0, _LEVELS), step

    def apart(self, codes: NDArray[np.uint64], query: NDArray[np.float32]) -> NDArray[np.int16]:
        """Return how far each code is from a query; only the order of these numbers counts."""
        signs, small, large = self._bits_of(query)
        count = codes.shape[1]
        apart = np.zeros(count, np.int16)
        differ, some = np.empty((2, count), np.uint64)
        # At most 64 and twice 64 in a word: a byte holds the sum.
        of_large, of_small = np.empty((2, count), np.uint8)
        for word, sign, one, two in zip(codes, signs, small, large, strict=True):
            np.bitwise_xor(word, sign, out=differ)
            np.bitwise_count(np.bitwise_and(differ, two, out=some), out=of_large)
            np.bitwise_count(np.bitwise_and(differ, one, out=some), out=of_small)
            # Adding takes a tenth of the time that shifting does.
            of_small += of_large
            of_small += of_large
            apart += of_small
        return apart

    def nearest(
        self,
        codes: NDArray[np.uint64],
        rows: NDArray[np.int64],
        query: NDArray[np.float32],
        wanted: int,
    ) -> NDArray[np.int64]:
        """Return about as many of some rows as are wanted: those whose codes are nearest."""
        most = len(rows) * _MOST > codes.shape[1]
        apart = self.apart(codes if most else codes.take(rows, axis=1), query)
        if most and len(rows) < len(apart):
            apart = apart[rows]
        return rows[_lowest(apart, wanted)]

    def _bits_of(self, query: NDArray[np.float32]) -> NDArray[np.uint64]:
        """Return the signs of a query's numbers, and the two bits of their sizes."""
        turned = query @ self._rotation
        level, _step = self._levels(np.abs(turned))
        sizes = level.astype(np.uint8)
        return _pack_bits(np.stack((turned > 0, sizes & 1 > 0, sizes & 2 > 0)))


def _lowest(numbers: NDArray[np.int16], wanted: int) -> NDArray[np.int64]:
    """Return the places of the lowest numbers, about as many as are wanted.

    How many lie at each number is counted, which is three times as fast as sorting; of very many
    every eighth is.
    """
    every = _SAMPLED if len(numbers) > _SAMPLED_FROM else 1
    counts = np.bincount(numbers[::every]).cumsum()
    return np.flatnonzero(numbers <= int(np.searchsorted(counts, wanted / every)))


def _pack_bits(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    return np.packbits(bits, axis=1).view(np.uint64)


# The databases of a process have vectors of one length or two.
@lru_cache(maxsize=4)
def _make_rotation(side: int, dimensions: int) -> NDArray[np.float32]:
    spread = _random_signs(side, b"first") @ _random_signs(side, b"second")
    rotation = np.ascontiguousarray(spread[:dimensions]).astype(np.float32)
    rotation.setflags(write=False)
    return rotation


def _random_signs(side: int, seed: bytes) -> NDArray[np.float64]:
    """Return a Hadamard matrix whose rows have fixed, arbitrary signs."""
    matrix = np.ones((1, 1))
    while len(matrix) < side:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    digest = hashlib.shake_256(seed).digest(side // 8)
    signs = np.unpackbits(np.frombuffer(digest, np.uint8)) * 2.0 - 1.0
    flipped: NDArray[np.float64] = signs[:, np.newaxis] * matrix / np.sqrt(side)
    return flipped
