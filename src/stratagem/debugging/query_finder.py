"""Incidents for the one search over all systems."""

from __future__ import annotations

from typing import Final

from stratagem.debugging.kinds import INCIDENTS
from stratagem.debugging.retrieval import SimilarIncident, find_incidents, parse_problem
from stratagem.operation import Caller
from stratagem.search import analysis
from stratagem.search.foundation import Foundation
from stratagem.search.record_finders import FinderQuery, FoundByName
from stratagem.search.snippets import best_excerpt

__all__ = ["find_by_query"]

# Less likely than this it is another problem.
_RELEVANCE_MIN: Final = 0.2


def find_by_query(foundation: Foundation, _caller: Caller, query: FinderQuery) -> list[FoundByName]:
    """Return the incidents that are likely what a query is about, the likeliest first."""
    with foundation.index.snapshot() as reader:
        view = foundation.views.view(reader, query.branch, query.as_of)
        matches, _ = find_incidents(
            foundation, reader, view, parse_problem(query.text), limit=query.limit
        )
        asked = analysis.AskedTerms(analysis.query_terms(query.text))
        found = []
        for match in matches:
            version = reader.records.current(view.lineage, INCIDENTS, match.incident_id)
            if version is not None and match.relevance >= _RELEVANCE_MIN:
                text = _describe(match)
                found.append(
                    FoundByName(
                        match.incident_id,
                        match.content["title"],
                        text,
                        best_excerpt(text, asked),
                        match.relevance,
                        version.sequence,
                        version.at,
                    )
                )
    return found


def _describe(match: SimilarIncident) -> str:
    """Return what an incident says: its title, and the error that it is known by."""
    error = match.content.get("error_signature")
    return "\n".join(part for part in (match.content["title"], error) if part)
