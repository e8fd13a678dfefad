"""Three-way merge, written down a second time and as plainly as possible.

A version is a node that knows the nodes it was made from. The base of two versions is their
latest common ancestor; where there are several, they are merged into one, and what they
disagree on is `Unclear`. Where a version expires nobody is asked: what lasts longer stands. Nothing
here is fast, and nothing here is shared with the engine.
"""

from __future__ import annotations

import json
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

    def __post_init__(self) -> None:
        above = frozenset(self.parents).union(*(parent.ancestors for parent in self.parents))
        self.ancestors = above | {self}

    @cached_property
    def versions(self) -> frozenset[tuple[int, int]]:
        """Return the writes that went into this version."""
        return frozenset((node.branch, node.sequence) for node in self.ancestors)


@dataclass
class Outcome:
    """What a merge of two versions gives; `conflicts` are paths.

    `settled`: there would be conflicts, if what lasts longer did not stand.
    """

    content: dict[str, Any] | None
    conflicts: list[tuple[str, ...]]
    settled: bool = False


def equal(one: Any, other: Any) -> bool:
    if Unclear in (one, other):
        return False
    return repr(_sorted(one)) == repr(_sorted(other))


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
    return _base_among(ours.ancestors & theirs.ancestors)


def changed_by(ours: Node | None, theirs: Node | None) -> str:
    """Say which of two versions is another than the one they have in common."""
    base = base_of(ours, theirs)
    if equal(base, _content(ours)):
        return "theirs"
    return "ours" if equal(base, _content(theirs)) else "both"


def _base_among(nodes: frozenset[Node]) -> Any:
    latest = sorted(_latest(nodes), key=lambda node: (node.branch, node.sequence))
    if not latest:
        return Absent
    value, known = _content(latest[0]), latest[0].ancestors
    for node in latest[1:]:
        base = _base_among(known & node.ancestors)
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
    for side, other in ((ours, theirs), (theirs, ours)):
        if not isinstance(side, dict):
            return (other if side is Absent else side), True
    longer = max((_lasts(ours), "ours"), (_lasts(theirs), "theirs"))[1]
    found: list[Any] = []
    old, left, right = map(_without_expiry, (base, ours, theirs))
    content = _merge(old, left, right, (), longer, found)
    standing = ours if longer == "ours" else theirs
    if "expires_at" in standing:
        content["expires_at"] = standing["expires_at"]
    return content, bool(found)


def _without_expiry(side: Any) -> Any:
    if not isinstance(side, dict):
        return side
    return {name: value for name, value in side.items() if name != "expires_at"}


def _lasts(content: dict[str, Any]) -> tuple[float, str]:
    text = json.dumps(
        content,
        sort_keys=True,
        separators=(",", ":"),
        default=lambda mark: "ambiguous" if mark is Unclear else "absent",
    )
    return content.get("expires_at", float("inf")), text


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
    return {"ours": ours, "theirs": theirs, "neither": Unclear}[choice]


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
