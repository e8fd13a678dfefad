"""How sure one can be of a concept that nobody gave a score.

Everything that speaks for or against it is an outcome under the one model of evidence
(`engine.evidence`), as if the concept had been put to the test and had held, or had not:

* its explanation is its author's own claim, whatever its length;
* that somebody tried it, and it held or did not, is a success or a failure for each source;
* a concept that confirms it is a success, one that contradicts it a failure, each weighed by
  the strength of the relationship and by how certain that concept is; a contradiction falls back
  on the one who makes it, by half;
* a concept that supersedes it counts as two failures, weighed in the same way;
* that it has any other relation to something says a little for it: somebody looked at it from
  there. Only the strongest few of each type count, so that linking alone makes nothing certain.

How certain the other concept is means its given score, or else the score that its own evidence has
without such weighing (`base`, kept beside the score). Otherwise two concepts that contradict each
other would each depend on the other's score, and the result on who was written first. An untried
concept weighs 1.

The score is a hundred times the mean of that belief. It is computed anew in the transaction
that changes any of this: when a relationship comes or goes, when a concept at its other end is
deleted or restored, and when a merge brings either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from stratagem import limits
from stratagem.engine import evidence
from stratagem.engine.events import Draft
from stratagem.engine.evidence import Observation
from stratagem.engine.lineage import OPEN_END, Branch, View
from stratagem.errors import ValidationFailed
from stratagem.knowledge.evidence_records import observations_about
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.spaces import (
    CERTAINTIES,
    CERTAINTY_COMPUTED,
    CONCEPTS,
    EVIDENCE,
    RELATIONSHIPS,
    TYPES,
    relationship_key,
)
from stratagem.storage.contract import RecordReader, Transaction

__all__ = [
    "UNTRIED",
    "EvidenceCounts",
    "count_links",
    "draft",
    "neighbours",
    "refresh",
    "settle",
]


class _Weight(NamedTuple):
    """What a relationship of one type and direction counts, and how many of them do."""

    worked: bool
    weight: float
    most: int
    weighed: bool = False


_MANY: Final = 100
_FEW: Final = 10
_RELATION: Final = _Weight(worked=True, weight=0.1, most=_FEW)
# By type, and whether the relationship leads away from the concept.
_WEIGHTS: Final = {
    (label, outgoing): _RELATION for label in TYPES for outgoing in (True, False)
} | {
    ("confirms", False): _Weight(worked=True, weight=1.0, most=_MANY, weighed=True),
    ("contradicts", False): _Weight(worked=False, weight=1.0, most=_MANY, weighed=True),
    ("contradicts", True): _Weight(worked=False, weight=0.5, most=_MANY),
    ("supersedes", False): _Weight(worked=False, weight=2.0, most=_FEW, weighed=True),
}
# An explanation is no test, but nobody wrote it without a reason: half of one.
_CLAIM: Final = Observation(worked=True, weight=0.5)


def _score(observations: Iterable[Observation]) -> int:
    return round(100 * evidence.believe((_CLAIM, *observations)).mean)


# Of a concept that has an explanation and nothing else.
UNTRIED: Final = _score(())


def draft(concept_id: str, score: int, base: int | None = None) -> Draft:
    """Return the event that keeps a computed certainty, and the base that others weigh it by."""
    content = {"score": score} if base in {None, score} else {"score": score, "base": base}
    return Draft(CERTAINTY_COMPUTED, content, CERTAINTIES, concept_id)


def refresh(transaction: Transaction, view: View, concept_ids: Iterable[str]) -> None:
    """Compute the certainty of some concepts anew, and of those that they speak for or against."""
    records = ConceptRecords(transaction, view)
    touched = set(concept_ids)
    numbers = transaction.records.subjects(CONCEPTS, sorted(touched))
    affected = touched | _weighed_by(records, list(numbers.values()))
    concepts = records.by_id(sorted(affected))
    unscored = [each for each in concepts.values() if "certainty_score" not in each.content]
    if not unscored:
        return
    numbers = transaction.records.subjects(CONCEPTS, [each.id for each in unscored])
    kept = records.computed_certainty([each.id for each in unscored])
    observed = {each.id: list(_observe(records, numbers[each.id])) for each in unscored}
    tried = {each.id: observations_about(records, each.id) for each in unscored}
    bases = {each: _score((*tried[each], *_weigh(found, {}))) for each, found in observed.items()}
    others = {each.other for found in observed.values() for each in found if each.weighed}
    weights = _weights_of(records, sorted(others), bases)
    drafts = []
    for concept in unscored:
        score = _score((*tried[concept.id], *_weigh(observed[concept.id], weights)))
        base = bases[concept.id]
        known = kept.get(concept.id, {})
        if (known.get("score"), known.get("base", known.get("score"))) != (score, base):
            drafts.append(draft(concept.id, score, base))
    if drafts:
        transaction.append(view.branch, drafts)


def neighbours(transaction: Transaction, view: View, concept_id: str) -> list[str]:
    """Return the concepts whose certainty hangs on another: as many as are looked at in time."""
    node = ConceptRecords(transaction, view).subject(concept_id)
    links = transaction.catalogue.links(view, (node,), limit=limits.CERTAINTY_NEIGHBOURS_MAX)
    named = transaction.records.names(sorted({link.other for link in links}))
    return [key for _, key in named.values()]


def settle(transaction: Transaction, branch: Branch, drafts: Sequence[Draft]) -> None:
    """Compute anew what a merge has changed the evidence of."""
    view = View(branch, transaction.branches.lineage(branch), transaction.wall)
    touched: set[str] = set()
    for each in drafts:
        assert each.key is not None or each.space not in {CONCEPTS, RELATIONSHIPS}
        if each.space == CONCEPTS and each.key is not None:
            touched.update((each.key, *neighbours(transaction, view, each.key)))
        elif each.space == RELATIONSHIPS and each.key is not None:
            _refuse_other_ends(each)
            touched.update(_ends(transaction.records, view, each.key))
        elif each.space == EVIDENCE:
            touched.add(each.content["concept_id"])
    refresh(transaction, view, touched)


def _refuse_other_ends(draft: Draft) -> None:
    """Refuse a merged relationship that does not relate what its id stands for."""
    told = [draft.content.get(name) for name in ("source_id", "target_id", "relationship_type")]
    if any(told) and relationship_key(*map(str, told)) != draft.key:
        raise ValidationFailed(
            "A decision cannot change what a relationship relates, nor its type.",
            field="decisions",
            resource_id=draft.key,
            hint="Decide its strength and notes, or delete it and create another.",
        )


def _ends(records: RecordReader, view: View, relationship_id: str) -> Iterator[str]:
    """Return the concepts that a relationship relates or related."""
    history = records.history(
        view.lineage, RELATIONSHIPS, relationship_id, before=OPEN_END, limit=_FEW
    )
    for version in history:
        content = orjson.loads(version.payload or b"{}")
        if "source_id" in content:
            yield from (content["source_id"], content["target_id"])
            return


class EvidenceCounts(NamedTuple):
    """What the certainty of a concept is made of."""

    confirming: int
    contradicting: int
    superseding: int
    links: int


def count_links(records: ConceptRecords, concept_id: str) -> EvidenceCounts:
    """Return how many relationships speak for and against a concept, and how many say little."""
    node = records.subject(concept_id)
    counts = dict.fromkeys(("confirms", "contradicts", "supersedes", ""), 0)
    for label, outgoing in _WEIGHTS:
        counted = _WEIGHTS[label, outgoing]
        links = records.reader.catalogue.strongest_links(
            records.view, node, outgoing=outgoing, label=label, limit=counted.most
        )
        counts[label if counted.weighed else ""] += len(links)
    return EvidenceCounts(
        counts["confirms"], counts["contradicts"], counts["supersedes"], counts[""]
    )


class _Observed(NamedTuple):
    """A relationship as evidence, before it is weighed by the concept at its other end."""

    worked: bool
    weight: float
    weighed: bool
    other: int


def _observe(records: ConceptRecords, node: int) -> Iterator[_Observed]:
    for (label, outgoing), counted in _WEIGHTS.items():
        links = records.reader.catalogue.strongest_links(
            records.view, node, outgoing=outgoing, label=label, limit=counted.most
        )
        for link in links:
            yield _Observed(
                counted.worked, counted.weight * link.weight, counted.weighed, link.other
            )


def _weigh(found: Iterable[_Observed], weights: Mapping[int, float]) -> Iterator[Observation]:
    for each in found:
        factor = weights.get(each.other, 1.0) if each.weighed else 1.0
        yield Observation(each.worked, each.weight * factor)


def _weighed_by(records: ConceptRecords, nodes: list[int]) -> set[str]:
    """Return the concepts that some speak for or against: as many as are looked at in time."""
    links = [
        link
        for label, outgoing in _WEIGHTS
        if not outgoing and _WEIGHTS[label, outgoing].weighed
        for link in records.reader.catalogue.links(
            records.view, nodes, limit=limits.CERTAINTY_NEIGHBOURS_MAX, by=(True, label)
        )
    ]
    named = records.reader.records.names(sorted({link.other for link in links}))
    return {key for _, key in named.values()}


def _weights_of(
    records: ConceptRecords, nodes: Sequence[int], bases: Mapping[str, int]
) -> dict[int, float]:
    """Return what the words of some concepts weigh, by their numbers."""
    concepts = records.by_subject(nodes)
    computed = records.computed_certainty([each.id for each in concepts.values()])
    weights = {}
    for number, concept in concepts.items():
        known = computed.get(concept.id, {})
        base = bases.get(concept.id, known.get("base", known.get("score", UNTRIED)))
        weights[number] = concept.content.get("certainty_score", base) / UNTRIED
    return weights
