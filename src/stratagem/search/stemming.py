"""One stem for the forms of a word, in the languages that Snowball knows.

A word is written in one script, and most scripts here stand for one language. Words in Latin
letters are stemmed by the rules of English, whatever their language: nothing in a single word says
which it is. Cyrillic ones are taken for Russian and Arabic ones for Arabic, unless a letter says
that they are Serbian or Persian; Ukrainian and Belarusian, which Snowball does not know, stay as
they are.

A stemmer must not be entered by two threads, so that each thread has its own. It is made when the
first word of its language comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import Stemmer

__all__ = ["stem"]

# From the first letter of a script to its last, and the language it is taken for.
_SCRIPTS: Final = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0531", "\u0587", "armenian"),
    ("\u0620", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
# Letters that only another language of the script has; no language: it has no stemmer.
_OTHER_LETTERS: Final = (
    ("russian", frozenset("ђјљњћџ"), "serbian"),
    ("russian", frozenset("іїєґў"), None),
    ("arabic", frozenset("پچژگ"), "persian"),
)


def stem(word: str) -> str:
    """Return what the forms of a word have in common; `word` is folded and in small letters."""
    if word.isascii():
        return _STEMMERS.english(word) if word.isalpha() else word
    language = _language_of(word)
    # Of a few Greek words (ίσες) the rules leave nothing.
    return (_STEMMERS.of(language)(word) or word) if language else word


def _language_of(word: str) -> str | None:
    language = next(
        (of for first, last, of in _SCRIPTS if first <= word[0] <= last and word[-1] <= last), None
    )
    for script, letters, other in _OTHER_LETTERS:
        if language == script and not letters.isdisjoint(word):
            return other
    return language


class _Stemmers(threading.local):
    """The stemmers of a thread. A lock around one for all threads takes as long as the stemming."""

    def __init__(self) -> None:
        self.english = _make_stemmer("english")
        self._others: dict[str, Callable[[str], str]] = {}

    def of(self, language: str) -> Callable[[str], str]:
        """Return the stemmer of a language."""
        made = self._others.get(language)
        if made is None:
            made = self._others[language] = _make_stemmer(language)
        return made


def _make_stemmer(language: str) -> Callable[[str], str]:
    # Its own cache is off, because analysis remembers whole chunks.
    stem_word: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord
    return stem_word


_STEMMERS: Final = _Stemmers()
