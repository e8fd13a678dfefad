"""Long texts, parted into passages.

Words are counted by the passage: in a text of several pages every word occurs somewhere, and the
whole would match any query. A hit is also displayed by its best passage. The borders of passages
depend on the text alone, so that a passage is identified by its number.

Passages of 60 to 150 words find equally well (`ranking`); these have about a hundred. A store
numbers only so many of a text: those of a very long one are longer, and once such a passage is
found, it is parted again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from stratagem import limits

__all__ = ["WHOLE_CHARS_MAX", "Span", "parts", "span_of"]

Span = tuple[int, int]

# Texts that are not much longer than a passage are left whole.
WHOLE_CHARS_MAX: Final = 720
_PASSAGE_CHARS: Final = 600
# How far before its place a border is looked for: the end of a line or of a sentence, or a space.
_BORDER_CHARS: Final = 120
_ENDS: Final = ("\n", ". ", "! ", "? ", "。")


def parts(text: str) -> list[Span]:
    """Return where each passage of a text begins and ends; none is lost between them."""
    length = min(len(text), limits.SEARCHED_CHARS_MAX)
    if length <= WHOLE_CHARS_MAX:
        return [(0, length)]
    count = min(-(-length // _PASSAGE_CHARS), limits.PASSAGES_MAX)
    borders = [0, *(_border(text, length * place // count) for place in range(1, count)), length]
    return list(pairwise(borders))


def span_of(text: str, passage: int) -> Span:
    """Return where a passage of a text begins and ends; the first, where there is none such."""
    found = parts(text)
    return found[passage] if passage < len(found) else found[0]


def _border(text: str, place: int) -> int:
    begin = place - _BORDER_CHARS
    after = max(text.rfind(end, begin, place) + len(end) for end in _ENDS)
    if after > begin:
        return after
    space = text.rfind(" ", begin, place)
    return space + 1 if space >= 0 else place
