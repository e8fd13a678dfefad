"""Every form that a value may stand for at one place, one step away from what was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.paths import Steps
from stratagem.gateway.correction import enums, formats, lists, scalars, texts
from stratagem.gateway.correction.learned import HintKind
from stratagem.gateway.correction.schemas import Node, kind_of
from stratagem.gateway.correction.words import normal

if TYPE_CHECKING:
    from stratagem.gateway.correction.attempt import Attempt

__all__ = ["forms", "likely_branches"]

Proposal = tuple[str, Any]

_VALUE_KEYS: Final = frozenset({"value", "val"})
_LIST_KEYS: Final = frozenset(
    {"array", "data", "element", "elements", "entries", "item", "items", "list", "results", "value",
     "values"}
)  # fmt: skip
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


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
    elif value is not None and "array" in node.types:
        yield "scalar_wrapped_in_array", [value]
    if node.options is None:
        yield from scalars.conversions(value, node.types, name)
        yield from _constrained(node, value)
        yield from _formatted(attempt, node, value, steps)


def likely_branches(branches: list[Node], value: Any) -> list[Node]:
    """Return the forms that a value is of, by the properties that tell them apart."""
    if not isinstance(value, dict):
        return branches
    telling = [branch for branch in branches if _told(branch, value)]
    return telling or branches


def _told(branch: Node, value: dict[str, Any]) -> bool:
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
    parsed = list(texts.forms(attempt, node, text, steps))
    yield from parsed
    if "array" in node.types and not parsed:
        yield from _listed(attempt, node, text, steps)


def _listed(attempt: Attempt, node: Node, text: str, steps: Steps) -> Iterator[Proposal]:
    """Yield the list that a text stands for."""
    if not text.strip():
        yield "empty_text_for_list", []
        return
    element = node.element(0)
    free = "string" in element.types and element.options is None
    found = lists.split(text)
    if found is None:
        numbers = text.split()
        if not free and len(numbers) > 1 and _all_numbers(numbers):
            grouped = lists.ambiguous_digits(text, fractions=False)
            yield "doubtful_list_split" if grouped else "separated_list_split", numbers
        doubtful = free and lists.conjoined(text)
        yield "doubtful_list_kept" if doubtful else "scalar_wrapped_in_array", [text]
    elif free:
        yield from _free_list(attempt, node, (text, found), steps)
    else:
        fractions = "number" in element.types
        doubtful = lists.ambiguous_digits(text, fractions=fractions)
        yield "doubtful_list_split" if doubtful else "separated_list_split", list(found.parts)
        yield "scalar_wrapped_in_array" if not doubtful else "doubtful_list_kept", [text]


def _all_numbers(texts: list[str]) -> bool:
    return all(scalars.number_of(text) is not None for text in texts)


def _free_list(
    attempt: Attempt, node: Node, taken: tuple[str, lists.Parts], steps: Steps
) -> Iterator[Proposal]:
    """Yield the readings of a text where both the parts and the whole would fit."""
    text, found = taken
    hints = attempt.hints(HintKind.LIST, steps, found.separator)
    known = hints[0].meaning if hints and hints[0].certain else None
    about = _name(steps), node.description
    if known == "whole" or (known is None and lists.one_place(text, *about)):
        yield "one_place_kept_whole", [text]
    elif known == "split" or not lists.doubtful(found, text, *about):
        yield "separated_list_split", list(found.parts)
    else:
        yield "doubtful_list_split", list(found.parts)
        yield "doubtful_list_kept", [text]


def _from_object(node: Node, value: dict[str, Any], name: str) -> Iterator[Proposal]:
    if len(value) == 1 and "object" not in node.types:
        key, inner = next(iter(value.items()))
        known = {normal(name), *_LIST_KEYS} if isinstance(inner, list) else {normal(name)}
        if normal(key) in known | _VALUE_KEYS:
            listed = isinstance(inner, list) and "array" in node.types
            yield "list_object_unwrapped" if listed else "value_object_unwrapped", inner
    if "array" in node.types and "object" not in node.types:
        if value and list(value) == [str(index) for index in range(len(value))]:
            yield "list_object_unwrapped", list(value.values())
        elif "object" in node.element(0).types:
            yield "scalar_wrapped_in_array", [value]


def _from_list(node: Node, value: list[Any]) -> Iterator[Proposal]:
    if "array" in node.types:
        return
    if len(value) == 1:
        yield "single_element_unwrapped", value[0]
    elif value and node.types & _SCALARS:
        if "string" in node.types and all(isinstance(item, str) for item in value):
            yield "elements_joined", ", ".join(value)
        yield "first_element_taken", value[0]
    elif value and "object" in node.types:
        pairs = _pairs(value)
        if pairs is not None:
            yield "pairs_to_object", pairs


def _pairs(value: list[Any]) -> dict[str, Any] | None:
    """Return the object that a list of names and values stands for."""
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
        if len(item) == 2 and key and "value" in names and isinstance(item[key], str):  # noqa: PLR2004
            return item[key], item[names["value"]]
    return None


def _constrained(node: Node, value: Any) -> Iterator[Proposal]:
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
            ("case_changed", cased)
            for cased in dict.fromkeys((value.upper(), value.lower()))
            if cased != value
        )
    longest = node.view.get("maxLength")
    if isinstance(longest, int) and len(value) > longest:
        yield "text_cut_to_limit", value[:longest]


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


# Every element is compared with all before it.
_COMPARED_MAX: Final = 1_000


def _formatted(attempt: Attempt, node: Node, value: Any, steps: Steps) -> Iterator[Proposal]:
    form = node.view.get("format")
    if not isinstance(form, str) or "string" not in node.types:
        return

    def order() -> str | None:
        hints = attempt.hints(HintKind.DATE_ORDER, steps, "day/month")
        return str(hints[0].meaning) if hints and hints[0].certain else None

    yield from formats.rewritten(value, form, order)
