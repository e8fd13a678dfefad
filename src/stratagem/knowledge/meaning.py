"""Search by meaning among concepts that are certain enough.

The index knows nothing of certainty, so it is asked for ever more until enough of what it finds
is certain enough, or there is no more. Each concept is read once, however often it is found; and
where the search has to go deep, it is first asked which concepts are certain enough at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from stratagem.knowledge import listing
from stratagem.knowledge.models import ConceptHit
from stratagem.knowledge.records import Book, Concept, Score
from stratagem.search.index import Ranked, Ranking

__all__ = ["similar"]

_SCORE_DIGITS: Final = 4
_PAGE: Final = 64
# From here on it is worth asking which concepts are certain enough, if these are few.
_DEEP: Final = 400
_FEW: Final = 2_000
_DEEPER: Final = 4


def similar(
    book: Book, search: Callable[[int], Ranking], floor: float | None, limit: int
) -> tuple[list[ConceptHit], Ranking]:
    """Return the most similar concepts that are certain enough, and how they were found."""
    sieve = _Sieve(book, floor)
    depth = limit
    while True:
        ranking = search(depth)
        hits = sieve.pick(ranking.found, limit)
        if len(hits) >= min(limit, sieve.count) or len(ranking.found) < depth:
            return hits, ranking
        depth *= _DEEPER


class _Sieve:
    """What is known of the concepts that were found so far."""

    def __init__(self, book: Book, floor: float | None) -> None:
        self._book = book
        self._floor = floor
        self._known: dict[int, tuple[Concept, Score] | None] = {}
        self._among: frozenset[int] | None = None
        self._asked = False

    @property
    def count(self) -> float:
        """How many concepts are certain enough, where that is known."""
        return float("inf") if self._among is None else len(self._among)

    def pick(self, found: Sequence[Ranked], limit: int) -> list[ConceptHit]:
        """Return the first so many that are certain enough."""
        if self._floor is not None and len(found) > _DEEP and not self._asked:
            self._ask(self._floor)
        hits: list[ConceptHit] = []
        for begin in range(0, len(found), _PAGE):
            page = found[begin : begin + _PAGE]
            self._read(page)
            hits += [
                _hit(*kept, ranked.score)
                for ranked in page
                if (kept := self._known.get(ranked.sequence)) is not None
            ]
            if len(hits) >= limit:
                break
        return hits[:limit]

    def _ask(self, floor: float) -> None:
        self._asked = True
        certain = listing.by_certainty(self._book, floor, 100, _FEW + 1)
        if len(certain) <= _FEW:
            self._among = frozenset(concept.sequence for concept, _ in certain)

    def _read(self, page: Sequence[Ranked]) -> None:
        fresh = [
            each.sequence
            for each in page
            if each.sequence not in self._known
            and (self._among is None or each.sequence in self._among)
        ]
        if not fresh:
            return
        concepts = self._book.by_version(fresh)
        scores = self._book.scores(concepts)
        for concept in concepts:
            score = scores[concept.id]
            fits = self._floor is None or score.value >= self._floor
            self._known[concept.sequence] = (concept, score) if fits else None


def _hit(concept: Concept, score: Score, similarity: float) -> ConceptHit:
    return ConceptHit(
        concept.id,
        concept.name,
        round(similarity, _SCORE_DIGITS),
        concept.content.get("area"),
        concept.content.get("topic"),
        score.value,
        "computed" if score.computed else None,
    )
