"""The few words of a text that show why it was found.

The window is the one that holds most of the terms asked for, then most of their
occurrences, then the earliest. Only what is indexed is looked at, and of that no more than
the first thousand occurrences, so that the cost is bounded whatever the size of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from stratagem import limits
from stratagem.search.analysis import TermOccurrence, spans

__all__ = ["snippet"]

_CUT: Final = "…"
_MARK: Final = "**"
_MARKS_CHARS: Final = 2 * len(_MARK)
# What is left when both ends are cut.
_ROOM: Final = limits.SNIPPET_CHARS - 2 * len(_CUT)
# How far a cut is moved to spare a word; longer ones are blobs or have no spaces around.
_WORD_CHARS: Final = 32
_SPANS_MAX: Final = 1_000


def snippet(text: str, terms: Sequence[str]) -> str:
    """Return the part of a text that best shows the terms, each `**marked**`.

    White space is collapsed. The result has at most `limits.SNIPPET_CHARS` characters,
    marks included, and is the beginning of the text where no term occurs.
    """
    plain = " ".join(text[: limits.INDEXED_CHARS_MAX].split())
    found = list(islice(spans(plain, frozenset(terms)), _SPANS_MAX))
    first, last = _best(found)
    begin = _begin(plain, found[first:last])
    marked = _merge_overlaps(found[first:])
    end, shown = _end(plain, begin, marked)
    opening = _CUT if begin else ""
    closing = _CUT if end < len(plain) or len(text) > limits.INDEXED_CHARS_MAX else ""
    return opening + _render(plain, begin, end, shown) + closing


def _best(found: Sequence[TermOccurrence]) -> tuple[int, int]:
    """Return which spans, from and to, make the best window."""
    best, best_rank = (0, 0), (0, 0)
    inside: Counter[str] = Counter()
    last = 0
    for first, span in enumerate(found):
        while last < len(found) and _width(found, first, last) <= _ROOM:
            inside[found[last].term] += 1
            last += 1
        rank = (len(inside), last - first)
        if rank > best_rank:
            best, best_rank = (first, last), rank
        inside[span.term] -= 1
        if not inside[span.term]:
            del inside[span.term]
    return best


def _width(found: Sequence[TermOccurrence], first: int, last: int) -> int:
    """Return the room that spans take, both included. None is ever too wide by itself."""
    if first == last:
        return 0
    return found[last].end - found[first].start + (last - first + 1) * _MARKS_CHARS


def _begin(plain: str, window: Sequence[TermOccurrence]) -> int:
    """Return where to begin: with a little of what comes before the first match."""
    if not window:
        return 0
    start = window[0].start
    slack = _ROOM - _width(window, 0, len(window) - 1)
    begin = start - min(slack // 3, _ROOM // 3)
    # A text that fits to its end is shown to its end.
    begin = max(0, min(begin, start, len(plain) - _ROOM + len(window) * _MARKS_CHARS))
    if begin == 0 or plain[begin - 1] == " ":
        return begin
    border = plain.find(" ", begin, min(start, begin + _WORD_CHARS))
    return border + 1 if border >= 0 else begin


def _merge_overlaps(found: Sequence[TermOccurrence]) -> list[tuple[int, int]]:
    """Return the spans as marks, those that touch or overlap as one."""
    marks: list[tuple[int, int]] = []
    for span in found:
        if marks and span.start <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(marks[-1][1], span.end))
        else:
            marks.append((span.start, span.end))
    return marks


def _end(
    plain: str, begin: int, marks: Sequence[tuple[int, int]]
) -> tuple[int, list[tuple[int, int]]]:
    """Return where to end, and the marks that fit until there."""
    end = begin + _ROOM
    shown: list[tuple[int, int]] = []
    for start, stop in marks:
        # A match that is wider than any window is marked as far as it is shown.
        fitting = min(stop, end - _MARKS_CHARS) if stop - start > _ROOM // 2 else stop
        if fitting + _MARKS_CHARS > end or fitting <= start:
            break
        shown.append((start, fitting))
        end -= _MARKS_CHARS
    if end >= len(plain):
        return len(plain), shown
    kept = max(shown[-1][1] if shown else begin, end - _WORD_CHARS)
    border = plain.rfind(" ", kept, end + 1)
    return (border if border >= 0 else end), shown


def _render(plain: str, begin: int, end: int, marks: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    for start, stop in marks:
        parts += (plain[begin:start], _MARK, plain[start:stop], _MARK)
        begin = stop
    return "".join((*parts, plain[begin:end]))
