"""Computes how large a schema becomes when its references are inlined, before it is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.openapi.document import Document
from stratagem.gateway.openapi.schemas import Plan, subschemas_of

__all__ = ["Sizes"]

_DEPTHS: Final = (12, 8, 6, 5, 4, 3, 2)
_BUDGET: Final = limits.OPENAPI_SCHEMA_NODES_MAX
_ENDLESS: Final = _BUDGET + 1
# The characters of an ordinary node, and of one value of an enumeration.
_NODE_CHARS: Final = 100
_VALUE_CHARS: Final = 10

# Nodes of a schema itself, and the references in it.
_Shape = tuple[int, tuple[str, ...]]


class Sizes:
    """Counts the nodes of one document's schemas; each reference is counted once and cached."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._shapes: dict[str, _Shape] = {}
        self._inlined: dict[str, int] = {}
        self._costs: dict[tuple[str, int], int] = {}

    def plan(self, schemas: Iterable[Any]) -> Plan:
        """Return how to write the references of schemas so that they fit into the budget."""
        own, references = self._measure(schemas)
        inline = [self._count_inline(each, 0) for each in references]
        if own + sum(inline) <= _BUDGET:
            return "inline"
        if own + self._count_reachable(references) <= _BUDGET:
            return "definitions"
        for depth in _DEPTHS:
            if own + sum(self._count_to_depth(each, depth) for each in references) <= _BUDGET:
                return depth
        return 1

    def _count_inline(self, reference: str, depth: int) -> int:
        """Return the nodes of a reference inlined completely; `_ENDLESS` if it is recursive."""
        if reference not in self._inlined:
            # Meeting this value again before it is replaced means that the schema is recursive.
            self._inlined[reference] = _ENDLESS
            nodes, references = self._shape(reference)
            for each in references:
                if nodes > _BUDGET or depth > limits.OPENAPI_SCHEMA_DEPTH_MAX:
                    nodes = _ENDLESS
                    break
                nodes += self._count_inline(each, depth + 1)
            self._inlined[reference] = min(nodes, _ENDLESS)
        return self._inlined[reference]

    def _count_reachable(self, references: list[str]) -> int:
        """Return the nodes of all schemas that can be reached, each counted once."""
        total = 0
        pending = list(references)
        seen: set[str] = set()
        while pending and total <= _BUDGET:
            reference = pending.pop()
            if reference not in seen:
                seen.add(reference)
                nodes, more = self._shape(reference)
                # A top-level reference is inlined, and may be needed as a definition as well.
                total += nodes * (2 if reference in references else 1)
                pending += more
        return total

    def _measure(self, schemas: Iterable[Any]) -> tuple[int, list[str]]:
        shapes = [_shape_of(schema) for schema in schemas]
        return sum(shape[0] for shape in shapes), [each for shape in shapes for each in shape[1]]

    def _shape(self, reference: str) -> _Shape:
        if reference not in self._shapes:
            self._shapes[reference] = _shape_of(self._document.at(reference))
        return self._shapes[reference]

    def _count_to_depth(self, reference: str, depth: int) -> int:
        if depth == 0:
            return 1
        if (reference, depth) not in self._costs:
            nodes, references = self._shape(reference)
            for each in references:
                if nodes > _BUDGET:
                    break
                nodes += self._count_to_depth(each, depth - 1)
            self._costs[reference, depth] = nodes
        return self._costs[reference, depth]


def _shape_of(schema: Any) -> _Shape:
    nodes = 0
    references: list[str] = []
    pending = [schema]
    while pending:
        nodes += 1
        each = pending.pop()
        if isinstance(each, dict):
            nodes += _text_nodes(each)
            if isinstance(each.get("$ref"), str):
                references.append(each["$ref"])
            pending.extend(subschemas_of(each))
    return nodes, tuple(references)


def _text_nodes(schema: dict[str, Any]) -> int:
    """Return the additional nodes that the description and enumeration of a schema count as."""
    description, values = schema.get("description"), schema.get("enum")
    chars = len(description) if isinstance(description, str) else 0
    chars += _VALUE_CHARS * len(values) if isinstance(values, list) else 0
    return min(chars, limits.OPENAPI_DESCRIPTION_CHARS_MAX) // _NODE_CHARS
