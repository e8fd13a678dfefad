"""The tools of one view, found by what they say of themselves and by what they take.

The index is in memory: a catalogue of thousands of tools takes a few megabytes, built-in tools and
operations are in no store, and a tool that changes costs what one tool costs. Lengths and rarity
are looked up when a request comes, so nothing has to be counted anew. An occurrence of a word is
one number, its place: slot and field. Thousands of tools are then read in less than a second.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.advice.retrieval.request_values import (
    AcceptedValues,
    RequestValues,
    ValueFit,
    accepted_values,
    fit_values,
    request_values,
)
from stratagem.gateway.advice.retrieval.requests import Request, Vocabulary, read
from stratagem.gateway.advice.retrieval.spelling import Spelling
from stratagem.gateway.advice.retrieval.texts import FieldTexts, field_texts
from stratagem.search import analysis, ranking
from stratagem.search.embedding import Embedder

__all__ = ["Definition", "ToolIndex", "ToolMatch"]

_FIELDS: Final = len(weights.FIELD_WEIGHTS)
_GROWTH: Final = 256
# So many of the first tools say how near anything is.
_BEST: Final = 5
_LATIN_END: Final = "\u0250"


class Definition(NamedTuple):
    """One revision of a tool, by what it is found."""

    name: str
    revision: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that was found. `score` is from 0 to 1; the others say what it is made of.

    `words` is the share of the request's words that the tool uses, by their rarity; `meaning` a
    cosine.
    """

    name: str
    score: float
    words: float
    meaning: float
    fit: ValueFit
    request: Request
    terms: frozenset[str]

    def matching_words(self) -> list[str]:
        """Return the words of the request that the tool uses, with what they were taken for."""
        found: dict[str, None] = {}
        for word in self.request.words:
            used = [weight for term, weight in word.terms.items() if term in self.terms]
            if used:
                guessed = word.meant and max(used) < 1
                found[f"{word.said} ({word.meant})" if guessed else word.said] = None
        return list(found)


class _Entry(NamedTuple):
    slot: int
    revision: int
    texts: FieldTexts
    takes: AcceptedValues
    terms: frozenset[str]


class _Column(NamedTuple):
    """Where one term occurs: in which slots, and of each occurrence which slot and place."""

    slots: NDArray[np.intp]
    rows: NDArray[np.intp]
    places: NDArray[np.intp]


class _Found(NamedTuple):
    """What the judges say about every slot."""

    request: Request
    values: RequestValues
    words: NDArray[np.float64]
    covered: NDArray[np.float64]
    cosines: NDArray[np.float64]
    meaning: NDArray[np.float64]
    nearness: float

    @property
    def first(self) -> NDArray[np.float64]:
        return self.words + weights.MEANING_WEIGHT * self.meaning


