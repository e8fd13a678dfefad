"""Names that an open schema allows, but does not know.

Most servers publish schemas without `additionalProperties`. A validator then takes any other name,
and the server ignores it: the misspelled option of a call is lost without an error. So a name that
a schema does not have is examined even if the validator accepts the call:

* another spelling of a parameter that is not given is that parameter: `maxResults`, `max_results`;
* a slip, a plural or a short form of one is offered as that parameter;
* everything else is passed on, and the caller is told.

A schema that says which other names it takes (`additionalProperties` is there and not false)
expects them: they are all passed on, and only those that look like a parameter are mentioned. So
are names where several forms are possible, for another form may have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.paths import Steps, render
from stratagem.gateway.correction.model import Fault, FaultType
from stratagem.gateway.correction.schemas import Node, Ready

__all__ = ["SLIPS", "UnknownName", "is_misnamed", "name_slips", "remarks", "slip_for"]

# What leads to exactly one parameter: spelled in another way, or slipped upon.
SLIPS: Final = frozenset({"key_style_variant", "key_misspelling", "key_abbreviation", "key_plural"})
# More values than a model writes in one call are not gone through.
_VALUES_MAX: Final = 2_000
_REMARKS_MAX: Final = 5
_ELSEWHERE: Final = ("anyOf", "oneOf", "if", "dependentSchemas", "propertyNames")


class UnknownName(NamedTuple):
    """A name that an object has and its schema does not; `meant` is what it looks like.

    It is `slipped` where that is the only thing it can reasonably mean.
    """

    steps: Steps
    meant: str | None
    slipped: bool
    expected: bool


def name_slips(schema: Ready, arguments: Any) -> tuple[Fault, ...]:
    """Return the names that certainly are slips, as what is wrong with a call."""
    return tuple(
        Fault(
            FaultType.UNKNOWN_PROPERTIES,
            render(each.steps),
            f"{each.steps[-1]!r} is not a parameter; {each.meant!r} is",
            (each.steps[-1],),
        )
        for each in _unknown_names(schema.root, arguments, (), [_VALUES_MAX])
        if each.slipped
    )


def is_misnamed(node: Node, value: Any) -> bool:
    """Whether a value that is valid has a name that certainly is a slip."""
    return any(each.slipped for each in _unknown_names(node, value, (), [_VALUES_MAX]))


def remarks(schema: Ready, arguments: Any) -> list[str]:
    """Return what a caller is told about names that are passed on as they are."""
    found = []
    for each in _unknown_names(schema.root, arguments, (), [_VALUES_MAX]):
        if each.meant is None and each.expected:
            continue
        likely = f" Did you mean {each.meant!r}?" if each.meant is not None else ""
        found.append(
            f"{render(each.steps)} is not a parameter and was passed on unchanged.{likely}"
        )
    return found[:_REMARKS_MAX]


def slip_for(node: Node, key: str, given: dict[str, Any]) -> tuple[str, str] | None:
    """Return the parameter that a name of an open object is a slip for, and of which kind."""
    if node.closed or _expects_others(node):
        return None
    found = node.vocabulary.matches(key)
    if len(found) != 1 or found[0].pattern not in SLIPS or found[0].name in given:
        return None
    return found[0].name, found[0].pattern


def _unknown_names(node: Node, value: Any, steps: Steps, left: list[int]) -> Iterator[UnknownName]:
    left[0] -= 1
    if left[0] < 0 or node.branches:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if node.properties and not node.names(key):
                yield _look_at(node, key, value, (*steps, key))
            elif isinstance(item, dict | list) and (inner := node.node_for(key)) is not None:
                yield from _unknown_names(inner, item, (*steps, key), left)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _unknown_names(node.element(index), item, (*steps, index), left)


def _look_at(node: Node, key: str, given: dict[str, Any], steps: Steps) -> UnknownName:
    slip = slip_for(node, key, given)
    if slip is not None:
        return UnknownName(steps, slip[0], slipped=True, expected=False)
    like = [match.name for match in node.vocabulary.matches(key) if match.name not in given]
    return UnknownName(
        steps, like[0] if like else None, slipped=False, expected=_expects_others(node)
    )


def _expects_others(node: Node) -> bool:
    return "additionalProperties" in node.view or any(each in node.view for each in _ELSEWHERE)
