"""The computed certainty of a concept without a given score.

Everything for or against it is an outcome under the one model of evidence (`engine.evidence`), as
if the concept had been tested with success or failure:

* its explanation is its author's own claim, whatever its length;
* that somebody tried it, and it held or did not, is a success or a failure for each source;
* a concept that confirms it is a success, one that contradicts it a failure, each weighed by
  the strength of the relationship and by how certain that concept is; a contradiction also counts
  against the concept that makes it, by half;
* a concept that supersedes it counts as two failures, weighed in the same way;
* any other relationship counts a little for it, because somebody looked at it from there. Only the
  strongest few of each type count, so that linking alone makes nothing certain.

The certainty of the other concept is its given score, or else the score of its own evidence without
such weighing (`base`, stored beside the score). Otherwise the scores of two concepts that
contradict each other would depend on each other, and the result on the order of writing. An untried
concept weighs 1.

The score is a hundred times the mean of that belief. It is computed anew in the transaction
that changes any of this: when a relationship comes or goes, when a concept at its other end is
deleted, restored or given another period, and when a merge brings any of it.

A relationship counts only while it holds, and so does the concept at its other end. Where either
has a period the score changes with time although nothing is written, so it is computed for every
moment at once: `moments` at which it changes, and the `scores` and `bases` before, between and
after them. A reading takes the one of its moment (`records.score_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import evidence
from stratagem.engine.events import Draft
from stratagem.engine.evidence import Observation
from stratagem.engine.lineage import OPEN_END, Branch, View
from stratagem.errors import ValidationFailed
from stratagem.knowledge.evidence_records import observations_about
from stratagem.knowledge.records import Concept, ConceptRecords, base_at, content_of
from stratagem.knowledge.spaces import (
    CERTAINTIES,
    CERTAINTY_COMPUTED,
    CONCEPTS,
    EVIDENCE,
    RELATIONSHIPS,
    TYPES,
    relationship_key,
)
from stratagem.knowledge.valid_time import holds_at
from stratagem.storage.catalogue import LinkEnd
from stratagem.storage.contract import RecordReader, Transaction

__all__ = [
    "UNTRIED",
    "EvidenceCounts",
    "count_links",
    "draft",
    "neighbours",
    "refresh",
    "refresh_around",
    "settle",
]


class _Weight(NamedTuple):
    """The weight of relationships of one type and direction, and how many of them count."""

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


def draft(concept_id: str, score: int) -> Draft:
    """Return the event that keeps a computed certainty that is the same at every moment."""
    return _draft(concept_id, {"score": score})


def _draft(concept_id: str, content: Mapping[str, Any]) -> Draft:
    return Draft(CERTAINTY_COMPUTED, content, CERTAINTIES, concept_id)


def refresh(transaction: Transaction, view: View, concept_ids: Iterable[str]) -> None:
    """Compute the certainty of some concepts anew, and of those that they speak for or against."""
    records = ConceptRecords(transaction, view)
    touched = set(concept_ids)
    numbers = transaction.records.subjects(CONCEPTS, sorted(touched))
    affected = touched | _weighed_by(records, list(numbers.values()))
    concepts = records.by_id(sorted(affected))
    unscored = [each.id for each in concepts.values() if "certainty_score" not in each.content]
    if not unscored:
        return
    stored = records.computed_certainty(unscored)
    computed = _Computation(records).run(unscored)
    drafts = [
        _draft(each, content) for each, content in computed.items() if stored.get(each) != content
    ]
    if drafts:
        transaction.append(view.branch, drafts)


def refresh_around(transaction: Transaction, view: View, *concept_ids: str) -> None:
    """Compute the certainty of some concepts and of those next to them anew."""
    near = (neighbours(transaction, view, each) for each in concept_ids)
    refresh(transaction, view, {*concept_ids}.union(*near))


def neighbours(transaction: Transaction, view: View, concept_id: str) -> list[str]:
    """Return the concepts whose certainty depends on another, up to a limit."""
    node = ConceptRecords(transaction, view).subject(concept_id)
    links = transaction.catalogue.links(view, (node,), limit=limits.CERTAINTY_NEIGHBOURS_MAX)
    named = transaction.records.names(sorted({link.other for link in links}))
    return [key for _, key in named.values()]


def settle(transaction: Transaction, branch: Branch, drafts: Sequence[Draft]) -> None:
    """Recompute the certainty of concepts whose evidence a merge has changed."""
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
            "A decision cannot change the ends of a relationship or its type.",
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
    """The counts of evidence behind the certainty of a concept."""

    confirming: int
    contradicting: int
    superseding: int
    links: int


def count_links(records: ConceptRecords, concept: Concept) -> EvidenceCounts:
    """Return how many relationships speak for and against a concept, and how many say little."""
    counts = dict.fromkeys(("confirms", "contradicts", "supersedes", ""), 0)
    for label, outgoing in _counted_kinds(records, concept):
        counts[label if _WEIGHTS[label, outgoing].weighed else ""] += 1
    return EvidenceCounts(
        counts["confirms"], counts["contradicts"], counts["supersedes"], counts[""]
    )


def _counted_kinds(records: ConceptRecords, concept: Concept) -> Iterator[tuple[str, bool]]:
    """Return the kind of each relationship that counts for a concept at the moment."""
    node = records.subject(concept.id)
    computed = records.computed_certainty([concept.id]).get(concept.id, {})
    if "certainty_score" in concept.content or "moments" in computed:
        for link in _read_links(records, [node])[node].select_held(records.at):
            yield link.kind
        return
    # Nothing that counts has a period.
    for kind, counted in _WEIGHTS.items():
        for _ in _read_strongest(records, node, kind, counted.most):
            yield kind


class _CountedLink(NamedTuple):
    """A relationship of a concept, what it counts, and the periods of it and its other end."""

    kind: tuple[str, bool]
    counted: _Weight
    strength: float
    other: int
    periods: tuple[Mapping[str, Any], Mapping[str, Any]]

    def holds(self, at: int) -> bool:
        """Whether it counts at a moment."""
        return all(holds_at(each, at) for each in self.periods)

    def moments(self) -> Iterator[int]:
        """Return when it begins or ceases to count."""
        for each in self.periods:
            yield from (each[name] for name in ("valid_from", "valid_to") if name in each)


class _ConceptLinks(NamedTuple):
    """The relationships of a concept by their kind, the strongest of each first."""

    kinds: Sequence[Sequence[_CountedLink]]

    def select_held(self, at: int) -> Iterator[_CountedLink]:
        """Return what counts at a moment: the strongest few of each kind that hold then."""
        for links in self.kinds:
            if links:
                yield from islice((each for each in links if each.holds(at)), links[0].counted.most)

    def moments(self) -> set[int]:
        """Return when what counts may change."""
        return {at for links in self.kinds for each in links for at in each.moments()}

    def weighing_nodes(self) -> set[int]:
        """Return the concepts whose certainty weighs."""
        return {each.other for links in self.kinds for each in links if each.counted.weighed}


class _Periods:
    """When relationships and the concepts at their other ends hold; each is read once."""

    def __init__(self, records: ConceptRecords) -> None:
        self._records = records
        self._of_links: dict[int, Mapping[str, Any]] = {}
        self._of_concepts: dict[int, Mapping[str, Any]] = {}

    def read(self, links: Iterable[LinkEnd]) -> None:
        """Read the periods of some relationships."""
        ends = list(links)
        # A relationship may be read from both of its ends: it is one, and they are two.
        fresh = {link.sequence for link in ends} - self._of_links.keys()
        others = {link.other for link in ends} - self._of_concepts.keys()
        reader = self._records.reader
        contents = reader.log.contents(sorted(fresh)) if fresh else {}
        self._of_links |= {key: _period(each.payload) for key, each in contents.items()}
        lineage = self._records.view.lineage
        found = reader.records.current_many(lineage, sorted(others)) if others else {}
        self._of_concepts |= {key: _period(each.version.payload) for key, each in found.items()}

    def of(self, link: LinkEnd) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the periods of a relationship and of the concept at its other end."""
        return self._of_links[link.sequence], self._of_concepts[link.other]


