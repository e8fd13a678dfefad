"""What is applied: the only reasonable reading, and nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from stratagem.gateway.correction import FaultType, correct

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "rate": {"type": "number"},
        "detailed": {"type": "boolean"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "hours": {"type": "array", "items": {"type": "integer"}},
        "sky_kinds": {"type": "array", "items": {"enum": ["Clear", "Partly Cloudy"]}},
        "filter": {
            "type": "object",
            "properties": {"min_wind": {"type": "number"}, "station": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}


def applied(**given: Any) -> Any:
    return correct(WEATHER, {"city": "Oslo", **given}).applied


def expected(**wanted: Any) -> dict[str, Any]:
    return {"city": "Oslo", **wanted}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"days": "3"}, {"days": 3}),
        ({"days": " 3 "}, {"days": 3}),
        ({"days": "3.0"}, {"days": 3}),
        ({"days": "1,234,567"}, {"days": 1234567}),
        ({"days": "1,234"}, {"days": 1234}),
        ({"days": "1_000"}, {"days": 1000}),
        ({"days": "−3"}, {"days": -3}),
        ({"days": [3]}, {"days": 3}),
        ({"days": {"value": "3"}}, {"days": 3}),
        ({"days": '"3"'}, {"days": 3}),
        ({"rate": "0.25"}, {"rate": 0.25}),
        ({"rate": "1e3"}, {"rate": 1000.0}),
        ({"detailed": "Yes"}, {"detailed": True}),
        ({"detailed": "off"}, {"detailed": False}),
        ({"detailed": 1}, {"detailed": True}),
        ({"unit": " CELSIUS "}, {"unit": "celsius"}),
        ({"unit": "'celsius'"}, {"unit": "celsius"}),
        ({"unit": "celcius"}, {"unit": "celsius"}),
        ({"unit": ["Celsius"]}, {"unit": "celsius"}),
        ({"tags": "sunny"}, {"tags": ["sunny"]}),
        ({"tags": "sun, rain, snow"}, {"tags": ["sun", "rain", "snow"]}),
        ({"tags": "sun; heavy rain"}, {"tags": ["sun", "heavy rain"]}),
        ({"tags": "- sun\n- rain"}, {"tags": ["sun", "rain"]}),
        ({"tags": '["sun", "rain"]'}, {"tags": ["sun", "rain"]}),
        ({"tags": "('sun', 'rain')"}, {"tags": ["sun", "rain"]}),
        ({"tags": '"sun", "rain"'}, {"tags": ["sun", "rain"]}),
        ({"tags": {"items": ["sun"]}}, {"tags": ["sun"]}),
        ({"tags": {"0": "sun", "1": "rain"}}, {"tags": ["sun", "rain"]}),
        ({"tags": [1, "rain"]}, {"tags": ["1", "rain"]}),
        ({"hours": "1, 2, 3"}, {"hours": [1, 2, 3]}),
        ({"hours": "1 2 3"}, {"hours": [1, 2, 3]}),
        ({"hours": "7"}, {"hours": [7]}),
        ({"hours": "[1, '2']"}, {"hours": [1, 2]}),
        ({"sky_kinds": "clear, partly_cloudy"}, {"sky_kinds": ["Clear", "Partly Cloudy"]}),
        ({"days": None, "tags": None}, {}),
        ({"days": "null"}, {}),
        ({"Detailed": "TRUE", "DAYS": "2"}, {"detailed": True, "days": 2}),
        ({"detaled": True}, {"detailed": True}),
        ({"tag": "sun"}, {"tags": ["sun"]}),
        ({"reasoning": "because", "_meta": {"a": 1}}, {}),
        ({"notes": None, "callback": ""}, {}),
        ({"min_wind": 3}, {"filter": {"min_wind": 3}}),
        ({"filter.min_wind": "3"}, {"filter": {"min_wind": 3}}),
        ({"filter[station]": "A"}, {"filter": {"station": "A"}}),
        ({"filter": '{"minWind": "3"}'}, {"filter": {"min_wind": 3}}),
        ({"filter": {"min_wind": 3, "days": "2"}}, {"filter": {"min_wind": 3}, "days": 2}),
        ({"arguments": {"days": "2", "rate": 1}}, {"days": 2, "rate": 1}),
    ],
    ids=str,
)
def test_a_lossless_and_unambiguous_correction_is_applied(
    given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert applied(**given) == expected(**wanted)


ARGUMENTS = {"city": "Oslo", "days": 2, "tags": ["sun", "it's"]}


@pytest.mark.parametrize(
    "sent",
    [
        json.dumps(ARGUMENTS),
        json.dumps(json.dumps(ARGUMENTS)),
        repr(ARGUMENTS),
        f"```json\n{json.dumps(ARGUMENTS, indent=2)}\n```",
        "{city: 'Oslo', days: 2, tags: [\"sun\", \"it's\",],}",
        '{"city": "Oslo", /* two */ "days": 2, // yes\n "tags": ["sun", "it\'s"]}',
        '"city": "Oslo", "days": 2, "tags": ["sun", "it\'s"]',
        json.dumps(ARGUMENTS) + "}",
        "weather(city='Oslo', days=2, tags=['sun', \"it's\"])",
        {"arguments": ARGUMENTS},
        {"parameters": json.dumps(ARGUMENTS)},
        {"weather": ARGUMENTS},
        {"name": "weather", "arguments": json.dumps(ARGUMENTS)},
        {"id": "1", "type": "function", "function": {"name": "w", "arguments": ARGUMENTS}},
        {"type": "tool_use", "id": "t", "name": "weather", "input": ARGUMENTS},
        {"tool_calls": [{"name": "weather", "args": ARGUMENTS}]},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
         "params": {"name": "weather", "arguments": ARGUMENTS}},
        [ARGUMENTS],
    ],
    ids=str,
)  # fmt: skip
def test_a_call_is_taken_out_of_what_surrounds_it(sent: Any) -> None:
    assert correct(WEATHER, sent).applied == ARGUMENTS


def test_valid_arguments_come_back_as_they_are() -> None:
    arguments = {"city": "Oslo", "tags": ["Los Angeles, CA"], "days": 3}

    outcome = correct(WEATHER, arguments)

    assert outcome.applied is arguments
    assert outcome.valid
    assert outcome.candidates == ()


def test_the_given_arguments_are_never_changed() -> None:
    arguments = {"City": "Oslo", "filter": {"minWind": "3"}, "arguments": {"days": "2"}}
    before = json.dumps(arguments)

    correct(WEATHER, arguments)

    assert json.dumps(arguments) == before


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "default": "major"}, "major"),
        ({"const": 2}, 2),
        ({"type": "string", "enum": ["only"]}, "only"),
    ],
)
def test_a_missing_parameter_is_filled_from_the_schema(schema: Any, wanted: Any) -> None:
    tool = {"type": "object", "properties": {"a": schema}, "required": ["a"]}

    assert correct(tool, {}).applied == {"a": wanted}


def test_a_default_is_not_given_to_a_parameter_that_may_stay_out() -> None:
    tool = {"properties": {"a": {"default": 1}, "b": {"type": "integer"}}, "required": ["b"]}

    assert correct(tool, {"b": "2"}).applied == {"b": 2}


def test_a_default_waits_when_something_unexplained_was_given() -> None:
    tool = {"properties": {"scale": {"type": "string", "default": "major"}}, "required": ["scale"]}

    outcome = correct(tool, {"mood": "minor"})

    assert outcome.applied is None
    assert outcome.candidates[0].pattern == "default_beside_unknown"


def test_a_correction_says_what_it_did_and_why() -> None:
    outcome = correct(WEATHER, {"city": 7, "Days": "3"})

    candidate = outcome.candidates[0]
    assert outcome.chosen is candidate
    assert [change.path for change in candidate.changes] == ["$.city", "$.Days", "$.days"]
    assert candidate.patterns == (
        "number_to_string_conversion",
        "key_style_variant",
        "string_to_number_conversion",
    )
    assert candidate.strategies == ("typeConversion", "unknownProperties")
    assert candidate.risk == "low"
    assert candidate.confidence > 0.9
    assert "Text was expected" in candidate.reasoning


def test_errors_have_a_type_and_a_place() -> None:
    outcome = correct(WEATHER, {"days": "x", "unit": "k", "zz": 1})

    found = {(fault.type, fault.path) for fault in outcome.errors}
    assert found == {
        (FaultType.TYPE_MISMATCH, "$.days"),
        (FaultType.ENUM_VIOLATION, "$.unit"),
        (FaultType.UNKNOWN_PROPERTIES, "$"),
        (FaultType.MISSING_REQUIRED, "$"),
    }
    assert outcome.applied is None


def test_text_that_is_no_json_is_named_as_such() -> None:
    assert [fault.type for fault in correct(WEATHER, "{{").errors] == [FaultType.MALFORMED_JSON]


def test_schemas_that_refer_to_themselves_are_followed() -> None:
    tree = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["v"],
        "additionalProperties": False,
    }

    outcome = correct(tree, {"v": "1", "Kids": [{"V": 2, "kids": {"v": "3"}}]})

    assert outcome.applied == {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3}]}]}


def test_the_form_is_chosen_by_the_property_that_tells_forms_apart() -> None:
    def form(kind: str, name: str) -> dict[str, Any]:
        return {
            "properties": {"kind": {"const": kind}, name: {"type": "number"}},
            "required": ["kind", name],
            "additionalProperties": False,
        }

    tool = {
        "properties": {"shape": {"oneOf": [form("circle", "radius"), form("square", "side")]}},
        "required": ["shape"],
    }

    assert correct(tool, {"shape": {"kind": "square", "Side": "2"}}).applied == {
        "shape": {"kind": "square", "side": 2}
    }


def test_the_engine_of_corrections_imports_no_store() -> None:
    code = (
        "import sys; from stratagem.gateway.correction import correct, Policy; "
        "print([m for m in sys.modules if m in ('apsw', 'sqlite3', 'stratagem.sdk', "
        "'stratagem.storage')])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
