"""What can be stored, what cannot, and what is said about it."""

import dataclasses
import datetime as dt
import enum
import json
import math
import uuid
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.engine.values import (
    TITLE_CHARS_MAX,
    Json,
    check,
    check_text,
    decode,
    encode,
    read,
    read_record,
    same,
    text_of,
    title_of,
)
from stratagem.errors import ValidationFailed

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(limits.INTEGER_MIN, limits.INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
)


class Colour(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def refusal(value: object, **options: Any) -> ValidationFailed:
    with pytest.raises(ValidationFailed) as caught:
        encode(value, **options)
    return caught.value


@given(VALUES)
def test_a_value_comes_back_as_it_was_given(value: Json) -> None:
    assert repr(decode(encode(value))) == repr(value)


@given(VALUES)
def test_any_json_text_reads_the_same_as_with_the_standard_parser(value: Json) -> None:
    assert same(json.loads(encode(value)), value)


def test_keys_keep_their_order() -> None:
    assert encode({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"b":1,"a":{"d":2,"c":3}}'


def test_a_tuple_is_stored_as_an_array() -> None:
    assert encode((1, (2.5, []))) == b"[1,[2.5,[]]]"


def test_integers_are_taken_to_the_last_of_64_bits() -> None:
    edges = [limits.INTEGER_MIN, limits.INTEGER_MAX]

    assert decode(encode(edges)) == edges
    assert refusal({"n": limits.INTEGER_MAX + 1}).details["place"] == "$.n"
    assert "64 bits" in refusal(limits.INTEGER_MIN - 1).message


@pytest.mark.parametrize(
    ("number", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_numbers_that_json_lacks_are_refused_where_they_stand(number: float, name: str) -> None:
    error = refusal({"a": [1, 2.5, {"b c": number}]}, field="data")

    assert error.message == (
        f"`data` cannot be stored: $.a[2]['b c'] is {name}, which JSON cannot write as a number."
    )
    assert error.details == {"field": "data", "place": "$.a[2]['b c']"}
    assert refusal(number).details["place"] == "$"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (dt.date(2026, 3, 4), "datetime.date"),
        (Point(1), "Point"),
        (Colour.RED, "Colour"),
        (uuid.UUID(int=1), "uuid.UUID"),
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        (1j, "complex"),
        (OrderedDict(a=1), "collections.OrderedDict"),
        (object(), "object"),
    ],
)
def test_other_types_are_refused_by_name_and_place(value: object, name: str) -> None:
    error = refusal({"a": [0, 0, 0, value]})

    assert error.details["place"] == "$.a[3]"
    assert name in error.message
    assert name in refusal(value).message


def test_lone_surrogates_are_refused_in_texts_and_in_keys() -> None:
    assert refusal("\ud800").details["place"] == "$"
    assert refusal({"a": ["ok", "x\udfff"]}).details["place"] == "$.a[1]"
    assert "keys" in refusal({"a": {"fine": 1, "\ud800": 1}}).message


@pytest.mark.parametrize("key", [1, None, True, 1.5, ("a",), Colour.RED])
def test_keys_that_are_not_text_are_refused(key: object) -> None:
    error = refusal([{"good": 1, key: 2}])

    assert "keys of an object are text" in error.message
    assert error.details["place"] == "$[0]"


def test_values_are_taken_to_the_depth_limit_and_no_deeper() -> None:
    limit = limits.VALUE_DEPTH_MAX

    assert decode(encode(nested(limit))) == nested(limit)
    error = refusal(nested(limit + 1))
    assert error.details["limit"] == limit
    assert str(limit) in error.message


def test_an_empty_container_at_the_limit_is_no_deeper_than_a_full_one() -> None:
    value: Any = {"leaf": 1.5}
    for _ in range(limits.VALUE_DEPTH_MAX - 1):
        value = {"in": value}

    assert decode(encode(value)) == value


def test_a_very_deep_value_is_refused_like_any_other() -> None:
    assert "deeper" in refusal(nested(100_000)).message


def test_values_that_hold_themselves_are_refused() -> None:
    ring: dict[str, Any] = {}
    ring["again"] = ring
    pair: list[Any] = []
    pair += [pair, pair]

    assert "deeper" in refusal(ring).message
    assert "deeper" in refusal(pair).message


def test_values_that_share_their_parts_endlessly_are_refused() -> None:
    bomb: Any = []
    for _ in range(60):
        bomb = [bomb, bomb]

    assert refusal(bomb, bytes_max=1000).details["limit"] == 1000
    assert refusal([bomb, math.nan], bytes_max=1000).details["limit"] == 1000


def test_size_is_that_of_the_json_in_bytes() -> None:
    assert encode("é", bytes_max=4) == '"é"'.encode()
    error = refusal(["é" * 10], bytes_max=23, field="data")
    assert error.message == "`data` takes 24 bytes as JSON; the limit is 23 bytes."
    assert error.details == {"field": "data", "limit": 23}


@given(
    VALUES | st.text(max_size=20) | st.floats() | st.sampled_from([Colour.RED, Point(1), {1: 2}]),
    st.integers(0, 70),
)
def test_a_check_refuses_what_the_writer_refuses(value: object, bytes_max: int) -> None:
    try:
        encode(value, bytes_max=bytes_max)
    except ValidationFailed as refused:
        with pytest.raises(ValidationFailed) as caught:
            check(value, bytes_max=bytes_max)
        assert str(caught.value) == str(refused)
    else:
        check(value, bytes_max=bytes_max)


def test_control_characters_count_as_the_bytes_that_they_are_written_in() -> None:
    check("\x1f" * 10, bytes_max=62)

    with pytest.raises(ValidationFailed):
        check("\x1f" * 10, bytes_max=61)


def test_a_long_place_is_cut_in_the_message() -> None:
    error = refusal({"k" * 5000: math.nan})

    assert len(error.message) < 300


def test_json_keeps_the_kinds_of_numbers_apart() -> None:
    kinds: list[Json] = [1, 1.0, True, "1", None, [1], {"1": 1}]

    for place, one in enumerate(kinds):
        for other_place, other in enumerate(kinds):
            assert same(one, other) is (place == other_place)
            assert same([one], [other]) is (place == other_place)
            assert same({"k": one}, {"k": other}) is (place == other_place)


def test_the_order_of_keys_does_not_matter_but_that_of_elements_does() -> None:
    assert same({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1})
    assert same((1, 2), [1, 2])
    assert not same([1, 2], [2, 1])
    assert not same([1, 2], [1])
    assert not same({"a": None}, {})
    assert not same({"a": 1}, {"b": 1})


def test_very_deep_values_can_be_compared() -> None:
    assert same(nested(100_000), nested(100_000))
    assert not same(nested(100_000), nested(100_001))


@given(VALUES, VALUES)
def test_same_means_the_same_json_text_but_for_order(one: Json, other: Json) -> None:
    texts = [json.dumps(value, sort_keys=True).replace("-0.0", "0.0") for value in (one, other)]

    assert same(one, decode(encode(one)))
    assert same(one, other) is (texts[0] == texts[1])


def test_the_text_of_a_value_is_lines_led_by_field_names() -> None:
    value: Json = {
        "title": "Trip",
        "user": {"firstName": "Ann", "age": 41, "nick": None, "blank": ""},
        "stops": ["Oslo", {"city": "Bergen", "open": True}, [2.5, False]],
    }

    assert text_of(value).splitlines() == [
        "title: Trip",
        "user firstName: Ann",
        "user age: 41",
        "stops: Oslo",
        "stops city: Bergen",
        "stops open: true",
        "stops: 2.5",
        "stops: false",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [("as\nit is", "as\nit is"), (["a", "b"], "a\nb"), (7, "7"), (None, ""), ([{}, []], "")],
)
def test_the_text_of_simple_values(value: Json, text: str) -> None:
    assert text_of(value) == text


def test_the_text_of_a_value_ends_where_the_index_does() -> None:
    limit = limits.SEARCHED_CHARS_MAX

    assert len(text_of("x" * (limit + 1))) == limit
    assert len(text_of(["x" * limit, "beyond"])) == limit
    assert len(text_of(["x" * (limit - 1), "beyond"])) == limit - 1
    assert text_of(["x" * (limit - 4), "beyond"]).endswith("x\nbey")
    assert len(text_of({"k" * limit: ["a"] * 10_000})) == limit


@given(VALUES)
def test_every_text_in_a_value_is_found_in_its_text(value: Json) -> None:
    text = text_of({"field": value})

    if isinstance(value, str):
        assert value in text
    if isinstance(value, list):
        assert all(item in text for item in value if isinstance(item, str))


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("one line", "one line"),
        ("\n\n  first \nsecond", "first"),
        ("first\r\nsecond", "first"),
        ("   ", ""),
        ({"name": "Ann", "title": "Dr"}, "Dr"),
        ({"title": 5, "name": " ", "subject": "Hi\nthere"}, "Hi"),
        ({"other": "x"}, ""),
        (["x"], ""),
        (5, ""),
    ],
)
def test_the_title_is_the_first_line_or_a_titling_field(value: Json, title: str) -> None:
    assert title_of(value) == title


