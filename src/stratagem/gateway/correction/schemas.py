"""A schema, made ready for correcting against it.

Only the validator decides what is valid; it sees the original schema. To find possible meanings, a
schema is also read as *nodes*: the expectation at one place, with references followed and `allOf`
merged. A node may know less than the validator (conditions, dependencies, patterns of names): then
a correction may be missed, but no wrong one is accepted, because every result is validated against
the whole schema in the end.

Nodes are made when they are first looked at, so a schema that contains itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import orjson

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.function_cache import cache_texts
from stratagem.gateway.correction.names import Names
from stratagem.gateway.correction.words import normal
from stratagem.gateway.definitions.schemas import PATTERNS, Schema, validator
from stratagem.parameters import ALIASES, PLURAL

__all__ = ["Node", "Ready", "kind_of", "ready"]

TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_SHOWN_CHARS: Final = 300
_ROOT: Final = "whole"
# As many different references are followed at one place; no schema made by hand has as many.
_REFERENCES_MAX: Final = 200
# So far inside is a parameter looked for that stands in the wrong place.
_DEPTH_MAX: Final = 3
# And so many are looked at: definitions that are used again and again make millions of ways.
_WAYS_MAX: Final = 5_000
_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_IMPLIED: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
}


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    return _KINDS.get(type(value), "unknown")


def ready(schema: Mapping[str, Any] | bool) -> Ready:  # noqa: FBT001 -- true and false are schemas
    """Return a schema made ready, or the one made earlier.

    Raises:
        ValidationFailed: It is not a JSON Schema of 2020-12, too large, or refers elsewhere.
    """
    if not isinstance(schema, Mapping | bool):
        raise _refusal("it is not an object")
    try:
        data = orjson.dumps(schema)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise _refusal(str(error)) from error
    if len(data) > limits.CORRECTION_BYTES_MAX:
        raise _refusal(f"it has {len(data):,} bytes", limit=limits.CORRECTION_BYTES_MAX)
    return _parse_schema(data)


# A pure function of the text of a schema; the bound is what keeps it from growing.
@cache_texts(limits.CORRECTION_SCHEMAS_KEPT)
def _parse_schema(data: bytes) -> Ready:
    document = orjson.loads(data)
    try:
        return Ready(document, referring=b'"$ref"' in data)
    except ValidationFailed as error:
        raise _refusal(error.message.removesuffix("."), **error.details) from error


def _refusal(reason: str, **details: Any) -> ValidationFailed:
    return ValidationFailed(
        f"`schema` is not a JSON Schema that can be used: {reason[:_SHOWN_CHARS]}.",
        hint="Give a JSON Schema of 2020-12 that refers to nothing outside itself.",
        **{"field": "schema", **details},
    )


def _validator(schema: Any) -> Any:
    try:
        return validator(schema, PATTERNS[0])
    except (jsonschema_rs.ValidationError, ValueError):
        return validator(schema, PATTERNS[1])


class _Guarded:
    """Takes no value that is too much work for a schema that contains itself in several ways."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def is_valid(self, value: Any) -> bool:
        return self._schema.is_quick(value) and self._schema.accepts(value)


class Ready:
    """A schema with its validators and its root node."""

    def __init__(self, document: Any, *, referring: bool) -> None:
        # What may be held against it, and how many of its errors may be asked for.
        self.bounds = Schema(document)
        self._unbounded = self.bounds.work.load is None
        self.validator = _Guarded(self.bounds) if self._unbounded else self.bounds.validator
        self.document = _rebase_references(document) if referring else document
        self._referring = referring
        self.root = Node(self, self.document, validator=self.validator)

    def part(self, schema: Any) -> Any:
        """Return the validator of a part, or None when it cannot stand alone."""
        if self._referring and isinstance(schema, dict):
            schema = {**schema, "$defs": {_ROOT: self.document}}
        try:
            return _Guarded(Schema(schema)) if self._unbounded else _validator(schema)
        except (
            ValidationFailed,
            jsonschema_rs.ValidationError,
            jsonschema_rs.ReferencingError,
            ValueError,
        ):
            return None

    def target(self, reference: str) -> Any:
        """Return what a turned reference points at, or None."""
        prefix = f"#/$defs/{_ROOT}"
        if not reference.startswith(prefix):
            return None
        here = self.document
        for step in reference[len(prefix) :].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict) and name in here:
                here = here[name]
            elif isinstance(here, list) and name in map(str, range(len(here))):
                here = here[int(name)]
            else:
                return None
        return here


