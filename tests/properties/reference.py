"""Three-way merge, written down a second time and as plainly as possible.

A version is a node that knows the nodes it was made from. The base of two versions is their
latest common ancestor; where there are several, they are merged into one, and what they
disagree on is `Unclear`. Where a version expires nobody is asked: what lasts longer stands whole, and
versions that last equally long are compared with their like. Nothing here is fast, and nothing here is shared with the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class Absent:
    """Nothing is there."""


class Unclear:
    """The bases disagree: equal to nothing, not even to itself."""


@dataclass(eq=False)
class Node:
    """One version of one entry. `content` is None where it was forgotten."""

    content: dict[str, Any] | None
    branch: int
    sequence: int
    parents: tuple[Node, ...] = ()
    ancestors: frozenset[Node] = field(default_factory=frozenset, repr=False)
    # What the content was made from, if that is not all of `parents`.
    made_from: tuple[Node, ...] | None = None
    sources: frozenset[Node] = field(default_factory=frozenset, repr=False)

    def __post_init__(self) -> None:
        above = frozenset(self.parents).union(*(parent.ancestors for parent in self.parents))
        self.ancestors = above | {self}
        made_from = self.parents if self.made_from is None else self.made_from
        # Of two that expire at different times only one goes into what a merge makes.
        alike = [each for each in made_from if _ends(_content(each)) == _ends(_content(self))]
        kept = alike if len(made_from) > 1 and alike else made_from
        self.sources = frozenset({self}).union(*(parent.sources for parent in kept))

    @cached_property
    def versions(self) -> frozenset[tuple[int, int]]:
        """Return the writes that went into this version: to hear of one is none."""
        return frozenset((node.branch, node.sequence) for node in self.ancestors if node.sequence)


@dataclass
class Outcome:
    """What a merge of two versions gives; `conflicts` are paths.

    `settled`: there would be conflicts, if what lasts longer did not stand.
    """

    content: dict[str, Any] | None
    conflicts: list[tuple[str, ...]]
    settled: bool = False


def equal(one: Any, other: Any) -> bool:
    if _is_unclear(one) or _is_unclear(other):
        return False
    return repr(_sorted(one)) == repr(_sorted(other))


def _is_unclear(value: Any) -> bool:
    """Whether a value is unclear, or a place of it: then it is equal to nothing as a whole."""
    if isinstance(value, dict):
        return any(map(_is_unclear, value.values()))
    return value is Unclear


def merged(ours: Node | None, theirs: Node | None, choices: Any = "ours") -> Outcome:
    """Merge two versions; `choices` says which side stands where they conflict, by path or at all."""
    base = base_of(ours, theirs)
    conflicts: list[tuple[str, ...]] = []
    content, settled = _merge_record(base, _content(ours), _content(theirs), choices, conflicts)
    return Outcome(None if content is Absent else content, conflicts, settled)


def base_of(ours: Node | None, theirs: Node | None) -> Any:
    """Return the content that two versions have in common, or what can be made of it."""
    if ours is None or theirs is None:
        return Absent
    base = _base_among(ours.ancestors & theirs.ancestors)
    return _base_alike(base, _content(ours), _content(theirs), ours.sources, theirs.sources)


def _base_alike(
    base: Any, ours: Any, theirs: Any, mine: frozenset[Node], yours: frozenset[Node]
) -> Any:
    """Return a base; of two versions that expire together, one that expires with them."""
    if _ends(ours) != _ends(theirs) or _ends(ours) == _ends(base):
        return base
    return _source_among(
        frozenset(each for each in mine & yours if _ends(_content(each)) == _ends(ours))
    )


def _source_among(nodes: frozenset[Node]) -> Any:
    outdated = {older for node in nodes for older in node.sources - {node}}
    latest = sorted(nodes - outdated, key=lambda node: (node.sequence, node.branch))
    if not latest:
        return Absent
    value, made_of = _content(latest[0]), latest[0].sources
    for node in latest[1:]:
        shared = frozenset(each for each in made_of & node.sources if each in nodes)
        value, _ = _merge_record(_source_among(shared), value, _content(node), "neither", [])
        made_of |= node.sources
    return value


def changed_by(ours: Node | None, theirs: Node | None) -> str:
    """Say which of two versions is another than the one they have in common."""
    base = base_of(ours, theirs)
    if equal(base, _content(ours)):
        return "theirs"
    return "ours" if equal(base, _content(theirs)) else "both"


def places_changed(ours: Node, theirs: Node) -> dict[tuple[str, ...], str]:
    """Say of each place in which two versions differ which of them changed it."""
    return dict(_places(base_of(ours, theirs), _content(ours), _content(theirs), ()))


def _places(
    base: Any, ours: Any, theirs: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(ours, dict) and isinstance(theirs, dict) and _has_fields(base):
        for name in {*ours, *theirs}:
            inner = base.get(name, Absent) if isinstance(base, dict) else base
            one, other = (side.get(name, Absent) for side in (ours, theirs))
            yield from _places(inner, one, other, (*path, name))
    elif not equal(ours, theirs):
        kept = [equal(base, side) for side in (ours, theirs)]
        yield path, "theirs" if kept[0] else "ours" if kept[1] else "both"


def _base_among(nodes: frozenset[Node]) -> Any:
    latest = sorted(_latest(nodes), key=lambda node: (node.branch, node.sequence))
    if not latest:
        return Absent
    value, known = _content(latest[0]), latest[0].ancestors
    for place, node in enumerate(latest[1:], 1):
        base = _base_among(known & node.ancestors)
        made_of = frozenset[Node]().union(
            *(each.sources for each in latest[:place] if _ends(_content(each)) == _ends(value))
        )
        base = _base_alike(base, value, _content(node), made_of, node.sources)
        value, _ = _merge_record(base, value, _content(node), "neither", [])
        known |= node.ancestors
    return value


def _merge_record(
    base: Any, ours: Any, theirs: Any, choices: Any, conflicts: list[Any]
) -> tuple[Any, bool]:
    """Merge two versions as wholes; say too whether only their lasting settled it."""
    if not any(isinstance(side, dict) and "expires_at" in side for side in (ours, theirs)):
        return _merge(base, ours, theirs, (), choices, conflicts), False
    if equal(ours, theirs) or equal(base, theirs):
        return ours, False
    if equal(base, ours):
        return theirs, False
    if _ends(ours) != _ends(theirs):
        return (ours if _ends(ours) > _ends(theirs) else theirs), True
    found: list[Any] = []
    return _merge(base, ours, theirs, (), "greater", found), bool(found)


def _ends(content: Any) -> float:
    forever = float("inf")
    return content.get("expires_at", forever) if isinstance(content, dict) else forever


def _order(value: Any) -> str:
    return "" if value is Absent else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _latest(nodes: frozenset[Node]) -> list[Node]:
    """Return the nodes into which something went that went into no other."""
    latest: list[Node] = []
    for node in sorted(nodes, key=lambda node: (-node.sequence, node.branch)):
        if not any(node.versions <= other.versions for other in latest):
            latest = [other for other in latest if not other.versions <= node.versions]
            latest.append(node)
    return latest


def _merge(
    base: Any, ours: Any, theirs: Any, path: tuple[str, ...], choices: Any, conflicts: list[Any]
) -> Any:
    if isinstance(ours, dict) and isinstance(theirs, dict) and _has_fields(base):
        fields = {}
        for name in [*ours, *(each for each in theirs if each not in ours)]:
            inner = base.get(name, Absent) if isinstance(base, dict) else base
            value = _merge(
                inner,
                ours.get(name, Absent),
                theirs.get(name, Absent),
                (*path, name),
                choices,
                conflicts,
            )
            if value is not Absent:
                fields[name] = value
        return fields
    if equal(ours, theirs) or equal(base, theirs):
        return ours
    if equal(base, ours):
        return theirs
    if path == ("tags",):
        old, left, right = (_tags(each) for each in (base, ours, theirs))
        kept = (left & right) | (left - old) | (right - old)
        return sorted(kept) if kept or Absent not in (ours, theirs) else Absent
    conflicts.append(path)
    choice = choices[path] if isinstance(choices, dict) else choices
    if isinstance(choice, dict):
        return choice["value"]
    greater = max(ours, theirs, key=_order) if choice == "greater" else None
    return {"ours": ours, "theirs": theirs, "neither": Unclear, "greater": greater}[choice]


def _has_fields(base: Any) -> bool:
    return isinstance(base, dict) or base in (Absent, Unclear)


def _tags(value: Any) -> set[str]:
    return set(value) if isinstance(value, list) else set()


def _content(node: Node | None) -> Any:
    return Absent if node is None or node.content is None else node.content


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
