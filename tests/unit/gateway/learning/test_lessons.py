"""What a call that was made again says about the one before it, without anybody's values."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.correction import HintKind
from stratagem.gateway.learning.lessons import (
    EvidenceCount,
    Lesson,
    Lessons,
    from_retry,
    has_only_names,
    hash_form,
    mask_unknown_names,
    parse_group,
    property_names,
    teacher_of,
)

SCHEMA = {
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "page": {"type": "integer"},
        "inner": {"properties": {"city": {"type": "string"}}},
    }
}


@pytest.mark.parametrize(
    ("refused", "worked", "learned"),
    [
        ({"q": "tea tree"}, {"query": "tea tree"}, {"q": "query"}),
        ({"q": "tea tree", "max": "25"}, {"query": "tea tree", "limit": 25},
         {"q": "query", "max": "limit"}),
        ({"max": 5}, {"limit": 5}, {"max": "limit"}),
        # Two changes at once, and a value that may be there by chance.
        ({"max": 5, "query": "a"}, {"limit": 5, "query": "b"}, {}),
        # The same value twice: which went where?
        ({"a": "same", "b": "same"}, {"query": "same", "page": 1}, {}),
        # Something else altogether.
        ({"q": "tea"}, {"query": "coffee"}, {}),
        ({"q": True}, {"limit": 1}, {}),
        ({"inner": {"town": "Oslo"}}, {"inner": {"city": "Oslo"}}, {"town": "city"}),
        ("text", {"query": "text"}, {}),
    ],
)  # fmt: skip
def test_only_what_clearly_moved_is_a_lesson(refused: Any, worked: Any, learned: Any) -> None:
    found = {each.form: each.meaning for each in from_retry(refused, worked, SCHEMA)}

    assert found == {hash_form(word): meaning for word, meaning in learned.items()}


def test_lessons_of_a_later_version_are_passed_over() -> None:
    known = Lesson(HintKind.ALIAS, "$", "f", "query")
    found = Lessons({"search": {known: {"t": EvidenceCount(1, 0)}}})

    assert found.count() == 1
    assert parse_group("search\x1ffuture\x1f$\x1ff\x1fquery\x1ft") is None
    assert parse_group("too\x1fshort") is None


WAYS: dict[str, Any] = {
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "days": {"type": "array", "items": {"type": "string", "format": "date"}},
        "day": {"type": "string", "format": "date"},
    }
}


@pytest.mark.parametrize(
    ("refused", "worked", "lesson"),
    [
        ({"tags": "a, b"}, {"tags": ["a", "b"]}, (HintKind.LIST, "$.tags", ",", "split")),
        ({"tags": "a\nb"}, {"tags": ["a", "b"]}, (HintKind.LIST, "$.tags", "\n", "split")),
        ({"tags": "a, b"}, {"tags": ["a, b"]}, (HintKind.LIST, "$.tags", ",", "whole")),
        ({"tags": "a, b"}, {"tags": ["a"]}, None),
        ({"tags": "a, b"}, {"tags": ["a", "c"]}, None),
        ({"tags": "a"}, {"tags": ["a"]}, None),
        (
            {"day": "3/4/2024"},
            {"day": "2024-04-03"},
            (HintKind.DATE_ORDER, "$.day", "day/month", "dayFirst"),
        ),
        (
            {"day": "3/4/2024"},
            {"day": "2024-03-04"},
            (HintKind.DATE_ORDER, "$.day", "day/month", "monthFirst"),
        ),
        ({"day": "3/4/2024"}, {"day": "2025-03-04"}, None),
        ({"day": "3/3/2024"}, {"day": "2024-03-03"}, None),
    ],
    ids=str,
)
def test_what_was_written_out_says_how_it_was_written(
    refused: Any, worked: Any, lesson: tuple[HintKind, str, str, str] | None
) -> None:
    found = from_retry(refused, worked, WAYS)

    if lesson is None:
        assert found == []
    else:
        kind, path, form, meaning = lesson
        assert found == [Lesson(kind, path, hash_form(form), meaning)]


def test_separators_that_are_only_space_are_told_apart() -> None:
    assert len({hash_form(form) for form in ("\n", "\t", ",", ";")}) == 4


BOOK = {
    "type": "object",
    "properties": {
        "people": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "mood": {"type": "string", "enum": ["glad", "sad"]},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
        }
    },
}


def test_a_place_is_told_by_names_of_the_schema() -> None:
    names = property_names(BOOK)

    assert names == {"people", "name", "mood"}
    assert mask_unknown_names("$.people.a.b@c.d.mood", names) == "$.people.*.mood"
    assert mask_unknown_names("$.people[3].name", names) == "$.people[3].name"
    assert mask_unknown_names("$.people['a[0].b'].mood", names) == "$.people.*.mood"
    assert mask_unknown_names("$['people'][2]", names) == "$['people'][2]"
    assert has_only_names("$", names)
    assert has_only_names("$.people[*].name", names)
    assert not has_only_names("$.people.ann", names)


def test_a_teacher_is_told_apart_and_not_named() -> None:
    assert teacher_of("mary", "one") != teacher_of("bob", "one")
    assert "mary" not in teacher_of("mary", "one")
