"""What a text holds when it is not meant as text: JSON, a Python literal, a call, pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.paths import Steps
from stratagem.gateway.correction import json_text, markup, pairs
from stratagem.gateway.correction.literals import call_arguments, literal
from stratagem.gateway.correction.scalars import number_of
from stratagem.gateway.correction.schemas import Node
from stratagem.gateway.correction.words import NOISE, TAKING_BACK, normal, same_tool, tokens

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["forms", "root_forms"]

Proposal = tuple[str, Any]

_SCALARS: Final = {"true": True, "false": False}
_NOTHING: Final = frozenset({"", "null", "None", "undefined", "[]", "()"})
# So far into a text are names looked for that show it to be more than one value.
_SOLE_CHARS: Final = 1_000
_NAMED: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+[:=>]")
_CONTAINERS: Final = frozenset({"object", "array"})
# Escapes that nobody means: the backslashes of a path were not doubled.
_PATHLIKE: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[bf]|(?<=\b[A-Za-z]:)\\[nrt])")


def forms(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    """Yield what a text holds, where something else than text is expected."""
    stripped = text.strip()
    inner = json_text.fence_contents(text)
    if inner is not None and node.types & _CONTAINERS:
        yield "json_text_parsed", inner
    elif stripped[:1] in {"{", "[", "("} and node.types & _CONTAINERS:
        yield from _containers(attempt, node, stripped, steps)
    elif stripped[:1] in {'"', "'"} and stripped[-1:] == stripped[:1] and len(stripped) > 1:
        yield from _strip_own_quotes(node, stripped)


def root_forms(attempt: Attempt, node: Node, text: str) -> Iterator[Proposal]:
    """Yield what the text of a whole call holds."""
    text = text.strip().lstrip("\ufeff")
    found = list(forms(attempt, node, text, ())) if text not in _NOTHING else []
    yield from found
    if found or attempt.choices:
        return
    if text in _NOTHING:
        yield "no_arguments", {}
        return
    called = list(_read_function_call(attempt, node, text))
    yield from called
    unescaped = _unescape(text)
    if unescaped is not None:
        yield "json_text_parsed", unescaped
    inner = json_text.found_in(text)
    if inner is not None:
        if not called:
            yield _pattern_of_embedded_json(attempt, text, inner), inner
        return
    yield from _read_object_text(node, text)
    yield from _sole(node, text)


def _containers(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    try:
        parsed = json_text.strict(text)
        yield "json_guessed" if _PATHLIKE.search(text) else "json_text_parsed", parsed
    except json_text.DuplicateName as conflict:
        _ask(attempt, steps, conflict)
    except json_text.Malformed:
        yield from _repair_json(attempt, node, text, steps)


def _repair_json(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    try:
        parsed = json_text.parse(text)
        if not parsed.guessed and _names_known(node, parsed):
            yield _pattern_of_end(node, parsed), parsed.value
            return
    except json_text.DuplicateName as conflict:
        _ask(attempt, steps, conflict)
        return
    except json_text.Malformed:
        parsed = None
    try:
        yield "python_literal_parsed", literal(text)
    except json_text.DuplicateName as conflict:
        _ask(attempt, steps, conflict)
    except json_text.Malformed:
        if parsed is not None:
            yield "truncated_json_closed" if parsed.left_open else "json_guessed", parsed.value


def _names_known(node: Node, parsed: json_text.Parsed) -> bool:
    """Tell whether texts without quotes end where a name of the schema begins."""
    if not parsed.bare:
        return True
    return _all_known(node, parsed.value)


def _all_known(node: Node, value: Any) -> bool:
    """Tell whether a value is an object that has names of the schema only."""
    return isinstance(value, dict) and all(normal(name) in node.styles for name in value)


def _pattern_of_end(node: Node, parsed: json_text.Parsed) -> str:
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


def _ask(attempt: Attempt, steps: Steps, conflict: json_text.DuplicateName) -> None:
    attempt.ask(steps, f"`{conflict.name}` is given twice. Which value is meant?", conflict.values)


def _strip_own_quotes(node: Node, text: str) -> Iterator[Proposal]:
    """Yield a text without the quotes that it has of its own, or the list that it spells."""
    try:
        inner = json_text.strict(text)
    except (json_text.Malformed, json_text.DuplicateName):
        inner = None
    if isinstance(inner, str):
        if "string" not in node.types and inner != text:
            yield "json_text_parsed", inner
        return
    if "array" in node.types:
        try:
            spelled = literal(f"[{text}]")
        except (json_text.Malformed, json_text.DuplicateName):
            return
        if len(spelled) > 1:
            yield "python_literal_parsed", spelled


def _read_function_call(attempt: Attempt, node: Node, text: str) -> Iterator[Proposal]:
    try:
        name, given, named = call_arguments(text)
    except (json_text.Malformed, json_text.DuplicateName):
        return
    other = attempt.tool is not None and not same_tool(name, attempt.tool)
    if not given:
        yield "call_of_another_tool" if other else "python_call_parsed", named
    elif len(given) == 1 and not named and _all_known(node, given[0]):
        yield "call_of_another_tool" if other else "python_call_parsed", given[0]
    elif len(given) <= len(node.required) and not other:
        by_order = dict(zip(node.required, given, strict=False))
        if not set(by_order) & set(named):
            yield "positional_arguments", {**by_order, **named}


def _unescape(text: str) -> str | None:
    """Return JSON whose quotes all have a backslash before them."""
    if not re.match(r"[{\[]\s*(?:\{\s*)?\\\"", text):
        return None
    try:
        inner = json_text.strict(f'"{text}"')
    except (json_text.Malformed, json_text.DuplicateName):
        return None
    return inner if isinstance(inner, str) else None


def _pattern_of_embedded_json(attempt: Attempt, text: str, inner: str) -> str:
    """Return the pattern of JSON with text around it: nothing is lost where that says nothing."""
    before, _, after = text.partition(inner)
    said = re.findall(r"[^\W_]+", f"{before} {after}".casefold())
    known = NOISE | set(tokens(attempt.tool or ""))
    if set(said) <= known:
        return "json_among_noise"
    return "json_taken_back" if set(said) & TAKING_BACK else "json_found_in_text"


def _read_object_text(node: Node, text: str) -> Iterator[Proposal]:
    """Yield the object that a text without braces spells: markup, pairs, or JSON members."""
    try:
        marked = markup.arguments(text)
        yield "pairs_parsed" if _may_be_number(node, marked) else "markup_parsed", marked
        return
    except json_text.Malformed:
        pass
    found = pairs.read(text, frozenset(map(normal, node.properties)))
    if found is not None and found.certain and not _may_be_number(node, found.values):
        yield "named_values_parsed", found.values
        return
    try:
        parsed = json_text.parse(text)
        if isinstance(parsed.value, dict):
            guessed = parsed.guessed or parsed.bare or found is not None
            yield "json_guessed" if guessed else "broken_json_repaired", parsed.value
            return
    except (json_text.Malformed, json_text.DuplicateName):
        pass
    if found is not None:
        yield "pairs_parsed", found.values


def _may_be_number(node: Node, value: Any, *, inside: bool = False) -> bool:
    """Tell whether a text may as well be the number that it names: the schema takes either."""
    if isinstance(value, dict):
        # What stands around the arguments has no place in the schema.
        around = not inside and not any(normal(name) in node.styles for name in value)
        return any(
            _may_be_number(node if around else _inner(node, name), item, inside=not around)
            for name, item in value.items()
        )
    if isinstance(value, list):
        return any(_may_be_number(node.element(0), item, inside=True) for item in value)
    word = str(value).strip()
    other = _SCALARS.get(word.casefold(), number_of(word))
    return other is not None and node.accepts(word) and node.accepts(other)


def _inner(node: Node, name: str) -> Node:
    return node.node_for(node.styles.get(normal(name), name)) or node.anything


def _sole(node: Node, text: str) -> Iterator[Proposal]:
    """Yield the text as the only parameter that it could be."""
    names = node.required or list(node.properties)
    spelled = {normal(name) for name in _NAMED.findall(text[:_SOLE_CHARS])}
    if len(names) == 1 and text[0] not in "{[(`\"'<" and not spelled & set(node.styles):
        yield "sole_argument", {names[0]: text}
