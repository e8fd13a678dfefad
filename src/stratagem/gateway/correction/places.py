"""Properties at the wrong depth: moved to where their name belongs.

Names decide here, and only names that differ in nothing but style. A property is moved when
exactly one place has its name, that place is free, and the place where it stands has no use for
it. What is then made of its value is up to the readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.paths import Steps
from stratagem.gateway.correction.model import CorrectionStep
from stratagem.gateway.correction.readings import identity
from stratagem.gateway.correction.schemas import Node
from stratagem.gateway.correction.words import CALL_NAMES, METADATA, PAYLOADS, normal

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["move_to_places"]

# Names with marks between them. `__` is a mark too, and made of letters of names: what comes
# first says that there is any mark at all, so that the rest need not try each `__` as both.
_PATH: Final = re.compile(
    r"(?=[\w$-]+?(?:[./:\[]|__[\w$-]))"
    r"[\w$-]++(?:[./:][\w$-]++|\[['\"]?[\w$-]++['\"]?\](?:__[\w$-]++)?)*"
)
_ELEMENT: Final = re.compile(r"([\w$-]++)(?:\[(\d{1,4})\]|\.(\d{1,4}))")
_STRAY_DEPTH_MAX: Final = 3
# The thing itself has such names as often as something inside it.
_SAYING_LITTLE: Final = frozenset({"id", "key", "name", "title", "type", "value"})
_STEP: Final = re.compile(r"[A-Za-z0-9$-]++(?:_[A-Za-z0-9$-]++)*")


def move_to_places(
    attempt: Attempt, node: Node, value: dict[str, Any], steps: Steps
) -> tuple[dict[str, Any] | None, list[CorrectionStep]]:
    """Return an object with its properties where they belong, and the moves; None for a clash."""
    moves = _Moves(attempt, node, value, steps)
    if not node.closed and all(name in value for name in node.required):
        return moves.result, []
    moves.settle_elements()
    for key in list(moves.result):
        if key not in value:
            continue
        if not node.names(key):
            moves.settle(key)
        elif isinstance(value[key], dict):
            moves.settle_outside(key)
    return (None if moves.clash else moves.result), moves.changes


class _Moves:
    """What has been moved so far."""

    def __init__(self, attempt: Attempt, node: Node, value: dict[str, Any], steps: Steps) -> None:
        self.result = dict(value)
        self._given = tuple(value)
        self.changes: list[CorrectionStep] = []
        self.clash = False
        self._attempt = attempt
        self._node = node
        self._steps = steps
        self._styles = {normal(name): name for name in node.properties}

    def settle(self, key: str) -> None:
        """Move an unknown property inside, or take out what it wraps."""
        self._attempt.spend(self._node.vocabulary.cost())
        if self._node.declared_aliases.get(normal(key), key) not in self.result:
            # Its place is known, whatever it holds.
            return
        item = self.result[key]
        if isinstance(item, dict) and self._hoist(key, item):
            return
        if self._node.vocabulary.names_of_other_style(key):
            return
        way = self._spelled_way(key)
        if way is not None:
            self._move("key_path_unfolded", key, way)
            return
        ways = self._node.inside.get(normal(key), [])
        # `city` resembles `address`, and belongs into it.
        around = {way[0] for way in ways}
        if all(match.name in around for match in self._node.vocabulary.matches(key)):
            if len(ways) == 1:
                alone = normal(key) in _SAYING_LITTLE and not self._has_company(key, ways[0])
                self._move("key_moved_doubtful" if alone else "key_moved_inside", key, ways[0])
            elif len(ways) > 1:
                named = [".".join(way) for way in ways]
                self._attempt.ask((*self._steps, key), "Where does it belong?", named)

    def _has_company(self, key: str, way: tuple[str, ...]) -> bool:
        """Tell whether something else belongs where a name that says little is moved to."""
        if way[0] in self.result:
            return True
        others = [self._node.inside.get(normal(name), []) for name in self._given if name != key]
        return any(len(ways) == 1 and ways[0][:-1] == way[:-1] for ways in others)

    def settle_elements(self) -> None:
        """Join elements that were given one by one, as `tags[0]` and `tags[1]`."""
        found: dict[str, dict[int, str]] = {}
        for key in self.result:
            element = _ELEMENT.fullmatch(key)
            own = self._styles.get(normal(element[1])) if element else None
            if element and own is not None and "array" in self._node.properties[own].types:
                found.setdefault(own, {})[int(element[2] or element[3])] = key
        for own, keys in found.items():
            whole = own not in self.result and sorted(keys) == list(range(len(keys)))
            change = self._change("key_path_unfolded", (keys[min(keys)],), own) if whole else None
            if change is not None:
                listed = [self.result[keys[index]] for index in sorted(keys)]
                rest = {k: v for k, v in self.result.items() if k not in keys.values()}
                self.result = {**rest, own: listed}

    def settle_outside(self, key: str) -> None:
        """Take out what an inner object has no use for and this one lacks."""
        inner = self._node.properties.get(key)
        if inner is None:
            return
        for way in list(self._strays((key,), inner, self.result[key])):
            target = self._home(way)
            without, item = _take_out(self.result, way)
            moved = _put(without, target, item) if target else None
            if target and moved is not None:
                change = self._change("key_moved_outside", way, ".".join(target))
                self.result = self.result if change is None else moved

    def _strays(self, way: tuple[str, ...], node: Node, item: Any) -> Iterator[tuple[str, ...]]:
        """Yield the ways to names inside that the objects around them have no use for."""
        if not isinstance(item, dict) or len(way) > _STRAY_DEPTH_MAX:
            return
        for name, value in item.items():
            inner = node.properties.get(name)
            if inner is not None:
                yield from self._strays((*way, name), inner, value)
            elif node.closed and not node.names(name) and normal(name) not in node.inside:
                self._attempt.spend(node.vocabulary.cost())
                if not node.vocabulary.matches(name):
                    yield (*way, name)

    def _home(self, way: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the only place in the whole object that has the name at the end of a way."""
        own = self._styles.get(normal(way[-1]))
        places = [*([(own,)] if own else []), *self._node.inside.get(normal(way[-1]), [])]
        # An object that holds the name where it belongs already needs no other.
        return places[0] if len(places) == 1 and places[0][:-1] != way[:-1] else None

    def _hoist(self, key: str, item: dict[str, Any]) -> bool:
        """Take the parameters out of an object that stands beside others of them."""
        named = {name: self._styles.get(normal(name)) for name in item}
        targets = [target for target in named.values() if target is not None]
        if not item or len(set(targets)) != len(item) or len(self.result) == 1:
            return False
        if (normal(key) not in PAYLOADS and len(item) == 1) or self._call_around(key):
            return False
        doubled = [name for name, target in named.items() if target in self.result]
        if any(identity(self.result[str(named[name])]) != identity(item[name]) for name in doubled):
            self.clash = True
            return True
        change = self._change("key_moved_outside", (key,), ", ".join(targets))
        if change is None:
            return False
        rest = {k: v for k, v in self.result.items() if k != key}
        self.result = {**rest, **{str(named[name]): inner for name, inner in item.items()}}
        return True

    def _call_around(self, key: str) -> bool:
        """Tell whether all else belongs to a call, which `wrappers` looks into."""
        beside = {normal(name) for name in self.result if name != key}
        return beside <= CALL_NAMES | METADATA

    def _spelled_way(self, key: str) -> tuple[str, ...] | None:
        """Return the way that a name spells, such as `filter.status` or `filter[status]`."""
        if _PATH.fullmatch(key):
            words = [normal(step) for step in _STEP.findall(key)]
            way = self._way(words)
            if way is not None and len(way) > 1:
                return way
        joined = self._node.inside_joined.get(normal(key), [])
        return joined[0] if len(joined) == 1 else None

    def _way(self, words: list[str]) -> tuple[str, ...] | None:
        node, way = self._node, []
        for word in words:
            names = [name for name in node.properties if normal(name) == word]
            if len(names) != 1:
                return None
            way.append(names[0])
            node = node.properties[names[0]]
        return tuple(way)

    def _move(self, pattern: str, key: str, way: tuple[str, ...]) -> None:
        """Put a property where it belongs, unless something is there."""
        moved = _put({k: v for k, v in self.result.items() if k != key}, way, self.result[key])
        change = self._change(pattern, (key,), ".".join(way)) if moved is not None else None
        if moved is not None and change is not None:
            self.result = moved

    def _change(self, pattern: str, way: tuple[str, ...], target: str) -> CorrectionStep | None:
        change = self._attempt.change(
            pattern, (*self._steps, *way), way[-1], target, detail=f" belongs to `{target}`"
        )
        if change is not None:
            self.changes.append(change)
        return change


def _take_out(value: dict[str, Any], way: tuple[str, ...]) -> tuple[dict[str, Any], Any]:
    """Return an object without what stands at the end of a way, and that."""
    name, *rest = way
    if not rest:
        return {key: item for key, item in value.items() if key != name}, value[name]
    inner, taken = _take_out(value[name], tuple(rest))
    return {**value, name: inner}, taken


def _put(value: dict[str, Any], way: tuple[str, ...], item: Any) -> dict[str, Any] | None:
    """Return an object with a value at the end of a way, or None when the way is taken."""
    name, *rest = way
    if not rest:
        return None if name in value else {**value, name: item}
    inner = value.get(name, {})
    if not isinstance(inner, dict):
        return None
    put = _put(inner, tuple(rest), item)
    return None if put is None else {**value, name: put}
