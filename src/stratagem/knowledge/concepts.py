"""Creating, reading, changing, deleting and restoring concepts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from stratagem import limits
from stratagem.engine import moments, values
from stratagem.engine.events import Draft
from stratagem.errors import ValidationFailed, VersionConflict
from stratagem.knowledge import certainty, checks, valid_time
from stratagem.knowledge.disputes import mark_disputes
from stratagem.knowledge.evidence_records import evidence_about
from stratagem.knowledge.models import (
    ConceptAnswer,
    ConceptEvidence,
    ConceptInfo,
    ConceptWritten,
    Revision,
)
from stratagem.knowledge.parameters import (
    Area,
    Certainty,
    ConceptId,
    ConceptName,
    Explanation,
    Source,
    Subtopic,
    Topic,
    ValidAt,
    ValidFrom,
    ValidTo,
)
from stratagem.knowledge.records import Concept, ConceptRecords, content_of
from stratagem.knowledge.services import Services
from stratagem.knowledge.spaces import (
    CONCEPT_CREATED,
    CONCEPT_DELETED,
    CONCEPT_RESTORED,
    CONCEPT_UPDATED,
    CONCEPTS,
)
from stratagem.operation import Caller
from stratagem.parameters import MISSING, AsOf, BranchName, Param, RequestId
from stratagem.search.foundation import BoundSystem, Foundation
from stratagem.storage.contract import Appended, LogReader, Reader, Transaction

__all__ = ["Concepts", "new_concept_id"]

_PERIOD: Final = frozenset({"valid_from", "valid_to"})
_NAME_SHARED: Final = (
    "Other concepts have this name too, so that it stands for none of them: give one of them "
    "another name with update_concept, or use merge_concepts."
)
# What is said where other concepts have the name of one that was written.
_NAMESAKES: Final = {
    "Created": (
        "There are concepts of this name already. Update one of them instead and delete "
        "this one, or use merge_concepts."
    ),
    "Updated": _NAME_SHARED,
    "Restored": _NAME_SHARED,
}


class Concepts(BoundSystem):
    """Concepts, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        super().__init__(foundation, caller)
        self._services = Services(foundation)

    def _valid_moment(self, valid_at: str | None) -> int | None:
        """Return the moment that a caller asks about, None where there is none."""
        return valid_time.read_moment(valid_at, field="valid_at", zone=self._views.zone)

    def create_concept(
        self,
        name: ConceptName,
        explanation: Explanation,
        *,
        area: Area = None,
        topic: Topic = None,
        subtopic: Subtopic = None,
        certainty_score: Certainty = None,
        valid_from: ValidFrom = None,
        valid_to: ValidTo = None,
        source: Source = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> ConceptWritten:
        """Create a concept. Without a certainty one is computed, and the answer says so."""
        self._services.require("create_concept")
        given = {
            "name": name,
            "explanation": explanation,
            "area": area,
            "topic": topic,
            "subtopic": subtopic,
            "certainty_score": certainty_score,
            "source": source,
            **valid_time.read_period(valid_from, valid_to, self._views.zone),
        }
        content = {
            field: value for field, value in checks.fields(given).items() if value is not None
        }

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            concept_id = new_concept_id(transaction.log)
            whole = {**content, "created_at": transaction.at}
            drafts = [Draft(CONCEPT_CREATED, whole, CONCEPTS, concept_id)]
            if "certainty_score" not in content:
                drafts.append(certainty.draft(concept_id, certainty.UNTRIED))
            twins = _twins(records, name, concept_id)
            appended = transaction.append(records.view.branch, drafts)[0]
            return {"concept_id": concept_id, "version": appended.sequence, "twins": twins}

        answer = self._change(work, "create_concept", content, branch, request_id)
        written = _answer_written("Created", answer)
        if certainty_score is None:
            written.certainty_score = certainty.UNTRIED
            written.certainty_source = "computed"
        return written

    def get_concept(
        self,
        concept_id: ConceptId,
        *,
        include_history: Annotated[bool, Param("With earlier explanations", strict=True)] = False,
        valid_at: ValidAt = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> ConceptAnswer:
        """Return a concept; with its history, every explanation it had, oldest first.

        With `valid_at` it says how certain it was by what held then, what had superseded or
        contested it, and whether it held itself.

        Raises:
            ConceptNotFound: It is not there, or was deleted.
        """
        self._services.require("get_concept")
        checks.concept_id(concept_id)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            concept = records.concept(concept_id)
            info = _info(concept, records)
            mark_disputes(records, [info])
            info.evidence = _evidence(records, concept)
            if include_history:
                info.explanation_history = _revisions(records, concept.id)
        answer = ConceptAnswer(info, "Found")
        if at is not None and not valid_time.holds_at(concept.content, at):
            answer.note = f"This was not true at {valid_at}: see valid_from and valid_to."
        return answer

    def update_concept(
        self,
        concept_id: ConceptId,
        *,
        explanation: Explanation | None = None,
        name: ConceptName | None = None,
        area: Annotated[str | None, Param("Null clears")] = MISSING,
        topic: Annotated[str | None, Param("Null clears")] = MISSING,
        subtopic: Annotated[str | None, Param("Null clears")] = MISSING,
        certainty_score: Annotated[
            float | None, Param("Null: computed again", ge=0, le=100, strict=True)
        ] = MISSING,
        valid_from: Annotated[
            str | None, Param("Null clears", quiet=True, time="moment")
        ] = MISSING,
        valid_to: Annotated[str | None, Param("Null clears", quiet=True, time="moment")] = MISSING,
        expected_version: Annotated[
            int | None,
            Param("`version` of get_concept; refused if it changed since", ge=1, strict=True),
        ] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> ConceptWritten:
        """Change what is given of a concept, and keep the rest; None clears what may be empty.

        Raises:
            ConceptNotFound: It is not there, or was deleted.
            VersionConflict: It is not at `expected_version`.
        """
        self._services.require("update_concept")
        checks.concept_id(concept_id)
        texts = {"explanation": explanation, "name": name}
        given: dict[str, Any] = {field: each for field, each in texts.items() if each is not None}
        clearable = {
            "area": area,
            "topic": topic,
            "subtopic": subtopic,
            "certainty_score": certainty_score,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
        given |= {field: value for field, value in clearable.items() if value is not MISSING}
        changes = self._read_changes(given)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            concept = records.concept(concept_id)
            _compare(concept, expected_version)
            whole = _merge_changes(concept.content, changes)
            if values.same(whole, dict(concept.content)):
                return {"concept_id": concept.id, "version": concept.sequence}
            draft = Draft(CONCEPT_UPDATED, whole, CONCEPTS, concept.id)
            valid_time.refuse_reversed(whole)
            appended = transaction.append(records.view.branch, [draft])[0]
            if _PERIOD & changes.keys():
                # Whatever this speaks for or against, it does so for another time now.
                certainty.refresh_around(transaction, records.view, concept.id)
            elif "certainty_score" in changes:
                certainty.refresh(transaction, records.view, [concept.id])
            renamed = whole["name"] != concept.name
            twins = _twins(records, whole["name"], concept.id) if renamed else []
            return {"concept_id": concept.id, "version": appended.sequence, "twins": twins}

        arguments = {"concept_id": concept_id, "expected_version": expected_version, **changes}
        answer = self._change(work, "update_concept", arguments, branch, request_id)
        return _answer_written("Updated", answer)

    def _read_changes(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the changes of a concept, checked."""
        for field in ("valid_from", "valid_to"):
            if field in given:
                given[field] = valid_time.read_moment(
                    given[field], field=field, zone=self._views.zone
                )
        if not given:
            raise ValidationFailed(
                "There is nothing to update.",
                field="explanation",
                hint="Give a new explanation, name, area, topic, subtopic, certainty_score, "
                "valid_from or valid_to.",
            )
        return checks.fields(given)

    def delete_concept(
        self, concept_id: ConceptId, *, branch: BranchName = None, request_id: RequestId = None
    ) -> ConceptWritten:
        """Delete a concept: it leaves every list, search and walk, and can be restored.

        Raises:
            ConceptNotFound: It is not there, or was deleted before.
        """
        self._services.require("delete_concept")
        checks.concept_id(concept_id)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            concept = records.concept(concept_id)
            draft = Draft(CONCEPT_DELETED, {}, CONCEPTS, concept.id)
            return _append_and_refresh(records, transaction, draft)

        answer = self._change(
            work, "delete_concept", {"concept_id": concept_id}, branch, request_id
        )
        return ConceptWritten(message="Deleted", **answer)

    def restore_concept(
        self, concept_id: ConceptId, *, branch: BranchName = None, request_id: RequestId = None
    ) -> ConceptWritten:
        """Bring a deleted concept back as it was, with its relationships.

        Raises:
            ConceptNotFound: There never was one with this id or name.
            AmbiguousName: Several deleted ones had this name.
            ValidationFailed: It is not deleted.
        """
        checks.concept_id(concept_id)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            last = records.find_deleted(concept_id)
            twins = _twins(records, last.name, last.id)
            draft = Draft(CONCEPT_RESTORED, dict(last.content), CONCEPTS, last.id)
            return {**_append_and_refresh(records, transaction, draft), "twins": twins}

        answer = self._change(
            work, "restore_concept", {"concept_id": concept_id}, branch, request_id
        )
        return _answer_written("Restored", answer)

    def _records(
        self,
        reader: Reader,
        branch: str | None,
        as_of: AsOf = None,
        valid_at: int | None = None,
    ) -> ConceptRecords:
        view = self._views.view(reader, branch or self._caller.branch, as_of)
        return ConceptRecords(reader, view, valid_at)

    def _change(
        self,
        work: Callable[[ConceptRecords, Transaction], dict[str, Any]],
        operation: str,
        arguments: Mapping[str, Any],
        branch: str | None,
        request_id: str | None,
    ) -> dict[str, Any]:
        """Run work on a branch in a transaction."""
        name = branch or self._caller.branch

        def run(transaction: Transaction) -> dict[str, Any]:
            return work(self._records(transaction, name), transaction)

        answer = self._foundation.write(
            self._caller,
            run,
            request_id=request_id,
            operation=operation,
            arguments={**arguments, "branch": name},
        )
        self._foundation.external.written()
        return answer


def new_concept_id(log: LogReader, number: int = 0) -> str:
    """Return an id that no other database makes: the head's hash is salted at random."""
    head = log.head()
    seed = f"concept:{head.sequence}:{number}".encode()
    return str(UUID(bytes=hashlib.sha256(head.hash + seed).digest()[:16], version=4))


def _append_and_refresh(
    records: ConceptRecords, transaction: Transaction, draft: Draft
) -> dict[str, Any]:
    """Delete or restore a concept, and bring up to date what hangs on it."""
    assert draft.key is not None
    appended: Appended = transaction.append(records.view.branch, [draft])[0]
    certainty.refresh_around(transaction, records.view, draft.key)
    return {"concept_id": draft.key, "version": appended.sequence}


def _twins(records: ConceptRecords, name: str, concept_id: str) -> list[str]:
    return [each.id for each in records.namesakes(name) if each.id != concept_id]


def _answer_written(message: str, answer: dict[str, Any]) -> ConceptWritten:
    """Return the answer to a write, with the others of the same name: it finds none of them."""
    twins = answer.pop("twins", None)
    written = ConceptWritten(message=message, **answer)
    if twins:
        written.duplicates = twins
        written.note = _NAMESAKES[message]
    return written


def _compare(concept: Concept, expected: int | None) -> None:
    if expected is not None and concept.sequence != expected:
        raise VersionConflict(
            f"The concept {concept.id!r} is at version {concept.sequence}, not {expected}.",
            field="expected_version",
            resource_id=concept.id,
            expected_version=expected,
            version=concept.sequence,
            hint="Get the concept, apply the change to its present state, and update again.",
        )


def _merge_changes(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**content, **changes}
    return {field: value for field, value in merged.items() if value is not None}


def _info(concept: Concept, records: ConceptRecords) -> ConceptInfo:
    content = concept.content
    score = records.score(concept)
    return ConceptInfo(
        concept_id=concept.id,
        name=concept.name,
        explanation=content["explanation"],
        area=content.get("area"),
        topic=content.get("topic"),
        subtopic=content.get("subtopic"),
        certainty_score=score.value,
        created_at=moments.iso(content["created_at"]),
        last_modified=moments.iso(concept.at),
        version=concept.sequence,
        certainty_source="computed" if score.computed else None,
        source=content.get("source"),
        **valid_time.render_period(content),
    )


def _evidence(records: ConceptRecords, concept: Concept) -> ConceptEvidence | None:
    """Return what speaks for and against a concept; None where nothing but its author does."""
    given = evidence_about(records, concept.id)
    links = certainty.count_links(records, concept)
    if not given and not any(links):
        return None
    confirmed = sum(each.confirms for each in given)
    return ConceptEvidence(
        confirmed,
        len(given) - confirmed,
        *links,
        latest=moments.iso(max(each.at for each in given)) if given else None,
    )


def _revisions(records: ConceptRecords, concept_id: str) -> list[Revision]:
    """Return the explanations that a concept had, oldest first, each once."""
    revisions: list[Revision] = []
    for version in reversed(records.versions(concept_id, limit=limits.REVISIONS_READ_MAX)):
        explanation = content_of(version.payload).get("explanation")
        if explanation and (not revisions or revisions[-1].explanation != explanation):
            revisions.append(Revision(explanation, moments.iso(version.at)))
    return revisions
