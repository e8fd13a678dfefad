"""What holds for any schema and any arguments."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stratagem.gateway.correction import Policy, correct, name_slips, ready
from stratagem.gateway.correction.words import METADATA, normal

NAMES = ["city", "team_name", "days", "maxPrice", "min_price", "tags", "unit", "filter", "height",
         "weight", "charge1", "charge2", "name", "arguments", "reasoning"]  # fmt: skip
TEXTS = st.sampled_from(
    ["", "5", "3.7", "007", "true", "null", "None", "a, b", "Los Angeles, CA", "celsius", "CELSIUS",
     "[1, 2]", "{'a': 1}", '{"city": "x"}', "1,000", " x ", "x;y", "2024-01-02", "03/04/2024"]
) | st.text(max_size=12)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-5, 5000) | st.floats(-9, 9, width=16) | TEXTS
KEYS = st.sampled_from(
    [*NAMES, "City", "teamName", "dayz", "maxprice", "Tags", "filter.city", "wieght", "charge",
     "notes", "_meta", "zzz"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "minimum": 0},
        {"type": "boolean"},
        {"type": "string", "enum": ["celsius", "fahrenheit"]},
        {"type": ["integer", "null"]},
        {"type": "string", "format": "date"},
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        {"type": "integer", "default": 3},
        {"const": "x"},
        {},
    ]
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, required, closed: {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in required],
            **({"additionalProperties": False} if closed else {}),
        },
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4),
        st.sets(st.sampled_from(NAMES), max_size=5),
        st.booleans(),
    )


PARTS = st.recursive(
    LEAVES,
    lambda inner: objects(inner) | inner.map(lambda items: {"type": "array", "items": items}),
    max_leaves=4,
)
SCHEMAS = objects(PARTS)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
SENT = ARGUMENTS | ARGUMENTS.map(json.dumps) | ARGUMENTS.map(repr) | VALUES

quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(SCHEMAS, SENT)
def test_what_is_applied_is_valid(schema: Any, sent: Any) -> None:
    outcome = correct(schema, sent)

    validator = ready(schema).validator
    if outcome.applied is not None:
        assert validator.is_valid(outcome.applied)
    assert all(validator.is_valid(candidate.arguments) for candidate in outcome.candidates)


@quick
@given(SCHEMAS, SENT)
# Without its null `city` is what `City` means.
@example(
    {"type": "object", "properties": {"city": {"type": "string"}}}, {"City": False, "city": None}
)
@example(
    {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}},
    {"City": False, "unit": None},
)
def test_correcting_twice_changes_nothing(schema: Any, sent: Any) -> None:
    once = correct(schema, sent).applied

    if once is not None:
        twice = correct(schema, once)
        assert twice.applied is once
        assert twice.valid


@quick
@given(SCHEMAS, ARGUMENTS)
def test_valid_arguments_are_untouched_and_no_others(schema: Any, sent: Any) -> None:
    outcome = correct(schema, sent)

    valid = ready(schema).validator.is_valid(sent)
    # An open schema takes slips too, which are looked into.
    assert outcome.applied is sent or not valid or name_slips(ready(schema), sent)
    assert valid or outcome.applied is not sent


def leaves(value: Any) -> list[str]:
    """Every scalar as text, in the form that all its lossless forms share."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() if kept(key, inner) for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [] if value is None else [re.sub(r"[\W_]", "", str(value)).casefold()]


def kept(key: str, value: Any) -> bool:
    """What may go: what speaks about the call, and what holds nothing."""
    return normal(key) not in METADATA and value not in ("", "null", "None", "NULL", None)


TRUTHS = {
    "true": "1",
    "yes": "1",
    "on": "1",
    "y": "1",
    "false": "0",
    "no": "0",
    "off": "0",
    "n": "0",
}


def are_kept(given_leaves: list[str], applied_leaves: list[str]) -> bool:
    """Whether all letters are there still: splitting, parsing and wrapping keep them.

    A word such as "y" may stand for true, or be a letter of a text that was split.
    """
    return any(
        not Counter("".join(truths.get(leaf, leaf) for leaf in given_leaves))
        - Counter("".join(truths.get(leaf, leaf) for leaf in applied_leaves))
        for truths in (TRUTHS, {})
    )


@quick
@given(SCHEMAS, ARGUMENTS)
def test_nothing_that_was_given_is_lost(schema: Any, sent: Any) -> None:
    outcome = correct(schema, sent)

    if outcome.applied is not None and outcome.corrected:
        patterns = set(outcome.candidates[0].patterns)
        if not patterns & {"date_rewritten", "json_text_parsed", "python_literal_parsed",
                           "broken_json_repaired", "duplicate_key_removed", "enum_misspelling",
                           "call_object_unwrapped", "null_removed"}:  # fmt: skip
            assert are_kept(leaves(sent), leaves(outcome.applied))


def test_a_letter_of_a_text_that_is_split_is_no_truth() -> None:
    assert are_kept(["xy"], ["x", "y"])
    assert are_kept(["y"], ["true"])
    assert not are_kept(["xyz"], ["x", "y"])


@quick
@given(SCHEMAS, SENT)
def test_only_certain_changes_are_applied(schema: Any, sent: Any) -> None:
    outcome = correct(schema, sent, policy=Policy(confidence_threshold=0.0))

    if outcome.corrected:
        chosen = outcome.candidates[0]
        assert chosen.certain
        assert chosen.arguments == outcome.applied
        assert all(change.risk != "high" for change in chosen.changes)
    else:
        assert not any(candidate.certain for candidate in outcome.candidates)


@quick
@given(SCHEMAS, SENT)
def test_the_same_call_always_gets_the_same_answer(schema: Any, sent: Any) -> None:
    before = repr(sent)

    assert correct(schema, sent) == correct(schema, sent)
    assert repr(sent) == before