_ALWAYS: Final[Mapping[str, Any]] = {}


def _period(payload: bytes | None) -> Mapping[str, Any]:
    """Return when a record holds; most say nothing of it, and are not parsed."""
    return content_of(payload) if payload and b'"valid_' in payload else _ALWAYS


def _read_links(records: ConceptRecords, nodes: Collection[int]) -> dict[int, _ConceptLinks]:
    """Return the relationships of some concepts that count at some moment.

    As long as the strongest few all hold always, no others ever count.
    """
    periods = _Periods(records)
    strongest = {
        node: {
            kind: _read_strongest(records, node, kind, counted.most)
            for kind, counted in _WEIGHTS.items()
        }
        for node in nodes
    }
    periods.read(link for kinds in strongest.values() for ends in kinds.values() for link in ends)
    found = {}
    for node, kinds in strongest.items():
        links = _with_periods(periods, kinds)
        full = [kind for kind, ends in kinds.items() if len(ends) == _WEIGHTS[kind].most]
        if full and links.moments():
            for kind in full:
                kinds[kind] = _read_strongest(records, node, kind, limits.LINKS_READ_MAX)
                periods.read(kinds[kind])
            links = _with_periods(periods, kinds)
        found[node] = links
    return found


def _read_strongest(
    records: ConceptRecords, node: int, kind: tuple[str, bool], most: int
) -> list[LinkEnd]:
    label, outgoing = kind
    return records.reader.catalogue.strongest_links(
        records.view, node, outgoing=outgoing, label=label, limit=most
    )