class ToolIndex:
    """Finds tools. Safe to share between threads."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._names: list[str | None] = []
        self._free: list[int] = []
        self._places: dict[str, list[int]] = {}
        self._columns: dict[str, _Column] = {}
        self._lengths = np.zeros((0, _FIELDS), np.float32)
        self._norms: NDArray[np.float32] | None = None
        self._vectors = np.zeros((0, embedder.dimensions if embedder else 0), np.float32)
        self._spelling: Spelling | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def mode(self) -> str:
        """Whether meaning is compared beside words."""
        return "hybrid" if self._embedder is not None else "lexical"

    def copy(self) -> ToolIndex:
        """Return an index of the same tools; to change it costs what the changes cost."""
        with self._lock:
            other = ToolIndex(self._embedder)
            other._entries = dict(self._entries)
            other._names = list(self._names)
            other._free = list(self._free)
            other._places = {term: list(places) for term, places in self._places.items()}
            other._columns = dict(self._columns)
            other._lengths = self._lengths.copy()
            other._vectors = self._vectors.copy()
            return other

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

    def search(self, request: str, *, candidates: int = weights.CANDIDATES) -> list[ToolMatch]:
        """Return the best tools for a request, best first."""
        with self._lock:
            found = self._score(request)
            first = found.first
            # What shares no word and next to no meaning is no answer at all.
            unlike = (found.words == 0) & (found.cosines < ranking.UNLIKE_COSINE)
            likely = np.flatnonzero((first > 0) & ~unlike)
            if len(likely) > candidates:
                # Equal tools stand in the order of their names, whatever the order of slots.
                cut = np.partition(first[likely], -candidates)[-candidates]
                likely = likely[first[likely] >= cut]
            matches = [self._match(int(slot), found) for slot in likely]
        return sorted(matches, key=lambda match: (-match.score, match.name))

    def match(self, request: str, name: str) -> ToolMatch | None:
        """Return how one tool goes with a request."""
        with self._lock:
            entry = self._entries.get(name)
            return None if entry is None else self._match(entry.slot, self._score(request))

    def likeness(self, name: str, other: str) -> float:
        """Return how alike two tools are in what they are for, from 0 to 1."""
        with self._lock:
            one, two = self._entries.get(name), self._entries.get(other)
            if one is None or two is None:
                return 0.0
            if self._embedder is not None:
                a, b = self._vectors[one.slot], self._vectors[two.slot]
                product = math.sqrt(float(a @ a) * float(b @ b))
                if product > 0:
                    return max(0.0, min(1.0, float(a @ b) / product))
            return _overlap(one.terms, two.terms)

    def _score(self, text: str) -> _Found:
        request = read(text, Vocabulary(self._places.__contains__, self._nearest))
        words, covered = self._words(request)
        cosines = self._cosines(request.text)
        meaning = _share(cosines, at_least=ranking.NEAR_COSINE)
        found = _Found(request, request_values(text), words, covered, cosines, meaning, 1.0)
        return found._replace(nearness=self._nearness(found))

    def _nearness(self, found: _Found) -> float:
        """Return how near the best tools are at all, from 0 to 1.

        The judges only say which are nearer than others, and something is always the nearest.
        """
        best = np.argsort(found.first)[-_BEST:]
        if self._embedder is not None and _is_latin(found.request.text):
            cosine = float(found.cosines[best].max(initial=0.0))
            span = ranking.NEAR_COSINE - ranking.UNLIKE_COSINE
            return max(0.0, min(1.0, (cosine - ranking.UNLIKE_COSINE) / span))
        return min(1.0, float(found.covered[best].max(initial=0.0)) / weights.COVERED_ENOUGH)

    def _match(self, slot: int, found: _Found) -> ToolMatch:
        name = self._names[slot]
        assert name is not None
        entry = self._entries[name]
        fit = fit_values(found.values, entry.takes)
        total = (
            found.words[slot]
            + weights.MEANING_WEIGHT * found.meaning[slot]
            + weights.FIT_WEIGHT * fit.score
        )
        best = 1 + (weights.MEANING_WEIGHT if self._embedder else 0.0) + weights.FIT_WEIGHT
        return ToolMatch(
            name,
            found.nearness * max(0.0, min(1.0, float(total) / best)),
            float(found.covered[slot]),
            float(found.cosines[slot]),
            fit,
            found.request,
            entry.terms,
        )

    def _words(self, request: Request) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return BM25F of every slot as a share of the best, and which share of the words it has.

        Of the terms that one word stands for, the best counts.
        """
        scores, covered = np.zeros(len(self._names)), np.zeros(len(self._names))
        everything = 0.0
        for word in request.words:
            known = [
                (*self._term(term), weight)
                for term, weight in word.terms.items()
                if term in self._places
            ]
            # A word that no tool uses is most often a name or a value.
            rarest = max((rarity for _, _, rarity, _ in known), default=weights.UNKNOWN_RARITY)
            everything += rarest
            if not known:
                continue
            slots, score = _best([(slots, weight * score) for slots, score, _, weight in known])
            scores[slots] += score
            covered[slots] += rarest
        return _share(scores), covered / everything if everything else covered

    def _term(self, term: str) -> tuple[NDArray[np.intp], NDArray[np.float64], float]:
        """Return the slots that have a term, what it is worth in each, and how rare it is."""
        norms = self._norms if self._norms is not None else self._measure()
        column = self._columns.get(term)
        if column is None:
            places = np.array(self._places[term], np.intp)
            slots, rows = np.unique(places // _FIELDS, return_inverse=True)
            column = self._columns[term] = _Column(slots, rows, places)
        frequency = np.bincount(column.rows, norms.ravel()[column.places])
        count = len(column.slots)
        rarity = math.log(1 + (len(self._entries) - count + 0.5) / (count + 0.5))
        saturated = frequency * (weights.SATURATION + 1) / (frequency + weights.SATURATION)
        return column.slots, rarity * saturated, rarity

    def _cosines(self, request: str) -> NDArray[np.float64]:
        if self._embedder is None or not len(self._vectors):
            return np.zeros(len(self._names))
        asked = self._embedder.embed([request])[0]
        # A product this small is not worth waking other cores for, which `@` does: on a busy
        # machine that costs ten times as much.
        found = np.einsum("ij,j->i", self._vectors[: len(self._names)], asked)
        return np.asarray(found, np.float64)

    def _nearest(self, word: str) -> str | None:
        if self._spelling is None:
            self._spelling = Spelling()
            for entry in self._entries.values():
                self._spelling.add(entry.texts.everything)
        return self._spelling.nearest(word)

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
        texts = [field_texts(tool.content) for tool in tools]
        vectors = self._embed(texts)
        for at, (tool, said) in enumerate(zip(tools, texts, strict=True)):
            slot = self._slot()
            every: set[str] = set()
            for field, text in enumerate(said):
                terms = analysis.terms(text) if text else []
                every.update(terms)
                self._lengths[slot, field] = len(terms)
                place = slot * _FIELDS + field
                for term in terms:
                    self._places.setdefault(term, []).append(place)
            for term in every.intersection(self._columns):
                del self._columns[term]
            if vectors is not None:
                self._vectors[slot] = vectors[at]
            if self._spelling is not None:
                self._spelling.add(said.everything)
            self._names[slot] = tool.name
            takes = accepted_values(tool.content.get("inputSchema"))
            self._entries[tool.name] = _Entry(slot, tool.revision, said, takes, frozenset(every))

    def _embed(self, texts: Sequence[FieldTexts]) -> NDArray[np.float32] | None:
        if self._embedder is None or not texts:
            return None
        purpose = self._embedder.embed([each.purpose for each in texts])
        everything = self._embedder.embed([each.everything for each in texts])
        return ((purpose + everything) / 2).astype(np.float32)

    def _remove(self, name: str) -> None:
        entry = self._entries.pop(name)
        for term in entry.terms:
            places = [each for each in self._places[term] if each // _FIELDS != entry.slot]
            if places:
                self._places[term] = places
            else:
                del self._places[term]
            self._columns.pop(term, None)
        if self._spelling is not None:
            self._spelling.remove(entry.texts.everything)
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


def _is_latin(text: str) -> bool:
    """Whether the embedder can read a text: its vocabulary is of Latin letters."""
    letters = [each for each in text if each.isalpha()]
    return 2 * sum(each < _LATIN_END for each in letters) >= len(letters)


def _best(
    scored: Sequence[tuple[NDArray[np.intp], NDArray[np.float64]]],
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the slots that any has, each with the best that any gives it."""
    if len(scored) == 1:
        return scored[0]
    slots, rows = np.unique(np.concatenate([each for each, _ in scored]), return_inverse=True)
    best = np.zeros(len(slots))
    np.maximum.at(best, rows, np.concatenate([each for _, each in scored]))
    return slots, best


def _share(scores: NDArray[np.float64], *, at_least: float = 0.0) -> NDArray[np.float64]:
    positive = np.maximum(scores, 0.0)
    best = max(float(positive.max(initial=0.0)), at_least)
    return positive / best if best > 0 else positive


def _overlap(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one or two else 0.0
