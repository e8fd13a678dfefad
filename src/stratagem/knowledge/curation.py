"""Maintenance of concepts: evidence, review, and merging duplicates."""

from __future__ import annotations

from typing import Annotated, Any, Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.errors import ValidationFailed
from stratagem.knowledge import certainty, checks
from stratagem.knowledge.capture import Capture
from stratagem.knowledge.erasure import purge
from stratagem.knowledge.evidence_records import (
    Verdict,
    evidence_about,
    evidence_draft,
)
from stratagem.knowledge.models import (
    ConceptsMerged,
    EvidenceRecorded,
    KnowledgePurged,
    KnowledgeReview,
    ReplacedVerdict,
)
from stratagem.knowledge.parameters import ConceptId
from stratagem.knowledge.records import Concept, ConceptRecords, content_of
from stratagem.knowledge.relationships import refuse_impossible
from stratagem.knowledge.review import review
from stratagem.knowledge.spaces import (
    CONCEPT_DELETED,
    CONCEPT_LEARNT,
    CONCEPT_UPDATED,
    CONCEPTS,
    KNOWN_CONCEPTS,
    RELATIONSHIP_CREATED,
    RELATIONSHIPS,
    known_key,
    relationship_key,
)
from stratagem.parameters import AsOf, BranchName, Param, RequestId
from stratagem.storage.contract import Transaction

__all__ = ["Curation"]

_SourceOfEvidence = Annotated[
    str | None, Param("Who or what found it; the caller by default. Each source counts once")
]
_EvidenceNote = Annotated[str | None, Param("What was found")]
# The fields that a merged concept passes to the one that stays, if they are empty there.
_FILLED: Final = ("area", "topic", "subtopic", "source")
_PERIOD: Final = frozenset({"valid_from", "valid_to"})


class _GivenEvidence(NamedTuple):
    """What somebody says about a concept."""

    verdict: Verdict
    concept_id: str
    source: str | None
    note: str | None


