"""Open schemas, as most servers publish them: no name is passed on in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.engine.evidence import Observation, believe
from stratagem.gateway.correction import Hint, HintKind, correct, ready, remarks

READ: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "head": {"type": "number"},
        "max_results": {"type": "integer"},
        "excludePatterns": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"author": {"type": "string"}}},
    },
    "required": ["path"],
}


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "additionalProperties": False}


@pytest.mark.parametrize(
    "sent", [{"file": "a.txt"}, {"wherever": "a.txt"}, {"pth": "a.txt"}, {"PATH": "a.txt"}]
)
def test_a_misnamed_required_parameter_is_offered_like_on_a_closed_schema(
    sent: dict[str, Any],
) -> None:
    on_open, on_closed = correct(READ, sent), correct(closed(READ), sent)

    assert on_open.applied == on_closed.applied
    assert on_open.candidates[0].arguments == {"path": "a.txt"}
    assert on_open.candidates[0].confidence == on_closed.candidates[0].confidence


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"haed": 5}, {"head": 5}),
        ({"exclude_pattern": ["x"]}, {"excludePatterns": ["x"]}),
        ({"exclude_pattern": "x"}, {"excludePatterns": ["x"]}),
        ({"filter": {"autor": "ada"}}, {"filter": {"author": "ada"}}),
    ],
)
def test_a_slip_in_a_valid_call_is_offered_and_not_run(
    sent: dict[str, Any], meant: dict[str, Any]
) -> None:
    found = correct(READ, {"path": "a.txt", **sent})

    assert found.applied is None
    assert found.candidates[0].arguments == {"path": "a.txt", **meant}
    assert found.candidates[-1].arguments == {"path": "a.txt", **sent}
    assert "is not a parameter" in found.errors[0].message


def test_another_spelling_of_a_parameter_is_that_parameter() -> None:
    found = correct(READ, {"path": "a.txt", "maxResults": "5"})

    assert found.applied == {"path": "a.txt", "max_results": 5}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"limit": 5}, "Did you mean 'max_results'?"),
        ({"foo": 1}, "$.foo is not a parameter"),
        ({"filter": {"writer": "ada"}}, "$.filter.writer is not a parameter"),
    ],
)
def test_what_may_be_another_name_is_passed_on_with_a_remark(
    sent: dict[str, Any], told: str
) -> None:
    arguments = {"path": "a.txt", **sent}

    found = correct(READ, arguments)

    assert found.applied == arguments
    assert found.valid
    (remark,) = remarks(ready(READ), arguments)
    assert told in remark


@pytest.mark.parametrize("others", [True, {}, {"type": "number"}])
def test_names_that_a_schema_expects_are_taken_as_they_are(others: Any) -> None:
    schema = {**READ, "additionalProperties": others}
    sent = {"path": "a.txt", "haed": 5, "volume": 3}

    found = correct(schema, sent)

    assert found.applied == sent
    assert remarks(ready(schema), sent) == [
        "$.haed is not a parameter and was passed on unchanged. Did you mean 'head'?"
    ]


def test_a_name_of_another_form_is_no_slip() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "head": {"type": "number"}},
        "anyOf": [{"properties": {"heads": {"type": "number"}}}, {"required": ["head"]}],
    }

    assert correct(schema, {"path": "a.txt", "heads": 2}).applied == {"path": "a.txt", "heads": 2}


def test_a_parameter_that_is_given_is_not_meant_by_another_name() -> None:
    sent = {"path": "a.txt", "head": 5, "haed": 6}

    assert correct(READ, sent).applied == sent


class Confirmed:
    """Somebody confirmed, so many times, what a name means."""

    def __init__(self, form: str, meaning: str, times: int) -> None:
        self._form, self._meaning = form, meaning
        self._belief = believe([Observation(worked=True, weight=times)])

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        del path
        known = kind is HintKind.ALIAS and form == self._form
        return [Hint(self._meaning, self._belief)] if known else []


NAMES = (
    "path", "query", "limit", "head", "max_results", "recipient", "city", "start_date", "tags",
    "file_name", "user_id", "message", "timeout_ms", "category", "include_hidden",
)  # fmt: skip
OTHERS = (
    "file", "q", "count", "haed", "maxResults", "to", "place", "from", "tag", "filename", "uid",
    "text", "timeout", "kind", "hidden", "wherever", "qurey", "msg", "begin", "thing", "x",
)  # fmt: skip


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True),
    required=st.integers(0, 5),
    damaged=st.integers(0, 4),
    other=st.sampled_from(OTHERS),
    is_closed=st.booleans(),
    times=st.integers(1, 40),
)
def test_confirming_an_offer_never_lowers_its_confidence(
    names: list[str], required: int, damaged: int, other: str, is_closed: bool, times: int
) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names[:required],
    }
    if is_closed:
        schema["additionalProperties"] = False
    changed = names[damaged % len(names)]
    sent = {other if name == changed else name: f"value of {name}" for name in names}

    for offer in correct(schema, sent).candidates:
        moved = [each for each in offer.changes if each.before == other and each.after in names]
        if not moved:
            continue
        again = correct(schema, sent, learned=Confirmed(other, moved[0].after, times))
        same = [each for each in again.candidates if each.arguments == offer.arguments]

        assert same
        assert same[0].confidence >= offer.confidence
