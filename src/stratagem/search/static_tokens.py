"""From a text to the tokens of our embedder.

Apart from `embedding`, so that a hook can embed one prompt without NumPy (`plain_embedding`).
"""

from __future__ import annotations

import math
import os
import re
from itertools import chain
from typing import Final

from stratagem.search.wordpiece import WordPiece

__all__ = [
    "DIMENSIONS",
    "MODEL_ARCHIVE",
    "MODEL_NAME",
    "MODEL_TOKENIZER",
    "ROOTS",
    "TEXT_CHARS_MAX",
    "TOKENS_MAX",
    "chunk_ids",
]

_MODEL: Final = os.path.join(os.path.dirname(__file__), "model")
MODEL_ARCHIVE: Final = os.path.join(_MODEL, "model.npz")
MODEL_TOKENIZER: Final = os.path.join(_MODEL, "tokenizer.json")
# The start of the SHA-256 of model.npz and of tokenizer.json; a test compares.
MODEL_NAME: Final = "stratagem-static-1:656d1a9b+c655cb7a"
DIMENSIONS: Final = 256
TOKENS_MAX: Final = 256
# Far more text than 256 tokens are made of: the rest of a long one is not even looked at.
TEXT_CHARS_MAX: Final = 8_192
# camelCase | letter-digit | digit-letter | snake_case
_BORDER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|_")
# What is between borders in ASCII: words, numbers, and each mark but the low line.
_ASCII_WORD: Final = re.compile(r"[A-Z]+[a-z]*|[a-z]+|[0-9]+|[!-/:-@\[-^`{-~]")
# What sentences and their parts end in: tokens by themselves.
_MARKS: Final = ".,;:!?"
# What a token that occurs n times counts.
ROOTS: Final = [math.sqrt(count) for count in range(TOKENS_MAX + 1)]


def chunk_ids(chunk: str, words: WordPiece) -> tuple[int, ...]:
    """Return the tokens of what stands between two spaces."""
    # Most chunks are a word with no border in it, and many of the others end in a mark.
    if _is_plain_word(chunk):
        return words.encode_word(chunk.lower())
    if chunk[-1] in _MARKS and _is_plain_word(chunk[:-1]):
        return words.encode_word(chunk[:-1].lower()) + words.encode_word(chunk[-1])
    if chunk.isascii() and chunk.isprintable():
        found = _ASCII_WORD.findall(chunk)
        return tuple(chain.from_iterable(map(words.encode_word, map(str.lower, found))))
    return tuple(words.encode(_BORDER.sub(" ", chunk)))


def _is_plain_word(chunk: str) -> bool:
    return chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk.istitle())
