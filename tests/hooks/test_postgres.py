"""Hooks of whoever keeps the memory on a PostgreSQL server: a session, and a server that is away."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import stratagem
from stratagem.bootstrap import has_workspace
from stratagem.capture.spool_files import Spool, hooks_folder
from tests.hooks.client import ERROR, Client


@pytest.fixture
def address(postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = f"{postgres_address}#hooks-{os.urandom(4).hex()}"
    monkeypatch.setenv("STRATAGEM_DB", place)
    return place


def test_a_session_is_captured_briefed_and_credited_on_a_server(
    address: str, tmp_path: Path
) -> None:
    with stratagem.open(address) as db:
        db.memory.store("billing/owner", "Mara owns the billing service", tags=["pinned"])
        added = db.debugging.add_incident(
            "yaml is not installed",
            ["Run pip install pyyaml in the project's environment"],
            "auto",
            True,
            error_signature=ERROR,
        )
    client = Client("claude-code", tmp_path)
    tool = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}}
    install = {"tool_name": "Bash", "tool_input": {"command": "pip install pyyaml"}}

    brief = client.send_event("SessionStart", source="startup").context
    prompt = client.send_event("UserPromptSubmit", prompt="Who owns the billing service?")
    failure = client.send_event("PostToolUseFailure", **tool, error=f"Exit code 1\n{ERROR}")
    client.send_event("PostToolUse", **install, tool_response={"stdout": "Installed pyyaml"})
    client.send_event("PostToolUse", **tool, tool_response={"stdout": "1 passed"})
    client.send_event("Stop", last_assistant_message="pyyaml was missing; it is installed now.")

    assert "Mara owns the billing service" in brief
    # Asking a server takes longer than a prompt may wait.
    assert (prompt.status, prompt.output) == (0, "")
    assert "pip install pyyaml" in failure.context
    with stratagem.open(address) as db:
        said = [each.data.get("content") for each in db.memory.events().results]
        assert "Who owns the billing service?" in said
        assert "pyyaml was missing; it is installed now." in said
        [solution] = db.debugging.list_solutions().results
    # Its author's claim, and what the hook saw.
    assert (solution.solution_id, solution.worked) == (added.solution_id, 2)


def test_hooks_make_no_workspace_on_a_server(address: str, tmp_path: Path) -> None:
    client = Client("claude-code", tmp_path)

    answers = [client.send(step) for step in ("start", "prompt", "stop")]

    assert [each.status for each in answers] == [0, 0, 0]
    assert not has_workspace(address)


def test_a_server_that_is_away_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    # Nobody listens there, and a connection is not refused: packets are lost.
    place = "postgresql://ada:secret@192.0.2.1:5432/team?connect_timeout=40"
    monkeypatch.setenv("STRATAGEM_DB", place)
    client = Client("claude-code", tmp_path)
    limited = {"STRATAGEM_HOOK_TIME_LIMIT": "8"}

    first = client.send("prompt", limited)
    waited = client.send("stop", limited)
    begun = time.monotonic()
    again = client.send("stop", {})
    seconds = time.monotonic() - begun

    assert [each.status for each in (first, waited, again)] == [0, 0, 0]
    assert [each.output for each in (first, waited, again)] == ["", "", ""]
    # Not as long as a connection is waited for, however busy the machine is.
    assert seconds < 20
    # What was said waits for the server, and no file names the password.
    assert not Spool(place).is_empty()
    kept = Path(hooks_folder(place))
    assert b"secret" not in b"".join(
        file.read_bytes() for file in kept.rglob("*") if file.is_file()
    )


def test_a_spool_belongs_to_a_database_whoever_connects() -> None:
    first = hooks_folder("postgresql://ada:one@db.example/team")
    second = hooks_folder("postgres://bob:two@db.example/team#default")

    assert first == second
    assert hooks_folder("postgresql://db.example/team#other") != first
    assert hooks_folder("postgresql://other.example/team") != first