class Curation(Capture):
    """Evidence, review and merging, for one caller."""

    def confirm_concept(
        self,
        concept_id: ConceptId,
        *,
        source: _SourceOfEvidence = None,
        note: _EvidenceNote = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> EvidenceRecorded:
        """Record that a concept was found to hold.

        Raises:
            ConceptNotFound: It is not there, or was deleted.
        """
        given = _GivenEvidence("confirmed", concept_id, source, note)
        return self._give_evidence(given, branch, request_id)

    def refute_concept(
        self,
        concept_id: ConceptId,
        *,
        source: _SourceOfEvidence = None,
        note: _EvidenceNote = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> EvidenceRecorded:
        """Record that a concept was found not to hold.

        Raises:
            ConceptNotFound: It is not there, or was deleted.
        """
        given = _GivenEvidence("refuted", concept_id, source, note)
        return self._give_evidence(given, branch, request_id)

    def review_knowledge(
        self,
        *,
        limit: Annotated[
            int, Param("Most of each kind", ge=1, le=limits.REVIEW_ITEMS_MAX, strict=True)
        ] = 10,
        stale_days: Annotated[
            int,
            Param("Not changed for this long", ge=1, le=limits.STALE_DAYS_MAX, strict=True),
        ] = limits.STALE_DAYS_DEFAULT,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> KnowledgeReview:
        """Return what wants attention: contested, stale, orphaned and duplicate concepts."""
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of)
            return review(records, self._foundation.index, stale_days=stale_days, limit=limit)

    def merge_concepts(
        self,
        keep: Annotated[str, Param("The one that stays: id or name")],
        merge: Annotated[str, Param("The duplicate, whose id then means the other one")],
        *,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> ConceptsMerged:
        """Make one concept stand for two: relationships and evidence of the other go to it.

        The other is deleted; `restore_concept` brings it back with its own relationships. What
        would close a cycle or contradict a relationship is skipped and reported. Of a source that
        judged both the later word stands, and `replaced` says what it had said before.

        Raises:
            ConceptNotFound: One of them is not there.
        """
        checks.concept_id(keep, field="keep")
        checks.concept_id(merge, field="merge")

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            stays = records.concept(keep, field="keep")
            goes = records.concept(merge, field="merge")
            if stays.id == goes.id:
                raise ValidationFailed(
                    "A concept cannot be merged with itself.",
                    field="merge",
                    invalid_value=merge,
                    hint="Name two concepts.",
                )
            return _merge(records, transaction, stays, goes)

        arguments = {"keep": keep, "merge": merge}
        answer = self._change(work, "merge_concepts", arguments, branch, request_id)
        replaced = [ReplacedVerdict(**each) for each in answer.pop("replaced", None) or ()]
        return ConceptsMerged(message="Merged", replaced=replaced or None, **answer)

    def purge_knowledge(
        self,
        record_id: Annotated[str, Param("Id or name of a concept, or id of a relationship")],
        *,
        confirm: Annotated[
            bool, Param("true: erase it; otherwise only show what would be erased")
        ] = False,
    ) -> KnowledgePurged:
        """Erase a concept for good with all that is about it, or a relationship.

        It goes from the log, every branch, every past moment and the index, with its history,
        relationships and evidence.
        """
        checks.concept_id(record_id, field="record_id")
        return purge(
            self._foundation,
            self._caller,
            record_id,
            branch=self._caller.branch,
            confirmed=confirm,
        )

    def _give_evidence(
        self, given: _GivenEvidence, branch: str | None, request_id: str | None
    ) -> EvidenceRecorded:
        verdict, concept_id, source, note = given
        checks.concept_id(concept_id)
        who = checks.source(source) or self._caller.actor
        told = checks.notes(note)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            concept = records.concept(concept_id)
            draft = evidence_draft(concept.id, verdict, who, told)
            transaction.append(records.view.branch, [draft])
            certainty.refresh(transaction, records.view, [concept.id])
            score = records.score(concept)
            given = evidence_about(records, concept.id)
            confirmed = sum(each.confirms for each in given)
            return {
                "concept_id": concept.id,
                "name": concept.name,
                "certainty_score": score.value,
                "certainty_source": "computed" if score.computed else None,
                "confirmed": confirmed,
                "refuted": len(given) - confirmed,
            }

        arguments = {"concept_id": concept_id, "verdict": verdict, "source": who, "note": told}
        answer = self._change(work, f"{verdict} concept", arguments, branch, request_id)
        recorded = EvidenceRecorded(message=f"{verdict.capitalize()} by {who}", **answer)
        if recorded.certainty_source is None:
            recorded.note = (
                "Its certainty was set by hand, so the evidence does not change it; update_concept "
                "with certainty_score null computes it from the evidence."
            )
        return recorded


def _merge(
    records: ConceptRecords, transaction: Transaction, stays: Concept, goes: Concept
) -> dict[str, Any]:
    """Carry over what a concept has, and delete it."""
    branch = records.view.branch
    whole = {**_fields_to_fill(stays, goes), **stays.content}
    if whole != dict(stays.content):
        transaction.append(branch, [Draft(CONCEPT_UPDATED, whole, CONCEPTS, stays.id)])
    replaced = _carry_evidence(records, transaction, stays, goes)
    _carry_known_marks(records, transaction, stays, goes)
    near = certainty.neighbours(transaction, records.view, goes.id)
    transaction.append(branch, [Draft(CONCEPT_DELETED, {}, CONCEPTS, goes.id)])
    related, skipped = _carry_relationships(records, transaction, stays, goes)
    near += certainty.neighbours(transaction, records.view, stays.id)
    certainty.refresh(transaction, records.view, (stays.id, goes.id, *near))
    return {
        "concept_id": stays.id,
        "merged_id": goes.id,
        "related": related,
        "skipped": skipped or None,
        "replaced": replaced or None,
    }


def _fields_to_fill(stays: Concept, goes: Concept) -> dict[str, Any]:
    """Return what the concept that stays takes over from the other: where it has nothing itself.

    A period is taken over whole: the beginning of one and the end of another are no period.
    """
    names = _FILLED if _PERIOD & stays.content.keys() else (*_FILLED, *sorted(_PERIOD))
    return {name: goes.content[name] for name in names if name in goes.content}


def _carry_evidence(
    records: ConceptRecords, transaction: Transaction, stays: Concept, goes: Concept
) -> list[dict[str, Any]]:
    """Carry over what sources say; return what those that judged both said first.

    A source counts once for a concept, and its later word stands.
    """
    own = {each.source: each for each in evidence_about(records, stays.id)}
    replaced: list[dict[str, Any]] = []
    for each in evidence_about(records, goes.id):
        other = own.get(each.source)
        earlier, later = sorted((each, other or each), key=lambda said: said.at)
        if other is not None and not earlier.says_the_same(later):
            replaced.append(
                {
                    "source": each.source,
                    "verdict": earlier.verdict,
                    "note": earlier.note,
                    "said_at": moments.iso(earlier.at),
                    "now": later.verdict,
                }
            )
        if later is each:
            draft = evidence_draft(stays.id, each.verdict, each.source, each.note, said_at=each.at)
            transaction.append(records.view.branch, [draft])
    return replaced


def _carry_known_marks(
    records: ConceptRecords, transaction: Transaction, stays: Concept, goes: Concept
) -> None:
    """Mark the remaining concept as known to everybody who knows the merged one."""
    # By concept and learner, since when.
    marks: dict[str, dict[str, int]] = {stays.id: {}, goes.id: {}}
    for _, version in records.stream_versions(KNOWN_CONCEPTS):
        mark = content_of(version.payload)
        if mark["concept_id"] in marks:
            marks[mark["concept_id"]][mark["learner"]] = mark.get("since", version.at)
    drafts = [
        Draft(
            CONCEPT_LEARNT,
            {"learner": each, "concept_id": stays.id, "since": since},
            KNOWN_CONCEPTS,
            known_key(each, stays.id),
        )
        for each, since in sorted(marks[goes.id].items())
        if each not in marks[stays.id]
    ]
    if drafts:
        transaction.append(records.view.branch, drafts)


def _carry_relationships(
    records: ConceptRecords, transaction: Transaction, stays: Concept, goes: Concept
) -> tuple[int, list[str]]:
    node = records.subject(goes.id)
    links = transaction.catalogue.links(records.view, (node,), limit=limits.LINKS_READ_MAX)
    contents = transaction.log.contents([link.sequence for link in links])
    related, skipped = 0, []
    for link in links:
        old = contents[link.sequence]
        content = records.relationships([old.key or ""]).get(old.key or "")
        if content is None:
            continue
        ends = {
            field: stays.id if content[field] == goes.id else content[field]
            for field in ("source_id", "target_id")
        }
        label = content["relationship_type"]
        key = relationship_key(ends["source_id"], ends["target_id"], label)
        if ends["source_id"] == ends["target_id"] or records.relationships([key]):
            continue
        try:
            refuse_impossible(records, ends["source_id"], ends["target_id"], label)
        except ValidationFailed as error:
            skipped.append(error.message)
            continue
        draft = Draft(RELATIONSHIP_CREATED, content | ends, RELATIONSHIPS, key)
        transaction.append(records.view.branch, [draft])
        related += 1
    return related, skipped
