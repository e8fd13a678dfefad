"""Lists of concepts: by what they are, by age, by certainty, by place.

Each list is read in its order and only as far as it is asked for. Where a condition picks out
few concepts these are read and sorted instead, so that a rare area is found at once in a
large collection, and a common one without reading all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.events import Space
from stratagem.knowledge.models import Area, ConceptListed, Hierarchy, Subtopic, Topic
from stratagem.knowledge.records import Concept, ConceptRecords, Score, content_of, score_at
from stratagem.knowledge.spaces import (
    CERTAINTIES,
    CONCEPT,
    CONCEPTS,
    NAME_FACET,
    TIMED_FACET,
    facet,
    fold_name,
    place_of,
)
from stratagem.knowledge.valid_time import holds_at, render_period
from stratagem.storage.catalogue import ListedVersion

__all__ = [
    "ConceptFilter",
    "by_certainty",
    "counts",
    "find_matching",
    "hierarchy",
    "newest",
    "to_list_item",
]

# Picked out by a condition, up to this many are read and sorted.
_FEW: Final = 2_000
_PAGE: Final = 64
_ANY: Final = (0.0, float(2**62))


@dataclass(frozen=True, slots=True)
class ConceptFilter:
    """What a concept must be to be listed; None where it does not matter."""

    name: str | None = None
    area: str | None = None
    topic: str | None = None
    subtopic: str | None = None
    min_certainty: float | None = None
    valid_at: int | None = None

    @property
    def places(self) -> dict[str, str]:
        """The levels that matter, and the name that each must have."""
        levels = {"area": self.area, "topic": self.topic, "subtopic": self.subtopic}
        return {level: name for level, name in levels.items() if name is not None}

    def fits(self, concept: Concept, scores: Mapping[str, Score]) -> bool:
        """Whether a concept is to be listed."""
        place = dict(zip(("area", "topic", "subtopic"), place_of(concept.content), strict=True))
        if any(place[level] != name for level, name in self.places.items()):
            return False
        if self.valid_at is not None and not holds_at(concept.content, self.valid_at):
            return False
        if self.name is not None and fold_name(self.name) not in fold_name(concept.name):
            return False
        return self.min_certainty is None or scores[concept.id].value >= self.min_certainty


def newest(records: ConceptRecords, limit: int, at: int | None = None) -> list[Concept]:
    """Return the concepts that were created last, newest first; only those that held `at`."""
    return list(islice(_select_held(_by_age(records), at), limit))


def find_matching(
    records: ConceptRecords, wanted: ConceptFilter, limit: int
) -> list[tuple[Concept, Score]]:
    """Return the concepts that fit, newest first."""
    few = _select_by_facet(records, wanted)
    if few is None:
        pages = _pages(_by_age(records))
    else:
        concepts = records.by_version(few)
        concepts.sort(key=lambda each: (each.content["created_at"], each.sequence), reverse=True)
        pages = _pages(iter(concepts))
    found: list[tuple[Concept, Score]] = []
    for page in pages:
        scores = records.scores(page)
        found += [(each, scores[each.id]) for each in page if wanted.fits(each, scores)]
        if len(found) >= limit:
            break
    return found[:limit]


def by_certainty(
    records: ConceptRecords,
    between: tuple[float, float],
    limit: int,
    at: int | None = None,
) -> list[tuple[Concept, Score]]:
    """Return concepts in a range of certainty, the least certain first; that held `at`.

    The store lists computed certainties as they were when they were written. Those that change
    with time are read apart, as they are at the moment that is asked about.
    """
    given = (
        (entry, Score(entry.value, computed=False), concept)
        for entry, concept in _in_range(records, CONCEPTS, between, _with_given_certainty)
    )
    computed = (
        (entry, Score(round(entry.value), computed=True), concept)
        for entry, concept in _in_range(records, CERTAINTIES, between, _with_computed_certainty)
    )
    timed = sorted(_timed_certainty(records, between), key=lambda each: each[0])
    every = merge(given, computed, timed, key=lambda each: each[0])
    held = (each for each in every if at is None or holds_at(each[2].content, at))
    return [
        (concept, score if score.computed else records.score(concept))
        for _, score, concept in islice(held, limit)
    ]


def counts(records: ConceptRecords, at: int | None = None) -> list[tuple[tuple[str, ...], int]]:
    """Return every place that has concepts, and how many, in the order of their names.

    Asked about a moment, all concepts are read: which of them held then is not counted anywhere.
    """
    if at is not None:
        return sorted(
            Counter(place_of(each.content) for each in _select_held(_by_age(records), at)).items()
        )
    tallies = records.reader.catalogue.group_counts(records.view.lineage, CONCEPT)
    return sorted((tuple(group.split("\x1f")), count) for group, count in tallies.items())


def hierarchy(counted: Sequence[tuple[tuple[str, ...], int]]) -> Hierarchy:
    """Return how many concepts there are in each area, topic and subtopic."""
    areas: dict[str, Area] = {}
    topics: dict[tuple[str, str], Topic] = {}
    for (area_name, topic_name, subtopic_name), count in counted:
        area = areas.setdefault(area_name, Area(area_name))
        topic = topics.get((area_name, topic_name))
        if topic is None:
            topic = topics[area_name, topic_name] = Topic(topic_name)
            area.topics.append(topic)
        topic.subtopics.append(Subtopic(subtopic_name, count))
        topic.concept_count += count
        area.concept_count += count
    total = sum(count for _, count in counted)
    message = f"Hierarchy contains {len(areas)} areas with {total} concepts"
    return Hierarchy(list(areas.values()), total, message)


def to_list_item(concept: Concept, score: Score) -> ConceptListed:
    """Return a concept as lists show it."""
    content = concept.content
    return ConceptListed(
        concept.id,
        concept.name,
        content.get("area"),
        content.get("topic"),
        content.get("subtopic"),
        score.value,
        moments.iso(content["created_at"]),
        "computed" if score.computed else None,
        **render_period(content),
    )


def _select_by_facet(records: ConceptRecords, wanted: ConceptFilter) -> list[int] | None:
    """Return the versions that one condition leaves, where it leaves few; None where none does."""
    reader, view = records.reader, records.view
    for level, name in wanted.places.items():
        few = reader.catalogue.with_facet(view, facet(level, name), limit=_FEW + 1)
        if len(few) <= _FEW:
            return few
    if wanted.name is not None:
        part = fold_name(wanted.name)
        few = reader.catalogue.with_facet_containing(view, NAME_FACET, part, limit=_FEW + 1)
        if len(few) <= _FEW:
            return few
    return None


def _select_held(concepts: Iterator[Concept], at: int | None) -> Iterator[Concept]:
    return (each for each in concepts if at is None or holds_at(each.content, at))


def _by_age(records: ConceptRecords) -> Iterator[Concept]:
    """Return all concepts, newest first, reading them as they are taken."""
    for page in _sorted_pages(records, CONCEPTS, "created", _ANY, descending=True):
        yield from records.by_version([each.sequence for each in page])


def _in_range(
    records: ConceptRecords,
    space: Space,
    between: tuple[float, float],
    concepts: Callable[
        [ConceptRecords, list[ListedVersion]], Iterator[tuple[ListedVersion, Concept]]
    ],
) -> Iterator[tuple[ListedVersion, Concept]]:
    for page in _sorted_pages(records, space, "certainty", between):
        yield from concepts(records, page)


def _with_given_certainty(
    records: ConceptRecords, page: list[ListedVersion]
) -> Iterator[tuple[ListedVersion, Concept]]:
    yield from zip(page, records.by_version([each.sequence for each in page]), strict=True)


def _with_computed_certainty(
    records: ConceptRecords, page: list[ListedVersion]
) -> Iterator[tuple[ListedVersion, Concept]]:
    """Return the concepts that some computed certainties belong to, at every moment."""
    hits = records.reader.log.contents([each.sequence for each in page])
    same = [each for each in page if "moments" not in content_of(hits[each.sequence].payload)]
    concepts = _read_unscored(records, [hits[each.sequence].key or "" for each in same])
    for each in same:
        concept = concepts.get(hits[each.sequence].key or "")
        if concept is not None:
            yield each, concept


def _timed_certainty(
    records: ConceptRecords, between: tuple[float, float]
) -> Iterator[tuple[ListedVersion, Score, Concept]]:
    """Return the concepts whose certainty changes with time, where it is in a range."""
    versions = records.reader.catalogue.with_facet(records.view, TIMED_FACET)
    hits = records.reader.log.contents(versions)
    concepts = _read_unscored(records, [hits[each].key or "" for each in versions])
    for sequence in versions:
        score = score_at(content_of(hits[sequence].payload), records.at)
        concept = concepts.get(hits[sequence].key or "")
        if concept is not None and between[0] <= score <= between[1]:
            yield ListedVersion(score, sequence), Score(score, computed=True), concept


def _read_unscored(records: ConceptRecords, concept_ids: Sequence[str]) -> dict[str, Concept]:
    """Return the concepts of some ids to which nobody gave a score."""
    found = records.by_id(concept_ids)
    return {key: each for key, each in found.items() if "certainty_score" not in each.content}


def _sorted_pages(
    records: ConceptRecords,
    space: Space,
    name: str,
    between: tuple[float, float],
    *,
    descending: bool = False,
) -> Iterator[list[ListedVersion]]:
    after: ListedVersion | None = None
    while True:
        page = records.reader.catalogue.sorted_by(
            records.view,
            space,
            name,
            between=between,
            after=after,
            descending=descending,
            limit=_PAGE,
        )
        if not page:
            return
        yield page
        after = page[-1]


def _pages(concepts: Iterator[Concept]) -> Iterator[list[Concept]]:
    while page := list(islice(concepts, _PAGE)):
        yield page
