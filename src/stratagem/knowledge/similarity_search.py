"""Search by meaning among concepts that may be shown.

The index scores hits relative to the best one, so the best of several bad hits would look good.
Each concept is therefore judged by itself (`search.relevance`): a concept with almost no relation
to the query is left out, and `similarity` is the cosine of the model, whatever else was found;
without a vector it is the share of the query's words that the concept has. A cosine that is high
for one query is low for another, so the floor is relative to the cosines of random words with this
query (`search.nearness`), if the embedder knows them.

The index knows nothing of certainty, validity and succession, so it is asked for more and more hits
until enough of them may be shown, or the hits are no longer relevant. Each concept is read once,
however often it is found; and where the search has to go deep, it is first asked which concepts are
certain enough at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.knowledge import concept_lists
from stratagem.knowledge.disputes import Dispute, find_disputes
from stratagem.knowledge.models import ConceptHit
from stratagem.knowledge.records import Concept, ConceptRecords, Score
from stratagem.knowledge.spaces import CONCEPT
from stratagem.knowledge.valid_time import holds_at, render_period
from stratagem.search import analysis, relevance
from stratagem.search.index import Index, Ranked, Ranking
from stratagem.search.snippets import Excerpt, excerpt
from stratagem.search.vectors import Nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ConceptQuery", "Found", "JudgedConcept", "Wanted", "find_similar"]

_SCORE_DIGITS: Final = 4
_PAGE: Final = 64
# From here on it is worth asking which concepts are certain enough, if these are few.
_DEEP: Final = 400
_FEW: Final = 2_000
_DEEPER: Final = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter for concepts to show; None where a field does not matter.

    Concepts that are not valid at the moment asked about are shown unless `held`.
    """

    held: bool = False
    min_certainty: float | None = None
    superseded: bool = False


@dataclass(slots=True)
class JudgedConcept:
    """A concept that was found, what is shown of it, and how well it answers by itself."""

    hit: ConceptHit
    shown: Excerpt
    concept: Concept
    relevance: float
    is_relevant: bool


@dataclass(slots=True)
class Found:
    """What a search found, best first, how, and how many were left out as superseded."""

    concepts: list[JudgedConcept]
    ranking: Ranking
    replaced: int = 0

    @property
    def hits(self) -> list[ConceptHit]:
        """What is shown of each."""
        return [each.hit for each in self.concepts]


@dataclass(frozen=True, slots=True)
class ConceptQuery:
    """What is asked, among concepts with some tags; `nearest` compares vectors in our place."""

    text: str
    tags: Sequence[str] = ()
    nearest: Callable[[NDArray[np.float32], int], Nearest] | None = None


def find_similar(
    index: Index, records: ConceptRecords, query: ConceptQuery, wanted: Wanted, limit: int
) -> Found:
    """Return the most similar concepts that may be shown."""
    spaces = list(records.reader.records.spaces(CONCEPT))
    judge = _Judge(records, wanted)
    depth = max(limit, _PAGE)
    relevant = -1
    while True:
        ranking = index.search(
            records.reader,
            records.view,
            query.text,
            spaces=spaces,
            tags=query.tags,
            limit=depth,
            nearest=query.nearest,
        )
        found = judge.pick(ranking, index.rarity(records.reader, ranking.terms), limit)
        enough = len(found.concepts) >= min(limit, judge.count)
        # Where going deeper brought nothing that is relevant, the rest is not, either.
        spent = len(ranking.found) < depth or judge.relevant == relevant
        if enough or spent:
            found.concepts = found.concepts[:limit]
            return found
        relevant = judge.relevant
        depth *= _DEEPER


class _ReadConcept(NamedTuple):
    """What was read of a concept that was found."""

    concept: Concept
    score: Score
    dispute: Dispute