def test_a_title_is_cut() -> None:
    assert title_of("x" * 1000) == "x" * TITLE_CHARS_MAX


@given(TEXTS.filter(lambda text: text.isprintable() and text.strip() != ""))
def test_a_name_is_kept_exactly_as_given(text: str) -> None:
    assert check_text(text, field="key", chars_max=20) is text


def test_a_name_is_not_normalised() -> None:
    decomposed = " e\u0301 "

    assert check_text(decomposed, field="key", chars_max=20) == decomposed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (5, "must be text, not int"),
        (None, "must be text, not NoneType"),
        ("", "is empty"),
        (" \u2003", "is blank"),
        ("x" * 11, "is 11 characters long; the limit is 10"),
        ("a\x00b", "U+0000 at position 1, which is a control character"),
        ("a\nb", "a control character"),
        ("\x85x", "U+0085"),
        ("a\ud800", "U+D800 at position 1, which is half of a surrogate pair"),
    ],
)
def test_what_cannot_be_a_name_is_refused_in_words(text: object, words: str) -> None:
    with pytest.raises(ValidationFailed, match=r"^`key` ") as caught:
        check_text(text, field="key", chars_max=10)

    assert words in caught.value.message
    assert caught.value.details["field"] == "key"


def test_a_name_may_be_empty_where_that_is_allowed() -> None:
    assert check_text("", field="text", chars_max=10, empty_ok=True) == ""
    assert check_text("  ", field="text", chars_max=10, empty_ok=True) == "  "


