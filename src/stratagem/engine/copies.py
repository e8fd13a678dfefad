"""Whether a record still quotes what was erased.

Content that is to be erased was also read and returned by calls, so records of calls hold copies of
it. A copy is recognised in four ways, each with a minimum length that rules out coincidence:

* a piece of an erased text, of at least `PIECE_CHARS` characters (or not much less), wherever it
  stands: search answers with passages;
* a shorter erased text, if not a very short one, as a part of another text;
* an erased text or number as a separate value, unless it is so short that it means nothing;
* the key of the erased record as a separate value: a record that names the key may be about it.

Texts nested in other texts (JSON in an answer's body) are compared in their escaped form too. A
copy that was translated, summarised or encoded is not recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

__all__ = ["PART_CHARS", "PIECE_CHARS", "WHOLE_CHARS", "Copies"]

# A piece this long is hardly there by chance, and a passage of a search is longer.
PIECE_CHARS: Final = 24
# Windows of this length are looked up at every so many characters: within a piece of
# `PIECE_CHARS` one of them always lies whole.
_WINDOW: Final = 16
_STRIDE: Final = PIECE_CHARS - _WINDOW + 1
# Shorter than this, a text is a word that many records have.
PART_CHARS: Final = 8
# So many are looked for one by one. Of more, what begins at each place of a text is looked up.
_FEW_PARTS: Final = 100
# Shorter still, a text means nothing even as a separate value: "yes", "42".
WHOLE_CHARS: Final = 4


class Copies:
    """The erased content to look for: the values of a record's versions, and its key."""

    def __init__(self, values: Iterable[Any], names: Iterable[str] = ()) -> None:
        texts = {form for value in values for leaf in _leaves(value) for form in _forms(leaf)}
        self._wholes = {text for text in texts if len(text) >= WHOLE_CHARS} | set(names)
        self._parts = {text for text in texts if PART_CHARS <= len(text) < PIECE_CHARS}
        # How long the parts are that begin so.
        self._lengths: dict[str, set[int]] = {}
        for part in self._parts:
            self._lengths.setdefault(part[:PART_CHARS], set()).add(len(part))
        self._windows = {
            text[at : at + _WINDOW]
            for text in texts
            if len(text) >= PIECE_CHARS
            for at in range(len(text) - _WINDOW + 1)
        }

    def __bool__(self) -> bool:
        """Whether there is anything that could be recognised."""
        return bool(self._wholes)

    def quoted_in(self, value: Any) -> bool:
        """Whether any text or number inside of JSON quotes what was erased, or names it."""
        return any(
            leaf in self._wholes or self._has_part(leaf) or self._has_piece(leaf)
            for leaf in _leaves(value)
        )

    def quoted_at_length(self, value: Any) -> bool:
        """Whether JSON quotes what was erased by more than a name or a single word."""
        return any(self._has_part(leaf) or self._has_piece(leaf) for leaf in _leaves(value))

    def _has_part(self, text: str) -> bool:
        if len(self._parts) <= _FEW_PARTS:
            return any(part in text for part in self._parts)
        return any(
            text[at : at + length] in self._parts
            for at in range(len(text) - PART_CHARS + 1)
            for length in self._lengths.get(text[at : at + PART_CHARS], ())
        )

    def _has_piece(self, text: str) -> bool:
        if not self._windows or len(text) < _WINDOW:
            return False
        last = len(text) - _WINDOW
        return any(
            text[at : at + _WINDOW] in self._windows for at in (*range(0, last, _STRIDE), last)
        )


def _leaves(value: Any) -> Iterator[str]:
    """Yield every text inside of JSON, names of fields too, and every number as a text."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield orjson.dumps(each).decode()


def _forms(text: str) -> Iterator[str]:
    """Yield a text, and the text as it stands inside of JSON that is itself a text."""
    yield text
    escaped = orjson.dumps(text).decode()[1:-1]
    if escaped != text:
        yield escaped
