"""Concepts and their certainty, as one view shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import ConceptNotFound
from stratagem.knowledge.spaces import CERTAINTIES, CONCEPTS
from stratagem.storage.contract import Reader, Version

__all__ = ["Concept", "ConceptRecords", "Score", "content_of"]


class Concept(NamedTuple):
    """A concept at one version."""

    id: str
    sequence: int
    at: int
    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called."""
        name: str = self.content["name"]
        return name


class Score(NamedTuple):
    """How sure one can be of a concept, and whether that was computed."""

    value: float
    computed: bool


class ConceptRecords:
    """Reads the concepts that one view shows, and their certainty."""

    def __init__(self, reader: Reader, view: View) -> None:
        self.reader = reader
        self.view = view

    def find(self, concept_id: str) -> Concept | None:
        """Return a concept, or None where the view shows none with this id."""
        version = self.reader.records.current(self.view.lineage, CONCEPTS, concept_id)
        return _concept(concept_id, version) if version else None

    def concept(self, concept_id: str, *, field: str = "concept_id") -> Concept:
        """Return a concept.

        Raises:
            ConceptNotFound: The view shows none with this id.
        """
        found = self.find(concept_id)
        if found is not None:
            return found
        gone = bool(self.versions(concept_id, limit=1))
        raise ConceptNotFound(
            f"The concept {concept_id!r} was deleted."
            if gone
            else f"There is no concept {concept_id!r} on this branch.",
            hint="restore_concept brings it back." if gone else None,
            field=field,
            resource_id=concept_id,
        )

    def versions(self, concept_id: str, *, limit: int) -> list[Version]:
        """Return a concept's versions, newest first, deletions too."""
        return self.reader.records.history(
            self.view.lineage, CONCEPTS, concept_id, before=OPEN_END, limit=limit
        )

    def subject(self, concept_id: str) -> int:
        """Return the number of a concept that is there."""
        return self.reader.records.subjects(CONCEPTS, (concept_id,))[concept_id]

    def by_subject(self, subjects: Sequence[int]) -> dict[int, Concept]:
        """Return the concepts of some numbers, leaving out deleted ones."""
        records = self.reader.records.current_many(self.view.lineage, subjects) if subjects else {}
        return {number: _concept(each.key, each.version) for number, each in records.items()}

    def by_version(self, sequences: Sequence[int]) -> list[Concept]:
        """Return the concepts at some versions, in their order."""
        hits = self.reader.log.contents(sequences)
        return [
            Concept(hit.key or "", hit.sequence, hit.at, content_of(hit.payload))
            for hit in (hits[sequence] for sequence in sequences)
        ]

    def by_id(self, concept_ids: Sequence[str]) -> dict[str, Concept]:
        """Return the concepts of some ids, leaving out deleted ones."""
        numbers = self.reader.records.subjects(CONCEPTS, concept_ids)
        return {each.id: each for each in self.by_subject(list(numbers.values())).values()}

    def scores(self, concepts: Iterable[Concept]) -> dict[str, Score]:
        """Return how sure one can be of some concepts: as was given, or else as was computed."""
        scores: dict[str, Score] = {}
        unscored: list[str] = []
        for concept in concepts:
            given = concept.content.get("certainty_score")
            if given is None:
                unscored.append(concept.id)
            else:
                scores[concept.id] = Score(given, computed=False)
        return scores | self._computed_scores(unscored) if unscored else scores

    def score(self, concept: Concept) -> Score:
        """Return how sure one can be of a concept."""
        return self.scores((concept,))[concept.id]

    def _computed_scores(self, concept_ids: Sequence[str]) -> dict[str, Score]:
        numbers = self.reader.records.subjects(CERTAINTIES, concept_ids)
        records = self.reader.records.current_many(self.view.lineage, list(numbers.values()))
        return {
            each.key: Score(orjson.loads(each.version.payload or b"{}")["score"], computed=True)
            for each in records.values()
        }


def content_of(payload: bytes | None) -> dict[str, Any]:
    """Return the fields that a record has; a decision of a merge may have cleared some."""
    content: dict[str, Any] = orjson.loads(payload or b"{}")
    return {field: value for field, value in content.items() if value is not None}


def _concept(concept_id: str, version: Version) -> Concept:
    return Concept(concept_id, version.sequence, version.at, content_of(version.payload))
