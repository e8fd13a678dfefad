"""Schemas of tools: what is taken as one, and how long a pattern may take."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.schemas import Schema, check, pointer


@pytest.mark.parametrize(
    "document",
    [
        [],
        "object",
        {"type": "nonsense"},
        {"properties": {"a": 5}},
        {"pattern": "("},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"enum": ["x" * limits.SCHEMA_BYTES_MAX]},
    ],
)
def test_what_is_no_schema_is_refused(document: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        check(document, field="inputSchema")

    assert refused.value.details["field"] == "inputSchema"


def test_violations_say_where_and_what() -> None:
    schema = Schema(
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    )

    (violation,) = schema.violations({"a": [1, "x"]})

    assert violation["path"] == "$.a[1]"
    assert violation["rule"] == "type"


def test_look_around_works_on_texts_of_usual_length() -> None:
    schema = Schema({"type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z]).{4,}$"})

    assert schema.accepts("abc1")
    assert not schema.accepts("abcd")
    assert schema.is_quick("abc1")


@pytest.mark.parametrize("pattern", ["(?=(a+)+b)a", "(?!x)(a+)+b", r"(a+)\1b", "^(a+)+$"])
@pytest.mark.parametrize("length", [1_000, 16_000, 1_000_000])
def test_no_pattern_takes_long(pattern: str, length: int) -> None:
    schema = Schema({"type": "string", "pattern": pattern})
    begun = time.process_time()

    assert not schema.accepts("a" * length + "!")
    (violation,) = schema.violations("a" * length + "!")

    assert violation["rule"] == "pattern"
    assert time.process_time() - begun < 3


def test_many_slow_patterns_share_one_bound() -> None:
    slow = [{"pattern": f"(?=(a+)+{number})a"} for number in range(50)]
    schema = Schema({"type": "string", "anyOf": slow})
    begun = time.process_time()

    assert not schema.accepts("a" * 10_000)

    assert time.process_time() - begun < 1


def test_violations_say_what_a_program_can_act_on() -> None:
    schema = Schema(
        {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "maximum": 3},
                "mode": {"anyOf": [{"enum": ["fast", "slow"]}, {"type": "null"}]},
                "shape": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    )

    found = schema.violations({"size": 5, "mode": "f", "shape": "round", "color": 1})

    told = {each["rule"]: each for each in found}
    assert told["maximum"]["limit"] == 3
    # Nobody meant the null, so the choices are told, and not that there are two forms.
    assert told["enum"]["allowed"] == ["fast", "slow"]
    assert told["enum"]["message"] == '"f" is not one of "fast" or "slow"'
    assert told["required"]["missing"] == "name"
    assert told["additionalProperties"]["unexpected"] == ["color"]
    assert told["oneOf"]["path"] == "$.shape"
    assert [
        pointer(told[rule]) for rule in ("maximum", "required", "additionalProperties", "oneOf")
    ] == [
        {"field": "$.size", "limit": 3},
        {"field": "$.name"},
        {"field": "$.color"},
        {"field": "$.shape"},
    ]
