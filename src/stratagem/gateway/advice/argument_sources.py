"""Where the arguments of a planned step come from, and whether the schemas prove that they fit.

A field of an earlier step's output is what a parameter takes when both have the same name and a
type in common. Names that say nothing by themselves (`id`, `name`, `status`) have to be of the same
thing too: the `id` that `get_user` gives is what `user_id` takes, and never what `delete_order`
takes as `id`. That is enough to fill an argument. It is proof only where the output schema requires
the field, and allows it nothing that the parameter does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import cache_texts
from stratagem.gateway.registry.tools import Tool
from stratagem.search import analysis

__all__ = ["OutputField", "fits", "is_general", "is_proven", "outputs", "parameters", "same_name"]

# General names, which do not say what they are about.
_GENERAL: Final = frozenset(
    analysis.terms(
        "id ids uid uuid key name title label type kind status state code number count total index"
        " date time timestamp url link page limit size success error"
    )
)
# Verbs in the names of tools.
_DOING: Final = frozenset(
    analysis.terms(
        "get list find search fetch read load show lookup query create make add new insert register"
        " update set change edit modify patch put delete remove drop cancel send post write save"
        " store upload download run execute start stop open close check validate use by for of api"
    )
)
_CASES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]")
# Keywords that allow and forbid nothing.
_REMARKS: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "title", "$schema", "$id"}
)
# Of the schema of arguments: with others, what each parameter allows is not all there is.
_OBJECT: Final = _REMARKS | {"type", "properties", "required", "additionalProperties"}


class OutputField(NamedTuple):
    """A field of a tool's output; `promised` where its schema requires it."""

    tool: Tool
    path: tuple[str, ...]
    schema: Any
    promised: bool


def parameters(tool: Tool) -> dict[str, tuple[Any, bool]]:
    """Return the parameters of a tool, each with its schema and whether it is required."""
    schema = tool.content["inputSchema"]
    known, required = _properties(schema), _required_names(schema)
    return {name: (known.get(name, {}), name in required) for name in (*required, *known)}


def outputs(tool: Tool) -> Iterator[OutputField]:
    """Yield the fields of a tool's output, two levels deep."""
    schema = tool.content.get("outputSchema")
    required = _required_names(schema)
    for name, each in _properties(schema).items():
        yield OutputField(tool, (name,), each, name in required)
        # What is no object need not have what an object of the schema must.
        inside = _required_names(each) if name in required and _kinds(each) == {"object"} else ()
        for inner, deeper in _properties(each).items():
            yield OutputField(tool, (name, inner), deeper, inner in inside)


def fits(field: OutputField, name: str, schema: Any, user: Tool) -> bool:
    """Whether a field of an output is what a tool takes under a name."""
    given, wanted = _words(field.path[-1]), _words(name)
    # What is around a field says what it is of: `get_user` gives `id`, or `user.id`.
    around = _subject(field.tool).union(*map(_words, field.path[:-1]))
    one, two = _kinds(field.schema), _kinds(schema)
    if one and two and not any(_is_one_of(kind, two) for kind in one):
        return False
    if given == wanted:
        return not (given <= _GENERAL and around.isdisjoint(_subject(user)))
    return given < wanted and wanted - given <= around


def is_proven(field: OutputField, name: str, user: Tool) -> bool:
    """Whether every output of a tool has a field, and a parameter takes whatever it may be."""
    schema = user.content["inputSchema"]
    return (
        field.promised
        and _OBJECT.issuperset(schema)
        and _allows(_properties(schema).get(name), field.schema)
    )


def is_general(name: str) -> bool:
    """Whether a name says nothing of what it is about."""
    return _words(name) <= _GENERAL


def same_name(one: str, two: str) -> bool:
    """Whether two names differ in nothing but style."""
    return one == two or _words(one) == _words(two)


def _allows(wanted: Any, given: Any) -> bool:
    """Whether a schema takes every value that another one allows."""
    if not isinstance(wanted, Mapping) or not isinstance(given, Mapping):
        return False
    if isinstance(forms := wanted.get("anyOf"), list) and not set(wanted) - _REMARKS - {"anyOf"}:
        return any(_allows(each, given) for each in forms)
    one, two = _kinds(given), _kinds(wanted)
    rules = set(wanted) - _REMARKS - {"type"}
    typed = not two or (bool(one) and all(_is_one_of(kind, two) for kind in one))
    # A reference to elsewhere in its schema means something else in another one.
    alone = "$ref" not in str(wanted) and "$dynamicRef" not in str(wanted)
    return typed and alone and all(given.get(rule) == wanted[rule] for rule in rules)


def _subject(tool: Tool) -> frozenset[str]:
    """Return what a tool is about, by its name."""
    return _words(tool.name) - _DOING


@cache_texts(4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(analysis.terms(_CASES.sub(" ", name)))


def _properties(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _required_names(schema: Any) -> tuple[str, ...]:
    found = schema.get("required") if isinstance(schema, Mapping) else None
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _kinds(schema: Any) -> frozenset[str]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    found = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return frozenset(map(str, found))


def _is_one_of(kind: str, kinds: frozenset[str]) -> bool:
    """Whether a type is among others; a whole number is a number, and not the other way round."""
    return kind in kinds or (kind == "integer" and "number" in kinds)
