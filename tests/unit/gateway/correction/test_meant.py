"""What was meant, not what validates: near misses that are other things, and clear cases."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.correction import correct


def tool(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [next(iter(properties))],
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
NUMBER = {"type": "number"}
TEXTS = {"type": "array", "items": TEXT}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "dark blue"]}}


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ("timeout_s", "timeout_ms"), ("mass_g", "mass_kg"), ("dist_m", "dist_km"),
        ("volume_l", "volume_ml"), ("frequency_khz", "frequency_hz"), ("lengthmm", "lengthcm"),
        ("weightg", "weightkg"), ("timeouts", "timeoutms"), ("dose_mcg", "dose_mg"),
        ("xmax", "max"), ("nrows", "rows"), ("k_value", "value"), ("tempc", "temp"),
        ("sizex", "size"), ("n_points", "points"),
        ("payee", "payer"), ("employee", "employer"), ("statue", "statute"),
        ("contest", "context"), ("martial_status", "marital_status"), ("taxi_id", "tax_id"),
        ("pier_id", "peer_id"), ("patent", "patient"), ("college", "collage"),
        ("strike", "stroke"), ("nuclear", "unclear"), ("casual", "causal"), ("micro", "macro"),
    ],
)  # fmt: skip
def test_a_name_of_another_thing_is_no_misspelling(given: str, parameter: str) -> None:
    assert correct(tool(**{parameter: NUMBER}), {given: 5}).applied is None
    assert (
        correct(tool(first=TEXT, **{parameter: NUMBER}), {"first": "x", given: 5}).applied is None
    )


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ("adress", "address"), ("lattitude", "latitude"), ("wieght", "weight"),
        ("maxx", "max"), ("ddate", "date"), ("lenght", "length"), ("seperator", "separator"),
        ("us\u0435r_name", "user_name"), ("user_name\u200b", "user_name"),
        ("$user_name", "user_name"), ("--user-name", "user_name"),
    ],
)  # fmt: skip
def test_a_slip_of_the_pen_is_one(given: str, parameter: str) -> None:
    assert correct(tool(**{parameter: NUMBER}), {given: 5}).applied == {parameter: 5}


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["5", "10"], "-5"), (["0.5", "5"], ".5"), (["date", "name"], "-date"),
        (["UTC+1", "UTC-1"], "UTC 1"), (["statute", "law"], "statue"),
        (["v1.0", "v10"], "v1-0"), (["A+", "A-"], "A"), (["mW", "MW"], "mw"),
    ],
)  # fmt: skip
def test_a_sign_or_another_word_is_no_variant(options: list[str], given: str) -> None:
    assert correct(tool(choice={"enum": options}), {"choice": given}).applied is None


def test_what_speaks_of_a_parameter_is_not_thrown_away() -> None:
    for given, parameter in (
        ({"timestamp": "2024-01-01"}, "created"),
        ({"confidence": 0.95}, "level"),
        ({"justification": "asked for"}, "reason"),
    ):
        described = tool(first=TEXT, **{parameter: {}})
        assert correct(described, {"first": "x", **given}).applied is None
        assert correct(tool(first=TEXT, colour={}), {"first": "x", **given}).applied == {
            "first": "x"
        }


@pytest.mark.parametrize("name", ["confirm", "i_understand", "force", "consent_given"])
def test_nobody_agrees_for_the_caller(name: str) -> None:
    for value in ({"const": True}, {"type": "boolean", "default": True}):
        schema = {**tool(path=TEXT, **{name: value}), "required": ["path", name]}
        assert correct(schema, {"path": "/x"}).applied is None
    schema = {**tool(path=TEXT, kind={"const": "file"}), "required": ["path", "kind"]}
    assert correct(schema, {"path": "/x"}).applied == {"path": "/x", "kind": "file"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Tuesday, March 5, 2024", "2024-03-05"),
        ("Tue, 5 March 2024", "2024-03-05"),
        ("Monday, March 5, 2024", None),
        ({"year": 2024, "month": 3, "day": 5}, "2024-03-05"),
        ({"year": 2024, "month": 13, "day": 5}, None),
        ("'2024-03-05'", "2024-03-05"),
        ("“2024-03-05”", "2024-03-05"),
    ],
)
def test_a_date_says_one_thing(given: Any, meant: str | None) -> None:
    outcome = correct(tool(day={"type": "string", "format": "date"}), {"day": given})

    assert outcome.applied == (None if meant is None else {"day": meant})


@pytest.mark.parametrize(
    ("form", "given", "meant"),
    [
        ("date-time", "2024-03-05T10:00:00+02", "2024-03-05T10:00:00+02:00"),
        ("duration", "pt1h", "PT1H"),
        ("duration", "90 minutes", "PT90M"),
        ("duration", "2 weeks", "P2W"),
        ("duration", "5 m", None),
        ("duration", "2 months", None),
        ("duration", "90", None),
        ("email", "[a@b.com](mailto:a@b.com)", "a@b.com"),
        ("email", "`a@b.com`", "a@b.com"),
        ("uri", "[https://x.io/a](https://x.io/a)", "https://x.io/a"),
        ("uri", "[here](https://x.io/a)", None),
        ("uri", '"https://x.io"', "https://x.io"),
    ],
)
def test_a_format_is_rewritten_when_nothing_is_lost(
    form: str, given: str, meant: str | None
) -> None:
    outcome = correct(tool(value={"type": "string", "format": form}), {"value": given})

    assert outcome.applied == (None if meant is None else {"value": meant})


@pytest.mark.parametrize(
    ("schema", "given", "meant"),
    [
        (COLOURS, "red and green", ["red", "green"]),
        (COLOURS, "red, green, and dark blue", ["red", "green", "dark blue"]),
        (COLOURS, "red/green", ["red", "green"]),
        (COLOURS, "red green", ["red", "green"]),
        (COLOURS, "Dark Blue", ["dark blue"]),
        (COLOURS, "red or green", None),
        (COLOURS, "red and not green", None),
        (COLOURS, "all", None),
        (NUMBERS, "1, 2 and 3", [1, 2, 3]),
        (NUMBERS, "1 and 2", [1, 2]),
        (NUMBERS, "1 to 3", None),
        (NUMBERS, [[1, 2, 3]], [1, 2, 3]),
        (NUMBERS, {"1": 5, "0": 4}, [4, 5]),
        (NUMBERS, {"1": 4, "2": 5}, [4, 5]),
        (NUMBERS, {"0": 4, "2": 5}, None),
        (TEXTS, "tomatoes, chopped", None),
        ({"type": "array", "items": {"type": "string", "format": "date"}}, "March 5, 2024",
         ["2024-03-05"]),
    ],
    ids=str,
)  # fmt: skip
def test_a_list_says_what_its_elements_are(schema: Any, given: Any, meant: Any) -> None:
    outcome = correct(tool(things=schema), {"things": given})

    assert outcome.applied == (None if meant is None else {"things": meant})


@pytest.mark.parametrize("name", ["commands", "statements", "patterns", "queries", "greetings"])
def test_what_has_commas_of_its_own_is_not_taken_apart(name: str) -> None:
    for text in ("select a, b from t", "cd there; list", "hello, world", "this|that"):
        assert correct(tool(**{name: TEXTS}), {name: text}).applied is None


MAP = {"type": "object", "additionalProperties": NUMBER}
PATTERNED = {"type": "object", "patternProperties": {"^x_": NUMBER}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "given", "meant"),
    [
        (MAP, {"a": "5", "b": 6}, {"a": 5, "b": 6}),
        (MAP, '{"a": "5"}', {"a": 5}),
        (MAP, {"a": "5 kg"}, None),
        (MAP, {"a": None}, None),
        (MAP, [{"key": "a", "value": 5}], None),
        (PATTERNED, {"x_a": "5"}, {"x_a": 5}),
        (PATTERNED, {"y_a": 5}, None),
    ],
    ids=str,
)
def test_values_under_names_of_the_callers_own_are_converted(
    schema: Any, given: Any, meant: Any
) -> None:
    outcome = correct(tool(scores=schema), {"scores": given})

    assert outcome.applied == (None if meant is None else {"scores": meant})


def test_the_nearer_form_is_taken_where_a_tool_takes_several() -> None:
    either = {"anyOf": [TEXT, TEXTS]}
    assert correct(tool(value=either), {"value": 5}).applied == {"value": "5"}
    number = {"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]}
    assert correct(tool(value=number), {"value": "5"}).applied == {"value": 5}
    scalar = {"anyOf": [TEXT, {"type": "integer"}]}
    assert correct(tool(value=scalar), {"value": [5]}).applied == {"value": 5}
    flag = {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}
    assert correct(tool(value=flag), {"value": "1"}).applied is None


PARCEL = {
    **tool(
        sender=tool(email=TEXT),
        parcel=tool(weight=NUMBER, box=tool(width=NUMBER)),
        remark=TEXT,
    ),
    "required": ["sender", "parcel"],
}
SENT: dict[str, Any] = {"sender": {"email": "a"}, "parcel": {"weight": 2}}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"sender": {"email": "a", "weight": 2}}, SENT),
        ({"sender": {"email": "a", "weight": 2}, "parcel": {}}, SENT),
        ({"email": "a", "weight": "2"}, SENT),
        (
            {"sender": {"email": "a"}, "parcel": {"weight": 2, "box": {"width": 1, "remark": "x"}}},
            {"sender": {"email": "a"}, "parcel": {"weight": 2, "box": {"width": 1}}, "remark": "x"},
        ),
        ({"sender": {"email": "a", "weight": 2}, "parcel": {"weight": 3}}, None),
        ({"sender": {"email": "a", "colour": 2}, "parcel": {"weight": 3}}, None),
    ],
    ids=str,
)
def test_a_stray_name_goes_where_the_only_one_like_it_is(given: Any, meant: Any) -> None:
    assert correct(PARCEL, given).applied == meant


def test_a_stray_name_that_two_objects_have_is_not_moved() -> None:
    crates = {**PARCEL["properties"], "crate": tool(weight=NUMBER)}

    assert correct({**PARCEL, "properties": crates}, {
        "sender": {"email": "a", "weight": 2}, "parcel": {"box": {"width": 1}},
    }).applied is None  # fmt: skip


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"tags[0]": "a", "tags[1]": "b"}, ["a", "b"]),
        ({"tags.1": "b", "tags.0": "a"}, ["a", "b"]),
        ({"tags[0]": "a", "tags[2]": "b"}, None),
        ({"tags[0]": "a", "tags": ["b"]}, None),
    ],
    ids=str,
)
def test_elements_given_one_by_one_are_joined(given: Any, meant: Any) -> None:
    assert correct(tool(tags=TEXTS), given).applied == (None if meant is None else {"tags": meant})


def test_a_second_spelling_counts_by_what_it_says() -> None:
    schema = tool(max_results={"type": "integer"})
    for again, meant in ((5, 5), ("5", 5), (None, 5), (6, None), ("", None)):
        outcome = correct(schema, {"max_results": 5, "maxResults": again})
        assert outcome.applied == (None if meant is None else {"max_results": meant})


def test_another_style_is_renamed_in_an_open_object_too() -> None:
    schema = {**tool(city=TEXT, days={"type": "integer"}), "additionalProperties": True}

    assert correct(schema, {"City": "Oslo", "Days": "3"}).applied == {"city": "Oslo", "days": 3}
    assert correct(schema, {"City": "Oslo", "dys": "3"}).applied == {"city": "Oslo", "dys": "3"}


def test_nothing_for_an_optional_parameter_is_offered_to_be_left_out() -> None:
    outcome = correct(tool(city=TEXT, days={"type": "integer"}), {"city": "Oslo", "days": ""})

    assert outcome.applied is None
    assert outcome.candidates[0].arguments == {"city": "Oslo"}


def test_a_name_that_says_little_is_not_moved_inside_alone() -> None:
    customer = tool(id={"type": "integer"}, email=TEXT)
    schema = {**tool(customer=customer, remark=TEXT), "required": ["customer"]}

    assert correct(schema, {"id": 5}).applied is None
    assert correct(schema, {"id": 5, "email": "a"}).applied == {"customer": {"id": 5, "email": "a"}}
    assert correct(schema, {"id": 5, "customer": {"email": "a"}}).applied == {
        "customer": {"id": 5, "email": "a"}
    }


@pytest.mark.parametrize(("given", "parameter"), [("new", "news"), ("means", "mean")])
def test_a_plural_that_means_another_thing_is_not_taken_for_it(given: str, parameter: str) -> None:
    assert correct(tool(**{parameter: TEXT}), {given: "x"}).applied is None


def test_parameters_of_a_condition_are_corrected_too() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["card", "cash"]}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "card"}}},
        "then": {"properties": {"digits": {"type": "integer"}}, "required": ["digits"]},
        "dependentSchemas": {"digits": {"properties": {"year": {"type": "integer"}}}},
    }

    assert correct(schema, {"kind": "Card", "Digits": "5", "year": "7"}).applied == {
        "kind": "card",
        "digits": 5,
        "year": 7,
    }
    assert correct(schema, {"kind": "card"}).applied is None


@pytest.mark.parametrize("given", [None, "", "null", "None", "[]", []])
def test_nothing_stands_for_no_arguments(given: Any) -> None:
    assert correct({"type": "object", "properties": {"q": TEXT}}, given).applied == {}
    assert correct(tool(q=TEXT), given).applied is None


def test_a_listed_number_may_be_written_with_its_point() -> None:
    schema = tool(size={"enum": [8, 9, 10]})

    assert correct(schema, {"size": "9.0"}).applied == {"size": 9}
    assert correct(schema, {"size": "9.5"}).applied is None
    assert correct(schema, {"size": "-9"}).applied is None
