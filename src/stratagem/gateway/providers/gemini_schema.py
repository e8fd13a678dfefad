"""Converts JSON Schema to the subset that Gemini accepts.

Keywords without a counterpart are left out. The looser schema may accept more, but the gateway
validates each call against the original one. Allowed values that no keyword can express are added
to the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stratagem import limits

__all__ = ["gemini_schema"]

_COPIED: Final = frozenset(
    {
        "title",
        "description",
        "default",
        "pattern",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
    }
)
# Tuples: a schema may give a list for a format, which no set can look up.
_FORMATS: Final = {
    "string": ("date-time", "enum"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object")
_NOT_AT_TOP: Final = frozenset({"anyOf", "oneOf", "enum", "const"})
_SHOWN_VALUES: Final = 50


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object of arguments in Gemini's subset."""
    return _Converter(schema).arguments()


class _Converter:
    """Converts one schema; it holds the whole schema to resolve references."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def arguments(self) -> dict[str, Any]:
        """Return the converted root, always an object, without top-level alternatives."""
        whole = self._merge_all_of(self._resolve_reference(self._root), 0)
        kept = {key: value for key, value in whole.items() if key not in _NOT_AT_TOP}
        return self.convert({**kept, "type": "object"}, 0)

    def convert(self, schema: Any, depth: int) -> dict[str, Any]:
        """Return a subschema in Gemini's subset, replaced by a plain type beyond the limits."""
        self._parts += 1
        too_much = self._parts > limits.PROVIDER_SCHEMA_PARTS_MAX
        if not isinstance(schema, Mapping) or too_much or depth > limits.PROVIDER_SCHEMA_DEPTH_MAX:
            return {"type": "object"} if isinstance(schema, Mapping) else {"type": "string"}
        schema = self._merge_all_of(self._resolve_reference(schema), depth)
        converted = {key: schema[key] for key in schema if key in _COPIED}
        converted |= self._convert_type(schema, depth)
        _keep_bounds(schema, converted)
        _keep_values(schema, converted)
        return converted

    def _resolve_reference(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(limits.PROVIDER_SCHEMA_DEPTH_MAX):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**self._at(reference), **beside}
        return {key: value for key, value in schema.items() if key != "$ref"}

    def _at(self, reference: str) -> Mapping[str, Any]:
        """Return the subschema that a local reference names; empty for any other reference."""
        if not reference.startswith("#"):
            return {}
        part: Any = self._root
        for name in reference[1:].split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            part = part.get(key) if isinstance(part, Mapping) else None
        return part if isinstance(part, Mapping) else {}

    def _merge_all_of(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        """Return a schema with the parts of its `allOf` merged into it."""
        parts = schema.get("allOf")
        if not isinstance(parts, list) or depth > limits.PROVIDER_SCHEMA_DEPTH_MAX:
            return schema
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            if isinstance(part, Mapping):
                _merge(merged, self._merge_all_of(self._resolve_reference(part), depth + 1))
        return merged

    def _convert_type(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return the type of a subschema with its keywords, or its alternatives as `anyOf`."""
        types, nullable = _types(schema)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list) and branches:
            return self._convert_branches(branches, nullable, depth)
        if len(types) > 1:
            parts = [self._convert_as(kind, schema, depth) for kind in types]
            return {"anyOf": parts} | _nullable_keyword(nullable)
        kind = types[0] if types else _guess_type(schema)
        return self._convert_as(kind, schema, depth) | _nullable_keyword(nullable)

    def _convert_branches(self, branches: list[Any], nullable: bool, depth: int) -> dict[str, Any]:  # noqa: FBT001
        real = [part for part in branches if not _is_null(part)]
        nullable = nullable or len(real) < len(branches)
        parts = [self.convert(part, depth + 1) for part in real]
        if len(parts) == 1:
            return parts[0] | _nullable_keyword(nullable)
        return ({"anyOf": parts} if parts else {"type": "string"}) | _nullable_keyword(nullable)

    def _convert_as(self, kind: str, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        typed: dict[str, Any] = {"type": kind}
        if schema.get("format") in _FORMATS.get(kind, ()):
            typed["format"] = schema["format"]
        if kind == "array":
            typed["items"] = self._convert_items(schema, depth)
        if kind == "object" and isinstance(schema.get("properties"), Mapping):
            properties = schema["properties"]
            typed["properties"] = {
                name: self.convert(part, depth + 1) for name, part in properties.items()
            }
            required = schema.get("required")
            kept = (
                [name for name in required if isinstance(name, str) and name in properties]
                if isinstance(required, list)
                else []
            )
            if kept:
                typed["required"] = kept
        return typed

    def _convert_items(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        items, first = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, Mapping):
            return self.convert(items, depth + 1)
        if isinstance(first, list) and first:
            return self._convert_branches(first, nullable=False, depth=depth)
        # Gemini requires `items`, and any value can be written as a text.
        return {"type": "string"}


def _types(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    given = schema.get("type")
    named = given if isinstance(given, list) else [given]
    nullable = "null" in named or schema.get("nullable") is True
    return [kind for kind in _TYPES if kind in named], nullable


def _guess_type(schema: Mapping[str, Any]) -> str:
    """Return the likely type of a subschema without a type."""
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    values = _values(schema)
    value = values[0] if values else None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) else "number"
    return "number" if "minimum" in schema or "maximum" in schema else "string"


def _values(schema: Mapping[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else []


def _keep_values(schema: Mapping[str, Any], converted: dict[str, Any]) -> None:
    """Keep the allowed values: texts as an enum, others in the description."""
    values = [value for value in _values(schema) if value is not None]
    if len(values) < len(_values(schema)):
        converted["nullable"] = True
    if not values:
        return
    if converted.get("type") == "string" and all(isinstance(value, str) for value in values):
        converted["enum"] = values
        return
    shown = ", ".join(orjson.dumps(value).decode() for value in values[:_SHOWN_VALUES])
    note = f"One of: {shown}."
    converted["description"] = f"{converted.get('description', '')} {note}".strip()


def _keep_bounds(schema: Mapping[str, Any], converted: dict[str, Any]) -> None:
    """Convert exclusive bounds to inclusive ones: exact for integers, slightly wider otherwise."""
    step = 1 if converted.get("type") == "integer" else 0
    for name, exclusive, move in (
        ("minimum", "exclusiveMinimum", step),
        ("maximum", "exclusiveMaximum", -step),
    ):
        bound = schema.get(exclusive)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            converted.setdefault(name, bound + move)


def _merge(merged: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        present = merged.get(key)
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[key] = {**value, **present}
        elif key == "required" and isinstance(present, list) and isinstance(value, list):
            merged[key] = [*present, *(name for name in value if name not in present)]
        else:
            merged.setdefault(key, value)


def _is_null(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "null"


def _nullable_keyword(nullable: bool) -> dict[str, Any]:  # noqa: FBT001
    return {"nullable": True} if nullable else {}
