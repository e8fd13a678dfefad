"""Python literals and calls, read without running anything."""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.correction.text import Conflict, Malformed

__all__ = ["literal", "named_arguments"]

_LENGTH_MAX: Final = 64 * 1024
_OPENING: Final = "([{"


def literal(text: str) -> Any:
    """Read a dictionary, list, tuple, set or scalar as Python writes it.

    Raises:
        Malformed: It is no literal, or has no counterpart in JSON.
        Conflict: A key has two values.
    """
    return _value(_tree(text))


def named_arguments(text: str) -> tuple[str, dict[str, Any]]:
    """Read a call such as `weather(city="Oslo", days=2)`: its name and its named arguments.

    Raises:
        Malformed: It is no call, or has arguments without a name.
    """
    node = _tree(text)
    if not isinstance(node, ast.Call) or node.args:
        raise Malformed("no call with named arguments")
    if not isinstance(node.func, ast.Name | ast.Attribute):
        raise Malformed("no name of a call")
    return ast.unparse(node.func), _keywords(node)


def _tree(text: str) -> ast.expr:
    stripped = text.strip()
    deep = sum(stripped.count(char) for char in _OPENING) > limits.VALUE_DEPTH_MAX
    if len(stripped) > _LENGTH_MAX or (deep and _depth(stripped) > limits.VALUE_DEPTH_MAX):
        raise Malformed("too long or too deep")
    try:
        if _joins_texts(stripped):
            raise Malformed("two texts side by side")
        return ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, tokenize.TokenError) as error:
        raise Malformed("no Python") from error


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in _OPENING) - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _joins_texts(text: str) -> bool:
    """Tell whether a comma may be missing: Python would join the texts in silence."""
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    pairs = pairwise(kinds)
    return any(one == other == tokenize.STRING for one, other in pairs)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return _dictionary(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return _keywords(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        if isinstance(inner, int | float) and not isinstance(inner, bool):
            return -inner
    raise Malformed("no literal")


def _constant(value: object) -> Any:
    if isinstance(value, float) and not isfinite(value):
        raise Malformed("no number of JSON")
    if value is None or isinstance(value, str | int | float):
        return value
    raise Malformed("no value of JSON")


def _dictionary(node: ast.Dict) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        name = _value(key) if key is not None else None
        if not isinstance(name, str):
            raise Malformed("a key that is no text")
        _put(found, name, _value(item))
    return found


def _keywords(node: ast.Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or node.args:
            raise Malformed("an argument without a name")
        _put(found, keyword.arg, _value(keyword.value))
    return found


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found and found[name] != value:
        raise Conflict(name, (found[name], value))
    found[name] = value
