"""The few words of a text that show why it was found.

A long text is shown by its passage that matches best, so that the rest of it is never looked at.
Within that, the window is the one that holds most of the terms asked for, then most of their
occurrences, then the earliest. Only what is indexed is looked at, and of that no more than
the first thousand occurrences, so that the cost is bounded whatever the size of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.search.analysis import AskedTerms, TermOccurrence, find, find_terms
from stratagem.search.passages import WHOLE_CHARS_MAX, Span, parts, span_of

__all__ = ["Excerpt", "best_excerpt", "excerpt", "is_cut", "snippet"]

_CUT: Final = "…"
_MARK: Final = "**"
_MARKS_CHARS: Final = 2 * len(_MARK)
# How far a cut is moved to spare a word; longer ones are blobs or have no spaces around.
_WORD_CHARS: Final = 32
_SPANS_MAX: Final = 1_000
# Bold words of Markdown, whose marks would be taken for those of matches; no path (`src/**/x`) and
# no power (`2**3**4`).
_BOLD: Final = re.compile(r"(?<![^\s(\[\"'])\*\*(?=\w)([^*]++)(?<=[\w.!?:)%])\*\*(?!\w)")


class Excerpt(NamedTuple):
    """The displayed part of a text: its best passage, the words around matches, the matched terms.

    `passage` is None where the text is short enough to be shown whole. `begin` is where it begins.
    """

    passage: str | None
    snippet: str
    terms: set[str]
    begin: int = 0


def excerpt(
    text: str, terms: AskedTerms, passage: int | None, *, chars_max: int = limits.SNIPPET_CHARS
) -> Excerpt:
    """Return what to show of a text whose words match best in a passage; None: in none."""
    if len(text) <= WHOLE_CHARS_MAX:
        window = _Window(text, terms, chars_max)
        return Excerpt(None, window.render(before=False, after=False), window.terms)
    return _cut_out(text, _narrow(text, span_of(text, passage or 0), terms), terms, chars_max)


def best_excerpt(text: str, terms: AskedTerms) -> Excerpt:
    """Return what to show of a text that is indexed whole: its part with most of the terms."""
    return _cut_out(text, _narrow(text, (0, len(text)), terms), terms, limits.SNIPPET_CHARS)


def _cut_out(text: str, span: Span, terms: AskedTerms, chars_max: int) -> Excerpt:
    begin, end = span
    part = text[begin:end]
    window = _Window(part, terms, chars_max)
    shown = window.render(before=begin > 0, after=end < len(text))
    whole = begin == 0 and end == len(text)
    begin += len(part) - len(part.lstrip())
    return Excerpt(None if whole else part.strip(), shown, window.terms, begin)


def _narrow(text: str, span: Span, terms: AskedTerms) -> Span:
    """Return the part of a passage with most of some terms, of equals the first.

    In a passage of several pages most words occur somewhere, so that it would match any query.
    """
    begin, end = span
    found = parts(text[begin:end])
    if len(found) == 1:
        return span
    counts = [len(find_terms(text[begin + first : begin + last], terms)) for first, last in found]
    first, last = found[counts.index(max(counts))]
    return begin + first, begin + last


def snippet(text: str, terms: Collection[str], *, chars_max: int = limits.SNIPPET_CHARS) -> str:
    """Return the part of a text that best shows the terms, each `**marked**`.

    White space is collapsed. The result has at most `chars_max` characters, marks included,
    and is the beginning of the text where no term occurs.
    """
    window = _Window(text[: limits.INDEXED_CHARS_MAX], AskedTerms(terms), chars_max)
    return window.render(before=False, after=len(text) > limits.INDEXED_CHARS_MAX)


def is_cut(text: str, shown: str) -> bool:
    """Whether a snippet of a text leaves out some of it."""
    plain = _collapse(text)
    return plain.replace(_MARK, "") != shown.replace(_MARK, "")


def _collapse(text: str) -> str:
    """Return a text on one line, without the marks of words that are bold."""
    plain = " ".join(text.split())
    return _BOLD.sub(r"\1", plain) if _MARK in plain else plain


class _Window:
    """The part of a text that best shows some terms."""

    def __init__(self, text: str, terms: AskedTerms, chars_max: int) -> None:
        self._plain = _collapse(text)
        # What is left when both ends are cut.
        self._room = chars_max - 2 * len(_CUT)
        self._found, self.terms = find(self._plain, terms, most=_SPANS_MAX)

    def render(self, *, before: bool, after: bool) -> str:
        """Return the window; `before` and `after` say that the text goes on beyond the plain."""
        plain, room = self._plain, self._room
        if len(plain) + len(self._found) * _MARKS_CHARS <= room:
            whole = _render(plain, 0, len(plain), _merge_overlaps(self._found))
            return f"{_CUT if before else ''}{whole}{_CUT if after else ''}"
        first, last = _best(self._found, room)
        begin = _begin(plain, self._found[first:last], room)
        marked = _merge_overlaps(self._found[first:])
        end, shown = _end(plain, begin, marked, room)
        opening = _CUT if begin or before else ""
        closing = _CUT if end < len(plain) or after else ""
        return opening + _render(plain, begin, end, shown) + closing


def _best(found: Sequence[TermOccurrence], room: int) -> tuple[int, int]:
    """Return which spans, from and to, make the best window."""
    best, best_rank = (0, 0), (0, 0)
    inside: Counter[str] = Counter()
    last = 0
    for first, span in enumerate(found):
        while last < len(found) and _width(found, first, last) <= room:
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


def _begin(plain: str, window: Sequence[TermOccurrence], room: int) -> int:
    """Return where to begin: with a little of what comes before the first match."""
    if not window:
        return 0
    start = window[0].start
    slack = room - _width(window, 0, len(window) - 1)
    begin = start - min(slack // 3, room // 3)
    # A text that fits to its end is shown to its end.
    begin = max(0, min(begin, start, len(plain) - room + len(window) * _MARKS_CHARS))
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
    plain: str, begin: int, marks: Sequence[tuple[int, int]], room: int
) -> tuple[int, list[tuple[int, int]]]:
    """Return where to end, and the marks that fit until there."""
    end = begin + room
    shown: list[tuple[int, int]] = []
    for start, stop in marks:
        # A match that is wider than any window is marked as far as it is shown.
        fitting = min(stop, end - _MARKS_CHARS) if stop - start > room // 2 else stop
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