@given(VALUES)
def test_what_a_caller_wrote_is_read_as_it_is_stored(value: Json) -> None:
    assert same(read(json.dumps(value).encode()), value)


@pytest.mark.parametrize("number", [limits.INTEGER_MAX + 1, limits.INTEGER_MIN - 1])
def test_an_integer_that_cannot_be_stored_is_not_read_as_a_float(number: int) -> None:
    given = read(b'{"id": [%d], "at": 0.12345678901234567890}' % number)

    assert given == {"id": [number], "at": 0.12345678901234567890}
    with pytest.raises(ValidationFailed, match="beyond 64 bits"):
        encode(given)


@pytest.mark.parametrize("number", [limits.INTEGER_MAX + 1, limits.INTEGER_MIN - 1])
def test_a_record_with_an_integer_that_cannot_be_stored_is_refused_with_its_place(
    number: int,
) -> None:
    for record, place in (
        (b'{"a": {"b": [%d]}}', "`a` cannot be stored: $.b[0]"),
        (b"[%d]", "$[0]"),
    ):
        with pytest.raises(ValidationFailed) as refusal:
            read_record(record % number)
        assert f"{place} is an integer beyond 64 bits" in refusal.value.message

    assert read_record(b'{"%d": "%d", "n": %d.0}' % (number, number, number)) is not None


def test_more_digits_than_a_float_can_stand_for_are_no_json() -> None:
    with pytest.raises(json.JSONDecodeError):
        read(b"9" * 10_000)
