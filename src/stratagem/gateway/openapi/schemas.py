"""Converts the schemas of a document to self-contained JSON Schemas.

References are inlined, because models and providers read that best. If a schema is recursive or
repeats too much, the referenced schemas are written once each in `$defs`. A schema that would
still be too large is cut off at a uniform depth and accepts any value below it: it may accept too
much, never too little.

Only keywords of JSON Schema with values of the right type are written: a malformed document loses
a keyword, not a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.openapi.document import Document

__all__ = ["Direction", "Plan", "SchemaCache", "SchemaWriter", "subschemas_of"]

# A request has no `readOnly` properties, a response no `writeOnly` ones.
Direction = Literal["request", "response"]

# Longer patterns help no caller and are slow to compile.
_PATTERN_CHARS_MAX: Final = 2_000
_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# Invalid type names that occur in real documents.
_ODD_TYPES: Final = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "str": "string",
    "text": "string",
    "date": "string",
    "file": "string",
    "list": "array",
    "map": "object",
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_pattern(value: Any) -> bool:
    """Whether a text is a valid pattern. It is only compiled here, not matched."""
    if not isinstance(value, str) or len(value) > _PATTERN_CHARS_MAX:
        return False
    try:
        return bool(re.compile(value))
    except (re.error, RecursionError, OverflowError):
        return False


# Copied unchanged, if the value has the right type.
_PLAIN: Final[dict[str, Callable[[Any], bool]]] = {
    "title": _is_text,
    "description": _is_text,
    "format": _is_text,
    "pattern": _is_pattern,
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
    "minimum": _is_number,
    "maximum": _is_number,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "uniqueItems": lambda value: isinstance(value, bool),
    "deprecated": lambda value: value is True,
    "enum": _is_list,
    "const": lambda _: True,
    "default": lambda _: True,
    "examples": _is_list,
}
_ONE: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if")
_SCHEMA_KEYWORDS: Final = (*_ONE, "then", "else")
_SCHEMA_LIST_KEYWORDS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
# Of one field; the operation has a description of its own.
_DESCRIPTION_CHARS_MAX: Final = 1_000
_ANNOTATIONS: Final = ("title", "description", "default", "deprecated", "examples")


# How references are written: all inlined, as definitions, or inlined up to a number of nested
# references.
Plan = Literal["inline", "definitions"] | int


@dataclass(slots=True)
class SchemaCache:
    """The schemas already written for one document, which most of its tools share.

    `inline` maps direction, reference and remaining depth to the schema and its number of nodes;
    `definitions` maps direction and reference to the schema and the references in it.
    """

    inline: dict[tuple[str, str, int], tuple[Any, int]] = field(default_factory=dict)
    definitions: dict[tuple[str, str], tuple[Any, tuple[str, ...]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def name(self, reference: str) -> str:
        """Return the name of a reference in `$defs`."""
        if reference not in self.names:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rsplit("/", 1)[-1]) or "schema"
            taken = set(self.names.values())
            name, count = base, 2
            while name in taken:
                name, count = f"{base}_{count}", count + 1
            self.names[reference] = name
        return self.names[reference]


class SchemaWriter:
    """Writes the schemas of one tool, by a plan that fits its budget of nodes.

    The budget is enforced even if the plan was wrong: schemas beyond it accept any value.
    """

    def __init__(
        self, document: Document, direction: Direction, plan: Plan, cache: SchemaCache
    ) -> None:
        self._document = document
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._plan = plan
        self._cache = cache
        self._nodes = 0
        # An ordered set.
        self._defined: dict[str, None] = {}
        self.missing_references: set[str] = set()

    def write(self, schema: Any) -> dict[str, Any]:
        """Return a schema whose only references are to the schemas of `definitions`."""
        written = self._write_schema(schema, 0, 0)
        return written if isinstance(written, dict) else ({} if written else {"not": {}})

    def definitions(self) -> dict[str, Any]:
        """Return the schemas for `$defs` by their names."""
        written: dict[str, Any] = {}
        while pending := [each for each in self._defined if self._name(each) not in written]:
            for reference in pending:
                written[self._name(reference)] = self._write_definition(reference)
        return written

    def _write_definition(self, reference: str) -> Any:
        key = (self._hidden, reference)
        if key not in self._cache.definitions:
            before, self._defined = self._defined, {}
            written = self._write_schema(self._document.at(reference), 1, 0)
            self._cache.definitions[key] = (written, tuple(self._defined))
            self._defined = before
        written, references = self._cache.definitions[key]
        self._defined |= dict.fromkeys(references)
        return written

    def _write_schema(self, schema: Any, followed: int, depth: int) -> Any:
        """Write a schema, `depth` levels below the last of `followed` references."""
        self._nodes += 1
        if isinstance(schema, bool):
            return schema
        if (
            not isinstance(schema, dict)
            or depth > limits.OPENAPI_SCHEMA_DEPTH_MAX
            or self._nodes > limits.OPENAPI_SCHEMA_NODES_MAX
        ):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._write_reference(schema, reference, followed)
        return self._write_keywords(schema, followed, depth + 1)

    def _write_reference(self, schema: dict[str, Any], reference: str, followed: int) -> Any:
        written = self._write_target(reference, followed)
        if self._document.is_3_0 or len(schema) == 1 or not isinstance(written, dict):
            return written
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        kept = self._write_keywords(beside, followed, 1)
        if set(kept) <= set(_ANNOTATIONS):
            return {**written, **kept}
        return {**kept, "allOf": [*kept.get("allOf", []), written]}

    def _write_target(self, reference: str, followed: int) -> Any:
        target = self._document.at(reference)
        if self._document.follow(target)[0] is None:
            self.missing_references.add(reference)
            return {}
        if self._plan == "definitions":
            if followed == 0:
                return self._write_schema(target, 1, 0)
            self._defined[reference] = None
            return {"$ref": f"#/$defs/{self._name(reference)}"}
        more = self._plan - followed if isinstance(self._plan, int) else -1
        if more == 0:
            return {}
        key = (self._hidden, reference, more)
        if key in self._cache.inline:
            written, nodes = self._cache.inline[key]
            self._nodes += nodes
            return written
        before = self._nodes
        written = self._write_schema(target, followed + 1, 0)
        if self._nodes <= limits.OPENAPI_SCHEMA_NODES_MAX:
            self._cache.inline[key] = (written, self._nodes - before)
        return written

    def _name(self, reference: str) -> str:
        return self._cache.name(reference)

    def _write_keywords(self, schema: dict[str, Any], followed: int, depth: int) -> dict[str, Any]:
        written = {
            key: value
            for key, value in schema.items()
            if key in _PLAIN and _PLAIN[key](value) and value != ""
        }
        if len(str(written.get("description", ""))) > _DESCRIPTION_CHARS_MAX:
            written["description"] = written["description"][: _DESCRIPTION_CHARS_MAX - 1] + "…"
        if kind := _type_of(schema):
            written = {"type": kind, **written}
        _add_bounds(schema, written)
        if "example" in schema and "examples" not in written:
            written["examples"] = [schema["example"]]
        written |= self._write_properties(schema, followed, depth)
        for key in _SCHEMA_KEYWORDS:
            if isinstance(schema.get(key), dict | bool):
                written[key] = self._write_schema(schema[key], followed, depth)
        for key in _SCHEMA_LIST_KEYWORDS:
            if _is_list(schema.get(key)):
                written[key] = [self._write_schema(each, followed, depth) for each in schema[key]]
        if schema.get("nullable") is True:
            _allow_null(written)
        return written

    def _write_properties(
        self, schema: dict[str, Any], followed: int, depth: int
    ) -> dict[str, Any]:
        given = schema.get("properties")
        if not isinstance(given, dict):
            given = {}
        shown = {name: each for name, each in given.items() if not self._is_hidden(each)}
        written: dict[str, Any] = {}
        if shown:
            written["properties"] = {
                name: self._write_schema(each, followed, depth) for name, each in shown.items()
            }
        required = schema.get("required")
        if isinstance(required, list):
            names = [
                name
                for name in dict.fromkeys(filter(_is_text, required))
                if name in shown or name not in given
            ]
            written |= {"required": names} if names else {}
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict):
            written["patternProperties"] = {
                name: self._write_schema(each, followed, depth)
                for name, each in patterns.items()
                if _is_pattern(name)
            }
        return written

    def _is_hidden(self, schema: Any) -> bool:
        target, _ = self._document.follow(schema)
        return any(
            isinstance(each, dict) and each.get(self._hidden) is True for each in (schema, target)
        )


def subschemas_of(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the direct subschemas of a schema."""
    for key in ("properties", "patternProperties"):
        if isinstance(schema.get(key), dict):
            yield from schema[key].values()
    for key in _SCHEMA_KEYWORDS:
        if key in schema:
            yield schema[key]
    for key in _SCHEMA_LIST_KEYWORDS:
        if isinstance(schema.get(key), list):
            yield from schema[key]


def _type_of(schema: dict[str, Any]) -> Any:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    words = [str(name).lower() for name in names]
    known = [_ODD_TYPES.get(word, word) for word in words]
    kinds = list(dict.fromkeys(name for name in known if name in _TYPES))
    if not kinds and isinstance(schema.get("properties"), dict):
        return "object"
    return kinds[0] if len(kinds) == 1 else kinds or None


def _add_bounds(schema: dict[str, Any], written: dict[str, Any]) -> None:
    """Write exclusive bounds as numbers; OpenAPI 3.0 has them as flags beside the bound."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        given = schema.get(exclusive)
        if given is True and bound in written:
            written[exclusive] = written.pop(bound)
        elif _is_number(given):
            written[exclusive] = given


def _allow_null(written: dict[str, Any]) -> None:
    kind = written.get("type")
    if kind is None:
        if any(key in written for key in ("allOf", "anyOf", "oneOf", "enum")):
            inner = {key: written.pop(key) for key in list(written) if key not in _ANNOTATIONS}
            written["anyOf"] = [inner, {"type": "null"}]
        return
    kinds = [kind] if isinstance(kind, str) else list(kind)
    written["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if "enum" in written and None not in written["enum"]:
        written["enum"] = [*written["enum"], None]
