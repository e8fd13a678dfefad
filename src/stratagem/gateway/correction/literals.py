"""Python literals and calls, read without running anything."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.correction.json_text import DuplicateName, Malformed, writable

__all__ = ["call_arguments", "literal"]

_LENGTH_MAX: Final = 64 * 1024
_OPENING: Final = "([{"
_WORDS: Final = {"true": True, "false": False, "null": None, "undefined": None}


def literal(text: str) -> Any:
    """Read a dictionary, list, tuple, set or scalar as Python writes it.

    Raises:
        Malformed: It is no literal, or has no counterpart in JSON.
        DuplicateName: A key has two values.
    """
    return writable(_value(_tree(text)))


def call_arguments(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Read a call such as `weather("Oslo", days=2)`: its name, its arguments by order and by name.

    Raises:
        Malformed: It is no call, or has an argument that is no literal.
        DuplicateName: An argument has two values.
    """
    node = _tree(text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        raise Malformed("no call")
    given = writable([_value(item) for item in node.args])
    return ast.unparse(node.func), given, writable(_keywords(node))


def _tree(text: str) -> ast.expr:
    stripped = text.strip()
    deep = sum(stripped.count(char) for char in _OPENING) > limits.VALUE_DEPTH_MAX
    if len(stripped) > _LENGTH_MAX or (deep and _depth(stripped) > limits.VALUE_DEPTH_MAX):
        raise Malformed("too long or too deep")
    try:
        if _runs_together(stripped):
            raise Malformed("two things side by side")
        return ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, tokenize.TokenError) as error:
        raise Malformed("no Python") from error


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in _OPENING) - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _runs_together(text: str) -> bool:
    """Tell whether a comma, a space or a digit may be missing.

    Python would join two texts in silence, print a warning about `1and`, and take `000` for 0.
    """
    tokens = _tokens(text)
    return any(
        (one.type == other.type == tokenize.STRING)
        or (one.type == tokenize.NUMBER and one.string[:2] == "00")
        or (one.type == tokenize.NUMBER and other.type == tokenize.NAME and one.end == other.start)
        for one, other in pairwise(tokens)
    )


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens of a text.

    Ends at the first that is none: from every quote that nothing closes, the tokenizer would look
    through all that follows.
    """
    # As Python reads it, for which a carriage return ends a line too.
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        if token.type == tokenize.ERRORTOKEN:
            raise Malformed("no Python")
        yield token


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return _dictionary(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        if node.args:
            raise Malformed("an argument without a name")
        return _keywords(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        if isinstance(inner, int | float) and not isinstance(inner, bool):
            return -inner
    raise Malformed("no literal")


def _constant(value: object) -> Any:
    if isinstance(value, float) and not isfinite(value):
        raise Malformed("not a JSON number")
    if value is None or isinstance(value, str | int | float):
        return value
    raise Malformed("not a JSON value")


def _dictionary(node: ast.Dict) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        name = _value(key) if key is not None else None
        if not isinstance(name, str):
            raise Malformed("a key that is not text")
        _put(found, name, _value(item))
    return found


def _keywords(node: ast.Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise Malformed("an argument without a name")
        _put(found, keyword.arg, _value(keyword.value))
    return found


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found and found[name] != value:
        raise DuplicateName(name, (found[name], value))
    found[name] = value
