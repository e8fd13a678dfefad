"""In which order concepts can be learnt: everything after what it needs.

Concepts are put into steps. The first holds what needs nothing, each other one what needs only
earlier steps; so those of one step can be learnt side by side, and no order has fewer steps.

Nobody can write a cycle of prerequisites, but a merge can bring one about. Concepts that need each
other have no order among themselves: they share a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stratagem.deferred_dataclasses import dataclass

__all__ = ["LearningOrder", "arrange"]


@dataclass(frozen=True, slots=True)
class LearningOrder:
    """Concepts in steps, the place of each in the order, and which need each other."""

    steps: list[list[str]]
    places: dict[str, int]
    requires: dict[str, list[str]]
    cycles: list[list[str]]

    def required_places(self, concept_id: str) -> list[int]:
        """Return the places of what a concept needs itself."""
        return sorted(self.places[each] for each in self.requires[concept_id])


def arrange(concept_ids: Sequence[str], needs: Iterable[tuple[str, str]]) -> LearningOrder:
    """Return an order for some concepts; `needs` are pairs of what is needed, and by what.

    Within a step concepts stand in the order in which they were given. Pairs with anything else
    are left out.
    """
    requires: dict[str, list[str]] = {each: [] for each in concept_ids}
    for source, target in dict.fromkeys(needs):
        if source in requires and target in requires:
            requires[target].append(source)
    groups = list(_mutual_groups(requires))
    group_of = {each: number for number, group in enumerate(groups) for each in group}
    # A group comes after the groups that it needs, so their steps are known.
    step_of: list[int] = []
    for number, group in enumerate(groups):
        needed = {group_of[source] for each in group for source in requires[each]} - {number}
        step_of.append(1 + max((step_of[each] for each in needed), default=-1))
    steps: list[list[str]] = [[] for _ in range(1 + max(step_of, default=-1))]
    for each in requires:
        steps[step_of[group_of[each]]].append(each)
    ordered = [each for step in steps for each in step]
    places = {each: place for place, each in enumerate(ordered, 1)}
    cycles = [sorted(group, key=places.__getitem__) for group in groups if len(group) > 1]
    return LearningOrder(steps, places, requires, cycles)


def _mutual_groups(requires: dict[str, list[str]]) -> Iterator[list[str]]:
    """Return concepts that need each other together, each group after those that it needs.

    Tarjan's algorithm, without recursion: a chain may be longer than Python's stack.
    """
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    pending: set[str] = set()
    for root, needed in requires.items():
        if root in index:
            continue
        path = [(root, iter(needed))]
        while path:
            node, rest = path[-1]
            if node not in index:
                index[node] = lowest[node] = len(index)
                stack.append(node)
                pending.add(node)
            deeper = next((each for each in rest if each not in index or each in pending), None)
            if deeper is not None and deeper not in index:
                path.append((deeper, iter(requires[deeper])))
                continue
            if deeper is not None:
                lowest[node] = min(lowest[node], index[deeper])
                continue
            path.pop()
            if path:
                above = path[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] == index[node]:
                at = stack.index(node)
                group, stack[at:] = stack[at:], []
                pending.difference_update(group)
                yield group
