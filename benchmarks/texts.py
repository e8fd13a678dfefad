"""Texts that look like what agents remember, the same ones in every run.

Words are drawn by Zipf's law from a list in order of frequency: the whole words that the
embedder's vocabulary holds, and after them compounds that it must take apart. So the commonest
words of a text are stop words, most words are rare, and one in fifty is unknown to the model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Final, Literal

import orjson

from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Query", "entries", "queries", "sentence", "words"]

Rarity = Literal["rare", "mid", "common"]

_SEED: Final = 20_240_501
_WORDS_PER_TEXT: Final = (12, 28)
_COMPOUNDS: Final = 10_000
_SHORT: Final = frozenset("a i of in to is he as it on at by be or an we no so up if my me do".split())
# Places in the list, stop words left out: in about 4 %, 0.5–1 % and under 0.1 % of the texts.
_RANKS: Final[dict[Rarity, tuple[int, int]]] = {
    "common": (0, 40),
    "mid": (200, 400),
    "rare": (2_000, 20_000),
}
_RARITIES: Final[tuple[Rarity, ...]] = ("rare", "mid", "common")


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and how rare its words are."""

    text: str
    rarity: str


@cache
def words() -> list[str]:
    """Return the word list, commonest first."""
    path = resources.files("stratagem.search") / "model" / "tokenizer.json"
    vocabulary = orjson.loads(path.read_bytes())["model"]["vocab"]
    known = [word for word in sorted(vocabulary, key=vocabulary.get) if _is_word(word)]
    draw = random.Random(_SEED)
    compounds = {a + b: None for a, b in (draw.sample(known[200:8_000], 2) for _ in range(_COMPOUNDS))}
    return known + [word for word in compounds if word not in vocabulary]


def entries(count: int, *, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield keys and texts; the n-th is the same whatever the count."""
    for number in range(start, start + count):
        draw = random.Random(_SEED + number)
        yield key_of(number), sentence(draw)


def key_of(number: int) -> str:
    """Return the key of the n-th entry."""
    topics = words()
    return f"{topics[200 + number % 3_000]}-{number}"


def sentence(draw: random.Random) -> str:
    """Return a text of about twenty words."""
    chosen = draw.choices(words(), cum_weights=_weights(), k=draw.randint(*_WORDS_PER_TEXT))
    chosen[0] = chosen[0].capitalize()
    middle = len(chosen) // 2
    chosen[middle] += draw.choice((",", ",", ".", " -", ""))
    return " ".join(chosen) + draw.choice((".", ".", "?", "!", ""))


def queries(count: int, rarities: Sequence[Rarity] = _RARITIES) -> list[Query]:
    """Return questions of two to four telling words, each rarity in turn."""
    telling = [word for word in words() if word not in STOP_WORDS]
    draw = random.Random(_SEED)
    asked = []
    for number in range(count):
        rarity = rarities[number % len(rarities)]
        low, high = _RANKS[rarity]
        asked.append(Query(" ".join(draw.sample(telling[low:high], draw.randint(2, 4))), rarity))
    return asked


@cache
def _weights() -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, len(words()) + 1)))


def _is_word(word: str) -> bool:
    return word.isascii() and word.isalpha() and (len(word) > 2 or word in _SHORT)
