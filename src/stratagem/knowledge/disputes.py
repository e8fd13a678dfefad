"""Which concepts were superseded, and which are contested.

A concept that another supersedes is no longer current, one that another contradicts is contested:
every answer that shows it says so, and by which. A concept against it counts only if it exists and
is valid at the time in question: a successor that becomes valid next year replaces nothing yet, and
at an earlier time the predecessor is the current one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final, Protocol

from stratagem.deferred_dataclasses import dataclass
from stratagem.knowledge.models import ConceptRef
from stratagem.knowledge.records import ConceptRecords, content_of
from stratagem.knowledge.spaces import CONCEPTS
from stratagem.knowledge.valid_time import holds_at

__all__ = ["Dispute", "DisputedItem", "find_disputes", "mark_disputes"]

_FIELDS: Final = (("supersedes", "superseded_by"), ("contradicts", "contested_by"))
_LINKS_MAX: Final = 2_000


class DisputedItem(Protocol):
    """What answers show of a concept."""

    concept_id: str
    superseded_by: list[ConceptRef] | None
    contested_by: list[ConceptRef] | None


@dataclass(slots=True)
class Dispute:
    """The concepts against a concept."""

    superseded_by: list[ConceptRef] = field(default_factory=list)
    contested_by: list[ConceptRef] = field(default_factory=list)


def find_disputes(records: ConceptRecords, concept_ids: Sequence[str]) -> dict[str, Dispute]:
    """Return what speaks against some concepts, where anything does, at the moment asked about."""
    numbers = records.reader.records.subjects(CONCEPTS, list(dict.fromkeys(concept_ids)))
    ids = {number: concept_id for concept_id, number in numbers.items()}
    links = [
        (name, link)
        for label, name in _FIELDS
        for link in records.reader.catalogue.links(
            records.view, sorted(ids), limit=_LINKS_MAX, by=(False, label)
        )
    ]
    if not links:
        return {}
    others = records.by_subject(sorted({link.other for _, link in links}))
    holding = records.reader.log.contents([link.sequence for _, link in links])
    found: dict[str, Dispute] = {}
    for name, link in links:
        other = others.get(link.other)
        if other is None or not holds_at(other.content, records.at):
            continue
        if not holds_at(content_of(holding[link.sequence].payload), records.at):
            continue
        dispute = found.setdefault(ids[link.node], Dispute())
        getattr(dispute, name).append(ConceptRef(other.id, other.name))
    return found


def mark_disputes(records: ConceptRecords, items: Iterable[DisputedItem]) -> None:
    """Say of each item that is superseded or contested by which concepts it is."""
    shown = list(items)
    found = find_disputes(records, [each.concept_id for each in shown])
    for each in shown:
        dispute = found.get(each.concept_id)
        if dispute is not None:
            each.superseded_by = dispute.superseded_by or None
            each.contested_by = dispute.contested_by or None
