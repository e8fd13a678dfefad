"""Which descriptions say that a tool is deprecated."""

from __future__ import annotations

import pytest

from stratagem.gateway.registry.tools import Tool


def tool(description: str) -> Tool:
    content = {"id": "tool_a", "name": "a", "inputSchema": {}, "handler": {"type": "client"}}
    return Tool({**content, "description": description}, 1)


@pytest.mark.parametrize(
    "description",
    [
        "DEPRECATED: Use read_text.",
        "[Deprecated] Read a file.",
        "Read a file as text. DEPRECATED: Use read_text_file instead.",
        "Read a file (deprecated).",
        "Read a file.\nDeprecated: use the other one.",
        "Read a file. This tool is deprecated and will go.",
        "Read a file. **DEPRECATED** soon gone.",
    ],
)
def test_a_tool_that_says_so_is_deprecated(description: str) -> None:
    assert tool(description).is_deprecated


@pytest.mark.parametrize(
    "description",
    [
        "Check if packages are deprecated",
        "List packages. Deprecated ones are left out.",
        "List versions by status: ACTIVE, DEPRECATED or DELETED.",
        "Find what replaces a deprecated function.",
    ],
)
def test_a_tool_about_deprecated_things_is_not(description: str) -> None:
    assert not tool(description).is_deprecated
