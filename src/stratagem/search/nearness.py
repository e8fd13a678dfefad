"""How much nearer a text is to a query than random texts are.

A cosine of .28 is high for one query and low for another: some queries are near to any text. So the
cosine of a short text is measured against those of words drawn at random, in standard deviations
from their mean. Two of them are a likeness; most random texts have less than one. The key of an
entry is compared by itself, too, and so is its last part (`city` of `user/city`): it says what the
value is. What else the query says of its answer is in `questions`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.search.embedding import Embedder, VectorMoments
from stratagem.search.function_words import is_foreign
from stratagem.search.questions import Question, content_words, is_number, telling_words
from stratagem.search.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Nearness"]

_SEPARATOR: Final = re.compile(r"[/.:]")
_VARIANCE_MIN: Final = 1e-12
_IDENTICAL_COSINE: Final = 0.999
# Of nonsense one word in three is known by chance ("aaaa", "ttyl").
_KNOWN_SHARE: Final = 0.5
# Of a short text most words may be names; of one in another language one word in six is known.
_KNOWN_SHARE_OF_TEXT: Final = 0.3

# A logged event has no key.
_KeyAndText = tuple[str | None, str]


class Nearness:
    """Compares entries of a few words with one query."""

    def __init__(self, embedder: Embedder, query: str, vector: NDArray[np.float32]) -> None:
        self._embedder = embedder
        self._text = query
        self._query = vector
        self._usual: tuple[float, float] | None = None
        self._word_vectors: _WordVectors | None = None
        self._entries: dict[_KeyAndText, _EmbeddedEntry] = {}

    @cached_property
    def question(self) -> Question:
        """What the query asks for."""
        return Question(self._text, self._embedder.rank)

    @cached_property
    def is_foreign(self) -> bool:
        """Whether the query is in a language other than the embedder's: only words count."""
        return self._embedder.usual_vectors() is not None and is_foreign(self._text)

    def of_cosine(self, cosine: float) -> float:
        """Return how far a cosine is above the mean for random texts, in standard deviations.

        NaN if that mean is unknown, minus infinity if the query has no meaning.
        """
        if cosine > _IDENTICAL_COSINE:
            # The same text is the same even where nobody knows its words.
            return math.inf
        mean, deviation = self._usual or self._measure()
        return (cosine - mean) / deviation

    def says_something(self, text: str) -> bool:
        """Whether the cosine of a text says anything about its meaning.

        It does not where the query is made of stop words alone or is in another language, or where
        most words of the text are not known: then that is, and its pieces are near to anything.
        """
        if self._opinion is not None:
            return self._opinion
        # Mostly the words between spaces show it already, in a third of the time.
        words = [word for word in text.casefold().split() if word not in STOP_WORDS]
        share = _KNOWN_SHARE_OF_TEXT
        return self._knows(words, share) or self._knows(content_words(text), share)

    def embed(self, entries: Iterable[_KeyAndText]) -> None:
        """Embed entries that are compared next: all at once take little more than one of them."""
        usual = self._embedder.usual_vectors()
        parts: list[tuple[_KeyAndText, list[str], list[str]]] = []
        texts: list[str] = []
        for key, text in entries:
            keys = [] if key is None else _parts_of_key(key)
            words = [] if usual is None else telling_words(text)
            parts.append(((key, text), keys, words))
            texts += keys
            texts += words
        if usual is not None and self._word_vectors is None:
            texts += self.question.words
        rows = self._embedder.embed_words(texts)
        begin = 0
        for entry, keys, words in parts:
            middle = begin + len(keys)
            end = middle + len(words)
            self._entries[entry] = _EmbeddedEntry(rows[begin:middle], words, rows[middle:end])
            begin = end
        if usual is not None and self._word_vectors is None:
            self._word_vectors = _WordVectors(rows[begin:], usual)

    def of_key(self, key: str, text: str) -> float:
        """Return how much nearer to the query a key, or its last part, is than is usual.

        `text` is that of the entry, whose words are mostly compared next.
        """
        return self.of_cosine(float((self._vectors_of(key, text).keys @ self._query).max()))

    def of_words(self, text: str, key: str | None = None) -> dict[str, float]:
        """Return how near the nearest word of a text is to each telling word of the query."""
        _, words, rows = self._vectors_of(key, text)
        if self._word_vectors is None or not words:
            return dict.fromkeys(self.question.words, -math.inf)
        nearest = self._word_vectors.nearest(rows)
        return {
            # Numbers mean much alike to the embedder.
            asked: near if not is_number(asked) else math.inf if asked in words else -math.inf
            for asked, near in zip(self.question.words, nearest, strict=True)
        }

    def _vectors_of(self, key: str | None, text: str) -> _EmbeddedEntry:
        entry = (key, text)
        if entry not in self._entries:
            self.embed([entry])
        return self._entries[entry]

    def _measure(self) -> tuple[float, float]:
        """Return the mean and the standard deviation of the cosines of random texts."""
        if not self._is_understood:
            self._usual = math.inf, 1.0
        elif (usual := self._embedder.usual_vectors()) is None:
            self._usual = math.nan, 1.0
        else:
            mean, covariance = usual
            variance = float(self._query @ covariance @ self._query)
            self._usual = float(mean @ self._query), math.sqrt(max(variance, _VARIANCE_MIN))
        return self._usual

    @cached_property
    def _opinion(self) -> bool | None:
        """Whether cosines say anything about any text; None where that depends on the text."""
        if self._embedder.usual_vectors() is None:
            return True
        if STOP_WORDS.issuperset(self.question.words) or self.is_foreign:
            return False
        # Both may be in the same other script.
        return None if self._is_understood else True

    @cached_property
    def _is_understood(self) -> bool:
        words = self.question.words
        if STOP_WORDS.issuperset(words) or self.is_foreign:
            return False
        return self._knows(words, _KNOWN_SHARE)

    def _knows(self, words: Sequence[str], share: float) -> bool:
        """Whether a share of some words are known: pieces of a word are near to anything."""
        return self._embedder.knows(words, max(share * len(words), 1))


class _EmbeddedEntry(NamedTuple):
    """The vectors of a key and its last part, the telling words of a text, and their vectors."""

    keys: NDArray[np.float32]
    words: list[str]
    rows: NDArray[np.float32]


class _WordVectors:
    """The vectors of a query's words, and how near random texts are to each."""

    def __init__(self, vectors: NDArray[np.float32], usual: VectorMoments) -> None:
        self._vectors = vectors
        self._means = vectors @ usual.mean
        variances = ((vectors @ usual.covariance) * vectors).sum(axis=1)
        self._deviations = np.sqrt(np.maximum(variances, _VARIANCE_MIN))

    def nearest(self, others: NDArray[np.float32]) -> list[float]:
        """Return how far above what is usual the highest cosine of each word is."""
        highest = (self._vectors @ others.T).max(axis=1)
        nearness: list[float] = ((highest - self._means) / self._deviations).tolist()
        return nearness


def _parts_of_key(key: str) -> list[str]:
    last = _SEPARATOR.split(key)[-1]
    return [key] if last == key else [key, last]
