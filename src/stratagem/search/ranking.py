"""How good a match is: every tuned number of search, and how it was chosen.

Two judges see each candidate. BM25 counts the words that query and text share, weighted by
how rare they are; it is the stronger one, and blind to synonyms. The cosine of the embeddings
knows the meaning, and mistakes the topic for the answer. Neither scale means anything by itself, so
each score is divided by the best among the candidates, and

    score = (bm25 / best bm25 + w · cosine / max(best cosine, 0.5)) / (1 + w)

Both best values lie at the top of a list that is searched anyway, so a score does not
depend on how many also-rans were collected. Subtracting the lowest cosine first ranks as well,
but hangs on the worst candidate; ranks instead of scores lost against BM25 alone.

A best cosine under 0.5 means that nothing is really near, so it is not scaled up: a query about
something that was never stored gets low scores, and a text that shares no word with it and is
hardly similar is not returned at all. (0.3 to 0.6 rank alike.)

The numbers were chosen on three LoCoMo conversations (635 questions, mean evidence
recall@10; "dates" is with the date of each message indexed beside it) and checked on bug
reports (MRR) and tools (recall@1). They were changed one at a time:

    words of the message alone                           62.9   bug reports .54   tools .43
    and of the two messages before                       75.5   dates 77.0
    and cosines                                          78.3
    and common words left out of the query's vector      79.2   dates 81.1   .59   .45

    semantic weight 0.5, 1, 1.5, 2, 2.5           76.7  78.2  79.2  79.4  78.4
    messages before 1, 2, 3, 4                    75.8  79.2  78.6  77.6
    the same, dates                               78.0  81.1  81.1  79.9
    context weight 0.25, 0.35, 0.5, 0.75, 1       77.6  78.6  79.2  78.6  77.9
    common share 0.2, 0.25, 0.3, 0.4, 0.5         77.8  79.3  79.2  79.1  79.1
    title weight 0, 1, 2, 3, 4 (bug reports)      .50   .56   .58   .59   .60

Chosen on two conversations and tried on the third, in turn, they give 78.7, dates 80.3. A
difference of less than a point is noise (95 %), so nothing finer was tuned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ASKED_TERMS_MAX",
    "ASKED_TERMS_MIN",
    "COMMON_SHARE",
    "COMMON_TERMS_FROM",
    "CONTEXT_TERMS_MAX",
    "CONTEXT_WINDOW",
    "EXACT_VECTORS_MAX",
    "FIELD_WEIGHTS",
    "LEXICAL_DEPTH",
    "MATCHES_FEW",
    "NEAR_COSINE",
    "OWN_EXACT_VECTORS_MAX",
    "OWN_RESCORED_MAX",
    "OWN_RESCORED_MIN",
    "OWN_RESCORED_SHARE",
    "OWN_SCORE_WEIGHT",
    "RAISED",
    "RESCORED_MAX",
    "RESCORED_MIN",
    "RESCORED_SHARE",
    "SEMANTIC_DEPTH",
    "SEMANTIC_WEIGHT",
    "TEXTS_ASKED_MAX",
    "UNLIKE_COSINE",
    "UNSORTED_MATCHES_MAX",
    "WEIGHED_MIN",
    "fuse",
    "prior",
    "selective_terms",
]

# BM25's weights for title, body and context, in the order of the index's columns.
FIELD_WEIGHTS: Final = (3.0, 1.0, 0.5)
# How many earlier messages of a session are indexed with a message, without stop words.
CONTEXT_WINDOW: Final = 2
# A longer message lends no terms: they would outweigh those of a short message that follows it. On
# long conversations with an assistant this adds five points; messages between people are shorter.
CONTEXT_TERMS_MAX: Final = 60
# What the embedding weighs against BM25.
SEMANTIC_WEIGHT: Final = 1.5

# The cosine of texts that mean the same, and of texts that have nothing to do with each other.
NEAR_COSINE: Final = 0.5
UNLIKE_COSINE: Final = 0.2

# A term in a larger share of the texts (context counts) tells nothing and costs most: in a
# conversation, the speakers' names. Below a quarter, words that matter are lost, because a
# message lends its words to those that follow.
COMMON_SHARE: Final = 0.3
# Of a long query only the rarest terms that occur at all are asked for: a whole bug report as the
# query costs a third as much, and finds better (MRR .665 with 16 to 32 of them, .59 with all).
ASKED_TERMS_MAX: Final = 24
# Rarest first, terms are asked for until they are in so many texts together: in a large collection
# the common words of a query cost most of its time, and say least. A few are always asked for.
TEXTS_ASKED_MAX: Final = 30_000
ASKED_TERMS_MIN: Final = 4
# Where these find fewer texts than that, all terms are asked for.
MATCHES_FEW: Final = 10
# In a small collection every term is in a large share of it.
COMMON_TERMS_FROM: Final = 200

# Candidates from each list. Of the ten (fifty) best of all 4,965 bug reports, fused, these
# keep 99.8 % (98.8 %); 1,000 and 200 keep 100 % (99.8 %), 200 and 200 keep 98.7 % (94 %).
LEXICAL_DEPTH: Final = 500
# Up to so many matches are read in no order, and sorted here.
UNSORTED_MATCHES_MAX: Final = 4_000
SEMANTIC_DEPTH: Final = 200

# A long text has something on everything; of two that match alike the shorter says more. More finds
# more of what users said and less of what an assistant did: .05 is what finds most on one half of
# BEAM's conversations and keeps nine tenths of the assistant's; the other half would take .06.
LENGTH_WEIGHT: Final = 0.05
SHORT_CHARS: Final = 400
PRIOR_MIN: Final = 0.5
# What a standing instruction counts for: it bears on what is asked, whatever its words. Among the
# ten of a page one that hardly answers by itself (`relevance.UNSURE`) counts 1: recall@5 on BEAM is
# 49.8 in place of 49.4, exchanges@5 53.3 in place of 52.4; where all count 1 there, 47.0 and 51.7.
RAISED: Final = 1.6
# What the score of a hit by itself (`relevance`) counts for among the ten beside it. It knows
# short facts better (up to seven in a hundred more come first: `python -m evals entries`), and
# long conversations worse: with .5 recall@5 is 71.6 in place of 71.2 on LoCoMo and 49.0 in place
# of 48.1 on BEAM, with 1 it is 70.4 and 48.2, with 2 70.5 and 47.2.
OWN_SCORE_WEIGHT: Final = 0.5
# How many of the best are weighed by their length, at least.
WEIGHED_MIN: Final = 100

# Up to this many vectors are all compared; beyond, codes choose which (`codes` has the figures).
# Reading and comparing 10,000 whole vectors takes .5 ms, choosing and comparing 1,500 takes .3; of
# 100,000 it is 12 and 2 on two shared cores. Of the ten nearest of 10,000 and of 20,000 comparing
# 1,500 finds 99.5 to 100 %; comparing 3 % of 50,000 finds 98.6 to 99.8 %, 4 % finds 99 to 100 %.
EXACT_VECTORS_MAX: Final = 8_000
RESCORED_MIN: Final = 1_500
RESCORED_MAX: Final = 4_000
RESCORED_SHARE: Final = 0.03
# The same for vectors of callers' own, which may come from any model: `python -m
# benchmarks.own_vectors` prints the recall.
OWN_EXACT_VECTORS_MAX: Final = 20_000
OWN_RESCORED_MIN: Final = 4_000
OWN_RESCORED_MAX: Final = 20_000
OWN_RESCORED_SHARE: Final = 0.02


def fuse(bm25: NDArray[np.floating], cosine: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the scores, in [0, 1], of a set of candidates.

    `bm25` is not negative, and 0 where no word matched. `cosine` is NaN where there is no
    vector: such a candidate counts as near as the others whose words matched, on average,
    so that it is neither favoured nor punished. Without any vector, words alone decide. A
    candidate that shares no word and no meaning with the query scores 0.
    """
    words = _share_of_best(bm25)
    known = ~np.isnan(cosine)
    if known.all():
        meaning = _share_of_best(cosine, at_least=NEAR_COSINE)
        unlike = cosine < UNLIKE_COSINE
    elif known.any():
        meaning = _share_of_best(np.where(known, cosine, 0.0), at_least=NEAR_COSINE)
        unlike = known & (cosine < UNLIKE_COSINE)
        matched = meaning[known & (words > 0)]
        meaning = np.where(known, meaning, matched.mean() if len(matched) else 0.0)
    else:
        return words
    scores = (words + SEMANTIC_WEIGHT * meaning) / (1.0 + SEMANTIC_WEIGHT)
    scores[unlike & (words == 0)] = 0.0
    return scores


