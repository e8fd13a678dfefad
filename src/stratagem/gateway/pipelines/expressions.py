"""Expressions: references into earlier results.

An expression is JMESPath; one that begins with `$` is JSONPath. Both only read. Neither has
loops, but both can multiply their input (`[@, @][] | [@, @][] | …` doubles it at every step). So
the cost of an evaluation is counted while it runs, and the size of its result is counted before
it is serialized: a value that holds the same list many times is small in memory and huge as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.paths import Query, parse_query
from stratagem.errors import ValidationFailed
from stratagem.function_cache import cache_texts

__all__ = ["EvaluationBudget", "Expression", "compile_expression", "count_nodes", "is_truthy"]

Root: TypeAlias = tuple[str, ...]

# A text counts as one node for this many characters.
_CHARS_PER_NODE: Final = 8
# Children after the first are evaluated on the value of the first, not on the scope.
_FIRST_CHILD_ONLY: Final = frozenset(
    {"projection", "value_projection", "filter_projection", "pipe", "subexpression"}
    | {"index_expression", "flatten", "slice"}
)
# Nodes that do not read the scope.
_ELSEWHERE: Final = frozenset({"expref", "literal", "index", "identity"})
_EVALUATION_FAULTS: Final = (
    JMESPathError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
# Functions that traverse the whole of a value.
_DEEP_FUNCTIONS: Final = frozenset({"to_string", "contains", "join"})


class EvaluationBudget:
    """Counts the cost of an evaluation, and stops it when it exceeds the limit."""

    def __init__(self, field: str, nodes_max: int = limits.EXPRESSION_WORK_MAX) -> None:
        self._field = field
        self._left = nodes_max

    def charge(self, nodes: int) -> None:
        """Subtract a number of nodes.

        Raises:
            ValidationFailed: The limit is exceeded.
        """
        self._left -= nodes
        if self._left < 0:
            raise ValidationFailed(
                f"`{self._field}` needs more work than one expression may use.",
                field=self._field,
                limit=limits.EXPRESSION_WORK_MAX,
                hint="Reduce the data first, or use several steps.",
            )

    def charge_value(self, value: Any) -> None:
        """Subtract the nodes that a value has when it is serialized."""
        self.charge(count_nodes(value, self._left + 1))


def count_nodes(value: Any, nodes_max: int) -> int:
    """Return how many nodes a value has when it is serialized; stop above `nodes_max`."""
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
    """The JMESPath interpreter, with its cost counted."""

    def __init__(self, budget: EvaluationBudget) -> None:
        super().__init__()
        self._budget = budget

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._budget.charge(1)
        return super().visit(node, *args, **kwargs)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if isinstance(base, list):
            self._budget.charge(sum(len(each) if isinstance(each, list) else 1 for each in base))
        return super().visit_flatten(_replace_children(node, [_literal_node(base)]), value)

    def visit_slice(self, node: Any, value: Any) -> Any:
        self._budget.charge(len(value) if isinstance(value, list) else 0)
        return super().visit_slice(node, value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        sides = [self.visit(child, value) for child in node["children"]]
        for side in sides:
            self._budget.charge_value(side)
        return super().visit_comparator(
            _replace_children(node, list(map(_literal_node, sides))), value
        )

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        children = [
            child if child["type"] == "expref" else _literal_node(self.visit(child, value))
            for child in node["children"]
        ]
        for given in (child["value"] for child in children if child["type"] == "literal"):
            if node["value"] in _DEEP_FUNCTIONS:
                self._budget.charge_value(given)
            elif isinstance(given, dict | list):
                self._budget.charge(len(given))
        return super().visit_function_expression(_replace_children(node, children), value)


def _replace_children(node: Any, children: list[Any]) -> Any:
    return {**node, "children": children}


def _literal_node(value: Any) -> dict[str, Any]:
    """Return a node for a value, so that an evaluated child is not evaluated again."""
    return {"type": "literal", "value": value, "children": []}


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression, which can be evaluated any number of times."""

    text: str
    field: str
    # The paths of the scope that it reads, each as its leading names.
    roots: tuple[Root, ...]
    _tree: Any
    _path: Query | None

    def search(self, scope: Any, budget: EvaluationBudget | None = None) -> Any:
        """Evaluate the expression; None if it finds nothing.

        Raises:
            ValidationFailed: A function got an argument of a wrong type, or it costs too much.
        """
        budget = budget or EvaluationBudget(self.field)
        if self._path is not None:
            found = self._path.search(scope, budget.charge)
        else:
            found = self._search_tree(scope, budget)
        budget.charge_value(found)
        return found

    def _search_tree(self, scope: Any, budget: EvaluationBudget) -> Any:
        try:
            return _Interpreter(budget).visit(self._tree, scope)
        except _EVALUATION_FAULTS as error:
            raise ValidationFailed(
                f"`{self.field}` cannot be evaluated: {_describe_error(error)}.", field=self.field
            ) from error


def compile_expression(text: str, *, field: str) -> Expression:
    """Compile an expression.

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
        tree, roots = _parse_jmespath(text)
        return Expression(text, field, roots, tree, None)
    except (JMESPathError, ValueError, RecursionError) as error:
        raise ValidationFailed(
            f"`{field}` is not a JMESPath: {_describe_error(error)}.",
            field=field,
            hint="Such as steps.fetch.result.items[0].name, or JSONPath beginning with $.",
        ) from error


def is_truthy(value: Any) -> bool:
    """Tell whether JMESPath counts a value as true: not empty, null or false."""
    return not (value is None or value is False or value in ("", [], {}))


@cache_texts(512)
def _parse_jmespath(text: str) -> tuple[Any, tuple[Root, ...]]:
    tree = Parser().parse(text).parsed
    return tree, tuple(_roots(tree))


def _describe_error(error: Exception) -> str:
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
        yield from _dotted_roots(node)
    elif kind in _FIRST_CHILD_ONLY:
        yield from _roots(node["children"][0]) if kind != "slice" else ()
    elif kind not in _ELSEWHERE:
        for child in node["children"]:
            yield from _roots(child)


def _dotted_roots(node: Any) -> Iterator[Root]:
    """Yield the roots of `a.b`: those of `a`, extended by `b` if that is a plain name."""
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
