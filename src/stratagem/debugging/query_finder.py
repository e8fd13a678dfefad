"""Incidents for the one search over all systems.

Debugging says how likely a known problem is the one that is asked about. A query that describes no
problem (a table, a host, a step of a fix) is like none of them, so incidents are found by words,
too: those of their own text, and of their fixes. An incident counts by whichever says more: how
likely it is, or how much of the query its words cover, as those of an entry do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.debugging.kinds import INCIDENTS, SOLUTIONS
from stratagem.debugging.records import IncidentRecords
from stratagem.debugging.retrieval import find_incidents, parse_problem
from stratagem.deferred_dataclasses import dataclass
from stratagem.operation import Caller
from stratagem.search import analysis, relevance
from stratagem.search.foundation import Foundation
from stratagem.search.index import Ranking
from stratagem.search.record_finders import FinderQuery, FoundByName
from stratagem.search.snippets import best_excerpt
from stratagem.storage.contract import Version

__all__ = ["find_by_query"]

# Less likely than this it is another problem.
_RELEVANCE_MIN: Final = 0.2
_DEEPER: Final = 4


@dataclass(slots=True)
class _Candidate:
    """How likely an incident is what is asked about, and its fixes that have words asked for."""

    likely: float = 0.0
    fixes: list[Sequence[str]] = field(default_factory=list)


def find_by_query(foundation: Foundation, _caller: Caller, query: FinderQuery) -> list[FoundByName]:
    """Return the incidents that a query is likely about, or whose words it has, best first."""
    with foundation.index.snapshot() as reader:
        view = foundation.views.view(reader, query.branch, query.as_of)
        records = IncidentRecords(reader, view, snapshot=True)
        problem = parse_problem(query.text)
        likely, _ = find_incidents(foundation, reader, view, problem, limit=query.limit)
        found: list[FoundByName] = []
        count = 0
        for ranking in _rank_by_words(foundation, records, query):
            before, looked_at = len(found), count
            candidates = _Candidates(records, query.text)
            for match in likely:
                candidates.add_likely(match.incident_id, match.relevance)
            candidates.add_by_words(ranking)
            coverage = relevance.Coverage(foundation.index.rarity(reader, ranking.terms))
            found = list(candidates.judge(analysis.AskedTerms(ranking.terms), coverage, query))
            count = candidates.judged_count
            # What follows matches no better. But all may have been fixes of the same incidents.
            if len(found) >= query.limit or (len(found) == before and count > looked_at):
                break
    return sorted(found, key=lambda each: -each.score)[: query.limit]


def _rank_by_words(
    foundation: Foundation, records: IncidentRecords, query: FinderQuery
) -> Iterator[Ranking]:
    """Yield the incidents and fixes that have words of a query: so many, then more."""
    reader = records.reader
    wanted = (INCIDENTS, SOLUTIONS)
    spaces = [number for number, space in reader.records.spaces().items() if space in wanted]
    depth = query.limit
    while True:
        ranking = foundation.index.search(
            reader, records.view, query.text, spaces=spaces, tags=(), limit=depth, lexical=True
        )
        yield ranking
        if len(ranking.found) < depth:
            return
        depth *= _DEEPER


class _Candidates:
    """The incidents that may be hits; one that was merged into another stands for that."""

    def __init__(self, records: IncidentRecords, text: str) -> None:
        self._records = records
        self._found: dict[str, _Candidate] = {}
        # How many of them were judged: those that are there and were not retired.
        self.judged_count = 0
        if len(text) <= limits.KEY_CHARS_MAX:
            # Whoever has an id asks by that.
            self.add_likely(text.strip(), 1.0)

    def add_likely(self, incident_id: str, likely: float) -> None:
        """Add an incident that is likely what is asked about."""
        candidate = self._of(incident_id)
        candidate.likely = max(candidate.likely, likely)

    def add_by_words(self, ranking: Ranking) -> None:
        """Add the incidents that were found by words, their own or those of a fix."""
        events = self._records.reader.log.contents([each.sequence for each in ranking.found])
        for ranked in ranking.found:
            event = events[ranked.sequence]
            content = orjson.loads(event.payload)
            is_fix = event.space == SOLUTIONS
            if is_fix and ("retired" in content or "merged_into" in content):
                continue
            candidate = self._of(content["incident_id"])
            if is_fix:
                candidate.fixes.append(content["steps"])

    def _of(self, incident_id: str) -> _Candidate:
        stands = self._records.resolve_incident(incident_id)
        return self._found.setdefault(stands, _Candidate())

    def judge(
        self, asked: analysis.AskedTerms, coverage: relevance.Coverage, query: FinderQuery
    ) -> Iterator[FoundByName]:
        """Yield the incidents that answer well enough."""
        for incident_id, content, version in self._read():
            self.judged_count += 1
            candidate = self._found[incident_id]
            text = _describe(content, candidate.fixes)
            shown = best_excerpt(text, asked)
            covered = coverage.of(shown.terms | analysis.find_terms(content["title"], asked))
            score = max(covered, candidate.likely)
            is_hit = covered >= relevance.FLOORS["incident"] or candidate.likely >= _RELEVANCE_MIN
            if is_hit if query.min_score is None else score > 0:
                yield FoundByName(
                    incident_id,
                    content["title"],
                    text,
                    shown,
                    score,
                    version.sequence,
                    version.at,
                )

    def _read(self) -> Iterator[tuple[str, Mapping[str, Any], Version]]:
        """Yield the incidents that are there and were not retired."""
        records, lineage = self._records.reader.records, self._records.view.lineage
        subjects = records.subjects(INCIDENTS, list(self._found))
        current = records.current_many(lineage, list(subjects.values()))
        for incident_id in self._found:
            record = current.get(subjects.get(incident_id, -1))
            if record is None or record.version.payload is None:
                continue
            content = orjson.loads(record.version.payload)
            if "retired" not in content:
                yield incident_id, content, record.version


def _describe(content: Mapping[str, Any], fixes: Sequence[Sequence[str]]) -> str:
    """Return what an incident says: its title, the error that it is known by, and more of it.

    Of its fixes only those that have words of the query: which is best is for `ranked_solutions`.
    """
    parts = [content["title"], content.get("error_signature"), content.get("summary")]
    parts += ["\n".join(("Fix:", *steps)) for steps in fixes]
    return "\n".join(part for part in parts if part)
