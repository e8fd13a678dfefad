"""Concepts that need attention: contested, stale, orphaned and duplicate ones.

Twins are found by name, whatever its case, spacing and the form of its words, and by meaning: two
concepts whose texts mean nearly the same. So many texts are compared at most, the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_modules import np
from stratagem.engine import moments
from stratagem.engine.events import Space
from stratagem.engine.records import Text
from stratagem.knowledge.models import ConceptRef, KnowledgeReview, ReviewItem
from stratagem.knowledge.records import ConceptRecords, content_of
from stratagem.knowledge.spaces import CONCEPTS, EVIDENCE, RELATIONSHIPS
from stratagem.knowledge.valid_time import holds_at
from stratagem.search import analysis
from stratagem.search.index import Index
from stratagem.storage.contract import Version

__all__ = ["review"]

_PAGE: Final = 1_000
_NO_WORD: Final = re.compile(r"[\W_]++")
_DAY: Final = 24 * 3600 * 1_000_000
# Texts that mean the same are this near; those of one topic are not.
_TWIN_COSINE: Final = 0.93

Listed = Mapping[str, tuple[Version, Mapping[str, Any]]]


def review(
    records: ConceptRecords, index: Index, *, stale_days: int, limit: int
) -> KnowledgeReview:
    """Return what wants attention, the most pressing of each kind first."""
    concepts = dict(_read_space(records, CONCEPTS, limits.REVIEWED_MAX))
    links = [
        content
        for _, (_, content) in _read_space(records, RELATIONSHIPS, limits.LINKS_READ_MAX)
        if content["source_id"] in concepts and content["target_id"] in concepts
    ]
    speaking = [each for each in links if _holds_with_source(each, concepts, records.at)]
    given = [
        (content.get("said_at", version.at), content)
        for _, (version, content) in _read_space(records, EVIDENCE, limits.LINKS_READ_MAX)
    ]
    found = {
        "contested": _find_contested(concepts, speaking, [content for _, content in given]),
        "stale": _find_stale(concepts, given, records.view.time - stale_days * _DAY),
        "orphaned": _find_orphaned(concepts, links),
    }
    twins = _find_twins(concepts, index)
    counts = {name: len(items) for name, items in found.items()} | {"duplicates": len(twins)}
    note = None
    if len(concepts) >= limits.REVIEWED_MAX:
        note = f"Only {limits.REVIEWED_MAX:,} concepts were checked."
    return KnowledgeReview(
        contested=found["contested"][:limit],
        stale=found["stale"][:limit],
        orphaned=found["orphaned"][:limit],
        duplicates=[_refs(concepts, group) for group in twins[:limit]],
        counts=counts,
        message=", ".join(f"{count} {name}" for name, count in counts.items()),
        note=note,
    )


def _holds_with_source(link: Mapping[str, Any], concepts: Listed, at: int) -> bool:
    """Whether a relationship, and the concept that it leads away from, hold at a moment."""
    return holds_at(link, at) and holds_at(concepts[link["source_id"]][1], at)


def _read_space(
    records: ConceptRecords, space: Space, most: int
) -> Iterator[tuple[str, tuple[Version, Mapping[str, Any]]]]:
    after: str | None = ""
    count = 0
    while after is not None and count < most:
        page, after = records.reader.records.page(
            records.view.lineage, space, after=after, limit=_PAGE
        )
        count += len(page)
        for key, version in page:
            yield key, (version, content_of(version.payload))


def _find_contested(
    concepts: Listed, links: Sequence[Mapping[str, Any]], given: Sequence[Mapping[str, Any]]
) -> list[ReviewItem]:
    against: dict[str, list[str]] = {}
    for link in links:
        if link["relationship_type"] == "contradicts":
            name = concepts[link["source_id"]][1]["name"]
            against.setdefault(link["target_id"], []).append(f"contradicted by {name}")
    for each in given:
        if each["verdict"] == "refuted" and each["concept_id"] in concepts:
            against.setdefault(each["concept_id"], []).append(f"refuted by {each['source']}")
    most = sorted(against, key=lambda each: -len(against[each]))
    return [_item(concepts, each, "; ".join(against[each][:5])) for each in most]


def _find_stale(
    concepts: Listed, given: Sequence[tuple[int, Mapping[str, Any]]], before: int
) -> list[ReviewItem]:
    latest = {key: version.at for key, (version, _) in concepts.items()}
    for at, content in given:
        key = content["concept_id"]
        if key in latest:
            latest[key] = max(latest[key], at)
    oldest = sorted((at, key) for key, at in latest.items() if at < before)
    return [_item(concepts, key, f"unchanged since {moments.iso(at)}") for at, key in oldest]


def _find_orphaned(concepts: Listed, links: Sequence[Mapping[str, Any]]) -> list[ReviewItem]:
    linked = {link[end] for link in links for end in ("source_id", "target_id")}
    return [_item(concepts, key, "related to nothing") for key in concepts if key not in linked]


def _find_twins(concepts: Listed, index: Index) -> list[list[str]]:
    """Return groups of concepts that may be the same."""
    groups = _Groups()
    by_name: dict[str, str] = {}
    for key, (_, content) in concepts.items():
        plain = _NO_WORD.sub(" ", content["name"])
        words = " ".join(analysis.terms(plain)) or content["name"].casefold()
        if words in by_name:
            groups.join(by_name[words], key)
        by_name.setdefault(words, key)
    for one, other in _same_meaning(concepts, index):
        groups.join(one, other)
    return groups.all()


def _same_meaning(concepts: Listed, index: Index) -> Iterator[tuple[str, str]]:
    if index.embedder is None:
        return
    newest = sorted(concepts, key=lambda key: -concepts[key][0].at)[: limits.COMPARED_MAX]
    texts = [
        Text(concepts[key][1]["name"], concepts[key][1]["explanation"], titled=True)
        for key in newest
    ]
    if not texts:
        return
    vectors = index.embed(texts)
    alike = np.triu(vectors @ vectors.T, 1) >= _TWIN_COSINE
    for one, other in np.argwhere(alike).tolist():
        yield newest[one], newest[other]


class _Groups:
    """Concepts that belong together, because a chain of pairs joins them."""

    def __init__(self) -> None:
        self._of: dict[str, list[str]] = {}

    def join(self, one: str, other: str) -> None:
        left = self._of.setdefault(one, [one])
        right = self._of.setdefault(other, [other])
        if left is right:
            return
        left += right
        for each in right:
            self._of[each] = left

    def all(self) -> list[list[str]]:
        return list({id(group): group for group in self._of.values()}.values())


def _item(concepts: Listed, key: str, why: str) -> ReviewItem:
    return ReviewItem(key, concepts[key][1]["name"], why)


def _refs(concepts: Listed, keys: Sequence[str]) -> list[ConceptRef]:
    return [ConceptRef(key, concepts[key][1]["name"]) for key in keys]
