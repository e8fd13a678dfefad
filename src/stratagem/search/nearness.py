"""How much nearer a text is to a query than texts that say nothing.

A cosine of .28 is much for one query and nothing for another: some are near to whatever they are
compared with. So the cosine of a short text is measured against those of words drawn at random,
in standard deviations from their mean. Two of them are a likeness; most random texts have less
than one. The key of an entry is compared by itself, too, and so is its last part (`city` of
`user/city`): it says what the value is.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.search.embedding import Embedder
from stratagem.search.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Nearness"]

_SEPARATOR: Final = re.compile(r"[/.:]")
_WORD: Final = re.compile(r"\w+")
_VARIANCE_MIN: Final = 1e-12
_IDENTICAL_COSINE: Final = 0.999
# Of nonsense one word in three is known by chance ("aaaa", "ttyl").
_KNOWN_SHARE: Final = 0.5


class Nearness:
    """Compares entries of a few words with one query."""

    def __init__(self, embedder: Embedder, query: str, vector: NDArray[np.float32]) -> None:
        self._embedder = embedder
        self._text = query
        self._query = vector
        self._usual: tuple[float, float] | None = None

    def of_cosine(self, cosine: float) -> float:
        """Return how far a cosine is above what is usual for the query.

        NaN where nobody knows what is usual, minus infinity where the query says nothing.
        """
        if cosine > _IDENTICAL_COSINE:
            # The same text is the same even where nobody knows its words.
            return math.inf
        mean, deviation = self._usual or self._measure()
        return (cosine - mean) / deviation

    def of_key(self, key: str) -> float:
        """Return how much nearer to the query a key, or its last part, is than is usual."""
        last = _SEPARATOR.split(key)[-1]
        parts = self._embedder.embed([key] if last == key else [key, last])
        return self.of_cosine(float((parts @ self._query).max()))

    def _measure(self) -> tuple[float, float]:
        """Return the mean and the standard deviation of the cosines of random texts."""
        if not self._is_understood():
            self._usual = math.inf, 1.0
        elif (usual := self._embedder.usual_vectors()) is None:
            self._usual = math.nan, 1.0
        else:
            mean, covariance = usual
            variance = float(self._query @ covariance @ self._query)
            self._usual = float(mean @ self._query), math.sqrt(max(variance, _VARIANCE_MIN))
        return self._usual

    def _is_understood(self) -> bool:
        """Whether half of the telling words are known: pieces of a word are near to anything."""
        words = _WORD.findall(self._text.casefold())
        telling = [word for word in words if word not in STOP_WORDS] or words
        known = sum(map(self._embedder.knows, telling))
        return known > 0 and known >= _KNOWN_SHARE * len(telling)
