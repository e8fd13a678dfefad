"""Objects around the arguments: a wrapper, or a whole call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.gateway.correction import shapes
from stratagem.gateway.correction.schemas import Node
from stratagem.gateway.correction.words import CALL_NAMES, METADATA, PAYLOADS, normal, same_tool

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["unwrap_arguments"]

_CALL_TYPES: Final = frozenset(
    {"function", "function_call", "functioncall", "tool_use", "tool_call", "toolcall", "tools/call"}
)
# Where a call says which tool it is for.
_NAMING: Final = frozenset(
    {"name", "tool", "toolname", "function", "functionname", "action", "recipientname"}
)
_CALLS: Final = frozenset({"toolcalls", "tooluses", "calls", "functioncalls"})


def unwrap_arguments(
    attempt: Attempt, node: Node, value: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the arguments inside an object that is not itself the arguments."""
    styles = {normal(name) for name in node.properties}
    around = [key for key in value if _surrounds(key, value[key], styles)]
    inside = [key for key in value if key not in around]
    if not inside and "function" in value:
        around, inside = [key for key in around if key != "function"], ["function"]
    if len(inside) != 1:
        return
    if normal(inside[0]) in styles:
        if len(value) == 1 and _holds_all(node, inside[0], value[inside[0]]):
            yield "arguments_unwrapped", value[inside[0]]
        return
    payload = _single(node, inside[0], value[inside[0]])
    if not isinstance(payload, dict | str) or not _wraps(attempt, inside[0], payload, styles):
        return
    yield _pattern(attempt, {key: value[key] for key in around}, payload, styles), payload


def _surrounds(key: str, item: Any, styles: set[str]) -> bool:
    """Tell whether a property belongs to the call and not to the arguments."""
    name = normal(key)
    if isinstance(item, dict | list):
        return name == "meta"
    if isinstance(item, str) and item in _CALL_TYPES:
        return name in {"type", "method", "object", "role"}
    if name in {"name", "id"} and name in styles:
        # A parameter of the tool may be meant; `_pattern` looks into that.
        return True
    return name in CALL_NAMES | METADATA and name not in styles


def _holds_all(node: Node, key: str, item: Any) -> bool:
    """Tell whether a parameter that is no object was given all the arguments, itself included."""
    own = node.styles.get(normal(key))
    if own is None or not isinstance(item, dict) or "object" in node.properties[own].types:
        return False
    named = [node.styles.get(normal(name)) for name in item]
    return own in named and None not in named and len(item) > 1


def _single(node: Node, key: str, item: Any) -> Any:
    """Return the only call of a list of calls, or the object that a list of pairs stands for."""
    if not isinstance(item, list) or normal(key) not in PAYLOADS | _CALLS:
        return item
    named = shapes.pairs_of(item)
    if named is not None and all(normal(name) in node.styles for name in named):
        return named
    return item[0] if len(item) == 1 else item


def _wraps(attempt: Attempt, key: str, payload: Any, styles: set[str]) -> bool:
    name = normal(key)
    if name in PAYLOADS | _CALLS or (attempt.tool and name == normal(attempt.tool)):
        return isinstance(payload, dict) or payload.strip()[:1] in {"{", "`", "["}
    inner = payload if isinstance(payload, dict) else {}
    return bool(inner) and all(normal(one) in styles for one in inner)


def _pattern(attempt: Attempt, around: dict[str, Any], payload: Any, styles: set[str]) -> str:
    named = [item for key, item in around.items() if normal(key) in _NAMING]
    texts = [item for item in named if isinstance(item, str) and item not in _CALL_TYPES]
    if attempt.tool is not None:
        if not all(same_tool(text, attempt.tool) for text in texts):
            return "call_of_another_tool"
    elif any(_doubtful(key, payload, styles) for key in around):
        return "call_name_doubtful"
    return "call_object_unwrapped" if around else "arguments_unwrapped"


def _doubtful(key: str, payload: Any, styles: set[str]) -> bool:
    """Tell whether a name beside the arguments may be one of them: they lack it."""
    name = normal(key)
    if name not in styles or name not in {"name", "id"}:
        return False
    return not isinstance(payload, dict) or name not in {normal(inner) for inner in payload}