@dataclass(slots=True)
class _Judge:
    """Keeps the concepts that are relevant and may be shown, and caches what it read of them."""

    records: ConceptRecords
    wanted: Wanted
    relevant: int = 0
    _known: dict[int, _ReadConcept] = field(default_factory=dict)
    _certain: frozenset[int] | None = None
    _asked: bool = False

    @property
    def count(self) -> float:
        """How many concepts are certain enough, where that is known."""
        return float("inf") if self._certain is None else len(self._certain)

    def pick(self, ranking: Ranking, rarity: Mapping[str, float], limit: int) -> Found:
        """Return the first concepts of a ranking that may be shown, superseded ones last."""
        floor = self.wanted.min_certainty
        if floor is not None and len(ranking.found) > _DEEP and not self._asked:
            self._find_certain(floor)
        self._read(ranking.found)
        self.relevant = 0
        asked, coverage = analysis.AskedTerms(ranking.terms), relevance.Coverage(rarity)
        current: list[JudgedConcept] = []
        replaced: list[JudgedConcept] = []
        for ranked in ranking.found:
            if ranked.sequence not in self._known:
                continue
            near = ranking.nearness.of_cosine(ranked.cosine) if ranking.nearness else math.nan
            judged = _judge(ranked, near, asked, coverage, self._known[ranked.sequence])
            if not judged.is_relevant:
                continue
            self.relevant += 1
            if self._may_be_shown(judged):
                (replaced if judged.hit.superseded_by else current).append(judged)
            if len(current) == limit:
                break
        if self.wanted.superseded:
            return Found(current + replaced, ranking)
        return Found(current, ranking, len(replaced))

    def _may_be_shown(self, judged: JudgedConcept) -> bool:
        wanted = self.wanted
        if wanted.held and not holds_at(judged.concept.content, self.records.at):
            return False
        floor = wanted.min_certainty
        return floor is None or judged.hit.certainty_score >= floor

    def _find_certain(self, floor: float) -> None:
        self._asked = True
        certain = concept_lists.by_certainty(self.records, (floor, 100), _FEW + 1)
        if len(certain) <= _FEW:
            self._certain = frozenset(concept.sequence for concept, _ in certain)

    def _read(self, found: Sequence[Ranked]) -> None:
        fresh = [
            each.sequence
            for each in found
            if each.sequence not in self._known
            and (self._certain is None or each.sequence in self._certain)
        ]
        concepts = self.records.by_version(fresh) if fresh else []
        scores = self.records.scores(concepts)
        disputes = find_disputes(self.records, [each.id for each in concepts])
        for each in concepts:
            dispute = disputes.get(each.id, _UNDISPUTED)
            self._known[each.sequence] = _ReadConcept(each, scores[each.id], dispute)


_UNDISPUTED: Final = Dispute()


def _judge(
    ranked: Ranked,
    near: float,
    asked: analysis.AskedTerms,
    coverage: relevance.Coverage,
    known: _ReadConcept,
) -> JudgedConcept:
    concept, score, dispute = known
    content = concept.content
    shown = excerpt(content["explanation"], asked, ranked.passage)
    present = shown.terms | analysis.find_terms(concept.name, asked)
    covered = coverage.of(present)
    by_words = math.isnan(ranked.cosine)
    hit = ConceptHit(
        concept.id,
        concept.name,
        round(covered if by_words else min(max(ranked.cosine, 0.0), 1.0), _SCORE_DIGITS),
        content.get("area"),
        content.get("topic"),
        score.value,
        "computed" if score.computed else None,
        "words" if by_words else "cosine",
        shown.snippet,
        dispute.superseded_by or None,
        dispute.contested_by or None,
        **render_period(content),
    )
    if math.isnan(near):
        value = relevance.score(covered, relevance.likeness(ranked.cosine))
        floor = relevance.floor("concept", ranked.cosine)
    else:
        value = relevance.score(covered, relevance.likeness_by_nearness(near))
        floor = relevance.NEAR_CONCEPT_FLOOR
    return JudgedConcept(hit, shown, concept, value, value >= floor)
