"""Creating and deleting relationships, and walking along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.errors import PathNotFound, RelationshipNotFound, ValidationFailed
from stratagem.knowledge import certainty, checks, valid_time
from stratagem.knowledge.concepts import Concepts
from stratagem.knowledge.disputes import mark_disputes
from stratagem.knowledge.graph import BuiltInGraph
from stratagem.knowledge.list_positions import ListPosition
from stratagem.knowledge.models import Path, Related, RelationshipWritten, Results
from stratagem.knowledge.parameters import (
    ConceptId,
    Direction,
    LabelFilter,
    PathDepth,
    RelatedLimit,
    RelationshipLabel,
    SourceId,
    Strength,
    TargetId,
    ValidAt,
    ValidFrom,
    ValidTo,
)
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.spaces import (
    PREREQUISITE,
    RELATIONSHIP_CREATED,
    RELATIONSHIP_DELETED,
    RELATIONSHIPS,
    relationship_key,
)
from stratagem.parameters import AsOf, BranchName, Cursor, Param, RequestId
from stratagem.storage.contract import Transaction

__all__ = ["Relationships", "describe_cycle", "refuse_impossible"]


class Relationships(Concepts):
    """Relationships, for one caller."""

    def create_relationship(
        self,
        source_id: SourceId,
        target_id: TargetId,
        relationship_type: RelationshipLabel,
        *,
        strength: Strength = 1.0,
        notes: Annotated[str | None, Param("Anything else worth knowing", quiet=True)] = None,
        valid_from: ValidFrom = None,
        valid_to: ValidTo = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RelationshipWritten:
        """Relate one concept to another.

        Raises:
            ConceptNotFound: One of them is not there.
            ValidationFailed: They are so related already, are the same, or the relationship
                would close a cycle of prerequisites.
        """
        self._services.require("create_relationship")
        label = _check_relationship(source_id, target_id, relationship_type)
        content: dict[str, Any] = {
            "source_id": source_id,
            "target_id": target_id,
            "relationship_type": label,
            "strength": strength,
        }
        if (told := checks.notes(notes)) is not None:
            content["notes"] = told
        period = valid_time.read_period(valid_from, valid_to, self._views.zone)
        content |= {field: at for field, at in period.items() if at is not None}

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            records.check_label(label)
            ends = _ends(records, source_id, target_id)
            key = _free(records, ends, label)
            draft = Draft(RELATIONSHIP_CREATED, content | ends, RELATIONSHIPS, key)
            return _relate(records, transaction, draft)

        answer = self._change(work, "create_relationship", content, branch, request_id)
        return RelationshipWritten(message="Relationship created", **answer)

    def delete_relationship(
        self,
        source_id: SourceId,
        target_id: TargetId,
        relationship_type: RelationshipLabel,
        *,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RelationshipWritten:
        """Delete a relationship.

        Raises:
            RelationshipNotFound: The concepts are not so related.
            AmbiguousName: Several concepts have a name that was given.
        """
        self._services.require("delete_relationship")
        label = _check_relationship(source_id, target_id, relationship_type)
        given = {"source_id": source_id, "target_id": target_id, "relationship_type": label}

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            ends = given | _known_ends(records, source_id, target_id)
            key = relationship_key(ends["source_id"], ends["target_id"], label)
            if transaction.records.current(records.view.lineage, RELATIONSHIPS, key) is None:
                raise RelationshipNotFound(
                    f"There is no {label} relationship from {source_id!r} to {target_id!r}.",
                    field="relationship_type",
                    resource_id=key,
                )
            return _relate(
                records, transaction, Draft(RELATIONSHIP_DELETED, ends, RELATIONSHIPS, key)
            )

        answer = self._change(work, "delete_relationship", given, branch, request_id)
        return RelationshipWritten(message="Relationship deleted", **answer)

    def get_related_concepts(
        self,
        concept_id: ConceptId,
        *,
        direction: Direction = "both",
        relationship_type: LabelFilter = None,
        limit: RelatedLimit = limits.CONCEPTS_DEFAULT,
        valid_at: ValidAt = None,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[Related]:
        """Return the concepts next to one, those with the strongest relationships first.

        `valid_at` leaves out relationships and concepts that did not hold then.
        """
        self._services.require("get_related_concepts")
        checks.concept_id(concept_id)
        way = checks.direction(direction)
        label = checks.label(relationship_type, optional=True)
        page = ListPosition.at(cursor, limit)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            concept = records.concept(concept_id)
            if label is not None:
                records.check_label(label)
            graph = self._services.graph(reader, records.view, at)
            found = graph.neighbours(concept.id, direction=way, label=label, limit=page.read)
            kept = page.cut(found)
            _add_notes(records, concept.id, kept)
            mark_disputes(records, kept)
        return page.results(found, kept, f"Found {len(kept)} related concepts")

    def get_concept_chain(
        self,
        start_concept_id: Annotated[str, Param("Where the path begins", quiet=True)],
        end_concept_id: Annotated[str, Param("Where the path ends", quiet=True)],
        *,
        max_depth: PathDepth = limits.PATH_DEPTH_DEFAULT,
        valid_at: ValidAt = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Path:
        """Return a shortest path between two concepts, whichever way its relationships lead.

        `valid_at` takes no step over relationships and concepts that did not hold then.

        Raises:
            PathNotFound: There is none of at most `max_depth` relationships.
        """
        self._services.require("get_concept_chain")
        checks.concept_id(start_concept_id, field="start_concept_id")
        checks.concept_id(end_concept_id, field="end_concept_id")
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            start = records.concept(start_concept_id, field="start_concept_id")
            end = records.concept(end_concept_id, field="end_concept_id")
            graph = self._services.graph(reader, records.view, at)
            path = graph.path(start.id, end.id, max_depth)
            mark_disputes(records, path or ())
        if path is None:
            raise PathNotFound(
                f"There is no path of at most {max_depth} relationships between these concepts.",
                start_concept_id=start_concept_id,
                end_concept_id=end_concept_id,
                max_depth=max_depth,
                hint=(
                    "Try a larger max_depth."
                    if max_depth < limits.PATH_DEPTH_MAX
                    else "get_related_concepts shows what each of them is related to."
                ),
            )
        length = len(path) - 1
        return Path(path, length, f"Found path of length {length}")


def _check_relationship(source_id: object, target_id: object, relationship_type: object) -> str:
    source = checks.concept_id(source_id, field="source_id")
    target = checks.concept_id(target_id, field="target_id")
    label = checks.label(relationship_type)
    assert label is not None
    if source == target:
        raise _related_to_itself(target)
    return label


def _related_to_itself(target: str) -> ValidationFailed:
    return ValidationFailed(
        "A concept cannot be related to itself.",
        field="target_id",
        invalid_value=target,
        hint="Name two concepts.",
    )


def _ends(records: ConceptRecords, source: str, target: str) -> dict[str, str]:
    """Return the ids of two different concepts that are there."""
    source_id = records.concept(source, field="source_id").id
    target_id = records.concept(target, field="target_id").id
    if source_id == target_id:
        raise _related_to_itself(target)
    return {"source_id": source_id, "target_id": target_id}


def _known_ends(records: ConceptRecords, source: str, target: str) -> dict[str, str]:
    """Return the ids of what a relationship relates; ids of deleted concepts stay what they are."""
    return {
        field: given
        if records.versions(given, limit=1) or not records.namesakes(given)
        else records.concept(given, field=field).id
        for field, given in (("source_id", source), ("target_id", target))
    }


def _free(records: ConceptRecords, ends: Mapping[str, str], label: str) -> str:
    """Return the id of a relationship that can be created."""
    key = relationship_key(ends["source_id"], ends["target_id"], label)
    if records.reader.records.current(records.view.lineage, RELATIONSHIPS, key) is not None:
        raise ValidationFailed(
            f"These concepts are related by {label} already.",
            field="relationship_type",
            invalid_value=label,
            resource_id=key,
            hint="Delete it first to change its strength or notes.",
        )
    refuse_impossible(records, ends["source_id"], ends["target_id"], label)
    return key


def refuse_impossible(records: ConceptRecords, source_id: str, target_id: str, label: str) -> None:
    """Refuse a relationship that contradicts what is there.

    Raises:
        ValidationFailed: It relates a concept to itself, closes a cycle of prerequisites, or says
            the opposite of another.
    """
    if source_id == target_id:
        raise _related_to_itself(target_id)
    if label == PREREQUISITE:
        _refuse_cycle(records, source_id, target_id)
    _refuse_opposite(records, source_id, target_id, label)


def _refuse_opposite(records: ConceptRecords, source_id: str, target_id: str, label: str) -> None:
    """Refuse a relationship that says the opposite of one that is there."""
    opposites = {
        "supersedes": (target_id, source_id, "supersedes"),
        "confirms": (source_id, target_id, "contradicts"),
        "contradicts": (source_id, target_id, "confirms"),
    }
    key = relationship_key(*opposites[label]) if label in opposites else None
    if key is None or not records.relationships([key]):
        return
    words = "the other way round" if label == "supersedes" else f"by {opposites[label][2]}"
    raise ValidationFailed(
        f"These concepts are related {words}: {label} would contradict that.",
        field="relationship_type",
        invalid_value=label,
        resource_id=key,
        hint="Delete that relationship first, if it no longer holds.",
    )


def _relationship_keys(concept_id: str, related: Sequence[Related]) -> list[str]:
    """Return the ids of the relationships by which concepts are next to one."""
    keys = []
    for each in related:
        ends = (concept_id, each.concept_id)
        source, target = ends if each.direction == "outgoing" else reversed(ends)
        keys.append(relationship_key(source, target, each.relationship_type.lower()))
    return keys


def _add_notes(records: ConceptRecords, concept_id: str, related: Sequence[Related]) -> None:
    """Add the id of each relationship, what was noted about it, and when it holds."""
    keys = _relationship_keys(concept_id, related)
    contents = records.relationships(keys)
    for key, each in zip(keys, related, strict=True):
        each.relationship_id = key
        content = contents.get(key, {})
        each.notes = content.get("notes")
        period = valid_time.render_period(content)
        each.valid_from, each.valid_to = period["valid_from"], period["valid_to"]


def _refuse_cycle(records: ConceptRecords, source_id: str, target_id: str) -> None:
    cycle = BuiltInGraph(records.reader, records.view).cycle(source_id, target_id)
    if cycle is None:
        return
    raise ValidationFailed(
        f"This prerequisite would close a cycle: {describe_cycle(records, cycle)}.",
        field="target_id",
        invalid_value=target_id,
        cycle=cycle,
        hint="Delete one of the prerequisites of the cycle, or use relates_to.",
    )


def describe_cycle(records: ConceptRecords, cycle: list[str]) -> str:
    """Return the names of the concepts of a cycle, in its order."""
    concepts = records.by_id(cycle)
    return " → ".join(concepts[each].name if each in concepts else each for each in cycle)


def _relate(records: ConceptRecords, transaction: Transaction, draft: Draft) -> dict[str, Any]:
    """Write a change of a relationship, and bring up to date what hangs on it."""
    transaction.append(records.view.branch, [draft])
    ends = (draft.content["source_id"], draft.content["target_id"])
    certainty.refresh(transaction, records.view, ends)
    return {"relationship_id": draft.key}
