"""JSON Schema in Gemini's subset."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.gateway.providers.gemini_schema import gemini_schema

TAKEN = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf",
    "default", "items", "minimum", "maximum",
}  # fmt: skip
WORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "enum", "const", "format",
     "required", "a", "minimum", "exclusiveMinimum", "additionalProperties", "prefixItems", "description"]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 5)
    | st.sampled_from(["object", "array", "string", "null", "integer", "#", "#/$defs/a", "#/properties/a", "date"])
)  # fmt: skip
SCHEMAS = st.dictionaries(
    WORDS,
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=6,
)


def of(schema: dict[str, Any], **root: Any) -> dict[str, Any]:
    converted: dict[str, Any] = gemini_schema({"properties": {"x": schema}, **root})["properties"][
        "x"
    ]
    return converted


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMaximum": 5}, {"type": "number", "maximum": 5}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": False}, {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "number"}]}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"type": "object", "properties": {"a": True}, "required": ["a", "b"]}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}, {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "required": ["a", "b"]}),
        ({"type": "object", "properties": {"a": True}, "required": [["a"], "a"]}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ({"type": "string", "format": ["date-time"]}, {"type": "string"}),
        ({"type": "string", "examples": ["a"], "deprecated": True, "x-mine": 1}, {"type": "string"}),
        ({}, {"type": "string"}),
    ],
)  # fmt: skip
def test_each_keyword_has_its_counterpart(
    schema: dict[str, Any], converted: dict[str, Any]
) -> None:
    assert of(schema) == converted


def test_references_are_put_in_place_and_one_to_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}

    converted = of({"$ref": "#/$defs/node", "description": "first"}, **{"$defs": {"node": node}})

    assert converted["description"] == "first"
    assert converted["properties"]["next"]["properties"]["next"]["type"] == "object"
    assert "$ref" not in str(converted)


def test_references_that_multiply_end_soon() -> None:
    wide = {"properties": {str(at): {"$ref": "#/$defs/wide"} for at in range(10)}}
    start = time.monotonic()

    gemini_schema({"properties": {"x": {"$ref": "#/$defs/wide"}}, "$defs": {"wide": wide}})

    assert time.monotonic() - start < 60


@given(SCHEMAS)
def test_any_schema_becomes_one_of_words_that_gemini_takes(schema: dict[str, Any]) -> None:
    def check(part: dict[str, Any]) -> None:
        assert set(part) <= TAKEN
        assert ("type" in part) != ("anyOf" in part)
        assert all(isinstance(value, str) for value in part.get("enum", []))
        for inner in [*part.get("properties", {}).values(), *part.get("anyOf", [])]:
            check(inner)
        if part.get("type") == "array":
            check(part["items"])

    converted = gemini_schema(schema)

    assert converted["type"] == "object"
    for part in converted.get("properties", {}).values():
        check(part)
