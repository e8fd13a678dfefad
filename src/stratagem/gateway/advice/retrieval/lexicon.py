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
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["FUNCTION_WORDS", "fold_word", "known_phrases", "phrase", "translate"]

# Words that only build sentences, of the languages with Latin letters in the lexicon, folded.
_FUNCTION_WORDS: Final = """
    der die das den dem des ein eine einen einem einer und oder ich du er sie es wir ihr mir mich
    ist sind war wie wo wer von nach fur mit im am auf aus bei zu zum zur bitte nicht auch mein
    meine meinen alle wird werden kann soll diese diesen dieser dieses ins
    el la los las un una unos unas y o de del al en que cual como donde por para con sin mi mis su
    es son esta este estos quiero puedes podrias favor hay hace se lo le
    le les une et ou du au aux je tu il elle nous vous mon ma mes ton ta ce cet cette ces est sont
    quel quelle comment pour avec sans dans sur moi fait-il veux peux
    os as um uma uns umas do da dos das no na nos nas em meu minha qual quero pode voce por
    gli uno e di dei della delle nel nella che mio mia vorrei puoi per favore
    het een en van voor met naar ik je mijn wat hoe waar zijn niet deze dit
    w z na do jest sie jak gdzie mi moj moja prosze dla ten ta
    bir bu su ve ile icin nasil nedir ne mi benim bana lutfen
    toi cua cho va la co khong mot nhung trong tu
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split()) - STOP_WORDS

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
