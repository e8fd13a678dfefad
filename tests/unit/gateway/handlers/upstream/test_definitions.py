"""Definitions of servers, and handlers that name one."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.handlers.upstream import read_definition

URL = "https://example.org/mcp"


@pytest.mark.parametrize(
    "document",
    [
        {
            "name": "a",
            "transport": "stdio",
            "command": "npx",
            "args": ["-y", "x"],
            "env": {"K": "${K}"},
        },
        {"name": "a", "transport": "http", "url": URL, "headers": {"Authorization": "Bearer ${K}"}},
    ],
)
def test_a_definition_reads_back_as_it_was_given(document: dict[str, Any]) -> None:
    assert read_definition(document).as_json() == document


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"transport": "sse"}, "transport"),
        ({"transport": []}, "transport"),
        ({"command": "npx"}, "command"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://me:secret@example.org/mcp"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"url": 5}, "url"),
        ({"headers": {"Authorization": "Bearer abc"}}, "headers.Authorization"),
        ({"headers": {"X-API-Key": "abc"}}, "headers.X-API-Key"),
        ({"headers": {"Host": "other"}}, "headers.Host"),
        ({"headers": {"Mcp-Session-Id": "x"}}, "headers.Mcp-Session-Id"),
        ({"headers": {"A": "b\r\nC: d"}}, "headers.A"),
        ({"headers": []}, "headers"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read_definition({"name": "a", "transport": "http", "url": URL} | change)

    assert refused.value.details["field"] == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"command": " "}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"args": "-y x"}, "args"),
        ({"args": [5]}, "args[0]"),
        ({"args": ["x"] * 1000}, "args"),
        ({"env": {"A=B": "c"}}, "env.A=B"),
        ({"env": {"A": None}}, "env.A"),
    ],
)
def test_a_wrong_command_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read_definition({"name": "a", "transport": "stdio", "command": "npx"} | change)

    assert refused.value.details["field"] == field
