"""Bad input costs bounded time and gets a clear answer."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.correction import FaultType, correct

LIST: dict[str, Any] = {
    "type": "object",
    "properties": {"list": {"type": "array", "items": {"type": "integer"}}},
    "required": ["list"],
    "additionalProperties": False,
}
# Each takes about a second on a machine that has nothing else to do, and minutes without a bound.
SECONDS_MAX = 60.0


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS_MAX


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "bogus"},
        {"type": 5},
        {"properties": []},
        {"pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema"},
        "object",
        None,
        [],
        {"enum": {1, 2}},
        {"description": "x" * 5_000_000},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_what_is_no_schema_is_refused_by_name(schema: Any) -> None:
    with pytest.raises(ValidationFailed, match="not a JSON Schema") as refused:
        correct(schema, {})

    assert refused.value.details["field"] == "schema"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?!b)(a+)+$", "^(a|a)*$"])
def test_a_pattern_that_explodes_does_not(pattern: str) -> None:
    tool = {"properties": {"a": {"type": "string", "pattern": pattern}}}

    assert correct(tool, {"a": "a" * 50_000 + "!"}).applied is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#", "required": ["c"]},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}},
         "required": ["c"]},
        {"allOf": [{"$ref": "#"}], "required": ["c"]},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}},
         "properties": {"b": {"$ref": "#/$defs/a"}}, "required": ["c"]},
    ],
    ids=str,
)  # fmt: skip
def test_references_in_a_circle_are_refused(schema: Any) -> None:
    with pytest.raises(ValidationFailed, match="refers to itself for the same value"):
        correct(schema, {"a": {"a": 1}, "b": "x"})


def test_thousands_of_parameters_are_handled() -> None:
    names = [f"parameter_number_{index}" for index in range(3000)]
    tool = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }

    assert correct(tool, dict.fromkeys(names, "7")).applied == dict.fromkeys(names, 7)
    assert correct(tool, {f"x{name}": 7 for name in names}).applied is None


def test_hundreds_of_unknown_names_are_given_up() -> None:
    tool = {
        "type": "object",
        "properties": {f"parameter_number_{index}": {} for index in range(400)},
        "additionalProperties": False,
    }

    outcome = correct(tool, {f"paramter_numbr_{index}": 1 for index in range(400)})

    assert outcome.applied is None
    assert outcome.errors[-1].type is FaultType.LIMIT_EXCEEDED


def test_branches_upon_branches_are_refused() -> None:
    def forms(depth: int) -> dict[str, Any]:
        return {"anyOf": [forms(depth - 1)] * 3} if depth else {"type": "integer"}

    assert correct({"properties": {"a": forms(6)}}, {"a": "zz"}).applied is None
    with pytest.raises(ValidationFailed) as refused:
        correct({"properties": {"a": forms(9)}}, {"a": "zz"})
    assert refused.value.details["limit"] == limits.SCHEMA_EXPANSION_MAX


@pytest.mark.parametrize(
    "arguments",
    [
        {"list": ["x"] * 200_000},
        {"list": [str(index) for index in range(100_000)]},
        {"list": "x" * 3_000_000},
        {"list": ",".join("x" * 500_000)},
        {"list": "y" * 10_000_000},
        "{'list': [" + "1," * 1_000_000,
        "{'list': [" + "1," * 100_000,
        "[" * 100_000,
        '{"list":' * 20_000,
        "{" + "/*" * 100_000,
        "(" * 60_000,
        "'" * 200_000,
        "```" + "\n" * 100_000,
        "{" * 10_000 + "x" + "}" * 10_000,
        "a " * 100_000 + "=",
    ],
    ids=lambda arguments: str(arguments)[:30],
)
def test_megabytes_are_refused(arguments: Any) -> None:
    outcome = correct(LIST, arguments)

    assert outcome.applied is None
    assert outcome.errors


def test_a_large_call_in_text_is_still_read() -> None:
    numbers = list(range(200_000))

    assert correct(LIST, json.dumps({"list": numbers})).applied == {"list": numbers}


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), float("nan"), "\ud800", 10**40, b"x"],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    outcome = correct(LIST, {"list": value})

    assert outcome.applied is None
    assert outcome.errors


def test_what_holds_itself_is_refused() -> None:
    arguments: dict[str, Any] = {"list": []}
    arguments["list"].append(arguments)

    assert correct(LIST, arguments).errors[0].type is FaultType.MALFORMED_JSON


def test_a_value_that_is_too_deep_is_refused() -> None:
    value: Any = "x"
    for _ in range(3000):
        value = [value]

    assert correct(LIST, {"list": value}).applied is None


@pytest.mark.parametrize("schema", [True, {}])
def test_a_schema_that_takes_anything_still_wants_an_object(schema: Any) -> None:
    assert correct(schema, '{"a": 1}').applied == {"a": 1}
    assert correct(schema, None).applied == {}
    assert correct(schema, "hello").applied is None
    assert correct(schema, 5).applied is None


@pytest.mark.parametrize(
    "arguments",
    [
        '{"list": 18446744073709551616}',
        "{'list': 18446744073709551616}",
        '{"list": ' + "9" * 5_000 + "}",
        "{list: " + "9" * 5_000 + "}",
        r'{"list": "\ud800"}',
        '{"list": "\ud800"}',
        {"list": 2**70},
        {"list": "1e20"},
        {"list": "\ud800"},
        {"list": dt.date(2024, 1, 1)},
        {"list": uuid.UUID(int=1)},
        {"list": b"1"},
    ],
    ids=lambda arguments: str(arguments)[:40],
)
@pytest.mark.parametrize("kind", ["integer", "string"])
def test_what_cannot_be_written_as_json_is_refused(arguments: Any, kind: str) -> None:
    tool = {"properties": {"list": {"type": kind, "format": "date"}}, "required": ["list"]}

    outcome = correct(tool, arguments)

    assert outcome.applied is None
    assert outcome.errors[0].message


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 20_000,
        "<a " * 20_000,
        "<list>" + "x" * 60_000,
        "a: b\n" * 2_000,
        "a=b " * 2_400,
        "--list " * 1_400,
        "\n".join(" " * depth + "a:" for depth in range(130)),
        "- " * 4_000 + "\n",
        "list: " + "[" * 9_000,
        "{" + "a: b, " * 40_000 + "}",
        '{\\"' * 30_000,
    ],
    ids=lambda text: text[:12],
)
def test_text_that_only_looks_like_arguments_costs_little(text: str) -> None:
    assert correct(LIST, text).applied is None
