"""Requests in other languages or in everyday words, as far as a small lexicon goes.

Most tools speak English, and not everybody who asks for one does. `lexicon.txt` has what tools are
often asked for in the languages that are asked in most. It is no translation: a request keeps its
own words, and the ones that are known count as the English ones too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Final

from stratagem.search.characters import fold

__all__ = ["fold_word", "known_phrases", "phrase", "translate"]

_EASTERN: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff66-\uff9f]+"  # kana, Han, Hangul
)
_EASTERN_CHARS_MAX: Final = 6
# What may be an ending, and how much has to be left before it.
_ENDING_CHARS_MAX: Final = 3
_STEM_CHARS_MIN: Final = 4


def fold_word(word: str) -> str:
    """Return a word as the lexicon spells it."""
    return fold(word).casefold()


def translate(word: str) -> tuple[str, ...]:
    """Return the English for a folded word, where it is known: for a compound, two words.

    A word with an ending is known by what comes before it.
    """
    known = _lexicon()
    if found := known.get(word):
        return (found,)
    for cut in range(len(word) - 1, _STEM_CHARS_MIN - 1, -1):
        first, rest = known.get(word[:cut]), word[cut:]
        second = known.get(rest) or known.get(rest.removeprefix("s"))
        if first and second:
            return first, second
        if first and len(rest) <= _ENDING_CHARS_MAX:
            return (first,)
    return ()


def phrase(words: Sequence[str]) -> str | None:
    """Return the English for a phrase of folded words."""
    return _lexicon().get("-".join(words))


def known_phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield the known phrases of a text in an East Asian script, each with its English."""
    known = _lexicon()
    for run in _EASTERN.finditer(text):
        at, end = run.span()
        while at < end:
            sizes = range(min(_EASTERN_CHARS_MAX, end - at), 0 if len(run[0]) == 1 else 1, -1)
            size = next((each for each in sizes if text[at : at + each] in known), 0)
            if size:
                yield text[at : at + size], known[text[at : at + size]]
            at += size or 1


@cache
def _lexicon() -> dict[str, str]:
    text = resources.files(__package__).joinpath("lexicon.txt").read_text("utf-8")
    found: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        english, _, others = line.partition(":")
        if line.startswith("#") or not others:
            continue
        for other in others.split():
            key = fold_word(other)
            # A word that means several things stands for all of them.
            meanings = found.setdefault(key, {})
            meanings.update(dict.fromkeys(english.split()))
    return {key: " ".join(meanings) for key, meanings in found.items()}
