"""Sentences of a text, for tools that read text sentence by sentence."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["split_sentences", "words_of"]

# An end is followed by a blank; in scripts without blanks it stands alone.
_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]{0,3}(?=\s)|[\u3002\uff01\uff1f]|\n[ \t]*+\n"
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# An abbreviation before a full stop: the sentence goes on.
_ABBREVIATIONS: Final = frozenset(
    "dr mr mrs ms prof st sr jr vs etc e.g i.e approx no fig al inc corp ltd co cf ca u.s u.k "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_BLANKS: Final = re.compile(r"\s+")
# Long enough for the longest abbreviation.
_LAST_WORD_CHARS: Final = 12


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, each on one line."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if end[0] == "." and _goes_on(text, end.end()):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    found.append(text[start:])
    return [line for each in found if (line := _BLANKS.sub(" ", each).strip())]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.casefold() for word in _WORD.findall(text)]


def _goes_on(text: str, at: int) -> bool:
    """Whether a full stop ends no sentence: after an abbreviation or an initial."""
    last = text[max(0, at - 1 - _LAST_WORD_CHARS) : at - 1].split()
    word = last[-1].lstrip("(\"'").casefold() if last else ""
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return True
    following = text[at : at + 3].lstrip()
    return bool(following) and following[0].islower()
