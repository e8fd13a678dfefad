"""Lists of tools: what is cleaned, fingerprints, changes, names to register by."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.gateway.handlers.upstream import fingerprint
from stratagem.gateway.handlers.upstream.upstream_tools import (
    clean_line,
    clean_text,
    read_upstream_tools,
)

TOOL: dict[str, Any] = {
    "name": "read",
    "description": "Read a file",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.text(max_size=300))
def test_what_is_left_of_a_text_can_be_seen_and_stays_as_it_is(text: str) -> None:
    clean = clean_text(text, 100)

    assert len(clean) <= 100
    assert all(
        char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Co"} for char in clean
    )
    assert clean_text(clean, 100) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain words\n\twith lines", "plain words\n\twith lines"),
        ("\ufeffa\u200bb\u200dc\u2060d", "abcd"),
        ("left\u202eright\u2066x\u2069", "leftrightx"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("e\u0301", "é"),
        ("a\u3164b\u2800c\ufe0f", "abc"),
        ("bell\x07\x1b[31m", "bell[31m"),
        ("日本語 – Ünïcode ☕", "日本語 – Ünïcode ☕"),
    ],
)
def test_only_what_is_not_seen_is_taken_out(text: str, clean: str) -> None:
    assert clean_text(text, 1000) == clean


def test_a_line_is_one_line() -> None:
    assert clean_line("a\n b\t\tc", 10) == "a b c"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Read a file\u200b"},
        {"description": None},
        {"title": "Reader"},
        {"inputSchema": {"type": "object", "properties": {"path": {"type": "number"}}}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ],
)
def test_every_change_that_matters_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint({**TOOL, **change}) != fingerprint(TOOL)


def test_the_order_of_keys_and_other_fields_do_not() -> None:
    turned = dict(reversed(TOOL.items()))

    assert fingerprint({**turned, "_meta": {"seen": 5}, "outputSchema": None}) == fingerprint(TOOL)


@given(st.lists(st.text(max_size=140), max_size=10))
def test_any_name_becomes_one_that_can_be_registered_or_is_left_out(names: list[str]) -> None:
    listing = read_upstream_tools("files", [{**TOOL, "name": name} for name in names])

    registered = [tool.name for tool in listing.tools]

    assert len(set(registered)) == len(listing.tools)
    for name in registered:
        assert name.isascii()
        assert name[0].isalpha()
        assert len(name) <= 64
    assert len(listing.tools) + len([note for note in listing.notes if "left out" in note]) == len(
        names
    )


@given(st.lists(JSON, max_size=5))
def test_any_list_is_read(tools: list[Any]) -> None:
    listing = read_upstream_tools("files", tools)

    assert len(listing.tools) <= len(tools)


@given(JSON, JSON)
def test_any_schema_is_read_or_left_out(given_: Any, returned: Any) -> None:
    tool = {"name": "read", "inputSchema": given_, "outputSchema": returned}

    for listed in read_upstream_tools("files", [tool]).tools:
        assert listed.input_schema["type"] == "object"


def test_a_schema_that_is_too_deep_is_left_out() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"properties": {"a": deep}}

    assert read_upstream_tools("files", [{"name": "deep", "inputSchema": deep}]).tools == ()
