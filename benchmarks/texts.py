"""Texts that look like what agents remember, the same ones in every run.

Words are drawn by Zipf's law from a list in order of frequency: the whole words that the
embedder's vocabulary holds, and after them compounds that it must take apart. So the commonest
words of a text are stop words, most words are rare, and one in fifty is unknown to the model.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Final, Literal

import orjson

from stratagem.search.analysis import query_terms
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Query", "Rarity", "entries", "key_of", "queries", "words"]

Rarity = Literal["rare", "mid", "common"]

_SEED: Final = 20_240_501
_WORDS_PER_TEXT: Final = (12, 28)
_WORDS_MEAN: Final = 20
_COMPOUNDS: Final = 10_000
_SHORT: Final = re.compile("a|i|of|in|to|is|he|as|it|on|at|by|be|or|an|we|no|so|up|if|my|me|do")
# In which share of the texts the words of a query are.
_SHARES: Final[dict[Rarity, tuple[float, float]]] = {
    "common": (0.012, 0.2),
    "mid": (0.002, 0.009),
    "rare": (0.000_02, 0.001),
}
_RARITIES: Final[tuple[Rarity, ...]] = ("rare", "mid", "common")


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and how rare its words are."""

    text: str
    rarity: Rarity


@cache
def words() -> list[str]:
    """Return the word list, commonest first."""
    path = resources.files("stratagem.search") / "model" / "tokenizer.json"
    vocabulary: dict[str, int] = orjson.loads(path.read_bytes())["model"]["vocab"]
    known = [word for word in sorted(vocabulary, key=lambda word: vocabulary[word]) if _fits(word)]
    draw = random.Random(_SEED)
    pairs = (draw.sample(known[200:8_000], 2) for _ in range(_COMPOUNDS))
    compounds = dict.fromkeys("".join(pair) for pair in pairs)
    return known + [word for word in compounds if word not in vocabulary]


def entries(count: int, *, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield keys and texts; the n-th is the same whatever the count."""
    for number in range(start, start + count):
        yield key_of(number), _sentence(random.Random(_SEED + number))


def key_of(number: int) -> str:
    """Return the key of the n-th entry."""
    return f"{words()[200 + number % 3_000]}-{number}"


def queries(count: int, rarities: Sequence[Rarity] = _RARITIES) -> list[Query]:
    """Return questions of two to four telling words, each rarity in turn."""
    draw = random.Random(_SEED)
    asked = []
    for number in range(count):
        rarity = rarities[number % len(rarities)]
        chosen = draw.sample(_words_of(rarity), draw.randint(2, 4))
        asked.append(Query(" ".join(chosen), rarity))
    return asked


def _sentence(draw: random.Random) -> str:
    """Return a text of about twenty words."""
    chosen = draw.choices(words(), cum_weights=_weights(), k=draw.randint(*_WORDS_PER_TEXT))
    chosen[0] = chosen[0].capitalize()
    middle = len(chosen) // 2
    chosen[middle] += draw.choice((",", ",", ".", " -", ""))
    return " ".join(chosen) + draw.choice((".", ".", "?", "!", ""))


@cache
def _weights() -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, len(words()) + 1)))


@cache
def _words_of(rarity: Rarity) -> list[str]:
    """Return the words whose term is in such a share of the texts."""
    low, high = _SHARES[rarity]
    by_term = _words_by_term()
    total = _weights()[-1]
    found = []
    for term, (first, weight) in by_term.items():
        share = 1 - (1 - weight / total) ** _WORDS_MEAN
        if low <= share <= high and term not in STOP_WORDS:
            found.append(first)
    return found


@cache
def _words_by_term() -> dict[str, tuple[str, float]]:
    """Return for each indexed term its commonest word, and the weight of all of its words."""
    firsts: dict[str, str] = {}
    weights: dict[str, float] = defaultdict(float)
    for rank, word in enumerate(words(), start=1):
        term = query_terms(word)[0]
        firsts.setdefault(term, word)
        weights[term] += 1 / rank
    return {term: (first, weights[term]) for term, first in firsts.items()}


def _fits(word: str) -> bool:
    return word.isascii() and word.isalpha() and (len(word) > 2 or bool(_SHORT.fullmatch(word)))
