from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from stratagem.answers import (
    add_note,
    fit_list,
    fit_value,
    plain,
    plural,
    read_cursor,
    take_fitting,
)
from stratagem.errors import ValidationFailed


@dataclass
class Inner:
    value: Any
    extra: str | None = None


@dataclass
class Outer:
    name: str
    missing: str | None = None
    inner: list[Inner] = field(default_factory=list)


def size(answer: Any) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def test_an_answer_becomes_plain_json_without_its_empty_options() -> None:
    answer = Outer("a", inner=[Inner(None), Inner({"x": None}, "y")])

    assert plain(answer) == {
        "name": "a",
        "inner": [{"value": None}, {"value": {"x": None}, "extra": "y"}],
    }


def test_results_that_fit_are_left_as_they_are() -> None:
    answer = {"results": [{"value": 1}], "truncated": False}

    assert fit_list(dict(answer), 1_000, str) == answer


def test_results_that_do_not_fit_are_left_out_with_a_note_and_a_cursor() -> None:
    results = [{"value": "x" * 100, "number": number} for number in range(50)]

    answer = fit_list({"results": results}, 2_000, lambda kept: f"from {kept}")

    kept = len(answer["results"])
    assert 5 < kept < 20
    assert answer["truncated"] is True
    assert answer["next"] == f"from {kept}"
    assert f"{50 - kept} more were left out" in answer["note"]
    assert size(answer) <= 2_000


def test_one_result_that_is_left_out_was_left_out() -> None:
    answer = fit_list({"results": ["x" * 600, "y" * 600]}, 1_000, str)

    assert "1 more was left out" in answer["note"]


def test_results_of_a_write_are_left_out_without_a_cursor() -> None:
    answer = fit_list({"results": ["x" * 600, "y" * 600]}, 1_000, None)

    assert "next" not in answer
    assert "all 2 were written" in answer["note"]


def test_what_an_answer_says_beside_its_results_counts() -> None:
    answer = fit_list({"results": ["x" * 100] * 50, "other": "y" * 1_500}, 3_000, str)

    assert size(answer) <= 3_000


@pytest.mark.parametrize("room", [-5_000, 0, 120])
def test_at_least_one_result_is_shown_and_its_values_are_shortened(room: int) -> None:
    (kept,) = take_fitting([{"key": "k", "value": "x" * 5_000}, {"key": "l", "value": 1}], room)

    assert kept["value_truncated"] is True
    assert kept["value"].endswith("…")
    assert len(kept["value"]) < 100


def test_a_result_without_values_is_shown_whole() -> None:
    assert take_fitting(["x" * 500], 100) == ["x" * 500]


def test_both_sides_of_a_difference_are_shortened() -> None:
    change = {"key": "k", "before": {"text": '"' * 5_000}, "after": "y" * 5_000}

    (kept,) = take_fitting([change], 1_000)

    assert size(kept) <= 1_100
    assert kept["before"].startswith('{"text"')


def test_notes_add_up() -> None:
    assert add_note(add_note({}, "One."), "Two.") == {"note": "One. Two."}


@pytest.mark.parametrize(
    "text", ["x" * 5_000, "\n" * 5_000, '"' * 5_000, "\u0001" * 2_000, "é" * 5_000]
)
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    pieces: list[str] = []
    begin = 0
    while True:
        answer = fit_value({"value": text, "key": "k"}, 800, begin)
        pieces.append(answer["value"])
        assert size(answer) <= 800
        if not answer["truncated"]:
            break
        begin = int(answer["next"])

    assert "".join(pieces) == text
    assert "this is the end" in answer["note"]


def test_a_value_that_fits_is_left_alone() -> None:
    answer = {"value": {"a": 1}, "key": "k"}

    assert fit_value(dict(answer), 800, 0) == answer


def test_the_end_of_a_value_can_be_asked_for() -> None:
    answer = fit_value({"value": "abcdef"}, 800, 4)

    assert (answer["value"], answer["truncated"]) == ("ef", False)


@pytest.mark.parametrize("begin", [3, 10])
def test_beyond_the_end_of_a_value_there_is_nothing(begin: int) -> None:
    with pytest.raises(ValidationFailed) as refused:
        fit_value({"value": "abc"}, 800, begin)

    assert refused.value.details["limit"] == 3


def test_a_cursor_is_the_number_it_says_and_the_first_page_begins_at_the_start() -> None:
    assert read_cursor(None) == 0
    assert read_cursor(None, start=7) == 7
    assert read_cursor("12") == 12
    assert read_cursor(str(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", " 1", "²", "١", "9" * 5_000, "9" * 19])
def test_a_cursor_that_no_answer_gave_is_refused(cursor: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read_cursor(cursor)

    assert refused.value.details == {"field": "cursor"}


def test_a_cursor_outside_its_bounds_is_refused_with_its_limit() -> None:
    for cursor in ("0", "11"):
        with pytest.raises(ValidationFailed) as refused:
            read_cursor(cursor, least=1, most=10)

        assert refused.value.details == {"field": "cursor", "limit": 10}


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (0, "key", "0 keys"),
        (3, "branch", "3 branches"),
        (1_000, "event", "1,000 events"),
    ],
)
def test_a_count_has_its_noun(count: int, noun: str, said: str) -> None:
    assert plural(count, noun) == said