def _with_periods(
    periods: _Periods, kinds: Mapping[tuple[str, bool], Sequence[LinkEnd]]
) -> _ConceptLinks:
    return _ConceptLinks(
        [
            [
                _CountedLink(kind, _WEIGHTS[kind], link.weight, link.other, periods.of(link))
                for link in links
            ]
            for kind, links in kinds.items()
        ]
    )


@dataclass(slots=True)
class _Computation:
    """Computes the certainty of concepts, at every moment at which it may be another."""

    records: ConceptRecords
    _links: dict[str, _ConceptLinks] = field(default_factory=dict)
    _tried: dict[str, list[Observation]] = field(default_factory=dict)
    _others: dict[int, Concept] = field(default_factory=dict)
    _stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    # By concept and moment: many may weigh the words of the same one.
    _bases: dict[tuple[str, int], int] = field(default_factory=dict)

    def run(self, concept_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what is kept of the certainty of each concept."""
        records = self.records
        numbers = records.reader.records.subjects(CONCEPTS, concept_ids)
        links = _read_links(records, numbers.values())
        self._links = {each: links[numbers[each]] for each in concept_ids}
        self._tried = {each: observations_about(records, each) for each in concept_ids}
        weighed = sorted(
            {node for links in self._links.values() for node in links.weighing_nodes()}
        )
        self._others = records.by_subject(weighed)
        self._stored = records.computed_certainty([each.id for each in self._others.values()])
        return {each: self._content(each) for each in concept_ids}

    def _content(self, concept_id: str) -> dict[str, Any]:
        now = self.records.at
        content = _values_at(self._score(concept_id, now), self._base(concept_id, now))
        moments = self._moments(concept_id)
        if not moments:
            return content
        # Before the first of them, and from each of them on.
        begins = [moments[0] - 1, *moments]
        scores = [self._score(concept_id, at) for at in begins]
        bases = [self._base(concept_id, at) for at in begins]
        return content | {"moments": moments, "scores": scores, "bases": bases}

    def _moments(self, concept_id: str) -> list[int]:
        """Return when the certainty may change: the latest of those moments, oldest first."""
        links = self._links[concept_id]
        found = links.moments()
        for node in links.weighing_nodes():
            found |= self._moments_of_base(node)
        return sorted(found)[-limits.CERTAINTY_MOMENTS_MAX :]

    def _moments_of_base(self, node: int) -> set[int]:
        other = self._others[node]
        if "certainty_score" in other.content:
            return set()
        if other.id in self._links:
            return self._links[other.id].moments()
        return set(self._stored.get(other.id, {}).get("moments", ()))

    def _score(self, concept_id: str, at: int) -> int:
        return self._believe(concept_id, at, lambda node: self._weight(node, at))

    def _base(self, concept_id: str, at: int) -> int:
        if (concept_id, at) not in self._bases:
            self._bases[concept_id, at] = self._believe(concept_id, at, lambda _: 1.0)
        return self._bases[concept_id, at]

    def _believe(self, concept_id: str, at: int, weigh: Callable[[int], float]) -> int:
        observed = (
            Observation(
                each.counted.worked,
                each.counted.weight
                * each.strength
                * (weigh(each.other) if each.counted.weighed else 1.0),
            )
            for each in self._links[concept_id].select_held(at)
        )
        return _score((*self._tried[concept_id], *observed))

    def _weight(self, node: int, at: int) -> float:
        """Return the weight of a concept as evidence at a moment."""
        other = self._others[node]
        given = other.content.get("certainty_score")
        if given is not None:
            return float(given) / UNTRIED
        if other.id in self._links:
            return self._base(other.id, at) / UNTRIED
        return base_at(self._stored.get(other.id, {}), at, UNTRIED) / UNTRIED


def _values_at(score: int, base: int) -> dict[str, Any]:
    return {"score": score} if base == score else {"score": score, "base": base}


def _weighed_by(records: ConceptRecords, nodes: list[int]) -> set[str]:
    """Return the concepts that some concepts are evidence for or against, up to a limit."""
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
