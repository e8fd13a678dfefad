"""Places in a tool's arguments, told by the names of its schema alone.

A tool that takes an object with names of the caller's choice (addresses, ids of customers) has
these names in the paths of its arguments. They are values: whoever else hears of a place, or
learns from it, is told of names that the schema has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["is_of_schema", "names_of", "without_own_names"]

_NODES_MAX: Final = 5_000
# A name after a dot, the place in a list, or a name in quotes that has other signs in it.
_PART: Final = re.compile(r"\.([^.\[]*+)|(\[(?:\d++|\*)\])|\[(['\"])(.*?)(?:\3\]|\Z)|.", re.DOTALL)
_OTHER: Final = "*"


def names_of(schema: Any) -> frozenset[str]:
    """Return the names of all properties that a schema mentions, wherever it does."""
    names: set[str] = set()
    waiting, seen = [schema], 0
    while waiting and seen < _NODES_MAX:
        node, seen = waiting.pop(), seen + 1
        if isinstance(node, Mapping):
            properties = node.get("properties")
            names.update(properties if isinstance(properties, Mapping) else ())
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return frozenset(names)


def without_own_names(path: str, names: frozenset[str]) -> str:
    """Return a path with a star for each name that a schema does not have."""
    told = path[:1]
    for part in _PART.finditer(path[1:]):
        if part.group(2) or {part.group(1), part.group(4)} & names:
            told += part.group()
        elif not told.endswith(f".{_OTHER}"):
            told += f".{_OTHER}"
    return told


def is_of_schema(path: str, names: frozenset[str]) -> bool:
    """Whether a path has no names but those of a schema."""
    return without_own_names(path, names) == path
