"""The token command: what it makes, shows and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run(path: Path, *given: str, status: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "stratagem", "--db", str(path), "--json", "token", *given],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == status, done.stderr or done.stdout
    return json.loads(done.stdout)


def test_a_token_is_shown_once_and_listed_without_its_secret(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    made = run(
        path, "create", "alice", "--scope", "memory:read, knowledge:write", "--expires", "1d"
    )

    (listed,) = run(path, "list")["tokens"]

    assert made["token"].startswith("strat_")
    assert listed["scopes"] == ["knowledge:write", "memory:read"]
    assert listed["workspaces"] == {"default": "member"}
    assert listed["state"] == "active"
    assert listed["expires"] > listed["created"]
    assert made["token"] not in json.dumps(run(path, "list"))
    assert run(path, "revoke", listed["id"])["state"] == "revoked"
    assert run(path, "list")["tokens"][0]["state"] == "revoked"


@pytest.mark.parametrize(
    "given",
    [
        ("create", "a b"),
        ("create", "x", "--scope", "memory:reed"),
        ("create", "x", "--scope", "memory:read", "--admin"),
        ("create", "x", "--workspace", "../up"),
        ("create", "x", "--workspace", "red:king"),
        ("create", "x", "--expires", "soon"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: tuple[str, ...]) -> None:
    path = tmp_path / "memory.db"

    assert run(path, *given, status=2)["error"] == "validation_error"
    assert run(path, "list")["tokens"] == []


def test_a_name_is_never_used_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    run(path, "create", "alice")
    run(path, "revoke", "alice")

    assert "is, or was" in run(path, "create", "alice", status=2)["message"]
    assert run(path, "revoke", "nobody", status=3)["error"] == "resource_not_found"
