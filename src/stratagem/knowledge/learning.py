"""What to learn before a concept, in which order, and what somebody knows already.

That a learner knows a concept is a record like any other: it belongs to a branch, has its history
and is read as of any moment. A learner is the caller, unless another name is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from stratagem import limits
from stratagem.answers import plural, read_cursor
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.likeness import nearest
from stratagem.errors import ValidationFailed
from stratagem.knowledge import checks, learning_order
from stratagem.knowledge.disputes import mark_disputes
from stratagem.knowledge.graph import BuiltInGraph, Walk
from stratagem.knowledge.learning_order import LearningOrder
from stratagem.knowledge.list_positions import ListPosition
from stratagem.knowledge.models import (
    KnownConcept,
    KnownMarked,
    LearningConcept,
    LearningPath,
    LearningStep,
    Prerequisite,
    Prerequisites,
    Results,
)
from stratagem.knowledge.parameters import ConceptId, ConceptLimit, Depth, Learner, ValidAt
from stratagem.knowledge.records import Concept, ConceptRecords, Score, content_of
from stratagem.knowledge.relationships import Relationships, describe_cycle
from stratagem.knowledge.spaces import (
    CONCEPT_LEARNT,
    CONCEPT_UNLEARNT,
    KNOWN_CONCEPTS,
    LEARNER_FACET,
    known_key,
)
from stratagem.parameters import AsOf, BranchName, Cursor, Param, RequestId
from stratagem.storage.contract import Transaction

__all__ = ["Learning"]

_DONE: Final = "{} is known already"
# To find who may have been meant by a learner; a page of names needs no more.
_MARKS_READ: Final = 2_000
_NEAR_MAX: Final = 3
_UNREAD: Final = "Only the nearest prerequisites were read; there are more."


class Learning(Relationships):
    """Prerequisites, learning paths and what learners know, for one caller."""

    def get_prerequisites(
        self,
        concept_id: ConceptId,
        *,
        depth: Depth = limits.PREREQUISITE_DEPTH_DEFAULT,
        valid_at: ValidAt = None,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Prerequisites:
        """Return what to know before a concept, nearest first, each at its smallest depth.

        `order` is the place of each among everything that the concept requires, at any depth. What
        lies deeper than `depth` is counted, and `next` goes on with it.
        """
        self._services.require("get_prerequisites")
        checks.concept_id(concept_id)
        begin = read_cursor(cursor, most=limits.PREREQUISITES_MAX)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            concept = records.concept(concept_id)
            walk = self._services.graph(reader, records.view, at).prerequisites(concept.id)
            answer = _prerequisites(walk, concept.id, depth, begin)
            mark_disputes(records, answer.prerequisites)
            if walk.circular:
                answer.cycle = BuiltInGraph(reader, records.view, at).circle(concept.id)
                answer.note = _join(_describe_circle(records, answer.cycle), answer.note)
        return answer

    def get_learning_path(
        self,
        target: Annotated[str, Param("What to learn: id or name")],
        *,
        known: Annotated[
            Sequence[str], Param("Ids or names of other concepts that are known", plural="known")
        ] = (),
        learner: Learner = None,
        valid_at: ValidAt = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> LearningPath:
        """Return what to learn for a concept, in steps that can each be learnt side by side.

        Everything comes after what it needs. What the learner knows, by mark_known or by `known`,
        is left out, and so is what only that requires. A step is as certain as the least certain
        of its concepts.
        """
        checks.concept_id(target, field="target")
        given = checks.concept_ids(known, field="known", most=limits.KNOWN_MAX)
        name = self._learner(learner)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            goal = records.concept(target, field="target")
            told = {each.id: each.name for each in records.concepts(given, field="known")}
            marked = {each.id: each.name for each, _ in _known_by(records, name)}
            told |= marked
            unknown = None if marked else _note_unknown(records, learner)
            if goal.id in told:
                message = _DONE.format(goal.name)
                return LearningPath(goal.name, [], message, [goal.name], name, note=unknown)
            walk = self._services.graph(reader, records.view, at).prerequisites(goal.id, told)
            concepts = [goal, *(each.concept for each in walk.found)]
            ids = [each.id for each in concepts]
            order = learning_order.arrange(ids, walk.needs)
            steps = _learning_steps(concepts, order, records.scores(concepts))
            passed = _passed_by(BuiltInGraph(reader, records.view, at), ids, told)
            items = [each for step in steps for each in step.concepts]
            mark_disputes(records, items)
        cycle = order.cycles[0] if order.cycles else None
        return LearningPath(
            goal.name,
            steps,
            f"{plural(len(concepts), 'concept')} in {plural(len(steps), 'step')}",
            passed,
            name,
            total=len(concepts),
            total_steps=len(steps),
            truncated=walk.more or None,
            cycle=cycle,
            note=_join(
                _describe_mutual(concepts, cycle) if cycle else None,
                _UNREAD if walk.more else None,
                unknown,
            ),
        )

    def mark_known(
        self,
        concepts: Annotated[Sequence[str], Param("Ids or names", plural="concept")],
        *,
        known: Annotated[bool, Param("false: no longer known", strict=True)] = True,
        learner: Learner = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> KnownMarked:
        """Mark concepts as known to a learner, or as no longer known.

        Raises:
            ConceptNotFound: One of them is not there; nothing was marked.
        """
        given = checks.concept_ids(concepts, field="concepts", most=limits.KNOWN_MAX)
        if not given:
            raise ValidationFailed(
                "There is nothing to mark.", field="concepts", hint="Name at least one concept."
            )
        name = self._learner(learner)

        def work(records: ConceptRecords, transaction: Transaction) -> dict[str, Any]:
            found = records.concepts(given, field="concepts")
            marked = {each.id for each, _ in _known_by(records, name)}
            unknown = None if marked else _note_unknown(records, learner)
            changed = [each.id for each in found if (each.id in marked) != known]
            kind = CONCEPT_LEARNT if known else CONCEPT_UNLEARNT
            drafts = [
                Draft(
                    kind,
                    {"learner": name, "concept_id": each},
                    KNOWN_CONCEPTS,
                    known_key(name, each),
                )
                for each in changed
            ]
            if drafts:
                transaction.append(records.view.branch, drafts)
            return {
                "concepts": [each.name for each in found],
                "changed": len(changed),
                "note": unknown,
            }

        arguments = {"concepts": given, "known": known, "learner": name}
        answer = self._change(work, "mark_known", arguments, branch, request_id)
        message = f"{'Known' if known else 'Not known'} to {name}: {len(answer['concepts'])}"
        return KnownMarked(learner=name, known=known, message=message, **answer)

    def list_known(
        self,
        *,
        learner: Learner = None,
        limit: ConceptLimit = limits.CONCEPTS_DEFAULT,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[KnownConcept]:
        """Return the concepts that a learner knows, those that were marked last first."""
        name = self._learner(learner)
        page = ListPosition.at(cursor, limit)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of)
            found = _known_by(records, name)[::-1]
            kept = [
                KnownConcept(concept.id, concept.name, moments.iso(at))
                for concept, at in page.cut(found)
            ]
            mark_disputes(records, kept)
            unknown = None if found else _note_unknown(records, learner)
        message = f"{name} knows {plural(len(found), 'concept')}"
        return page.results(found[: page.read], kept, message, note=unknown)

    def _learner(self, name: str | None) -> str:
        return self._caller.actor if name is None else checks.learner(name)


def _known_by(records: ConceptRecords, learner: str) -> list[tuple[Concept, int]]:
    """Return the concepts that a learner knows and since when, oldest first."""
    versions = records.reader.catalogue.with_facet(records.view, LEARNER_FACET + learner)
    marks = records.reader.log.contents(versions)
    since = {}
    for each in versions:
        content = content_of(marks[each].payload)
        since[content["concept_id"]] = content.get("since", marks[each].at)
    concepts = records.by_id(list(since))
    return [(concepts[each], at) for each, at in since.items() if each in concepts]


def _note_unknown(records: ConceptRecords, learner: str | None) -> str | None:
    """Say who may have been meant by a learner who was named, and of whom nothing is known."""
    if learner is None:
        return None
    catalogue, log = records.reader.catalogue, records.reader.log
    marks = catalogue.with_facet_containing(records.view, LEARNER_FACET, "", limit=_MARKS_READ)
    contents = log.contents(marks)
    learners = {content_of(contents[each].payload)["learner"] for each in marks}
    near = nearest(learner, learners - {learner}, _NEAR_MAX)
    if not near:
        return None
    return f"Nothing was known to {learner!r}. Did you mean {' or '.join(map(repr, near))}?"


def _passed_by(graph: BuiltInGraph, concept_ids: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return the names of known concepts that something on a path requires."""
    if not known:
        return []
    needs = graph.needs(concept_ids)
    return [known[each] for each in dict.fromkeys(source for source, _ in needs) if each in known]


