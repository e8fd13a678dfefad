"""9. Names and texts are never read as commands, SQL, search syntax, Cypher or paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from tests.security.house import SURFACES, House, Surface

HOSTILE = (
    "'; DROP TABLE events; --",
    '" OR 1=1 --',
    "a NEAR/0 b",
    'title:"x" OR *',
    "^(((",
    "{title body} : x",
    "MATCH (n) DETACH DELETE n",
    "$(touch {mark})",
    "`touch {mark}`",
    "| touch {mark}",
    "\ntouch {mark}\n",
    "../../etc/passwd",
    "..\\..\\x",
    "/etc/passwd",
    "file:///etc/passwd",
    "%2e%2e%2f",
    "{0.__class__}",
    "${{ steps.a.result }}",
    "\x1b[2J",
    "\u202egnp.exe",
    "𝒂" * 20,
)


@pytest.mark.parametrize("surface", SURFACES)
def test_hostile_text_is_only_text(house: House, surface: Surface, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    before = sorted(os.listdir(house.path.parent))

    for number, pattern in enumerate(HOSTILE):
        text = pattern.replace("{mark}", str(mark))
        value = {"key": text, "value": text, "tags": ["tag"]}
        stored = house.call(surface, "member", "strata_store", value)
        recalled = house.call(surface, "member", "strata_recall", {"key": text})
        found = house.call(surface, "member", "strata_search", {"query": text, "namespace": text})
        forked = house.call(surface, "member", "strata_branch", {"action": "fork", "name": text})
        if stored.error is None:
            assert recalled.answer["value"] == text, number
        for outcome in (stored, recalled, found, forked):
            assert outcome.error in {None, "validation_error", "branch_exists"}, (text, outcome)

    assert house.call(surface, "admin", "strata_status", {}).answer["keys"] >= 10
    assert not mark.exists()
    files = {each for each in os.listdir(house.path.parent) if not each.startswith("memory.db-")}
    assert files == {each for each in before if not each.startswith("memory.db-")}


@pytest.mark.parametrize(
    "name", ["../x", "..", ".", "a/b", "a\\b", "/tmp/x", "A", "a.db", "", "a b", "x" * 65, "\x00"]
)
def test_no_workspace_is_a_path(house: House, name: str) -> None:
    from stratagem.access.workspaces import place_of
    from stratagem.errors import ValidationFailed

    with pytest.raises(ValidationFailed, match="cannot be the name of a workspace"):
        place_of(str(house.path), name)
    if name.strip() and name.isprintable():
        refused = house.client("admin", **{"x-stratagem-workspace": name}).get("/api/mcp/tools")
        assert refused.status_code in {403, 400}


@pytest.mark.parametrize(
    "path", ["/api/../../etc/passwd", "/api/%2e%2e/%2e%2e/etc/passwd", "/..%2f"]
)
def test_no_route_is_a_file(house: House, path: str) -> None:
    assert house.client("admin").get(path).status_code == 404


def test_an_upstream_command_is_a_list_and_no_shell(house: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command: dict[str, Any] = {"name": "up", "command": f"true; touch {mark}", "args": ["$(id)"]}

    outcome = house.call("rest", "admin", "server_add", command)

    assert outcome.error is not None
    assert not mark.exists()


def test_nobody_but_an_administrator_names_a_program(house: House) -> None:
    for handler in (
        {"type": "python", "module": "os", "function": "system"},
        {"type": "code", "language": "python", "code": "1"},
        {"type": "mcp", "server": "x", "tool": "y"},
        {"type": "operation", "operation": "strata_purge"},
    ):
        tool = {"name": "t", "description": "d", "inputSchema": {}, "handler": handler}
        refused = house.client("member").post("/api/mcp/tools", json=tool)
        assert refused.status_code == 403, refused.text
        event = house.open_socket("member").call("mcp:tool:register", tool, timeout=60)
        assert event["error"]["code"] == "PERMISSION_DENIED"
    assert house.call("mcp", "member", "server_add", {"name": "x"}).error == "permission_denied"
    assert limits.TOKEN_NAME_CHARS_MAX
