"""Search by meaning among concepts that are certain enough.

The index knows nothing of certainty, so it is asked for ever more until enough of what it finds
is certain enough, or there is no more. Each concept is read once, however often it is found; and
where the search has to go deep, it is first asked which concepts are certain enough at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from stratagem.knowledge import concept_lists
from stratagem.knowledge.models import ConceptHit
from stratagem.knowledge.records import Concept, ConceptRecords, Score
from stratagem.search.index import Ranked, Ranking

__all__ = ["find_similar"]

_SCORE_DIGITS: Final = 4
_PAGE: Final = 64
# From here on it is worth asking which concepts are certain enough, if these are few.
_DEEP: Final = 400
_FEW: Final = 2_000
_DEEPER: Final = 4


def find_similar(
    records: ConceptRecords, search: Callable[[int], Ranking], floor: float | None, limit: int
) -> tuple[list[ConceptHit], Ranking]:
    """Return the most similar concepts that are certain enough, and how they were found."""
    certainty_filter = _CertaintyFilter(records, floor)
    depth = limit
    while True:
        ranking = search(depth)
        hits = certainty_filter.pick(ranking.found, limit)
        if len(hits) >= min(limit, certainty_filter.count) or len(ranking.found) < depth:
            return hits, ranking
        depth *= _DEEPER


class _CertaintyFilter:
    """Keeps the concepts that are certain enough, and caches what it read of them."""

    def __init__(self, records: ConceptRecords, floor: float | None) -> None:
        self._records = records
        self._floor = floor
        self._known: dict[int, tuple[Concept, Score] | None] = {}
        self._certain: frozenset[int] | None = None
        self._asked = False

    @property
    def count(self) -> float:
        """How many concepts are certain enough, where that is known."""
        return float("inf") if self._certain is None else len(self._certain)

    def pick(self, found: Sequence[Ranked], limit: int) -> list[ConceptHit]:
        """Return the first `limit` concepts that are certain enough."""
        if self._floor is not None and len(found) > _DEEP and not self._asked:
            self._find_certain(self._floor)
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

    def _find_certain(self, floor: float) -> None:
        self._asked = True
        certain = concept_lists.by_certainty(self._records, floor, 100, _FEW + 1)
        if len(certain) <= _FEW:
            self._certain = frozenset(concept.sequence for concept, _ in certain)

    def _read(self, page: Sequence[Ranked]) -> None:
        fresh = [
            each.sequence
            for each in page
            if each.sequence not in self._known
            and (self._certain is None or each.sequence in self._certain)
        ]
        if not fresh:
            return
        concepts = self._records.by_version(fresh)
        scores = self._records.scores(concepts)
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
