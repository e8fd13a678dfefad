"""Words as they were meant: the nearest one that some tool uses.

Two words are near when leaving out one letter of each, or of either, makes them equal: that is one
letter too many, too few, another one, or two in the wrong order.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

__all__ = ["Spelling"]

# Of shorter words too many are near each other.
_CHARS_MIN: Final = 5
_CHARS_MAX: Final = 24
_WORD: Final = re.compile(r"[a-z]{4,24}")


class Spelling:
    """The words of some texts, and how many of them have each."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._near: dict[str, list[str]] = {}

    def add(self, text: str) -> None:
        """Learn the words of a text."""
        for word in _words(text):
            self._counts[word] += 1
            if self._counts[word] == 1:
                for each in _deletions(word):
                    self._near.setdefault(each, []).append(word)

    def remove(self, text: str) -> None:
        """Forget the words of a text that no other text has."""
        for word in _words(text):
            self._counts[word] -= 1
            if not self._counts[word]:
                del self._counts[word]
                for each in _deletions(word):
                    self._near[each].remove(word)

    def nearest(self, word: str) -> str | None:
        """Return the word that was meant, if one is near: the commonest.

        Hardly anybody gets the first letter wrong, and another one makes another word.
        """
        if not (_CHARS_MIN <= len(word) <= _CHARS_MAX and word.isascii() and word.isalpha()):
            return None
        near = {
            other
            for each in _deletions(word)
            for other in self._near.get(each, ())
            if other[0] == word[0]
        }
        return max(near, key=lambda other: (self._counts[other], other), default=None)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _deletions(word: str) -> set[str]:
    """Return a word, and the word without each of its letters."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}