def _prerequisites(walk: Walk, root: str, depth: int, begin: int) -> Prerequisites:
    """Return a page of what was reached: what lies within the depth, and then all the rest."""
    ids = [each.concept.id for each in walk.found]
    order = learning_order.arrange(ids, (each for each in walk.needs if root not in each))
    within = sum(1 for each in walk.found if each.depth <= depth)
    end = within if begin < within else len(ids)
    found = [
        Prerequisite(
            each.concept.id,
            each.concept.name,
            each.depth,
            order.places[each.concept.id],
            order.required_places(each.concept.id),
        )
        for each in walk.found[begin:end]
    ]
    beyond = len(ids) - end
    deeper = f"{beyond} more are deeper than {depth} steps: pass cursor={str(end)!r} to read them."
    return Prerequisites(
        found,
        f"Found {len(found)} of {plural(len(ids), 'prerequisite')}"
        if beyond
        else f"Found {plural(len(found), 'prerequisite')}",
        truncated=bool(beyond or walk.more) or None,
        next=str(end) if beyond else None,
        left_out=beyond or None,
        note=_join(deeper if beyond else None, _UNREAD if walk.more else None),
    )


def _learning_steps(
    concepts: Sequence[Concept], order: LearningOrder, scores: dict[str, Score]
) -> list[LearningStep]:
    named = {each.id: each.name for each in concepts}
    steps = []
    for number, step in enumerate(order.steps, 1):
        items = [
            LearningConcept(
                each,
                named[each],
                order.places[each],
                order.required_places(each),
                scores[each].value,
                "computed" if scores[each].computed else None,
            )
            for each in step
        ]
        steps.append(LearningStep(number, min(each.certainty_score for each in items), items))
    return steps


def _describe_mutual(concepts: Sequence[Concept], cycle: list[str]) -> str:
    named = {each.id: each.name for each in concepts}
    names = ", ".join(named[each] for each in cycle)
    return (
        f"These require each other, so they share a step: {names}. "
        "A merge caused this; delete one of the prerequisites with delete_relationship."
    )


def _describe_circle(records: ConceptRecords, cycle: list[str]) -> str:
    return (
        f"This concept is its own prerequisite: {describe_cycle(records, cycle)}. "
        "A merge caused this; delete one of these relationships."
    )


def _join(*notes: str | None) -> str | None:
    return " ".join(note for note in notes if note) or None
