"""Concepts and their certainty, as one view shows them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import AmbiguousName, ConceptNotFound, ValidationFailed
from stratagem.knowledge import checks
from stratagem.knowledge.spaces import (
    CERTAINTIES,
    CONCEPT_DELETED,
    CONCEPTS,
    NAME_FACET,
    RELATIONSHIP_TYPES,
    RELATIONSHIPS,
    TYPES,
    fold_name,
)
from stratagem.storage.contract import Reader, Version

_CANDIDATES_LISTED: Final = 5
_PAGE: Final = 1_000
_SIMILAR_MAX: Final = 3
# Shorter parts are in too many names.
_PART_CHARS_MIN: Final = 3

__all__ = ["Concept", "ConceptRecords", "Score", "base_at", "content_of", "score_at"]


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
    """The certainty of a concept, and whether it was computed."""

    value: float
    computed: bool


class ConceptRecords:
    """Reads the concepts that one view shows, and their certainty."""

    def __init__(self, reader: Reader, view: View, valid_at: int | None = None) -> None:
        """Read a view; `valid_at` is the moment that is asked about, else that of the view."""
        self.reader = reader
        self.view = view
        self.at = view.time if valid_at is None else valid_at
        self._labels: dict[str, str | None] | None = None

    def find(self, concept_id: str) -> Concept | None:
        """Return a concept, or None where the view shows none with this id."""
        version = self.reader.records.current(self.view.lineage, CONCEPTS, concept_id)
        return _concept(concept_id, version) if version else None

    def concept(self, given: str, *, field: str = "concept_id") -> Concept:
        """Return the concept that an id or a name stands for.

        Raises:
            ConceptNotFound: The view shows none with this id or name.
            AmbiguousName: Several have this name.
        """
        found = self.find(given) or self.find(given.lower())
        if found is not None:
            return found
        named = self.namesakes(given)
        exact = [each for each in named if each.name == given]
        for same in (named, exact):
            if len(same) == 1:
                return same[0]
        if named:
            raise _ambiguous(given, exact or named, field)
        raise self._not_found(given, field)

    def concepts(self, given: Sequence[str], *, field: str) -> list[Concept]:
        """Return the concepts that some ids or names stand for, each once."""
        found = (self.concept(each, field=f"{field}[{at}]") for at, each in enumerate(given))
        return list({each.id: each for each in found}.values())

    def namesakes(self, name: str) -> list[Concept]:
        """Return the concepts with a name, in any case: the newest of them, oldest first."""
        facet = NAME_FACET + fold_name(name)
        versions = self.reader.catalogue.with_facet(
            self.view, facet, limit=limits.NAMESAKES_READ_MAX
        )
        return self.by_version(versions)

    def find_deleted(self, given: str, *, field: str = "concept_id") -> Concept:
        """Return the deleted concept that an id or a name stands for, as it was when last there.

        Raises:
            ValidationFailed: It is not deleted.
            ConceptNotFound: There never was one with this id or name.
            AmbiguousName: Several deleted ones had this name.
        """
        there = self.find(given) or self.find(given.lower())
        last = self._last(given) or self._last(given.lower())
        named = [last] if last is not None else self._deleted_namesakes(given)
        if there is not None or (not named and self.namesakes(given)):
            raise ValidationFailed(
                f"The concept {given!r} is not deleted.",
                field=field,
                resource_id=given,
                hint="There is nothing to restore.",
            )
        if not named:
            raise ConceptNotFound(
                f"There was never a concept {given!r} on this branch.",
                field=field,
                resource_id=given,
            )
        exact = [each for each in named if each.name == given]
        for same in (named, exact):
            if len(same) == 1:
                return same[0]
        raise _ambiguous(given, exact or named, field)

    def _deleted_namesakes(self, name: str) -> list[Concept]:
        """Return the deleted concepts that had a name, in any case, when they were last there."""
        versions = self.reader.search.versions_with_facet(
            NAME_FACET + fold_name(name), limits.REVISIONS_READ_MAX
        )
        keys = {event.key: None for event in self.reader.log.contents(versions).values()}
        last = [self._last(key) for key in keys if key and self.find(key) is None]
        return [each for each in last if each and fold_name(each.name) == fold_name(name)]

    def _last(self, concept_id: str) -> Concept | None:
        """Return a concept at the newest version that has content, or None."""
        for version in self.versions(concept_id, limit=limits.REVISIONS_READ_MAX):
            if version.kind != CONCEPT_DELETED and version.payload is not None:
                return _concept(concept_id, version)
        return None

    def _not_found(self, given: str, field: str) -> ConceptNotFound:
        if self.versions(given, limit=1) or self._deleted_namesakes(given):
            return ConceptNotFound(
                f"The concept {given!r} was deleted.",
                hint="restore_concept brings it back.",
                field=field,
                resource_id=given,
            )
        similar = self.similar_names(given)
        message = f"There is no concept {given!r} on this branch."
        if not similar:
            return ConceptNotFound(message, field=field, resource_id=given)
        return ConceptNotFound(
            f"{message} Did you mean {', '.join(map(repr, similar))}?",
            hint="Use one of `similar`, or search with search_concepts_semantic.",
            field=field,
            resource_id=given,
            similar=similar,
        )

    def similar_names(self, given: str) -> list[str]:
        """Return names that have what was given in them, or are written much like it."""
        folded = fold_name(given)[: limits.CONCEPT_NAME_CHARS_MAX]
        compared = self._names_to_compare(folded)
        within = [each for each in compared if folded in each]
        near = nearest(folded, compared, _SIMILAR_MAX) + sorted(within, key=len)
        return [compared[each] for each in list(dict.fromkeys(near))[:_SIMILAR_MAX]]

    def _names_to_compare(self, folded: str) -> dict[str, str]:
        """Return names by their folded form: all of a small graph, else those that share a part.

        Of three parts of a name that has two slips, one at least is as it should be.
        """
        every = self._versions_named("", limits.NAMES_COMPARED_MAX + 1)
        if len(every) > limits.NAMES_COMPARED_MAX:
            parts = _parts_of_name(folded)
            share = limits.NAMES_COMPARED_MAX // len(parts)
            every = [each for part in parts for each in self._versions_named(part, share)]
        found = self.by_version(list(dict.fromkeys(every)))
        return {fold_name(each.name): each.name for each in found}

    def _versions_named(self, part: str, limit: int) -> list[int]:
        return self.reader.catalogue.with_facet_containing(self.view, NAME_FACET, part, limit=limit)

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

    def stream_contents(self, space: Space) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return the keys and contents of all records of a space, by key."""
        return ((key, content_of(version.payload)) for key, version in self.stream_versions(space))

    def stream_versions(self, space: Space) -> Iterator[tuple[str, Version]]:
        """Return the keys and versions of all records of a space, by key."""
        after: str | None = ""
        while after is not None:
            page, after = self.reader.records.page(
                self.view.lineage, space, after=after, limit=_PAGE
            )
            yield from page

    def labels(self) -> dict[str, str | None]:
        """Return the types of relationship that the view knows, and what declared ones mean."""
        if self._labels is None:
            page, _ = self.reader.records.page(
                self.view.lineage, RELATIONSHIP_TYPES, after="", limit=limits.LABELS_MAX
            )
            declared = {key: content_of(each.payload).get("description") for key, each in page}
            self._labels = dict.fromkeys(TYPES) | declared
        return self._labels

    def check_label(self, label: str, *, field: str = "relationship_type") -> str:
        """Return a type of relationship that the view knows.

        Raises:
            ValidationFailed: Nobody has declared it.
        """
        if label not in TYPES and label not in self.labels():
            raise checks.unknown_label(label, list(self.labels()), field)
        return label

    def relationships(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what some relationships say, leaving out those that are not there."""
        numbers = self.reader.records.subjects(RELATIONSHIPS, keys)
        found = self.reader.records.current_many(self.view.lineage, list(numbers.values()))
        return {each.key: content_of(each.version.payload) for each in found.values()}

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

    def computed_certainty(self, concept_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what was computed of the certainty of some concepts."""
        numbers = self.reader.records.subjects(CERTAINTIES, concept_ids)
        records = self.reader.records.current_many(self.view.lineage, list(numbers.values()))
        return {each.key: orjson.loads(each.version.payload or b"{}") for each in records.values()}

    def _computed_scores(self, concept_ids: Sequence[str]) -> dict[str, Score]:
        return {
            key: Score(score_at(found, self.at), computed=True)
            for key, found in self.computed_certainty(concept_ids).items()
        }


def score_at(computed: Mapping[str, Any], at: int) -> int:
    """Return what was computed of a certainty, as it is at a moment."""
    return _value_at(computed, "scores", at, computed["score"])


def base_at(computed: Mapping[str, Any], at: int, default: int) -> int:
    """Return the certainty that others weigh a concept by, at a moment."""
    same = computed.get("base", computed.get("score", default))
    return _value_at(computed, "bases", at, same)


def _value_at(computed: Mapping[str, Any], name: str, at: int, same: int) -> int:
    """Return the value of a moment; without moments it is the same at each of them."""
    moments = computed.get("moments")
    value: int = computed[name][bisect_right(moments, at)] if moments else same
    return value


def content_of(payload: bytes | None) -> dict[str, Any]:
    """Return the fields that a record has; a decision of a merge may have cleared some."""
    content: dict[str, Any] = orjson.loads(payload or b"{}")
    return {field: value for field, value in content.items() if value is not None}


def _parts_of_name(folded: str) -> list[str]:
    """Return a name, its longest words, its halves and its thirds, without what is too short."""
    words = sorted(folded.split(), key=len, reverse=True)[:2]
    parts = [folded, *words, *_cut(folded, 2), *_cut(folded, 3)]
    long = [part for part in parts if len(part) >= _PART_CHARS_MIN]
    return list(dict.fromkeys(long or [folded]))


def _cut(text: str, count: int) -> list[str]:
    ends = [len(text) * place // count for place in range(count + 1)]
    return [text[begin:end] for begin, end in pairwise(ends)]


def _concept(concept_id: str, version: Version) -> Concept:
    return Concept(concept_id, version.sequence, version.at, content_of(version.payload))


def _ambiguous(given: str, named: Sequence[Concept], field: str) -> AmbiguousName:
    candidates = [
        {"concept_id": each.id, "name": each.name, "area": each.content.get("area")}
        for each in named
    ]
    listed = [f"{each.id} ({each.content.get('area') or 'Uncategorized'})" for each in named]
    more = ["others"] if len(listed) > _CANDIDATES_LISTED else []
    return AmbiguousName(
        f"{len(named)} concepts are called {given!r}.",
        hint=f"Give the id of the one you mean: {', '.join(listed[:_CANDIDATES_LISTED] + more)}.",
        field=field,
        invalid_value=given,
        candidates=candidates,
    )
