"""The outputs of tools, and which parameters of other tools take them.

A field of an output is what a parameter takes when both have the same name and a type in common.
Names that say nothing by themselves (`id`, `name`, `status`) have to be of the same thing too: the
`id` that `get_user` gives is what `user_id` takes, and never what `delete_order` takes as `id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from stratagem.gateway.registry.tools import Tool
from stratagem.search import analysis

__all__ = ["GENERAL_WORDS", "OutputField", "ToolOutputs", "fits", "outputs", "properties", "words"]

# What is said of anything, so that it says nothing of what it is about.
GENERAL_WORDS: Final = frozenset(
    analysis.terms(
        "id ids uid uuid key name title label type kind status state code number count total index"
        " date time timestamp url link page limit size success error"
    )
)
# What is done with things, in the names of tools.
_DOING: Final = frozenset(
    analysis.terms(
        "get list find search fetch read load show lookup query create make add new insert register"
        " update set change edit modify patch put delete remove drop cancel send post write save"
        " store upload download run execute start stop open close check validate use by for of api"
    )
)
_WORDS_MAX: Final = 5
_CASES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]")


class OutputField(NamedTuple):
    """A field of a tool's output."""

    tool: Tool
    path: tuple[str, ...]
    schema: Any


class ToolOutputs:
    """The outputs of many tools, by the words of their fields."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._fields: dict[frozenset[str], list[OutputField]] = {}
        for tool in tools:
            for field in outputs(tool):
                self._fields.setdefault(words(field.path[-1]), []).append(field)

    def outputs_for(self, name: str, schema: Any, user: Tool) -> Iterator[OutputField]:
        """Yield the outputs of other tools that fit a parameter of a tool."""
        wanted = words(name)
        if len(wanted) > _WORDS_MAX:
            return
        for size in range(len(wanted), 0, -1):
            for some in combinations(sorted(wanted), size):
                for field in self._fields.get(frozenset(some), ()):
                    if field.tool.name != user.name and fits(field, name, schema, user):
                        yield field


def outputs(tool: Tool) -> Iterator[OutputField]:
    """Yield the fields of a tool's output, two levels deep."""
    for name, each in properties(tool.content.get("outputSchema")).items():
        yield OutputField(tool, (name,), each)
        for inner, deeper in properties(each).items():
            yield OutputField(tool, (name, inner), deeper)


def fits(field: OutputField, name: str, schema: Any, user: Tool) -> bool:
    """Whether a field of an output is what a tool takes under a name."""
    given, wanted = words(field.path[-1]), words(name)
    # What is around a field says what it is of: `get_user` gives `id`, or `user.id`.
    around = _subject_words(field.tool) | {word for part in field.path[:-1] for word in words(part)}
    if given == wanted:
        return _is_compatible(field.schema, schema) and not (
            given <= GENERAL_WORDS and around.isdisjoint(_subject_words(user))
        )
    return given < wanted and wanted - given <= around and _is_compatible(field.schema, schema)


def _subject_words(tool: Tool) -> frozenset[str]:
    """Return what a tool is about, by its name."""
    return words(tool.name) - _DOING


def properties(schema: Any) -> Mapping[str, Any]:
    """Return the properties of a schema, whatever it is."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


@lru_cache(maxsize=4096)
def words(name: str) -> frozenset[str]:
    """Return what a name is made of."""
    return frozenset(analysis.terms(_CASES.sub(" ", name)))


def _is_compatible(produced: Any, wanted: Any) -> bool:
    one, two = _kinds(produced), _kinds(wanted)
    # A whole number is a number, and not the other way round.
    return not one or not two or bool((one | ({"number"} if "integer" in one else set())) & two)


def _kinds(schema: Any) -> set[str]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return {kind} if isinstance(kind, str) else set(kind) if isinstance(kind, list) else set()
