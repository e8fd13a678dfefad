"""Erasing concepts and relationships for good, on every branch, with what belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.errors import ConceptNotFound, RelationshipNotFound
from stratagem.knowledge.models import KnowledgePurged
from stratagem.knowledge.records import ConceptRecords, content_of
from stratagem.knowledge.spaces import (
    ABOUT_FACET,
    CERTAINTIES,
    CONCEPTS,
    EVIDENCE,
    KNOWN_CONCEPTS,
    RELATIONSHIPS,
)
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Erased, Reader

__all__ = ["purge"]

_PAGE: Final = 1_000
_RELATIONSHIP_MARK: Final = "rel-"


def purge(
    foundation: Foundation, caller: Caller, given: str, *, branch: str, confirmed: bool
) -> KnowledgePurged:
    """Erase a concept with all that is about it, or a relationship; or say what would be erased.

    Raises:
        ConceptNotFound: No branch has, or ever had, a concept with this id or name.
        RelationshipNotFound: Nor a relationship.
    """
    with foundation.store.snapshot() as reader:
        collector = _Collector(reader)
        if given.startswith(_RELATIONSHIP_MARK):
            kind, record_id, doomed = "relationship", given, collector.relationship(given)
        else:
            records = ConceptRecords(reader, foundation.views.view(reader, branch))
            record_id = collector.concept_id(records, given)
            kind, doomed = "concept", collector.about(record_id)
    erased = Erased()
    note = "Nothing was erased: confirm it with confirm=true. It cannot be undone."
    if confirmed:
        erased = foundation.purge_records(caller, doomed, [])
        foundation.external.written()
        note = erased.note
    results = {"kept_result": erased.results} if erased.results else {}
    return KnowledgePurged(
        kind=kind,
        id=record_id,
        purged=confirmed,
        records=_count(doomed),
        erased=erased.events,
        copies={**erased.copies, **results},
        elsewhere=dict(erased.elsewhere),
        note=note,
    )


def _count(doomed: list[tuple[Space, str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for space, _ in doomed:
        counts[space.kind] = counts.get(space.kind, 0) + 1
    return counts


class _Collector:
    """Finds what is about a concept on any branch, deleted and hidden ones included."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._views = [
            View(branch, reader.branches.lineage(branch), reader.log.head().at)
            for branch in (*reader.branches.all(), *reader.branches.transactions())
        ]

    def concept_id(self, records: ConceptRecords, given: str) -> str:
        """Return the id of a concept that is or was there, by its id or its last name."""
        if self._exists(CONCEPTS, given):
            return given
        if records.namesakes(given):
            return records.concept(given, field="record_id").id
        return records.find_deleted(given, field="record_id").id

    def relationship(self, key: str) -> list[tuple[Space, str]]:
        """Return a relationship that is or was there."""
        if not self._exists(RELATIONSHIPS, key):
            raise RelationshipNotFound(
                f"There is no relationship {key!r} on any branch.",
                field="record_id",
                resource_id=key,
            )
        return [(RELATIONSHIPS, key)]

    def about(self, concept_id: str) -> list[tuple[Space, str]]:
        """Return a concept and every record that is about it."""
        if not self._exists(CONCEPTS, concept_id):
            raise ConceptNotFound(
                f"There is no concept {concept_id!r} on any branch.",
                field="record_id",
                resource_id=concept_id,
            )
        relationships = set(self._relationships(concept_id))
        evidence = set(self._with_facet(ABOUT_FACET + concept_id))
        known = set(self._records_that_name(concept_id))
        return [
            (CONCEPTS, concept_id),
            (CERTAINTIES, concept_id),
            *((RELATIONSHIPS, key) for key in sorted(relationships)),
            *((EVIDENCE, key) for key in sorted(evidence)),
            *((KNOWN_CONCEPTS, key) for key in sorted(known)),
        ]

    def _relationships(self, concept_id: str) -> Iterator[str]:
        node = self._reader.records.subjects(CONCEPTS, [concept_id])[concept_id]
        for view in self._views:
            links = self._reader.catalogue.links(view, (node,))
            for event in self._reader.log.contents([link.sequence for link in links]).values():
                yield str(event.key)

    def _records_that_name(self, concept_id: str) -> Iterator[str]:
        for view in self._views:
            after: str | None = ""
            while after is not None:
                page, after = self._reader.records.page(
                    view.lineage, KNOWN_CONCEPTS, after=after, limit=_PAGE
                )
                for key, version in page:
                    if content_of(version.payload).get("concept_id") == concept_id:
                        yield key

    def _with_facet(self, facet: str) -> Iterator[str]:
        for view in self._views:
            found = self._reader.catalogue.with_facet(view, facet)
            for event in self._reader.log.contents(found).values():
                yield str(event.key)

    def _exists(self, space: Space, key: str) -> bool:
        # Any version on any branch, seen or not: all of them go.
        return bool(self._reader.records.subjects(space, [key]))
