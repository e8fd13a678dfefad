"""Expressions: how a place in earlier results is named.

An expression is JMESPath; one that begins with `$` is JSONPath. Both only read. Neither has
loops, but both can be made to multiply what they are given (`[@, @][] | [@, @][] | …` doubles it
with every step), so the cost of an evaluation is counted while it runs, and what it gives is
weighed before anybody writes it out: a value in which one list is held by many others is small
in memory and endless as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from stratagem import limits
from stratagem.engine.paths import Query, parse_query
from stratagem.errors import ValidationFailed

__all__ = ["Expression", "Work", "compiled", "truthy", "weigh"]

Root: TypeAlias = tuple[str, ...]

# Texts count by their length, at this many characters for a node.
_CHARS_PER_NODE: Final = 8
# What follows these nodes' first child is read within what the child gave.
_FIRST_CHILD_ONLY: Final = frozenset(
    {"projection", "value_projection", "filter_projection", "pipe", "subexpression"}
    | {"index_expression", "flatten", "slice"}
)
# Reads below its elements, which are not the scope.
_ELSEWHERE: Final = frozenset({"expref", "literal", "index", "identity"})
_EVALUATION_FAULTS: Final = (
    JMESPathError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
# Functions that go through all of a value, however deep.
_DEEP_FUNCTIONS: Final = frozenset({"to_string", "contains", "join"})


class Work:
    """Counts the cost of an evaluation, and ends it where it costs too much."""

    def __init__(self, field: str, nodes_max: int = limits.EXPRESSION_WORK_MAX) -> None:
        self._field = field
        self._left = nodes_max

    def charge(self, nodes: int) -> None:
        """Count so many nodes.

        Raises:
            ValidationFailed: That is more than an expression may cost.
        """
        self._left -= nodes
        if self._left < 0:
            raise ValidationFailed(
                f"`{self._field}` takes more work than one expression may.",
                field=self._field,
                limit=limits.EXPRESSION_WORK_MAX,
                hint="Narrow the data first, or do it in several steps.",
            )

    def weigh(self, value: Any) -> None:
        """Count everything in a value, as often as it would be written out."""
        self.charge(weigh(value, self._left + 1))


def weigh(value: Any, nodes_max: int) -> int:
    """Return how many nodes a value has when it is written out, or more than `nodes_max`."""
    weight = 0
    pending = [value]
    while pending and weight <= nodes_max:
        node = pending.pop()
        weight += 1
        if isinstance(node, str):
            weight += len(node) // _CHARS_PER_NODE
        elif isinstance(node, dict):
            weight += sum(map(len, node)) // _CHARS_PER_NODE
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return weight


class _Interpreter(TreeInterpreter):
    """JMESPath as its authors evaluate it, with its cost counted."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._work.charge(1)
        return super().visit(node, *args, **kwargs)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if isinstance(base, list):
            self._work.charge(sum(len(each) if isinstance(each, list) else 1 for each in base))
        return super().visit_flatten(_with(node, [_literal(base)]), value)

    def visit_slice(self, node: Any, value: Any) -> Any:
        self._work.charge(len(value) if isinstance(value, list) else 0)
        return super().visit_slice(node, value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        sides = [self.visit(child, value) for child in node["children"]]
        for side in sides:
            self._work.weigh(side)
        return super().visit_comparator(_with(node, list(map(_literal, sides))), value)

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        children = [
            child if child["type"] == "expref" else _literal(self.visit(child, value))
            for child in node["children"]
        ]
        for given in (child["value"] for child in children if child["type"] == "literal"):
            if node["value"] in _DEEP_FUNCTIONS:
                self._work.weigh(given)
            elif isinstance(given, dict | list):
                self._work.charge(len(given))
        return super().visit_function_expression(_with(node, children), value)


def _with(node: Any, children: list[Any]) -> Any:
    return {**node, "children": children}


def _literal(value: Any) -> dict[str, Any]:
    """Return a node for what was evaluated already, so that it is not evaluated twice."""
    return {"type": "literal", "value": value, "children": []}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read and can be evaluated any number of times."""

    text: str
    field: str
    # Which places of its scope it reads, each as the names it begins with.
    roots: tuple[Root, ...]
    _tree: Any
    _path: Query | None

    def search(self, scope: Any, work: Work | None = None) -> Any:
        """Return what the expression finds in a value; null where there is nothing.

        Raises:
            ValidationFailed: A function was given what it cannot take, or it costs too much.
        """
        work = work or Work(self.field)
        if self._path is not None:
            found = self._path.search(scope, work.charge)
        else:
            found = self._search_tree(scope, work)
        work.weigh(found)
        return found

    def _search_tree(self, scope: Any, work: Work) -> Any:
        try:
            return _Interpreter(work).visit(self._tree, scope)
        except _EVALUATION_FAULTS as error:
            raise ValidationFailed(
                f"`{self.field}` cannot be evaluated: {_reason(error)}.", field=self.field
            ) from error


def compiled(text: str, *, field: str) -> Expression:
    """Read an expression.

    Raises:
        ValidationFailed: It is neither JMESPath nor JSONPath, or too long.
    """
    text = text.strip()
    if len(text) > limits.EXPRESSION_CHARS_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(text):,} characters; {limits.EXPRESSION_CHARS_MAX:,} are allowed.",
            field=field,
            limit=limits.EXPRESSION_CHARS_MAX,
        )
    if text.startswith("$"):
        path = parse_query(text, field=field)
        return Expression(text, field, (path.names,), None, path)
    try:
        tree, roots = _parsed(text)
        return Expression(text, field, roots, tree, None)
    except (JMESPathError, ValueError, RecursionError) as error:
        raise ValidationFailed(
            f"`{field}` is no JMESPath: {_reason(error)}.",
            field=field,
            hint="Such as steps.fetch.result.items[0].name, or JSONPath beginning with $.",
        ) from error


def truthy(value: Any) -> bool:
    """Tell whether JMESPath takes a value for true: neither empty, nor null, nor false."""
    return not (value is None or value is False or value in ("", [], {}))


@lru_cache(maxsize=512)
def _parsed(text: str) -> tuple[Any, tuple[Root, ...]]:
    tree = Parser().parse(text).parsed
    return tree, tuple(_roots(tree))


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).split())[:200].rstrip(".:")


def _roots(node: Any) -> Iterator[Root]:
    kind = node["type"]
    if kind == "field":
        yield (node["value"],)
    elif kind == "current":
        yield ()
    elif kind == "subexpression":
        yield from _chains(node)
    elif kind in _FIRST_CHILD_ONLY:
        yield from _roots(node["children"][0]) if kind != "slice" else ()
    elif kind not in _ELSEWHERE:
        for child in node["children"]:
            yield from _roots(child)


def _chains(node: Any) -> Iterator[Root]:
    """Yield the places that `a.b` begins at: those of `a`, longer by `b` where that is a name."""
    first, *rest = node["children"]
    names: list[str] = []
    for child in rest:
        if child["type"] != "field":
            break
        names.append(child["value"])
    for root in _roots(first):
        simple = first["type"] in {"field", "current"} or (
            first["type"] == "subexpression"
            and all(child["type"] in {"field", "current"} for child in first["children"])
        )
        yield (*root, *names) if simple else root
