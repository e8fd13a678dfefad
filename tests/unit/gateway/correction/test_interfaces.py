"""Calls as models make them of interfaces that everybody knows: payments, calendars, maps."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.correction import correct

TEXT: dict[str, Any] = {"type": "string"}
MAIL: dict[str, Any] = {"type": "string", "format": "email"}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


CHARGE = closed(
    "amount",
    amount={"type": "integer"},
    shipping=closed(
        "name",
        "address",
        name=TEXT,
        address=closed("city", city=TEXT, country={"type": "string", "pattern": "^[A-Z]{2}$"}),
    ),
)
NOTICE = closed(
    "target",
    "message",
    message=TEXT,
    target={
        "oneOf": [
            closed("type", "user", type={"const": "user"}, user={"type": "integer"}),
            closed("type", "channel", type={"const": "channel"}, channel=TEXT),
        ]
    },
)
MEETING = closed(
    "attendees",
    attendees={"type": "array", "items": closed("email", email=MAIL, optional={"type": "boolean"})},
    host=closed("name", name=TEXT, team=TEXT),
)
PLACE = closed(
    "latitude",
    "lng",
    latitude={"type": "number"},
    lng={"type": "number"},
    order={"type": "string", "enum": ["asc", "desc"]},
    color={"type": "string", "pattern": "^#[0-9a-f]{6}$"},
    airport={"type": "string", "pattern": "^[A-Z]{3}$"},
    max_rows={"type": "integer"},
    maximum={"type": "integer"},
)
HERE = {"latitude": 47.0, "lng": 8.0}


@pytest.mark.parametrize(
    ("schema", "given", "meant"),
    [
        (
            CHARGE,
            {"amount": 5, "shipping": {"name": "Ann", "city": "Bern", "country": "ch"}},
            {
                "amount": 5,
                "shipping": {"name": "Ann", "address": {"city": "Bern", "country": "CH"}},
            },
        ),
        (CHARGE, {"amount": "20.0"}, {"amount": 20}),
        (
            NOTICE,
            {"type": "channel", "channel": "ops", "message": "hi"},
            {"target": {"type": "channel", "channel": "ops"}, "message": "hi"},
        ),
        (
            MEETING,
            {"attendees": ["a@x.org", "b@x.org"]},
            {"attendees": [{"email": "a@x.org"}, {"email": "b@x.org"}]},
        ),
        (MEETING, {"attendees": "a@x.org"}, {"attendees": [{"email": "a@x.org"}]}),
        (PLACE, {"lat": 47.0, "longitude": "8.0"}, HERE),
        (PLACE, {**HERE, "color": "#FF00aa"}, {**HERE, "color": "#ff00aa"}),
        (PLACE, {**HERE, "airport": "zrh"}, {**HERE, "airport": "ZRH"}),
    ],
    ids=str,
)
def test_what_is_clear_is_applied(schema: Any, given: Any, meant: Any) -> None:
    assert correct(schema, given).applied == meant


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("promt", "prompt"),
        ("max_tokes", "max_tokens"),
        ("queryy", "query"),
        ("customr", "customer"),
        ("addresss", "address"),
        ("prodcut", "product"),
        ("forcast", "forecast"),
        ("langage", "language"),
    ],
)
def test_a_slip_that_looks_like_words_or_units_is_a_slip(written: str, name: str) -> None:
    assert correct(closed(name, **{name: TEXT}), {written: "x"}).applied == {name: "x"}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("stats", "status"),
        ("county", "country"),
        ("director", "directory"),
        ("lengthcm", "lengthmm"),
    ],
)
def test_another_word_is_no_slip(written: str, name: str) -> None:
    assert correct(closed(name, **{name: TEXT}), {written: "x"}).applied is None


def test_a_command_line_for_a_list_is_a_choice() -> None:
    schema = closed("command", command={"type": "array", "items": TEXT})

    outcome = correct(schema, {"command": "ls -l"})

    assert outcome.applied is None
    assert list(outcome.ambiguous[0].options) == [["ls", "-l"], ["ls -l"]]
    assert correct(schema, {"command": "ls"}).applied == {"command": ["ls"]}


@pytest.mark.parametrize(
    ("schema", "given", "offered"),
    [
        # Twenty dollars, where an integer may count cents.
        (CHARGE, {"amount": "20.00"}, {"amount": 20}),
        (CHARGE, {"amount": 5, "shipping": {"name": "Ann", "city": "Bern", "address": "x"}}, None),
        (NOTICE, {"type": "user", "channel": "ops", "message": "hi"}, None),
        (NOTICE, {"channel": "ops", "user": 3, "message": "hi"}, None),
        # A name may be meant, and anything else that tells who it is.
        (
            MEETING,
            {"attendees": [], "host": "ann_7"},
            {"attendees": [], "host": {"name": "ann_7"}},
        ),
        (MEETING, {"attendees": [True]}, None),
        (PLACE, {**HERE, "lat": 1.0}, HERE),
        (PLACE, {**HERE, "max": 5}, {**HERE, "maximum": 5}),
        (PLACE, {**HERE, "order": "descending"}, {**HERE, "order": "desc"}),
        (PLACE, {**HERE, "airport": "all"}, {**HERE, "airport": "ALL"}),
    ],
    ids=str,
)
def test_what_is_not_clear_is_at_most_offered(schema: Any, given: Any, offered: Any) -> None:
    outcome = correct(schema, given)

    assert outcome.applied is None
    if offered is not None:
        assert offered in [candidate.arguments for candidate in outcome.candidates]
