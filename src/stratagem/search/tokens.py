"""The tokens of our own embedder, for callers who want to see or count them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from stratagem.errors import ValidationFailed
from stratagem.search.wordpiece import WordPiece

__all__ = ["NAME", "detokenize", "tokenize"]

NAME: Final = "stratagem-static"
_FILE: Final = Path(__file__).parent / "model" / "tokenizer.json"
# How a piece begins that goes on with the word before it.
_GOES_ON: Final = "##"


def tokenize(text: str) -> tuple[list[int], list[str]]:
    """Return the tokens of a text, by number and as the pieces they stand for."""
    numbers = _words().encode(text)
    pieces = _pieces()
    return numbers, [pieces[each] for each in numbers]


def detokenize(numbers: Sequence[int]) -> str:
    """Return the text that tokens stand for.

    Raises:
        ValidationFailed: A number is none of a token.
    """
    pieces = _pieces()
    words: list[str] = []
    for each in numbers:
        piece = pieces.get(each)
        if piece is None:
            raise ValidationFailed(
                f"No token has the number {each}.", field="tokens", limit=max(pieces)
            )
        if piece.startswith(_GOES_ON) and words:
            words[-1] += piece.removeprefix(_GOES_ON)
        else:
            words.append(piece)
    return " ".join(words)


@cache
def _words() -> WordPiece:
    return WordPiece.read(_FILE)


@cache
def _pieces() -> dict[int, str]:
    vocabulary: dict[str, int] = orjson.loads(_FILE.read_bytes())["model"]["vocab"]
    return {number: piece for piece, number in vocabulary.items()}