def prior(chars: int | None, raised: bool) -> float:  # noqa: FBT001 -- as a store gives them
    """Return the factor of a score for properties of the text that do not depend on the query."""
    weight = RAISED if raised else 1.0
    if chars is None or chars <= SHORT_CHARS:
        return weight
    return weight * max(1.0 - LENGTH_WEIGHT * math.log(chars / SHORT_CHARS), PRIOR_MIN)


def selective_terms(terms: Sequence[str], counts: Mapping[str, int], total: int) -> list[str]:
    """Return the terms of a query that are worth asking for.

    `counts` says in how many of the `total` texts a term is. Common terms are left out,
    unless no other term of the query is in any text; of many, the rarest are kept.
    """
    if total < COMMON_TERMS_FROM:
        return _rarest(terms, counts)
    rare = [term for term in terms if counts.get(term, 0) <= COMMON_SHARE * total]
    return _rarest(rare if any(counts.get(term, 0) for term in rare) else terms, counts)


def _rarest(terms: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    there = sorted((counts.get(term, 0), term) for term in terms)
    if len(terms) > ASKED_TERMS_MAX:
        there = [each for each in there if each[0]][:ASKED_TERMS_MAX]
    kept: set[str] = set()
    texts = 0
    for count, term in there:
        texts += count
        if len(kept) >= ASKED_TERMS_MIN and texts > TEXTS_ASKED_MAX:
            break
        kept.add(term)
    return [term for term in terms if term in kept]


def _share_of_best(scores: NDArray[np.floating], *, at_least: float = 0.0) -> NDArray[np.float64]:
    positive = np.maximum(np.asarray(scores, np.float64), 0.0)
    best = positive.max(initial=at_least)
    return positive / best if best > 0 else positive
