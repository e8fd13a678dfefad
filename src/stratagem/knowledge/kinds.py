"""The kinds of record that knowledge keeps, and what their events mean.

Concepts and relationships are what callers write. The certainty of a concept to which nobody
gave one is a record of its own, because it follows from the others: computing it leaves the
concept's version, its time and its history alone, and a merge computes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stratagem.engine.events import Draft
from stratagem.engine.records import EventKind, Link, Projection, RecordKind, Text
from stratagem.knowledge import checks
from stratagem.knowledge import spaces as names

__all__ = ["KINDS"]


def _concept(content: Mapping[str, Any], _key: str | None) -> Projection:
    area, topic, subtopic = place = names.place_of(content)
    numbers = [("created", float(content["created_at"]))]
    if content.get("certainty_score") is not None:
        numbers.append(("certainty", float(content["certainty_score"])))
    return Projection(
        facets=(
            names.NAME_FACET + names.fold_name(content["name"]),
            names.facet("area", area),
            names.facet("topic", topic),
            names.facet("subtopic", subtopic),
        ),
        text=Text(content["name"], content["explanation"], titled=True),
        numbers=tuple(numbers),
        group="\x1f".join(place),
    )


def _relationship(content: Mapping[str, Any], _key: str | None) -> Projection:
    link = Link(
        names.CONCEPTS,
        content["source_id"],
        content["target_id"],
        content["relationship_type"],
        float(content["strength"]),
    )
    return Projection(links=(link,))


def _describe_merged_cycles(reader: Any, view: Any, drafts: Sequence[Draft]) -> list[str]:
    # Only merges of relationships need the graph, and opening a database need not read it.
    from stratagem.knowledge.merge_cycles import describe_merged_cycles

    return describe_merged_cycles(reader, view, drafts)


def _settle_certainty(transaction: Any, branch: Any, drafts: Sequence[Draft]) -> None:
    from stratagem.knowledge import certainty

    certainty.settle(transaction, branch, drafts)


def _certainty(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        facets=(names.TIMED_FACET,) if content.get("moments") else (),
        numbers=(("certainty", float(content["score"])),),
    )


def _known_concept(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(names.LEARNER_FACET + content["learner"],))


def _evidence(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(names.ABOUT_FACET + content["concept_id"],))


def _relationship_type(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection()


def _check_known_concept(content: Mapping[str, Any]) -> None:
    """Refuse a merged record of what a learner knows that nobody could have written."""
    checks.known_concept(content)


def _check_concept(content: Mapping[str, Any]) -> None:
    """Refuse a merged concept that nobody could have written."""
    checks.fields({name: value for name, value in content.items() if name != "created_at"})
    checks.creation_time(content.get("created_at"))


def _check_relationship(content: Mapping[str, Any]) -> None:
    """Refuse a merged relationship that nobody could have written."""
    checks.relationship(content)


def _project_deletion(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(deleted=True)


KINDS: Final = (
    RecordKind(
        names.CONCEPT,
        (
            EventKind(names.CONCEPT_CREATED, _concept),
            EventKind(names.CONCEPT_UPDATED, _concept),
            EventKind(names.CONCEPT_RESTORED, _concept),
            EventKind(names.CONCEPT_DELETED, _project_deletion, deletes=True),
        ),
        writes=names.CONCEPT_UPDATED,
        deletes=names.CONCEPT_DELETED,
        validate=_check_concept,
        grouped=True,
        erasable=("name", "explanation", "source"),
        times=frozenset({"created_at", "valid_from", "valid_to"}),
    ),
    RecordKind(
        names.RELATIONSHIP,
        (
            EventKind(names.RELATIONSHIP_CREATED, _relationship),
            EventKind(names.RELATIONSHIP_DELETED, _project_deletion, deletes=True),
        ),
        writes=names.RELATIONSHIP_CREATED,
        deletes=names.RELATIONSHIP_DELETED,
        validate=_check_relationship,
        # Relationships are joined as sets: that both sides made one is no conflict.
        yielding=frozenset({"strength", "notes", "valid_from", "valid_to"}),
        erasable=("notes",),
        times=frozenset({"valid_from", "valid_to"}),
        notice=_describe_merged_cycles,
    ),
    RecordKind(
        names.CERTAINTY,
        (EventKind(names.CERTAINTY_COMPUTED, _certainty),),
        writes=names.CERTAINTY_COMPUTED,
        derived=True,
        settle=_settle_certainty,
    ),
    RecordKind(
        names.CONCEPT_EVIDENCE,
        (EventKind(names.EVIDENCE_GIVEN, _evidence),),
        writes=names.EVIDENCE_GIVEN,
        validate=checks.evidence,
        yielding=frozenset({"note", "said_at"}),
        erasable=("source", "note"),
        times=frozenset({"said_at"}),
        about=("concept_id", names.CONCEPTS),
    ),
    RecordKind(
        names.RELATIONSHIP_TYPE,
        (EventKind(names.RELATIONSHIP_TYPE_DECLARED, _relationship_type),),
        writes=names.RELATIONSHIP_TYPE_DECLARED,
        validate=checks.relationship_type,
        # That both sides declared one, in other words, is no conflict.
        yielding=frozenset({"description"}),
    ),
    RecordKind(
        names.KNOWN_CONCEPT,
        (
            EventKind(names.CONCEPT_LEARNT, _known_concept),
            EventKind(names.CONCEPT_UNLEARNT, _project_deletion, deletes=True),
        ),
        writes=names.CONCEPT_LEARNT,
        deletes=names.CONCEPT_UNLEARNT,
        validate=_check_known_concept,
        # That both sides know it, since different moments, is no conflict.
        yielding=frozenset({"since"}),
        about=("concept_id", names.CONCEPTS),
        times=frozenset({"since"}),
    ),
)
