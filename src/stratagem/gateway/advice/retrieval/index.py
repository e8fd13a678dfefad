"""The tools of one view, found by what they say of themselves and by what they take.

The index is in memory: a catalogue of thousands of tools takes a few megabytes, built-in tools and
operations are in no store, and a tool that changes costs what one tool costs. Lengths and rarity
are looked up when a request comes, so nothing has to be counted anew. An occurrence of a word is
one number, its place: slot and field. Thousands of tools are then read in less than a second.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.advice.retrieval.requests import Request, Vocabulary, read
from stratagem.gateway.advice.retrieval.spelling import Spelling
from stratagem.gateway.advice.retrieval.texts import FieldTexts, field_texts
from stratagem.search import analysis
from stratagem.search.embedding import Embedder

__all__ = ["Definition", "ToolIndex", "ToolMatch"]

_FIELDS: Final = len(weights.FIELD_WEIGHTS)
_GROWTH: Final = 256
_LATIN_END: Final = "\u0250"


class Definition(NamedTuple):
    """One revision of a tool, by what it is found."""

    name: str
    revision: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that was found.

    `score` says how likely a first tool like it is the right one; `meaning` is a cosine.
    """

    name: str
    score: float
    meaning: float
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
    terms: frozenset[str]


class _Column(NamedTuple):
    """Where one term occurs: in which slots, and of each occurrence which slot and place."""

    slots: NDArray[np.intp]
    rows: NDArray[np.intp]
    places: NDArray[np.intp]


class _Found(NamedTuple):
    """What the judges say about every slot."""

    request: Request
    cosines: NDArray[np.float64]
    scores: NDArray[np.float64]


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

    def search(
        self,
        request: str,
        *,
        without: Collection[str] = (),
        candidates: int = weights.CANDIDATES,
    ) -> list[ToolMatch]:
        """Return the best tools for a request but those left out, best first."""
        with self._lock:
            found = self._score(request)
            scores = found.scores.copy()
            scores[[self._entries[name].slot for name in without if name in self._entries]] = 0
            likely = np.flatnonzero(scores > 0)
            if len(likely) > candidates:
                # Equal tools stand in the order of their names, whatever the order of slots.
                cut = np.partition(scores[likely], -candidates)[-candidates]
                likely = likely[scores[likely] >= cut]
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
        embedder = self._embedder if _is_latin(request.text) else None
        cosines = self._cosines(request.text, embedder)
        nearness = np.maximum(cosines, 0.0) + weights.WORDS_WEIGHT * self._words(request)
        slope, offset = weights.calibration(embedder)
        scores = np.where(nearness > 0, 1 / (1 + np.exp(-(slope * nearness + offset))), 0.0)
        return _Found(request, cosines, scores)

    def _match(self, slot: int, found: _Found) -> ToolMatch:
        name = self._names[slot]
        assert name is not None
        return ToolMatch(
            name,
            float(found.scores[slot]),
            float(found.cosines[slot]),
            found.request,
            self._entries[name].terms,
        )

    def _words(self, request: Request) -> NDArray[np.float64]:
        """Return BM25F of every slot, as a share of what a tool made of the same words would have.

        Of the terms that one word stands for, the best counts. A word that no tool uses counts as
        if one did, and so do a few more: a request of one word says little.
        """
        scores = np.zeros(len(self._names))
        unknown = math.log(1 + (len(self._entries) + 0.5) / 0.5)
        possible = weights.WORDS_ADDED * unknown
        for word in request.words:
            known = [
                (*self._term(term), weight)
                for term, weight in word.terms.items()
                if term in self._places
            ]
            possible += max((rarity for _, _, rarity, _ in known), default=unknown)
            if known:
                slots, score = _best([(slots, weight * score) for slots, score, _, weight in known])
                scores[slots] += score
        return scores / ((weights.SATURATION + 1) * possible)

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

    def _cosines(self, request: str, embedder: Embedder | None) -> NDArray[np.float64]:
        if embedder is None or not len(self._vectors):
            return np.zeros(len(self._names))
        asked = embedder.embed([request])[0]
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
            self._entries[tool.name] = _Entry(slot, tool.revision, said, frozenset(every))

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
    """Whether an embedder can read a text: their vocabularies are of Latin letters."""
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


def _overlap(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one or two else 0.0
