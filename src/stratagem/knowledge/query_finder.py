"""Concepts for the one search over all systems."""

from __future__ import annotations

from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.similarity_search import ConceptQuery, Wanted, find_similar
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.search.record_finders import FinderQuery, FoundByName

__all__ = ["find_concepts"]


def find_concepts(foundation: Foundation, _caller: Caller, query: FinderQuery) -> list[FoundByName]:
    """Return the current concepts that answer a query, best first.

    The database itself answers, whichever services were chosen: a search over all systems must not
    fail for one of them.
    """
    with foundation.index.snapshot() as reader:
        view = foundation.views.view(reader, query.branch, query.as_of)
        records = ConceptRecords(reader, view)
        found = find_similar(
            foundation.index, records, ConceptQuery(query.text), Wanted(), query.limit
        ).concepts
    return [
        FoundByName(
            each.concept.id,
            each.concept.name,
            each.concept.content["explanation"],
            each.shown,
            each.relevance,
            each.concept.sequence,
            each.concept.at,
            passage_at=each.shown.begin,
            contested_by=tuple(other.name for other in each.hit.contested_by or ()),
        )
        for each in found
    ]
