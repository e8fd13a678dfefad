"""Writing many concepts and their relationships in one call, all of them or none.

Relationships name their concepts: those of the same call, or others that are there. What is there
already under the same name is not written twice; it is reported, and related like the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Annotated, Any, Final, Required, TypedDict

from stratagem import limits
from stratagem.answers import plural
from stratagem.engine.events import Draft
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.knowledge import certainty, checks, valid_time
from stratagem.knowledge.concepts import new_concept_id
from stratagem.knowledge.learning import Learning
from stratagem.knowledge.models import BatchWritten, ConceptRef, TypeDeclared
from stratagem.knowledge.parameters import Area, Certainty, Source, Subtopic, Topic
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.relationships import refuse_impossible
from stratagem.knowledge.spaces import (
    CONCEPT_CREATED,
    CONCEPTS,
    RELATIONSHIP_CREATED,
    RELATIONSHIP_TYPE_DECLARED,
    RELATIONSHIP_TYPES,
    RELATIONSHIPS,
    TYPES,
    fold_name,
    relationship_key,
)
from stratagem.parameters import BranchName, Param, RequestId
from stratagem.storage.contract import Transaction

__all__ = ["Capture", "ConceptItem", "RelationshipItem", "type_draft"]


# Over the wire a moment is text; the SDK makes text of a `date` or `datetime`.
_MOMENT: Final = {"anyOf": [{"type": "string"}, {"type": "null"}]}


class ConceptItem(TypedDict, total=False):
    """One concept of a batch."""

    name: Required[Annotated[str, Param("What it is called")]]
    explanation: Required[Annotated[str, Param("What it means")]]
    area: Area
    topic: Topic
    subtopic: Subtopic
    certainty_score: Certainty
    valid_from: Annotated[
        str | date | None,
        Param("Since when it is true", schema=_MOMENT),
    ]
    valid_to: Annotated[
        str | date | None,
        Param("The first moment at which it is no longer true", schema=_MOMENT),
    ]
    source: Source


class RelationshipItem(TypedDict, total=False):
    """One relationship of a batch, between names or ids."""

    source: Required[Annotated[str, Param("Name or id")]]
    target: Required[Annotated[str, Param("Name or id")]]
    type: Required[Annotated[str, Param("prerequisite, relates_to, …")]]
    strength: Annotated[float | None, Param("From 0 to 1")]
    notes: Annotated[str | None, Param("Anything else worth knowing")]
    valid_from: Annotated[
        str | date | None,
        Param("Since when it is true", schema=_MOMENT),
    ]
    valid_to: Annotated[
        str | date | None,
        Param("The first moment at which it is no longer true", schema=_MOMENT),
    ]


class Capture(Learning):
    """Writing many concepts at once, for one caller."""

    def create_concepts(
        self,
        concepts: Annotated[Sequence[ConceptItem], Param("Concepts to create", time="items")],
        *,
        relationships: Annotated[
            Sequence[RelationshipItem], Param("How they and others relate, by name", time="items")
        ] = (),
        source: Source = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> BatchWritten:
        """Create concepts and their relationships in one transaction, all of them or none.

        A concept whose name is there already is not created: it is reported under `duplicates`,
        and the relationships lead to the one that is there.
        """
        _check_count(concepts, "concepts")
        _check_count(relationships, "relationships")
        shared = {"source": checks.source(source)}
        contents = [
            self._read_item(f"concepts[{at}]", {**shared, **each})
            for at, each in enumerate(concepts)
        ]
        links = [
            self._read_link(f"relationships[{at}]", each) for at, each in enumerate(relationships)
        ]

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            return _Batch(records, transaction).write(contents, links)

        arguments = {"concepts": contents, "relationships": links}
        answer = self._change(work, "create_concepts", arguments, branch, request_id)
        created, duplicates = (
            [ConceptRef(*each) for each in answer[name]] for name in ("created", "duplicates")
        )
        related = plural(answer["related"], "relationship")
        message = f"Created {plural(len(created), 'concept')} and {related}"
        return BatchWritten(created, duplicates, answer["related"], answer["known"], message)

    def declare_relationship_type(
        self,
        name: Annotated[str, Param("Such as works_at: lowercase letters and _")],
        *,
        description: Annotated[str | None, Param("What it means, from source to target")] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> TypeDeclared:
        """Declare a type of relationship besides the built-in ones; again changes its description.

        Raises:
            ValidationFailed: It is a built-in one, or no name for one.
        """
        label = checks.label_to_declare(name)
        if label in TYPES:
            raise ValidationFailed(
                f"{label} is built in.", field="name", invalid_value=name, hint="Use it as it is."
            )
        told = checks.description(description)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            if label not in records.labels() and len(records.labels()) >= limits.LABELS_MAX:
                raise ValidationFailed(
                    f"There are {limits.LABELS_MAX} relationship types already; that is the limit.",
                    field="name",
                    limit=limits.LABELS_MAX,
                    hint="Use one of them, and describe the difference in `notes`.",
                )
            if label not in records.labels() or records.labels()[label] != told:
                transaction.append(records.view.branch, [type_draft(label, told)])
            declared = sorted({*records.labels(), label} - set(TYPES))
            return {"declared": declared}

        arguments = {"name": label, "description": told}
        answer = self._change(work, "declare_relationship_type", arguments, branch, request_id)
        return TypeDeclared(label, "Declared", **answer)

    def _read_item(self, where: str, item: Mapping[str, Any]) -> dict[str, Any]:
        given = {field: value for field, value in item.items() if value is not None}
        for field in ("name", "explanation"):
            given.setdefault(field, None)
        with _locate_errors(where):
            period = valid_time.read_period(
                given.pop("valid_from", None), given.pop("valid_to", None), self._views.zone
            )
            checked = checks.fields(given | period)
        return {field: value for field, value in checked.items() if value is not None}

    def _read_link(self, where: str, item: Mapping[str, Any]) -> dict[str, Any]:
        with _locate_errors(where):
            period = valid_time.read_period(
                item.get("valid_from"), item.get("valid_to"), self._views.zone
            )
            content = {
                "source_id": checks.concept_id(item.get("source"), field="source"),
                "target_id": checks.concept_id(item.get("target"), field="target"),
                "relationship_type": checks.label(item.get("type"), field="type"),
                "strength": checks.strength(item.get("strength")),
                "notes": checks.notes(item.get("notes")),
                **period,
            }
        return {field: value for field, value in content.items() if value is not None}


def type_draft(label: str, description: str | None) -> Draft:
    """Return the event that declares a type of relationship."""
    content = {} if description is None else {"description": description}
    return Draft(RELATIONSHIP_TYPE_DECLARED, content, RELATIONSHIP_TYPES, label)


class _Batch:
    """One batch, within its transaction."""

    def __init__(self, records: ConceptRecords, transaction: Transaction) -> None:
        self._records = records
        self._transaction = transaction
        # By folded name, what the batch itself calls so.
        self._ids: dict[str, str] = {}

    def write(
        self, contents: Sequence[dict[str, Any]], links: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        created, duplicates = self._create(contents)
        related = known = 0
        touched: set[str] = set()
        for at, link in enumerate(links):
            with _locate_errors(f"relationships[{at}]"):
                ends = self._relate(link)
            related, known = (related + 1, known) if ends else (related, known + 1)
            touched.update(ends)
        certainty.refresh(self._transaction, self._records.view, touched)
        return {
            "created": created,
            "duplicates": duplicates,
            "related": related,
            "known": known,
        }

    def _create(
        self, contents: Sequence[dict[str, Any]]
    ) -> tuple[list[list[str]], list[list[str]]]:
        created: list[list[str]] = []
        duplicates: list[list[str]] = []
        drafts: list[Draft] = []
        for number, content in enumerate(contents):
            name = content["name"]
            named = self._records.namesakes(name)
            same = next((each for each in named if each.name == name), None)
            same = same or (named[0] if named else None)
            if fold_name(name) in self._ids or same is not None:
                known = self._ids.get(fold_name(name)) or (same.id if same else "")
                self._ids.setdefault(fold_name(name), known)
                duplicates.append([known, name])
                continue
            concept_id = new_concept_id(self._transaction.log, number)
            self._ids[fold_name(name)] = concept_id
            whole = {**content, "created_at": self._transaction.at}
            drafts.append(Draft(CONCEPT_CREATED, whole, CONCEPTS, concept_id))
            if "certainty_score" not in content:
                drafts.append(certainty.draft(concept_id, certainty.UNTRIED))
            created.append([concept_id, name])
        if drafts:
            self._transaction.append(self._records.view.branch, drafts)
        return created, duplicates

    def _relate(self, link: dict[str, Any]) -> tuple[str, ...]:
        """Write a relationship; return what it relates, or nothing where it was there."""
        self._records.check_label(link["relationship_type"], field="type")
        source = self._resolve(link["source_id"], "source")
        target = self._resolve(link["target_id"], "target")
        key = relationship_key(source, target, link["relationship_type"])
        if self._records.relationships([key]):
            return ()
        refuse_impossible(self._records, source, target, link["relationship_type"])
        content = link | {"source_id": source, "target_id": target}
        draft = Draft(RELATIONSHIP_CREATED, content, RELATIONSHIPS, key)
        self._transaction.append(self._records.view.branch, [draft])
        return source, target

    def _resolve(self, given: str, field: str) -> str:
        known = self._ids.get(fold_name(given))
        return known or self._records.concept(given, field=field).id


@contextmanager
def _locate_errors(where: str) -> Iterator[None]:
    """Say of an error which item of a batch it is about."""
    try:
        yield
    except StratagemError as error:
        field = error.details.get("field")
        error.details["field"] = f"{where}.{field}" if field else where
        raise


def _check_count(items: object, field: str) -> None:
    if not isinstance(items, list | tuple) or not all(isinstance(each, Mapping) for each in items):
        raise ValidationFailed(f"`{field}` must be a list of objects.", field=field)
    if len(items) > limits.ITEMS_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(items):,} items; the limit is {limits.ITEMS_MAX:,}.",
            field=field,
            limit=limits.ITEMS_MAX,
            hint="Make several calls, or import a file: stratagem knowledge import.",
        )
