"""What a text holds when it is not meant as text: JSON, a Python literal, a call, pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.paths import Steps
from stratagem.gateway.correction import text as reader
from stratagem.gateway.correction.literals import literal, named_arguments
from stratagem.gateway.correction.schemas import Node
from stratagem.gateway.correction.words import normal

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["forms", "root_forms"]

Proposal = tuple[str, Any]

_CONTAINERS: Final = frozenset({"object", "array"})
_PAIR: Final = re.compile(r"\s*([A-Za-z_][\w .-]*?)\s*[:=]\s*(.+?)\s*")
# Escapes that nobody means: the backslashes of a path were not doubled.
_PATHLIKE: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[bf]|(?<=\b[A-Za-z]:)\\[nrt])")
_PAIRS_CHARS_MAX: Final = 10_000


def forms(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    """Yield what a text holds, where something else than text is expected."""
    stripped = text.strip()
    inner = reader.fenced(text)
    if inner is not None and node.types & _CONTAINERS:
        yield "json_text_parsed", inner
    elif stripped[:1] in {"{", "[", "("} and node.types & _CONTAINERS:
        yield from _containers(attempt, node, stripped, steps)
    elif stripped[:1] in {'"', "'"} and stripped[-1:] == stripped[:1] and len(stripped) > 1:
        yield from _quoted(node, stripped)


def root_forms(attempt: Attempt, node: Node, text: str) -> Iterator[Proposal]:
    """Yield what the text of a whole call holds."""
    found = list(forms(attempt, node, text, ()))
    yield from found
    if found or attempt.choices:
        return
    if not text.strip():
        yield "no_arguments", {}
        return
    yield from _called(attempt, text)
    inner = reader.found_in(text)
    if inner is not None:
        yield "json_found_in_text", inner
        return
    braceless = _braceless(text)
    if braceless is not None:
        yield braceless
    yield from _sole(node, text.strip())


def _containers(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    try:
        parsed = reader.strict(text)
        yield "json_guessed" if _PATHLIKE.search(text) else "json_text_parsed", parsed
    except reader.Conflict as conflict:
        _ask(attempt, steps, conflict)
    except reader.Malformed:
        yield from _repaired(attempt, node, text, steps)


def _repaired(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    try:
        parsed = reader.parse(text)
        if not parsed.guessed:
            yield _closed(node, parsed), parsed.value
            return
    except reader.Conflict as conflict:
        _ask(attempt, steps, conflict)
        return
    except reader.Malformed:
        parsed = None
    try:
        yield "python_literal_parsed", literal(text)
    except reader.Conflict as conflict:
        _ask(attempt, steps, conflict)
    except reader.Malformed:
        if parsed is not None:
            yield "truncated_json_closed" if parsed.left_open else "json_guessed", parsed.value


def _closed(node: Node, parsed: reader.Parsed) -> str:
    """Return the pattern of a text whose end may be missing.

    When every parameter is there and only the last bracket is not, nothing more can follow.
    """
    whole = parsed.left_open == 0
    nothing_follows = (
        parsed.left_open == 1
        and isinstance(parsed.value, dict)
        and node.closed
        and set(node.properties) <= set(parsed.value)
    )
    return "broken_json_repaired" if whole or nothing_follows else "truncated_json_closed"


def _ask(attempt: Attempt, steps: Steps, conflict: reader.Conflict) -> None:
    attempt.ask(steps, f"`{conflict.name}` is given twice. Which value is meant?", conflict.values)


def _quoted(node: Node, text: str) -> Iterator[Proposal]:
    """Yield a text without the quotes that it has of its own, or the list that it spells."""
    try:
        inner = reader.strict(text)
    except (reader.Malformed, reader.Conflict):
        inner = None
    if isinstance(inner, str):
        if "string" not in node.types and inner != text:
            yield "json_text_parsed", inner
        return
    if "array" in node.types:
        try:
            spelled = literal(f"[{text}]")
        except (reader.Malformed, reader.Conflict):
            return
        if len(spelled) > 1:
            yield "python_literal_parsed", spelled


def _called(attempt: Attempt, text: str) -> Iterator[Proposal]:
    try:
        name, arguments = named_arguments(text)
    except (reader.Malformed, reader.Conflict):
        return
    other = attempt.tool is not None and normal(name) != normal(attempt.tool)
    yield "call_of_another_tool" if other else "python_call_parsed", arguments


def _braceless(text: str) -> Proposal | None:
    """Return the object that a text without braces spells: JSON members, or lines of pairs."""
    try:
        parsed = reader.parse(text)
        if isinstance(parsed.value, dict):
            return ("json_guessed" if parsed.guessed else "broken_json_repaired"), parsed.value
    except (reader.Malformed, reader.Conflict):
        pass
    if len(text) > _PAIRS_CHARS_MAX:
        return None
    for separator in ("&", "\n", ";", ","):
        pairs = [_PAIR.fullmatch(piece) for piece in text.strip().split(separator)]
        found = {pair[1]: pair[2].strip("\"'") for pair in pairs if pair}
        if len(found) == len(pairs):
            return "pairs_parsed", found
    return None


def _sole(node: Node, text: str) -> Iterator[Proposal]:
    """Yield the text as the only parameter that it could be."""
    names = node.required or list(node.properties)
    if len(names) == 1 and text[0] not in "{[(`\"'":
        yield "sole_argument", {names[0]: text}
