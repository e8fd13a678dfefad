"""Three-way merge, written down a second time and as plainly as possible.

A version is a node that knows the nodes it was made from. The base of two versions is their
latest common ancestor; where there are several, they are merged into one, and what they
disagree on is `Unclear`. Nothing here is fast, and nothing here is shared with the engine.
"""

from __future__ import annotations

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

    def expired(self, now: int) -> bool:
        return self.content is not None and self.content.get("expires_at", now + 1) <= now

    @cached_property
    def versions(self) -> frozenset[tuple[int, int]]:
        """Return the writes that went into this version."""
        return frozenset((node.branch, node.sequence) for node in self.ancestors)


@dataclass
class Outcome:
    """What a merge of two versions gives; `conflicts` are paths."""

    content: dict[str, Any] | None
    conflicts: list[tuple[str, ...]]


def equal(one: Any, other: Any) -> bool:
    if Unclear in (one, other):
        return False
    return repr(_sorted(one)) == repr(_sorted(other))


def merged(ours: Node | None, theirs: Node | None, now: int, prefer: str = "ours") -> Outcome:
    """Merge two versions. What has expired is not there, and never was common to both."""
    if ours is not None and ours.expired(now):
        ours = None
    base = base_of(ours, theirs, now)
    conflicts: list[tuple[str, ...]] = []
    content = _merge(base, _content(ours), _content(theirs), (), prefer, conflicts)
    return Outcome(None if content is Absent else content, conflicts)


def base_of(ours: Node | None, theirs: Node | None, now: int) -> Any:
    """Return the content that two versions have in common, or what can be made of it."""
    if ours is None or theirs is None:
        return Absent
    return _base_among(ours.ancestors & theirs.ancestors, now)


def _base_among(nodes: frozenset[Node], now: int) -> Any:
    lasting = frozenset(node for node in nodes if not node.expired(now))
    latest = sorted(_latest(lasting), key=lambda node: (node.branch, node.sequence))
    if not latest:
        return Absent
    value, known = _content(latest[0]), latest[0].ancestors
    for node in latest[1:]:
        base = _base_among(known & node.ancestors, now)
        value = _merge(base, value, _content(node), (), "neither", [])
        known |= node.ancestors
    return value


def _latest(nodes: frozenset[Node]) -> list[Node]:
    """Return the nodes into which something went that went into no other."""
    latest: list[Node] = []
    for node in sorted(nodes, key=lambda node: (-node.sequence, node.branch)):
        if not any(node.versions <= other.versions for other in latest):
            latest = [other for other in latest if not other.versions <= node.versions]
            latest.append(node)
    return latest


def _merge(
    base: Any, ours: Any, theirs: Any, path: tuple[str, ...], prefer: str, conflicts: list[Any]
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
                prefer,
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
    return {"ours": ours, "theirs": theirs, "neither": Unclear}[prefer]


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
