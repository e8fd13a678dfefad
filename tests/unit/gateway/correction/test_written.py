"""Calls written in other ways than as JSON: read when the names of the tool say how."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from stratagem.gateway.correction import correct

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "quantity": {"type": "integer"},
        "gift": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "notes": {"type": "string"},
        "ship": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["street", "city"],
            "additionalProperties": False,
        },
    },
    "required": ["item", "quantity"],
    "additionalProperties": False,
}
MEANT = {"item": "lamp", "quantity": 2}
JSON = '{"item": "lamp", "quantity": 2}'


@pytest.mark.parametrize(
    "text",
    [
        "item: lamp\nquantity: 2",
        "---\nitem: lamp\nquantity: 2\n",
        "- item: lamp\n- quantity: 2",
        "item = lamp\nquantity = 2",
        "Item=lamp, Quantity=2",
        "item=lamp; quantity=2",
        "item=lamp quantity=2",
        "item=lamp&quantity=2",
        'item="lamp", quantity="2"',
        "--item lamp --quantity 2",
        "--item=lamp --quantity=2",
        "<item>lamp</item><quantity>2</quantity>",
        "<arguments>\n  <item>lamp</item>\n  <quantity>2</quantity>\n</arguments>",
        (
            '<invoke name="order"><parameter name="item">lamp</parameter>'
            '<parameter name="quantity">2</parameter></invoke>'
        ),
        f"json\n{JSON}",
        f"JSON: {JSON}",
        f"```json{JSON}```",
        f"~~~\n{JSON}\n~~~",
        f"Sure! Here is the tool call:\n```json\n{JSON}\n```",
        f"<tool_call>{JSON}</tool_call>",
        f"Action: order\nAction Input: {JSON}",
        f"[TOOL_CALLS][{JSON}]",
        f"order({JSON})",
        f"functions.order({JSON})",
        f"\ufeff{JSON}",
        JSON.replace('"', '\\"'),
        "{item: lamp, quantity: 2}",
        '{"item": "lamp",, "quantity": 2}',
        '{"item": "lamp"; "quantity": 2}',
        '{"item" => "lamp", "quantity" => 2}',
        '{"item": "lamp", "quantity": 2, "notes": undefined}',
    ],
)
def test_another_way_of_writing_is_read(text: str) -> None:
    assert correct(ORDER, text, tool="order").applied == MEANT


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("item: lamp\nquantity: 2\ntags:\n  - red\n  - round", {"tags": ["red", "round"]}),
        (
            "item: lamp\nquantity: 2\nship:\n  street: Main 5\n  city: Bonn",
            {"ship": {"street": "Main 5", "city": "Bonn"}},
        ),
        ("item: lamp\nquantity: 2\nnotes: at 10:30, a=b", {"notes": "at 10:30, a=b"}),
        ("--item lamp --quantity 2 --gift", {"gift": True}),
        (
            "<item>lamp</item><quantity>2</quantity><notes>a &lt; b</notes>",
            {"notes": "a < b"},
        ),
        (
            "<item>lamp</item><quantity>2</quantity><tags>a</tags><tags>b</tags>",
            {"tags": ["a", "b"]},
        ),
        (
            (
                "<item>lamp</item><quantity>2</quantity>"
                "<ship><street>Main 5</street><city>Bonn</city></ship>"
            ),
            {"ship": {"street": "Main 5", "city": "Bonn"}},
        ),
    ],
    ids=str,
)
def test_inner_objects_lists_and_odd_values_are_read(text: str, more: dict[str, Any]) -> None:
    assert correct(ORDER, text, tool="order").applied == MEANT | more


@pytest.mark.parametrize(
    "text",
    [
        "item: lamp\nquantity: 2\nnotes: null",
        "item: lamp\nquantity: 2\nnotes:",
        "item: lamp # or desk\nquantity: 2",
        "item: lamp\n  or desk\nquantity: 2",
        "item: &name lamp\nnotes: *name\nquantity: 2",
        "item: lamp\nitem: desk\nquantity: 2",
        "item=lamp notes=big quantity=2 or 3",
        "item=a lamp, quantity=2, quantity=3",
        "item=desk+lamp&quantity=2",
        "item=lamp, notes=a quantity: 2",
        "item: lamp\nquantity: 2\nnotes: big, gift=true",
        "item: lamp size: big\nquantity: 2",
        '{"item": "lamp", "quantity": 00}',
        "--item lamp --quantity 2 --force",
        "--item lamp --quantity 2 3",
        '<item size="big">lamp</item><quantity>2</quantity>',
        "<item>a <b>big</b> lamp</item><quantity>2</quantity>",
        "<item>lamp</item><item>desk</item><quantity>2</quantity>",
        "<item>lamp</item><quantity>2",
        "<item>lamp</item> but no <quantity>2</quantity>",
        (
            '<invoke name="cancel"><parameter name="item">lamp</parameter>'
            '<parameter name="quantity">2</parameter></invoke>'
        ),
        f"Do not call {JSON}",
        f"{JSON} but three of them",
        f"The result was {JSON}",
        f"Action: cancel\nAction Input: {JSON}",
        f"cancel({JSON})",
        '{"item": chosen_item, "quantity": 2}',
        "{item: chosen_item, quantity: 2}",
        "{item: none, quantity: 2}",
        "{item: lamp, quantity: 2, colour: red}",
        "{item: lamp, big, quantity: 2}",
        "{item: lamp, quantity: 2, notes: rou",
        'order("lamp", 2)',
        f"{JSON}{JSON}",
    ],
)
def test_what_may_say_something_else_is_not_run(text: str) -> None:
    assert correct(ORDER, text, tool="order").applied is None


@pytest.mark.parametrize(
    "given",
    [
        [{"name": "item", "value": "lamp"}, {"name": "quantity", "value": 2}],
        [
            {"name": "item", "type": "string", "value": "lamp"},
            {"name": "quantity", "type": "integer", "value": "2"},
        ],
        [["item", "lamp"], ["quantity", "2"]],
        [{"item": "lamp"}, {"quantity": 2}],
        {"arguments": [{"key": "item", "value": "lamp"}, {"key": "quantity", "value": 2}]},
        {"item": {"item": "lamp", "quantity": 2}},
        {"item": {"type": "string", "value": "lamp"}, "quantity": {"type": "int", "value": "2"}},
        {"item": {"stringValue": "lamp"}, "quantity": {"numberValue": 2}},
        {"name": "functions.order", "arguments": MEANT},
        {"tool_uses": [{"recipient_name": "functions.order", "parameters": MEANT}]},
        {"action": "order", "action_input": JSON},
        {"arguments": MEANT, "quantity": 2},
    ],
    ids=str,
)
def test_arguments_in_pieces_or_in_a_call_are_put_together(given: Any) -> None:
    assert correct(ORDER, given, tool="order").applied == MEANT


@pytest.mark.parametrize(
    "given",
    [
        [{"name": "item", "value": "lamp"}, {"name": "item", "value": "desk"}],
        [{"name": "item", "value": "lamp"}, {"name": "colour", "value": "red"}],
        [{"item": "lamp"}, {"item": "desk"}],
        [MEANT, MEANT],
        {"arguments": MEANT, "quantity": 3},
        {"name": "cancel", "arguments": MEANT},
        {"item": {"value": "lamp", "unit": "kg"}, "quantity": 2},
    ],
    ids=str,
)
def test_pieces_that_do_not_fit_together_are_not_run(given: Any) -> None:
    assert correct(ORDER, given, tool="order").applied is None


def test_a_number_that_may_be_a_text_is_not_run() -> None:
    """Neither markup nor lines say of what type a value is; where the schema does not, who does?"""
    grades = {"type": "object", "properties": {"grades": {"type": "object"}}}
    for text in (
        "grades:\n  math: 90\n  art: 75",
        "<grades><math>90</math></grades>",
        "<arguments><grades><math>90</math></grades></arguments>",
    ):
        assert correct(grades, text).applied is None
    assert correct(grades, '{"grades": {"math": 90}').candidates
    assert correct(grades, "<grades><math>good</math></grades>").applied == {
        "grades": {"math": "good"}
    }


def test_digits_that_were_written_are_not_lost() -> None:
    tool = {"type": "object", "properties": {"release": {"type": "string"}}}

    assert correct(tool, '{"release": 3.10}').applied is None
    assert correct(tool, "release: 3.10").applied == {"release": "3.10"}
    assert correct(tool, '{"release": 3.5}').applied == {"release": "3.5"}


def test_null_among_texts_without_quotes_may_be_one() -> None:
    tool = {
        "type": "object",
        "properties": {"key": {"type": "string"}, "scale": {"type": "string"}},
        "additionalProperties": False,
    }

    assert correct(tool, "{key: minor, scale: null}").applied is None
    assert correct(tool, "{key: minor, scale: pentat").applied is None
    assert correct(tool, "{key: minor, scale: pentatonic}").applied is not None
    assert correct(tool, '{"key": "minor", "scale": null}').applied == {"key": "minor"}


def test_reading_text_as_python_prints_no_warnings() -> None:
    tool = {"type": "object", "properties": {"size": {"type": "string"}}}
    # Of the parser: what another test left unclosed may be noticed here as well.
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("ignore")
        for kind in (SyntaxWarning, DeprecationWarning):
            warnings.simplefilter("always", kind)
        assert correct(tool, "{'size': 5and 6}").applied is None
        assert correct(tool, "pick(size=5or 6)").applied is None
        assert correct(tool, "pick(size='5inch')").applied == {"size": "5inch"}

    assert not recorded
