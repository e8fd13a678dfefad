"""JSONPath without filters (RFC 9535): names, elements, slices, wildcards and descendants.

A path that can only name one place gives what is there, or null; every other path gives a list
of what it found, in the order of the document. Filters are left to JMESPath, which says more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from stratagem.engine import paths
from stratagem.errors import ValidationFailed

__all__ = ["JsonPath", "parse"]

# A name, an element, a slice, or None for all children.
_Selector: TypeAlias = str | int | slice | None

_LETTER: Final = r"A-Za-z_\u00a0-\U0010ffff"
_DOTTED: Final = re.compile(
    rf"\.(?P<deep>\.)?(?:(?P<name>[{_LETTER}][{_LETTER}0-9-]*)|(?P<all>\*))"
)
_BRACKET: Final = re.compile(r"(?P<deep>\.\.)?\[\s*")
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_SLICE: Final = re.compile(r"(-?\d{1,9})?\s*:\s*(-?\d{1,9})?(?:\s*:\s*(-?\d{1,9})?)?")
_INDEX: Final = re.compile(r"-?\d{1,9}")
_BETWEEN: Final = re.compile(r"\s*(?P<mark>[,\]])\s*")
_HINT: Final = "Write $.items[0].name or $.items[*].name; filters are written in JMESPath."


@dataclass(frozen=True, slots=True)
class _Segment:
    selectors: tuple[_Selector, ...]
    deep: bool

    @property
    def singular(self) -> bool:
        return (
            not self.deep and len(self.selectors) == 1 and isinstance(self.selectors[0], str | int)
        )


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read."""

    segments: tuple[_Segment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names it begins with, as far as each is a single one."""
        found: list[str] = []
        for segment in self.segments:
            name = segment.selectors[0]
            if not segment.singular or not isinstance(name, str):
                break
            found.append(name)
        return tuple(found)

    def search(self, document: Any, charge: Callable[[int], None]) -> Any:
        """Return what the path finds; `charge` is told how many nodes were looked at."""
        found = [document]
        for segment in self.segments:
            nodes = _descendants(found, charge) if segment.deep else iter(found)
            found = list(_chosen(nodes, segment.selectors, charge))
        if all(segment.singular for segment in self.segments):
            return found[0] if found else None
        return found


def parse(text: str, *, field: str) -> JsonPath:
    """Read a path that begins with `$`.

    Raises:
        ValidationFailed: It cannot be read, or has a filter in it.
    """
    segments: list[_Segment] = []
    position = 1
    while position < len(text):
        if dotted := _DOTTED.match(text, position):
            segments.append(_Segment((dotted["name"],), bool(dotted["deep"])))
            position = dotted.end()
        elif bracket := _BRACKET.match(text, position):
            selectors, position = _selectors(text, bracket.end(), field)
            segments.append(_Segment(selectors, bool(bracket["deep"])))
        else:
            raise _unreadable(text, position, field)
    return JsonPath(tuple(segments))


def _selectors(text: str, position: int, field: str) -> tuple[tuple[_Selector, ...], int]:
    selectors: list[_Selector] = []
    while True:
        selector, position = _selector(text, position, field)
        selectors.append(selector)
        mark = _BETWEEN.match(text, position)
        if mark is None:
            raise _unreadable(text, position, field)
        if mark["mark"] == "]":
            # Blanks after the bracket are no part of a path.
            return tuple(selectors), mark.end("mark")
        position = mark.end()


def _selector(text: str, position: int, field: str) -> tuple[_Selector, int]:
    if text.startswith("*", position):
        return None, position + 1
    if quoted := _QUOTED.match(text, position):
        (name,) = paths.parse(f"$[{quoted[0]}]", field=field)
        return name, quoted.end()
    if (part := _SLICE.match(text, position)) is not None:
        start, stop, step = (None if number is None else int(number) for number in part.groups())
        if step == 0:
            raise ValidationFailed(f"`{field}` has a slice with a step of 0.", field=field)
        return slice(start, stop, step), part.end()
    if index := _INDEX.match(text, position):
        return int(index[0]), index.end()
    raise _unreadable(text, position, field)


def _unreadable(text: str, position: int, field: str) -> ValidationFailed:
    rest = text[position : position + 20]
    return ValidationFailed(
        f"`{field}` cannot be read as JSONPath from {rest!r} on.", field=field, hint=_HINT
    )


def _chosen(
    nodes: Iterator[Any], selectors: tuple[_Selector, ...], charge: Callable[[int], None]
) -> Iterator[Any]:
    for node in nodes:
        for selector in selectors:
            charge(1)
            for child in _selected(node, selector):
                charge(1)
                yield child


def _selected(node: Any, selector: _Selector) -> Iterator[Any]:
    if isinstance(node, dict):
        if selector is None:
            yield from node.values()
        elif isinstance(selector, str) and selector in node:
            yield node[selector]
    elif isinstance(node, list):
        if selector is None:
            yield from node
        elif isinstance(selector, slice):
            yield from node[selector]
        elif isinstance(selector, int) and -len(node) <= selector < len(node):
            yield node[selector]


def _descendants(nodes: list[Any], charge: Callable[[int], None]) -> Iterator[Any]:
    """Yield the nodes and everything below them, a parent before its children."""
    pending = list(reversed(nodes))
    while pending:
        charge(1)
        node = pending.pop()
        yield node
        pending.extend(reversed(list(_selected(node, None))))
