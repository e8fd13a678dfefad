"""What is refused: whatever is guessed, lost or can be read in two ways. It may be offered."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.correction import correct

TOOL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "height": {"type": "integer"},
        "level": {"type": "integer", "minimum": 1, "maximum": 10},
        "share": {"type": "number"},
        "open": {"type": "boolean"},
        "zip_code": {"type": "string"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "number"}},
        "years": {"type": "integer"},
        "min_price": {"type": "number"},
        "confidence_level": {"type": "number"},
        "way": {"type": "string", "enum": ["ascending", "descending", "M", "m2"]},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "offered"),
    [
        ({"height": "3.7"}, {"height": 4}),
        ({"height": 3.7}, {"height": 4}),
        ({"height": ""}, None),
        ({"height": "007"}, {"height": 7}),
        ({"share": "1,234"}, {"share": 1234}),
        ({"height": "5 cm"}, {"height": 5}),
        ({"height": "five"}, {"height": 5}),
        ({"height": "twelve-ish"}, None),
        ({"height": True}, {"height": 1}),
        ({"height": [1, 2]}, {"height": 1}),
        ({"height": {}}, None),
        ({"share": "0.12345678901234567890123"}, {"share": 0.12345678901234568}),
        ({"open": "enabled"}, {"open": True}),
        ({"open": 2}, None),
        ({"open": "maybe"}, None),
        ({"zip_code": 2138}, {"zip_code": "2138"}),
        ({"zip_code": 5.0}, {"zip_code": "5"}),
        ({"zip_code": True}, {"zip_code": "true"}),
        ({"zip_code": {"a": 1}}, None),
        ({"zip_code": ["a", "b"]}, {"zip_code": "a, b"}),
        ({"level": 50}, {"level": 10}),
        ({"tags": ""}, {"tags": []}),
        ({"tags": "Doe, Jane"}, {"tags": ["Doe", "Jane"]}),
        ({"tags": "March 5, 2024"}, {"tags": ["March 5, 2024"]}),
        ({"tags": "salt and pepper"}, {"tags": ["salt and pepper"]}),
        ({"tags": "Smith & Sons, Inc."}, {"tags": ["Smith & Sons, Inc."]}),
        ({"tags": "a,,b"}, {"tags": ["a", "b"]}),
        ({"stops": "Paris, France"}, {"stops": ["Paris, France"]}),
        ({"sizes": "1,000"}, {"sizes": [1, 0]}),
        ({"sizes": "3,5"}, {"sizes": [3, 5]}),
        ({"weight": 5}, {"height": 5}),
        ({"year": 2019}, {"years": 2019}),
        ({"max_price": 5}, {"min_price": 5}),
        ({"confidence": 0.9}, {"confidence_level": 0.9}),
        ({"dry_run": True}, {}),
        ({"way": "asc"}, {"way": "ascending"}),
        ({"way": "upwards"}, None),
        ({"day": "tomorrow"}, None),
        ({"day": "2024-03-05 10:00"}, {"day": "2024-03-05"}),
        ({"moment": "2024-03-05T10:00:00"}, {"moment": "2024-03-05T10:00:00Z"}),
        ({"moment": "2024-03-05"}, {"moment": "2024-03-05T00:00:00Z"}),
    ],
    ids=str,
)
def test_what_is_not_certain_is_at_most_offered(given: Any, offered: Any) -> None:
    outcome = correct(TOOL, {"city": "Oslo", **given})

    found = [candidate.arguments for candidate in outcome.candidates]
    assert outcome.applied is None
    if offered is not None and offered != {"sizes": [1, 0]}:
        assert {"city": "Oslo", **offered} in found
    assert all(not candidate.certain for candidate in outcome.candidates)


def test_one_city_with_its_state_is_one_element() -> None:
    outcome = correct(TOOL, {"city": "Oslo", "stops": "Los Angeles, CA"})

    assert outcome.applied == {"city": "Oslo", "stops": ["Los Angeles, CA"]}


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"day": "03/04/2024"}, {"2024-04-03", "2024-03-04"}),
        ({"tags": "Doe, Jane"}, {"['Doe', 'Jane']", "['Doe, Jane']"}),
    ],
)
def test_the_choices_are_named(given: Any, options: set[str]) -> None:
    outcome = correct(TOOL, {"city": "Oslo", **given})

    (choice,) = outcome.ambiguous
    assert choice.path == f"$.{next(iter(given))}"
    assert {str(option) for option in choice.options} == options


def test_two_types_that_a_text_fits_are_a_choice() -> None:
    tool = {"properties": {"a": {"type": ["integer", "boolean"]}}}

    outcome = correct(tool, {"a": "1"})

    assert outcome.applied is None
    assert set(map(repr, outcome.ambiguous[0].options)) == {"1", "True"}


def test_two_names_with_two_values_for_one_parameter_are_a_choice() -> None:
    outcome = correct(TOOL, {"CITY": "Oslo", "City": "Bergen"})

    assert outcome.applied is None
    assert outcome.ambiguous[0].options == ("Oslo", "Bergen")


def test_one_name_with_two_values_in_the_text_is_a_choice() -> None:
    outcome = correct(TOOL, '{"city": "Oslo", "city": "Bergen"}')

    assert outcome.applied is None
    assert outcome.ambiguous[0].options == ("Oslo", "Bergen")


def test_a_name_that_is_near_to_two_parameters_is_refused() -> None:
    tool = {
        "properties": {"charge1": {"type": "number"}, "charge2": {"type": "number"}},
        "additionalProperties": False,
    }

    assert correct(tool, {"charge": 5}).applied is None
    assert correct(tool, {"charge3": 5}).applied is None


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Os',
        '{"city": "Oslo", "height": 1',
        '{"city": "Oslo"',
        '{"city": "say "hi" now"}',
        r'{"city": "C:\new\file"}',
        '{"city": Oslo}',
        'I call it with {"city": "Oslo"} now.',
        "{'city': 'it's'}",
        "city is Oslo",
        "[1, 2]",
    ],
)
def test_text_that_has_to_be_guessed_is_not_run(text: str) -> None:
    assert correct(TOOL, text).applied is None


def test_a_cut_text_is_closed_when_nothing_can_follow() -> None:
    tool = {"properties": {"city": {"type": "string"}}, "additionalProperties": False}

    assert correct(tool, '{"city": "Oslo"').applied == {"city": "Oslo"}


def test_a_call_of_another_tool_is_not_run() -> None:
    sent = {"name": "delete_city", "arguments": {"city": "Oslo"}}

    outcome = correct(TOOL, sent, tool="find_city")

    assert outcome.applied is None
    assert outcome.candidates[0].pattern == "call_of_another_tool"


def test_a_name_beside_the_arguments_may_be_one_of_them() -> None:
    tool = {
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": False,
    }
    sent = {"name": "Ann", "arguments": {"age": 5}}

    assert correct(tool, sent).applied is None
    assert correct(tool, sent, tool="ann").applied == {"age": 5}


def test_two_calls_are_not_one() -> None:
    call = {"name": "find", "arguments": {"city": "Oslo"}}

    assert correct(TOOL, {"tool_calls": [call, call]}).applied is None


def test_a_missing_parameter_is_not_made_up() -> None:
    outcome = correct(TOOL, {"height": 5})

    assert outcome.applied is None
    assert outcome.candidates == ()
    assert outcome.errors[0].names == ("city",)


def test_offers_are_ranked_by_confidence() -> None:
    outcome = correct(TOOL, {"city": "Oslo", "wieghtt": 5, "stops": "Paris, France"})

    confidences = [candidate.confidence for candidate in outcome.candidates]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 < confidence < 1 for confidence in confidences)
