"""How well a hit answers by itself, whatever else was found.

The scores that order hits are relative to the best one (`ranking`), so the best of several bad hits
looks good. This score is absolute: it combines the share of the query's words that a hit has,
weighted by rarity, and the similarity of meaning. 1 means that it has every word, or the same
meaning; 0 that it has nothing to do with the query.

    score = 1 - (1 - words covered) · (1 - likeness of meaning)

An entry of a few words (`city`: Oslo) shares none with the question that it answers, and its
cosine is low. Its likeness is how much nearer it and its key are to the query than random words
are (`nearness`), and whether it is what the query asks for (`questions`). That is never certain:
what is nearest to a question about a sister may be about a father. A concept, which is asked for in
other words than explain it, is judged by its nearness, too.

A query about something that was never stored still shares a word with some text, and no two texts
are wholly unlike. Below a floor, which depends on the kind of text, a hit is none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from heapq import nlargest
from typing import Final

__all__ = [
    "CONTEXT_SHARE",
    "EVENT_NEARNESS",
    "FLOORS",
    "NEAR_CONCEPT_FLOOR",
    "SHORT_CHARS_MAX",
    "TERMS_ENOUGH",
    "UNSURE",
    "Coverage",
    "floor",
    "likeness",
    "likeness_by_nearness",
    "score",
    "short_likeness",
]

# The cosine of texts that have nothing in common, and of texts that say the same.
_UNLIKE_COSINE: Final = 0.25
_SAME_COSINE: Final = 0.85
# The same for the nearness of texts, and for that of short ones with what the query asks for.
_UNLIKE_NEARNESS: Final = 1.0
_UNLIKE_SHORT: Final = 1.75
_SAME_NEARNESS: Final = 6.0
# Of the short facts that are nearest of all to a question, three in four answer it.
_SHORT_LIKENESS_MAX: Final = 0.75
# Up to how many characters an entry or a logged fact is short.
SHORT_CHARS_MAX: Final = 100
# What is taken from the nearness of a logged event: its label ("observation"), or how things are
# said in a conversation, is near to something by itself.
EVENT_NEARNESS: Final = 0.2
# The least weight of a word: a word that is common in one branch may be rare in another.
_COMMON_WEIGHT: Final = 1.0
# Not every word of a long query, such as an error message, has to match: so many are enough.
TERMS_ENOUGH: Final = 6
_DIGITS: Final = frozenset("0123456789")
# The weight of a word that only the preceding messages have.
CONTEXT_SHARE: Final = 0.5
# Below this a hit is worth a closer look: at its key, or at what it was said in answer to.
UNSURE: Final = 0.5
# Messages that answer questions about long conversations score .25 and more (99 %; half of them
# more than .75). Asked about what it never was about, a conversation has none for a third of the
# questions, and three hits instead of ten on average.
_WORDS_ONLY: Final = 0.6
FLOORS: Final[Mapping[str, float]] = {
    "entry": 0.24, "event": 0.24, "concept": 0.24, "incident": 0.24,
}  # fmt: skip
# Of a concept whose likeness is by nearness: the least at which four in five questions about other
# subjects find nothing, on the tuning half of `python -m evals concepts`.
NEAR_CONCEPT_FLOOR: Final = 0.4


def floor(kind: str, cosine: float) -> float:
    """Return the least score of a hit of some kind; less where words are all there is."""
    return FLOORS[kind] * (_WORDS_ONLY if math.isnan(cosine) else 1.0)


class Coverage:
    """The share of a query's words that texts have, each word by how rare it is."""

    def __init__(self, rarity: Mapping[str, float], *, enough: int = TERMS_ENOUGH) -> None:
        """Weigh every word that was asked for; as many as are `enough` count as all of them."""
        self._weights = {term: weight + _COMMON_WEIGHT for term, weight in rarity.items()}
        self._total = sum(nlargest(enough, self._weights.values()))
        self._codes = {term: self._weights[term] for term in self._weights if _is_code(term)}

    def of(self, present: Collection[str], context: Collection[str] = ()) -> float:
        """Return the share of a text; `context` are the words of the messages before it."""
        covered = 0.0
        for term, weight in self._weights.items():
            if term in present:
                covered += weight
            elif term in context:
                covered += CONTEXT_SHARE * weight
        if not covered:
            return 0.0
        # Other words do not make up for a code: of several, the one that says most.
        missing = [weight for code, weight in self._codes.items() if code not in present]
        return min(covered, self._total - max(missing, default=0.0)) / self._total


def likeness(cosine: float) -> float:
    """Return how similar the meanings of a text and a query are, from 0 to 1.

    0 without a vector.
    """
    return 0.0 if math.isnan(cosine) else _share(cosine, _UNLIKE_COSINE, _SAME_COSINE)


def likeness_by_nearness(near: float) -> float:
    """Return the likeness of a text by how near it is."""
    return _share(near, _UNLIKE_NEARNESS, _SAME_NEARNESS)


def short_likeness(near: float) -> float:
    """Return the likeness of a text of a few words by how near it is as an answer.

    It is certain of the same text alone.
    """
    share = _share(near, _UNLIKE_SHORT, _SAME_NEARNESS)
    if share <= UNSURE or math.isinf(near):
        return share
    return UNSURE + (share - UNSURE) * (_SHORT_LIKENESS_MAX - UNSURE) / (1.0 - UNSURE)


def score(covered: float, alike: float) -> float:
    """Return how well a text answers a query, from the words it covers and its likeness."""
    return 1.0 - (1.0 - covered) * (1.0 - alike)


def _is_code(term: str) -> bool:
    """Whether a term has digits and something else: E4019, 2.5, and not 2024."""
    return not (term.isalpha() or term.isdigit()) and not _DIGITS.isdisjoint(term)


def _share(value: float, none: float, whole: float) -> float:
    return min(max((value - none) / (whole - none), 0.0), 1.0)
