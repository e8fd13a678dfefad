"""Every form that a value may stand for at one place, one step away from what was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.paths import Steps
from stratagem.gateway.correction import enums, formats, lists, scalars, text_forms
from stratagem.gateway.correction.model import HintKind
from stratagem.gateway.correction.names import are_words
from stratagem.gateway.correction.schemas import Node, kind_of
from stratagem.gateway.correction.words import normal, tokens

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["forms", "likely_branches", "pairs_of"]

Proposal = tuple[str, Any]

_VALUE_KEYS: Final = frozenset({"value", "val"})
_LIST_KEYS: Final = frozenset(
    {"array", "data", "element", "elements", "entries", "item", "items", "list", "results", "value",
     "values"}
)  # fmt: skip
_CODE: Final = re.compile("[A-Za-z]{2,3}")
_COLOR: Final = re.compile("#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})")
# A program gets its command word by word, a shell as one text.
_COMMANDS: Final = frozenset({"argv", "args", "arguments", "cmd", "command", "entrypoint", "flags"})
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_QUOTED: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»"}  # noqa: RUF001
_TELLING: Final = frozenset({"format", "pattern"})
# How some interfaces name a value by its type, and what they say about it beside it.
_TYPED_KEYS: Final = frozenset(
    {"stringvalue", "numbervalue", "integervalue", "intvalue", "doublevalue", "floatvalue",
     "boolvalue", "booleanvalue"}
)  # fmt: skip
_TYPE_NAMES: Final = frozenset(
    {"string", "str", "text", "integer", "int", "number", "float", "boolean", "bool", "array",
     "list", "object", "date"}
)  # fmt: skip
# Between elements that the schema lists, or numbers, such words and marks say only "and".
_CONJUNCTIONS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:(?<!\s)\s++)?(?:[,;|&+]|\band\b)(?:\s*+\band\b)?\s*+",
        r"(?:(?<!\s)\s++)?[,;|&+/]\s*+",
        r"(?:[\s,;|&+]|\band\b)+",
    )
)


def forms(attempt: Attempt, node: Node, value: Any, steps: Steps) -> Iterator[Proposal]:
    """Yield the patterns that apply to a value that does not fit, and what each makes of it."""
    name = _name(steps)
    if node.options is not None:
        yield from _choices(attempt, node, value, steps)
    if isinstance(value, str):
        yield from _from_text(attempt, node, value, steps)
    elif isinstance(value, dict):
        yield from _from_object(node, value, name)
    elif isinstance(value, list):
        yield from _from_list(node, value)
        if "array" in node.types and len(value) == 1 and isinstance(value[0], list):
            yield "single_element_unwrapped", value[0]
    elif value is not None and "array" in node.types:
        yield "scalar_wrapped_in_array", [value]
    if "object" in node.types and isinstance(value, str | int | float):
        attempt.spend(len(node.properties))
        yield from _wrap_scalar(node, value)
    if node.options is None:
        for pattern, converted in scalars.conversions(value, node.types, name):
            # The number was read from text that had more digits: 3.10 is a version, 3.1 another.
            cut = pattern == "number_to_string_conversion" and f"{converted}0" in attempt.written
            yield "short_code_to_string_conversion" if cut else pattern, converted
        yield from _fit_bounds(node, value)
        yield from _fit_format(attempt, node, value, steps)


def likely_branches(branches: list[Node], value: Any) -> list[Node]:
    """Return the forms that a value is of, by the properties that tell them apart."""
    if not isinstance(value, dict):
        return branches
    telling = [branch for branch in branches if _has_fixed_value(branch, value)]
    return telling or branches


def _has_fixed_value(branch: Node, value: dict[str, Any]) -> bool:
    """Tell whether a property that this form fixes has the value it fixes."""
    return any(
        name in value and node.options is not None and value[name] in node.options
        for name, node in branch.properties.items()
    )


def _name(steps: Steps) -> str:
    """Return the name of the parameter that a place belongs to."""
    names = [step for step in steps if isinstance(step, str)]
    return names[-1] if names else ""


def _choices(attempt: Attempt, node: Node, value: Any, steps: Steps) -> Iterator[Proposal]:
    assert node.options is not None
    if isinstance(value, str):
        for hint in attempt.hints(HintKind.CHOICE, steps, value.strip().casefold()):
            if hint.meaning in node.options:
                yield "enum_known_alias" if hint.certain else "enum_resembles", hint.meaning
                if hint.certain:
                    return
    attempt.spend(1 + len(node.options) // 4)
    yield from enums.variants(value, node.options)


def _from_text(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    parsed = list(text_forms.forms(attempt, node, text, steps))
    yield from parsed
    unquoted = _strip_quotes(node, text)
    if unquoted is not None and not parsed:
        yield "quotes_removed", unquoted
    if "array" in node.types and not parsed:
        yield from _read_list(attempt, node, text, steps)


def _strip_quotes(node: Node, text: str) -> str | None:
    """Return a text without its quotes, where the schema says that they do not belong to it."""
    plain = text.strip()
    told = node.options is None and ("string" not in node.types or _TELLING & set(node.view))
    if not told or len(plain) <= 2 or node.types & {"array", "object"}:  # noqa: PLR2004 -- quotes
        return None
    inner = plain[1:-1]
    closed = _QUOTED.get(plain[0]) == plain[-1] and not set(inner) & {plain[0], plain[-1]}
    return inner if closed else None


def _read_list(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    """Yield the list that a text stands for."""
    if not text.strip():
        yield "empty_text_for_list", []
        return
    element = node.element(0)
    free = (
        "string" in element.types and element.options is None and not _TELLING & set(element.view)
    )
    found = lists.split(text)
    if found is None:
        numbers = text.split()
        if not free and len(numbers) > 1 and _all_numbers(numbers):
            grouped = lists.ambiguous_digits(text, fractions=False)
            yield "doubtful_list_split" if grouped else "separated_list_split", numbers
        elif not free:
            yield from _read_enumeration(element, text)
        worded = free and len(numbers) > 1 and not _COMMANDS.isdisjoint(tokens(_name(steps)))
        if worded:
            yield "doubtful_list_split", numbers
        doubtful = worded or (free and lists.may_name_two_things(text))
        yield "doubtful_list_kept" if doubtful else "scalar_wrapped_in_array", [text]
    elif free:
        yield from _free_list(attempt, node, (text, found), steps)
    else:
        fractions = "number" in element.types
        doubtful = lists.ambiguous_digits(text, fractions=fractions)
        yield "doubtful_list_split" if doubtful else "separated_list_split", list(found.parts)
        yield "scalar_wrapped_in_array" if not doubtful else "doubtful_list_kept", [text]
        if not doubtful and " and " in text:
            yield from _read_enumeration(element, text)


def _read_enumeration(element: Node, text: str) -> Iterator[Proposal]:
    """Yield the elements that a text names one after another, where each of them fits."""
    if len(text) > _ENUMERATED_CHARS_MAX:
        return
    listed = {normal(str(option)) for option in element.options or ()}
    for conjunction in _CONJUNCTIONS:
        parts = [part for part in conjunction.split(text.strip()) if part]
        named = bool(listed) and all(normal(part) in listed for part in parts)
        # A stroke between numbers makes a fraction.
        numbers = not listed and "/" not in text and _all_numbers(parts)
        if len(parts) > 1 and (named or numbers):
            yield "separated_list_split", parts
            return


def _all_numbers(texts: list[str]) -> bool:
    return all(scalars.number_of(text) is not None for text in texts)


def _free_list(
    attempt: Attempt, node: Node, taken: tuple[str, lists.SplitText], steps: Steps
) -> Iterator[Proposal]:
    """Yield the readings of a text where both the parts and the whole would fit."""
    text, found = taken
    hints = attempt.hints(HintKind.LIST, steps, found.separator)
    known = hints[0].meaning if hints and hints[0].certain else None
    about = _name(steps), node.description
    if known is None and lists.one_place(text, *about):
        yield "one_place_kept_whole", [text]
    elif not lists.doubtful(found, text, *about):
        # What shows by itself to be a list needs no lesson; only a contrary one speaks against it.
        yield (
            "doubtful_list_split" if known == "whole" else "separated_list_split",
            list(found.parts),
        )
        if known == "whole":
            yield "doubtful_list_kept", [text]
    elif known == "whole":
        yield "list_known_whole", [text]
    elif known == "split" and not lists.broken(found):
        yield "list_known_split", list(found.parts)
    else:
        yield "doubtful_list_split", list(found.parts)
        yield "doubtful_list_kept", [text]


def _from_object(node: Node, value: dict[str, Any], name: str) -> Iterator[Proposal]:
    if len(value) == 1 and "object" not in node.types:
        key, inner = next(iter(value.items()))
        known = {normal(name), *_LIST_KEYS} if isinstance(inner, list) else {normal(name)}
        if normal(key) in known | _VALUE_KEYS | _TYPED_KEYS:
            listed = isinstance(inner, list) and "array" in node.types
            yield "list_object_unwrapped" if listed else "value_object_unwrapped", inner
    elif "object" not in node.types and _is_typed(value):
        yield "value_object_unwrapped", value["value"]
    if "array" in node.types and "object" not in node.types:
        numbered = _list_of_numbered(value)
        if numbered is not None:
            yield "list_object_unwrapped", numbered
        elif "object" in node.element(0).types:
            yield "scalar_wrapped_in_array", [value]


def _is_typed(value: dict[str, Any]) -> bool:
    """Tell whether an object is a value beside the name of its type."""
    return set(value) == {"type", "value"} and value["type"] in _TYPE_NAMES


def _list_of_numbered(value: dict[str, Any]) -> list[Any] | None:
    """Return the list that an object with the numbers of its elements as names stands for."""
    # No number of an element is longer, and `int` raises on thousands of digits.
    digits = len(str(len(value)))
    if not value or not all(
        name.isdecimal() and name.isascii() and len(name) <= digits for name in value
    ):
        return None
    # {"1": 10} alone may count something.
    first = min(map(int, value)) if value.keys() != {"1"} else -1
    names = [str(index) for index in range(first, first + len(value))]
    return [value[name] for name in names] if first in {0, 1} and set(names) == set(value) else None


def _from_list(node: Node, value: list[Any]) -> Iterator[Proposal]:
    if "array" in node.types:
        return
    named = pairs_of(value) if "object" in node.types else None
    if named is not None:
        known = all(normal(name) in node.styles for name in named)
        yield "named_pairs_joined" if known else "pairs_to_object", named
    elif len(value) == 1:
        yield "single_element_unwrapped", value[0]
    elif value and node.types & _SCALARS:
        if "string" in node.types and all(isinstance(item, str) for item in value):
            yield "elements_joined", ", ".join(value)
        yield "first_element_taken", value[0]


def pairs_of(value: list[Any]) -> dict[str, Any] | None:
    """Return the object that a list of names and values stands for, or None."""
    if not value:
        return None
    found: dict[str, Any] = {}
    for item in value:
        pair = _pair(item)
        if pair is None or pair[0] in found:
            return None
        found[pair[0]] = pair[1]
    return found


def _pair(item: Any) -> tuple[str, Any] | None:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):  # noqa: PLR2004
        return item[0], item[1]
    if isinstance(item, dict):
        names = {normal(key): key for key in item}
        key = names.get("name") or names.get("key")
        said = set(names) - {"type"} if item.get("type") in _TYPE_NAMES else set(names)
        if len(said) == 2 and key and "value" in names and isinstance(item[key], str):  # noqa: PLR2004
            return item[key], item[names["value"]]
    return None


def _wrap_scalar(node: Node, value: Any) -> Iterator[Proposal]:
    """Yield the object whose only required parameter a scalar is: an address for an attendee."""
    blank = isinstance(value, str) and (not value.strip() or value.lstrip()[0] in "{[")
    if len(node.required) != 1 or blank:
        return
    name = node.required[0]
    inner = node.properties.get(name)
    if inner is None or not inner.accepts(value):
        return
    told = inner.options is not None or bool(_TELLING & set(inner.view))
    alone = sum(other.accepts(value) for other in node.properties.values()) == 1
    yield "value_named" if told and alone else "value_name_assumed", {name: value}


def _fit_bounds(node: Node, value: Any) -> Iterator[Proposal]:
    if kind_of(value) not in node.types and not (
        isinstance(value, int) and not isinstance(value, bool) and "number" in node.types
    ):
        return
    if isinstance(value, str):
        yield from _allowed_text(node, value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _allowed_number(node.view, value)
    elif isinstance(value, list):
        yield from _allowed_list(node.view, value)


def _allowed_text(node: Node, value: str) -> Iterator[Proposal]:
    if value != value.strip():
        yield "surrounding_space_removed", value.strip()
        return
    if "pattern" in node.view:
        yield from (
            ("code_case_changed" if _is_code(value) else "case_changed", cased)
            for cased in dict.fromkeys((value.upper(), value.lower()))
            if cased != value
        )
    longest = node.view.get("maxLength")
    if isinstance(longest, int) and len(value) > longest:
        yield "text_cut_to_limit", value[:longest]


def _is_code(value: str) -> bool:
    """Tell whether case is all that the caller got wrong: `zrh` for ZRH, a color in capitals."""
    return bool(_COLOR.fullmatch(value)) or (
        bool(_CODE.fullmatch(value)) and not are_words(value.casefold())
    )


def _allowed_number(view: dict[str, Any], value: float) -> Iterator[Proposal]:
    least, most = view.get("minimum"), view.get("maximum")
    if isinstance(least, int | float) and value < least:
        yield "clamped_to_limit", least
    elif isinstance(most, int | float) and value > most:
        yield "clamped_to_limit", most
    above, below = view.get("exclusiveMinimum"), view.get("exclusiveMaximum")
    if isinstance(above, int) and value <= above:
        yield "clamped_to_limit", above + 1
    elif isinstance(below, int) and value >= below:
        yield "clamped_to_limit", below - 1
    multiple = view.get("multipleOf")
    if isinstance(multiple, int) and multiple > 0:
        yield "clamped_to_limit", round(value / multiple) * multiple


def _allowed_list(view: dict[str, Any], value: list[Any]) -> Iterator[Proposal]:
    if any(item is None for item in value):
        yield "null_element_removed", [item for item in value if item is not None]
    if view.get("uniqueItems") is True:
        seen: list[Any] = []
        for item in value[:_COMPARED_MAX]:
            if item not in seen:
                seen.append(item)
        if len(seen) < len(value) <= _COMPARED_MAX:
            yield "duplicates_removed", seen
    longest = view.get("maxItems")
    if isinstance(longest, int) and len(value) > longest:
        yield "list_cut_to_limit", value[:longest]


# A longer text names no handful of things.
_ENUMERATED_CHARS_MAX: Final = 1_000
# Every element is compared with all before it.
_COMPARED_MAX: Final = 1_000


def _fit_format(attempt: Attempt, node: Node, value: Any, steps: Steps) -> Iterator[Proposal]:
    form = node.view.get("format")
    if not isinstance(form, str) or "string" not in node.types:
        return

    def order() -> str | None:
        hints = attempt.hints(HintKind.DATE_ORDER, steps, "day/month")
        return str(hints[0].meaning) if hints and hints[0].certain else None

    yield from formats.propose_formats(value, form, order)
