"""Our embedder without NumPy: one short text, compared with a few stored vectors.

Importing NumPy, and reading a vocabulary of 46,000 words, each take longer than a hook may run. A
prompt has twenty words: each is looked for in the text of the vocabulary's file, and only the rows
of those that are there are read from the table. The vector is the one that `embedding` makes.
"""

from __future__ import annotations

import math
import mmap
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import mul
from typing import Final

from stratagem.search.static_tokens import (
    DIMENSIONS,
    MODEL_ARCHIVE,
    MODEL_TOKENIZER,
    ROOTS,
    TEXT_CHARS_MAX,
    TOKENS_MAX,
    chunk_ids,
)
from stratagem.search.wordpiece import WordPiece

__all__ = ["cosine", "embed_text"]

_UNKNOWN: Final = "[UNK]"
_PREFIX: Final = "##"
_WORD_CHARS_MAX: Final = 100
# Where the arrays lie in the archive, which is not compressed; a test compares with NumPy.
_TABLE_OFFSET: Final = 187
_SCALE_OFFSET: Final = 11_750_262
# What is looked for in vain at most: a word that the vocabulary lacks is, piece by piece.
_MISSES_MAX: Final = 60


class _VocabularyText(Mapping[str, int]):
    """The vocabulary, as it stands in the tokenizer's file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._begin = data.index(b'"vocab"')
        self._missing: set[str] = set()

    def __getitem__(self, token: str) -> int:
        if token in self._missing or '"' in token or "\\" in token:
            raise KeyError(token)
        if len(self._missing) >= _MISSES_MAX:
            raise KeyError(token)
        name = b'"%s": ' % token.encode()
        at = self._data.find(name, self._begin)
        if at < 0:
            self._missing.add(token)
            raise KeyError(token)
        number = self._data[at + len(name) : at + len(name) + 8]
        return int(number.partition(b",")[0].partition(b"}")[0])

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def embed_text(text: str) -> array[float] | None:
    """Return the vector of a text, of length one; None where no token is known."""
    with open(MODEL_TOKENIZER, "rb") as file:
        vocabulary = _VocabularyText(file.read())
    words = WordPiece(vocabulary, unknown=_UNKNOWN, prefix=_PREFIX, chars_max=_WORD_CHARS_MAX)
    counts = _count_tokens(text, words)
    if not counts:
        return None
    total = [0.0] * DIMENSIONS
    with (
        open(MODEL_ARCHIVE, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        for token, count in counts.items():
            row = array("b", data[_row(token)])
            weight = ROOTS[count] * _scale(data, token)
            total = [had + weight * each for had, each in zip(total, row, strict=True)]
    length = math.sqrt(sum(map(mul, total, total)))
    return array("f", [each / length for each in total]) if length else None


def cosine(one: array[float], other: bytes) -> float:
    """Return the cosine of a vector and a stored one; NaN where that is not of its kind."""
    if len(other) != 4 * len(one):
        return math.nan
    total: float = sum(map(mul, one, array("f", other)))
    return total


def _count_tokens(text: str, words: WordPiece) -> dict[int, int]:
    """Return how often each known token is among the first ones of a text."""
    tokens = (id_ for chunk in text[:TEXT_CHARS_MAX].split() for id_ in chunk_ids(chunk, words))
    counts = Counter(islice(tokens, TOKENS_MAX))
    del counts[words.unknown_id]
    return counts


def _row(token: int) -> slice:
    begin = _TABLE_OFFSET + token * DIMENSIONS
    return slice(begin, begin + DIMENSIONS)


def _scale(data: mmap.mmap, token: int) -> float:
    begin = _SCALE_OFFSET + 4 * token
    return array("f", data[begin : begin + 4])[0]
