"""The tools of one view, found by what they say of themselves and by what they take.

The index is in memory: a catalogue of thousands of tools takes a few megabytes, built-in tools and
operations are in no store, and a tool that changes costs what one tool costs. Lengths and rarity
are looked up when a request comes, so nothing has to be counted anew.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stratagem.gateway.recommendation import weights
from stratagem.gateway.recommendation.texts import FieldTexts, texts_of
from stratagem.gateway.recommendation.values import Fit, Takes, Values, fit_of, takes_of, values_of
from stratagem.search import analysis, ranking
from stratagem.search.embedding import Embedder

__all__ = ["Definition", "Match", "ToolIndex"]

_FIELDS: Final = len(weights.FIELD_WEIGHTS)
_GROWTH: Final = 256


class Definition(NamedTuple):
    """One revision of a tool, by what it is found."""

    name: str
    revision: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Match:
    """A tool that was found. `score` is from 0 to 1; the parts say what it is made of."""

    name: str
    score: float
    words: float
    meaning: float
    fit: Fit
    terms: tuple[str, ...]


class _Entry(NamedTuple):
    slot: int
    revision: int
    texts: FieldTexts
    takes: Takes
    terms: dict[str, tuple[int, ...]]


class ToolIndex:
    """Finds tools. Safe to share between threads."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._names: list[str | None] = []
        self._free: list[int] = []
        self._postings: dict[str, dict[int, tuple[int, ...]]] = {}
        self._columns: dict[str, tuple[NDArray[np.intp], NDArray[np.float32]]] = {}
        self._lengths = np.zeros((0, _FIELDS), np.float32)
        self._norms: NDArray[np.float32] | None = None
        self._vectors = np.zeros((0, embedder.dimensions if embedder else 0), np.float32)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def mode(self) -> str:
        """Whether meaning is compared beside words."""
        return "hybrid" if self._embedder is not None else "lexical"

    def update(self, tools: Sequence[Definition]) -> int:
        """Make the index that of these tools; return how many had to be looked at anew."""
        with self._lock:
            wanted = {tool.name: tool for tool in tools}
            gone = [
                name
                for name, entry in self._entries.items()
                if name not in wanted or wanted[name].revision != entry.revision
            ]
            for name in gone:
                self._remove(name)
            new = [tool for tool in wanted.values() if tool.name not in self._entries]
            self._add(new)
            if gone or new:
                self._norms = None
            return len(gone) + len(new)

    def search(self, request: str, *, candidates: int = weights.CANDIDATES) -> list[Match]:
        """Return the best tools for a request, best first."""
        with self._lock:
            asked = analysis.query_terms(request)
            words = self._words(asked)
            meaning, unlike = self._meaning(request)
            first = words + weights.MEANING_WEIGHT * meaning
            # What shares no word and next to no meaning is no answer at all.
            likely = np.flatnonzero((first > 0) & ~((words == 0) & unlike))
            if len(likely) > candidates:
                # Equal tools stand in the order of their names, whatever the order of slots.
                cut = np.partition(first[likely], -candidates)[-candidates]
                likely = likely[first[likely] >= cut]
            values = values_of(request)
            found = [self._match(int(slot), words, meaning, values) for slot in likely]
        return sorted(found, key=lambda match: (-match.score, match.name))

    def match(self, request: str, name: str) -> Match | None:
        """Return how one tool goes with a request."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return None
            words = self._words(analysis.query_terms(request))
            return self._match(entry.slot, words, self._meaning(request)[0], values_of(request))

    def likeness(self, name: str, other: str) -> float:
        """Return how alike two tools are in what they are for, from 0 to 1."""
        one, two = self._entries.get(name), self._entries.get(other)
        if one is None or two is None:
            return 0.0
        if self._embedder is not None:
            cosine = float(self._vectors[one.slot] @ self._vectors[two.slot])
            lengths = np.linalg.norm(self._vectors[[one.slot, two.slot]], axis=1)
            product = float(lengths[0] * lengths[1])
            if product > 0:
                return max(0.0, cosine / product)
        return _overlap(set(one.terms), set(two.terms))

    def _match(
        self,
        slot: int,
        words: NDArray[np.float64],
        meaning: NDArray[np.float64],
        values: Values,
    ) -> Match:
        name = self._names[slot]
        assert name is not None
        entry = self._entries[name]
        fit = fit_of(values, entry.takes)
        total = (
            words[slot] + weights.MEANING_WEIGHT * meaning[slot] + weights.FIT_WEIGHT * fit.score
        )
        best = 1 + (weights.MEANING_WEIGHT if self._embedder else 0.0) + weights.FIT_WEIGHT
        return Match(
            name,
            max(0.0, min(1.0, float(total) / best)),
            float(words[slot]),
            float(meaning[slot]),
            fit,
            tuple(term for term in values.terms if term in entry.terms),
        )

    def _words(self, asked: Sequence[str]) -> NDArray[np.float64]:
        """Return BM25F of every slot, as a share of the best."""
        scores = np.zeros(len(self._names))
        norms = self._norms if self._norms is not None else self._measure()
        count = len(self._entries)
        for term in asked:
            postings = self._postings.get(term)
            if not postings:
                continue
            slots, counts = self._column(term, postings)
            frequency = np.einsum("ij,ij->i", counts, norms[slots])
            rarity = math.log(1 + (count - len(slots) + 0.5) / (len(slots) + 0.5))
            saturated = frequency * (weights.SATURATION + 1) / (frequency + weights.SATURATION)
            scores[slots] += rarity * saturated
        return _share(scores)

    def _meaning(self, request: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the nearness of every slot, as a share of the best, and which are not near."""
        if self._embedder is None or not len(self._vectors):
            return np.zeros(len(self._names)), np.ones(len(self._names), np.bool_)
        asked = self._embedder.embed([request])[0]
        # A product this small is not worth waking other cores for, which `@` does: on a busy
        # machine that costs ten times as much.
        cosines = np.einsum("ij,j->i", self._vectors[: len(self._names)], asked)
        nearness = _share(cosines.astype(np.float64), at_least=ranking.NEAR_COSINE)
        return nearness, cosines < ranking.UNLIKE_COSINE

    def _column(
        self, term: str, postings: dict[int, tuple[int, ...]]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        column = self._columns.get(term)
        if column is None:
            slots = np.fromiter(postings, np.intp, len(postings))
            column = self._columns[term] = slots, np.array(list(postings.values()), np.float32)
        return column

    def _measure(self) -> NDArray[np.float32]:
        """Return what one occurrence counts in each field of each slot."""
        count = max(1, len(self._entries))
        averages = np.maximum(self._lengths.sum(axis=0) / count, 1e-9)
        strength = np.array(weights.FIELD_LENGTHS, np.float32)
        counted = np.array(weights.FIELD_WEIGHTS, np.float32)
        self._norms = (counted / (1 - strength + strength * self._lengths / averages)).astype(
            np.float32
        )
        return self._norms

    def _add(self, tools: Sequence[Definition]) -> None:
        texts = [texts_of(tool.content) for tool in tools]
        vectors = self._embedded(texts)
        for at, (tool, said) in enumerate(zip(tools, texts, strict=True)):
            slot = self._slot()
            terms = _terms(said)
            lengths = np.zeros(_FIELDS, np.float32)
            for term, counts in terms.items():
                lengths += counts
                self._postings.setdefault(term, {})[slot] = counts
                self._columns.pop(term, None)
            self._lengths[slot] = lengths
            if vectors is not None:
                self._vectors[slot] = vectors[at]
            self._names[slot] = tool.name
            takes = takes_of(tool.content.get("inputSchema"))
            self._entries[tool.name] = _Entry(slot, tool.revision, said, takes, terms)

    def _embedded(self, texts: Sequence[FieldTexts]) -> NDArray[np.float32] | None:
        if self._embedder is None or not texts:
            return None
        purpose = self._embedder.embed([each.purpose for each in texts])
        everything = self._embedder.embed([each.everything for each in texts])
        return ((purpose + everything) / 2).astype(np.float32)

    def _remove(self, name: str) -> None:
        entry = self._entries.pop(name)
        for term in entry.terms:
            postings = self._postings[term]
            del postings[entry.slot]
            self._columns.pop(term, None)
            if not postings:
                del self._postings[term]
        self._lengths[entry.slot] = 0
        self._vectors[entry.slot] = 0
        self._names[entry.slot] = None
        self._free.append(entry.slot)

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        slot = len(self._names)
        self._names.append(None)
        if slot >= len(self._lengths):
            more = max(_GROWTH, slot)
            self._lengths = np.vstack([self._lengths, np.zeros((more, _FIELDS), np.float32)])
            wide = np.zeros((more, self._vectors.shape[1]), np.float32)
            self._vectors = np.vstack([self._vectors, wide])
        return slot


def _terms(texts: FieldTexts) -> dict[str, tuple[int, ...]]:
    counts = [Counter(analysis.terms(text)) for text in texts]
    every = {term for each in counts for term in each}
    return {term: tuple(each[term] for each in counts) for term in every}


def _share(scores: NDArray[np.float64], *, at_least: float = 0.0) -> NDArray[np.float64]:
    positive = np.maximum(scores, 0.0)
    best = max(float(positive.max(initial=0.0)), at_least)
    return positive / best if best > 0 else positive


def _overlap(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two) if one or two else 0.0