def _rebase_references(schema: Any) -> Any:
    """Let references begin where a part of the schema finds the whole: in its definitions."""
    if isinstance(schema, list):
        return [_rebase_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    turned = {key: _rebase_references(value) for key, value in schema.items() if key != "$id"}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        turned["$ref"] = f"#/$defs/{_ROOT}{reference[1:]}"
    return turned


class Node:
    """What is expected at one place."""

    def __init__(self, owner: Ready, schema: Any, *, validator: Any = None) -> None:
        self._owner = owner
        self._schema = schema
        if validator is not None:
            self._validator = validator

    @cached_property
    def _validator(self) -> Any:
        return self._owner.part(self._schema)

    def accepts(self, value: Any) -> bool:
        """Tell whether the validator takes a value here."""
        return self._validator is None or bool(self._validator.is_valid(value))

    @cached_property
    def view(self) -> dict[str, Any]:
        """The keywords that hold here, references followed."""
        return _flat(self._owner, self._schema, set())

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types that are allowed here; a number may be an integer."""
        return _types(self.view)

    @cached_property
    def options(self) -> list[Any] | None:
        """The only values allowed here, or None when they are not listed."""
        if "const" in self.view:
            return [self.view["const"]]
        listed = self.view.get("enum")
        return listed if isinstance(listed, list) else None

    @cached_property
    def properties(self) -> dict[str, Node]:
        """The parameters by name."""
        found = self.view.get("properties")
        if not isinstance(found, dict):
            return {}
        return {name: Node(self._owner, schema) for name, schema in found.items()}

    @cached_property
    def vocabulary(self) -> Names:
        """The names of the parameters, ready for being looked up."""
        return Names(self.properties)

    @cached_property
    def declared_aliases(self) -> dict[str, str]:
        """The parameters by other names that the schema itself takes for them, in any style."""
        found: dict[str, list[str]] = {}
        for name, node in self.properties.items():
            listed = node.view.get(ALIASES)
            for alias in listed if isinstance(listed, list) else ():
                if isinstance(alias, str):
                    found.setdefault(normal(alias), []).append(name)
        return {alias: names[0] for alias, names in found.items() if len(names) == 1}

    @property
    def plural(self) -> str | None:
        """The parameter beside it that takes several of what it takes."""
        named = self.view.get(PLURAL)
        return named if isinstance(named, str) else None

    @cached_property
    def required(self) -> list[str]:
        """The parameters that must be there."""
        found = self.view.get("required")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    @property
    def closed(self) -> bool:
        """Whether other properties than the named ones are forbidden."""
        return (
            self.view.get("additionalProperties") is False
            or self.view.get("unevaluatedProperties") is False
        )

    @cached_property
    def _name_patterns(self) -> list[tuple[Any, Node]]:
        patterns = self.view.get("patternProperties")
        if not isinstance(patterns, dict):
            return []
        return [
            (self._owner.part({"pattern": pattern}), Node(self._owner, schema))
            for pattern, schema in patterns.items()
        ]

    def names(self, key: str) -> bool:
        """Tell whether a property of this name is described, by name or by pattern."""
        return key in self.properties or self._node_by_pattern(key) is not None

    def node_for(self, key: str) -> Node | None:
        """Return what is expected of a property, whether it is named or one of many."""
        return self.properties.get(key) or self._node_by_pattern(key) or self._others

    def _node_by_pattern(self, key: str) -> Node | None:
        for pattern, node in self._name_patterns:
            if pattern is not None and pattern.is_valid(key):
                return node
        return None

    @cached_property
    def _others(self) -> Node | None:
        schema = self.view.get("additionalProperties")
        return Node(self._owner, schema) if isinstance(schema, dict) else None

    @cached_property
    def anything(self) -> Node:
        """What is expected where the schema says nothing."""
        return Node(self._owner, {})

    @cached_property
    def styles(self) -> dict[str, str]:
        """The parameters by their names without case and separators."""
        return {normal(name): name for name in self.properties}

    def element(self, index: int) -> Node:
        """Return what is expected of an element of a list."""
        leading = self.view.get("prefixItems")
        if isinstance(leading, list) and index < len(leading):
            return self._prefix_item(index)
        return self._items

    @cached_property
    def _items(self) -> Node:
        return Node(self._owner, self.view.get("items", True))

    def _prefix_item(self, index: int) -> Node:
        return Node(self._owner, self.view["prefixItems"][index])

    @cached_property
    def branches(self) -> list[Node]:
        """The forms of which one is to be met, each with what holds for all."""
        for keyword in ("anyOf", "oneOf"):
            forms = self.view.get(keyword)
            if isinstance(forms, list):
                shared = {k: v for k, v in self.view.items() if k != keyword}
                return [Node(self._owner, {"allOf": [shared, form]}) for form in forms]
        return []

    @property
    def description(self) -> str:
        """What the schema says about it in words."""
        said = self.view.get("description")
        return said if isinstance(said, str) else ""

    @cached_property
    def inside(self) -> dict[str, list[tuple[str, ...]]]:
        """The ways to parameters of inner objects, by the name that each has in any style."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for way in self._inner_ways:
            found.setdefault(normal(way[-1]), []).append(way)
        return found

    @cached_property
    def inside_joined(self) -> dict[str, list[tuple[str, ...]]]:
        """The same by all names on the way, written together."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for way in self._inner_ways:
            found.setdefault(normal("".join(way)), []).append(way)
        return found

    @cached_property
    def _inner_ways(self) -> list[tuple[str, ...]]:
        ways: list[tuple[str, ...]] = []
        level: list[tuple[tuple[str, ...], Node]] = [((), self)]
        for _ in range(_DEPTH_MAX):
            following = (
                ((*way, name), form)
                for way, node in level
                for name, inner in node.properties.items()
                for form in (inner.branches or [inner])
                if "object" in form.types
            )
            level = list(islice(following, _WAYS_MAX))
            # Several forms of one object may have the same name.
            found = ((*way, name) for way, node in level for name in node.properties)
            ways += dict.fromkeys(islice(found, _WAYS_MAX))
        return ways[:_WAYS_MAX]


def _types(view: Mapping[str, Any]) -> frozenset[str]:
    declared = view.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(declared)
    if "const" in view:
        return frozenset({kind_of(view["const"])})
    if isinstance(view.get("enum"), list):
        return frozenset(kind_of(option) for option in view["enum"])
    implied = frozenset(kind for keyword, kind in _IMPLIED.items() if keyword in view)
    return implied or TYPES


def _flat(owner: Ready, schema: Any, followed: set[str]) -> dict[str, Any]:
    """Return the keywords of a schema and of what it refers to.

    A reference is followed only once, because applying it twice changes nothing. Following each
    occurrence would double the work with every level of a schema that refers to itself twice.
    """
    if not isinstance(schema, dict) or len(followed) > _REFERENCES_MAX:
        return {}
    found = {key: value for key, value in schema.items() if key not in {"$ref", "allOf", "$defs"}}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        followed.add(reference)
        found = _merge_keywords(_flat(owner, owner.target(reference), followed), found)
    parts = schema.get("allOf")
    for part in parts if isinstance(parts, list) else ():
        found = _merge_keywords(found, _flat(owner, part, followed))
    return _with_conditional(owner, found, followed)


def _with_conditional(owner: Ready, found: dict[str, Any], followed: set[str]) -> dict[str, Any]:
    """Add the parameters that are described only where a condition holds."""
    dependent = found.get("dependentSchemas")
    parts = [found.get("then"), found.get("else")]
    parts += dependent.values() if isinstance(dependent, dict) else []
    forms: dict[str, list[Any]] = {}
    for part in parts:
        named = _flat(owner, part, followed).get("properties")
        for name, schema in named.items() if isinstance(named, dict) else ():
            forms.setdefault(name, []).append(schema)
    if not forms:
        return found
    known = found.get("properties") or {}
    more = {
        name: each[0] if len(each) == 1 else {"anyOf": each}
        for name, each in forms.items()
        if name not in known
    }
    return {**found, "properties": {**known, **more}}


def _merge_keywords(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Take two sets of keywords together; the validator judges what they mean exactly."""
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {
            **one["properties"],
            **{
                name: {"allOf": [one["properties"][name], schema]}
                if name in one["properties"]
                else schema
                for name, schema in other["properties"].items()
            },
        }
    if isinstance(one.get("required"), list) and isinstance(other.get("required"), list):
        merged["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    if "type" in one and "type" in other:
        merged["type"] = _both(_types(one), _types(other))
    if False in (one.get("additionalProperties"), other.get("additionalProperties")):
        merged["additionalProperties"] = False
    return merged


def _both(one: frozenset[str], other: frozenset[str]) -> list[str]:
    shared = one & other
    if "integer" in one | other and "number" in one | other:
        shared |= {"integer"}
    return sorted(shared)
