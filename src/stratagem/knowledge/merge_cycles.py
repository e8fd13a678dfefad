"""Cycles of prerequisites that a merge would create, reported before it writes them.

Nobody can write a cycle, but two branches that have none may have one together. A merge takes both
sides even then: it says which cycle there is, and by which call it is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.knowledge import learning_order
from stratagem.knowledge.graph import BuiltInGraph
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.spaces import (
    CONCEPT_DELETED,
    CONCEPTS,
    PREREQUISITE,
    RELATIONSHIP_DELETED,
    RELATIONSHIPS,
    relationship_key,
)
from stratagem.storage.contract import Reader

__all__ = ["describe_merged_cycles"]

# More are counted: whoever breaks these meets the rest in the next answer.
_CYCLES_SHOWN: Final = 5

Need = tuple[str, str]


class _Written(NamedTuple):
    """What a merge writes that matters to prerequisites, and what the concepts are called."""

    added: dict[Need, None]
    removed: set[str]
    names: dict[str, str]
    gone: set[str]


def describe_merged_cycles(reader: Reader, view: View, drafts: Sequence[Draft]) -> list[str]:
    """Return a sentence for each cycle that the drafts close on a branch."""
    written = _read_drafts(drafts)
    if not written.added:
        return []
    needs = _needs_around(reader, view, written)
    concepts = list(dict.fromkeys(each for need in needs for each in need))
    groups = learning_order.arrange(concepts, needs).cycles
    found = [
        (cycle, closing)
        for group in groups
        for closing in written.added
        if set(closing) <= set(group)
        if (cycle := _cycle_through(closing, needs))
    ]
    distinct = {frozenset(cycle): (cycle, closing) for cycle, closing in found}
    named = _names(reader, view, concepts, written)
    sentences = [
        _describe(cycle, closing, named) for cycle, closing in [*distinct.values()][:_CYCLES_SHOWN]
    ]
    if len(distinct) > _CYCLES_SHOWN:
        sentences.append(f"There are {len(distinct) - _CYCLES_SHOWN} more cycles.")
    return sentences


def _read_drafts(drafts: Sequence[Draft]) -> _Written:
    written = _Written({}, set(), {}, set())
    for each in drafts:
        if each.space == RELATIONSHIPS and each.kind == RELATIONSHIP_DELETED:
            written.removed.add(each.key or "")
        elif each.space == RELATIONSHIPS and each.content["relationship_type"] == PREREQUISITE:
            written.added[each.content["source_id"], each.content["target_id"]] = None
        elif each.space == CONCEPTS and each.kind == CONCEPT_DELETED:
            written.gone.add(each.key or "")
        elif each.space == CONCEPTS:
            written.names[each.key or ""] = each.content["name"]
    return written


def _needs_around(reader: Reader, view: View, written: _Written) -> list[Need]:
    """Return all prerequisites that lead, in any number of steps, to one that is added."""
    graph = BuiltInGraph(reader, view)
    records = ConceptRecords(reader, view)
    needs: dict[Need, None] = dict(written.added)
    seen: set[str] = set()
    frontier = list(dict.fromkeys(each for need in written.added for each in need))
    while frontier:
        seen.update(frontier)
        step = [
            need
            for need in graph.needs(frontier)
            if relationship_key(*need, PREREQUISITE) not in written.removed
        ]
        needs |= dict.fromkeys(step)
        met = list(dict.fromkeys(source for source, _ in step if source not in seen))
        frontier = [each for each in met if each in written.names or each in records.by_id([each])]
    shown = records.by_id(sorted(seen)).keys() | written.names.keys()
    shown -= written.gone
    return [need for need in needs if shown.issuperset(need)]


def _cycle_through(closing: Need, needs: Sequence[Need]) -> list[str]:
    """Return a shortest cycle that a prerequisite is on, from its target on; empty for none."""
    source, target = closing
    after: dict[str, str] = {}
    frontier = [target]
    requires: dict[str, list[str]] = {}
    for low, high in needs:
        requires.setdefault(low, []).append(high)
    while frontier and source not in after:
        frontier = [
            high
            for low in frontier
            for high in requires.get(low, ())
            if high != target and after.setdefault(high, low) == low
        ]
    return [*_back(source, target, after)][::-1] if source in after else []


def _back(concept: str, root: str, after: dict[str, str]) -> Iterator[str]:
    while concept != root:
        yield concept
        concept = after[concept]
    yield root


def _names(
    reader: Reader, view: View, concept_ids: Sequence[str], written: _Written
) -> dict[str, str]:
    known = ConceptRecords(reader, view).by_id(concept_ids)
    return {each.id: each.name for each in known.values()} | written.names


def _describe(cycle: list[str], closing: Need, named: dict[str, str]) -> str:
    source, target = closing
    circle = " → ".join(named[each] for each in [*cycle, cycle[0]])
    arguments: dict[str, Any] = {
        "source_id": source,
        "target_id": target,
        "relationship_type": PREREQUISITE,
    }
    given = " and ".join(f"{name} {value!r}" for name, value in arguments.items())
    return (
        f"Each of these is a prerequisite of the next, in a cycle: {circle}. This merge "
        f"adds {named[source]} → {named[target]}; delete_relationship with {given} breaks "
        "the cycle there."
    )
