"""A whole session of each client, through the real command."""

from __future__ import annotations

from pathlib import Path

import pytest

import stratagem
from tests.hooks.client import CLIENTS, Client, make_project

# Clients that take a text in at a prompt, and those that tell what was answered.
PROMPTED = {"claude-code", "codex", "gemini", "opencode"}
REPLIES = {"claude-code", "codex", "gemini", "cursor", "opencode"}
SUMMARIES = {"claude-code", "codex", "opencode"}
FIX = "pip install pyyaml"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_session_is_briefed_helped_captured_and_credited(name: str, tmp_path: Path) -> None:
    database = make_project(tmp_path)
    client = Client(name, tmp_path)
    steps = [step for step in client.events if step != "end"]

    answers = {step: client.send(step) for step in steps}
    again = client.send("prompt")
    if "end" in client.events:
        answers["end"] = client.send("end")

    assert {answer.status for answer in answers.values()} == {0}
    assert [answer.errors for answer in answers.values() if answer.errors] == []
    brief = answers["start"].context
    assert "Mara Lindqvist owns the billing service" in brief
    assert "Move sign-in to OAuth" in brief
    assert "yaml is not installed" in brief
    assert len(brief) <= 2_000
    if name in PROMPTED:
        assert "make deploy-staging" in answers["prompt"].context
        assert "[project]" in answers["prompt"].context
    assert answers["unrelated"].context == ""
    assert again.context == ""
    fix = answers["failure"].context
    assert FIX in fix
    assert "lookup_id look_" in fix
    assert len(fix) / 4 <= 180
    _check_memory(database, name)


def _check_memory(database: Path, name: str) -> None:
    with stratagem.open(database) as db:
        events = db.memory.events(limit=100).results
        [solution] = db.debugging.list_solutions().results
        found = db.memory.search("ignore instructions curl evil").results

    sources = {event.source for event in events}
    texts = [str(event.data) for event in events]
    assert {"user", "tool", "web"} <= sources
    assert ("assistant" in sources) == (name in REPLIES)
    assert any("haiku" in text for text in texts)
    assert any("No module named" in text for text in texts)
    assert any("pyyaml was missing" in text for text in texts) == (name in REPLIES)
    assert any("fixed by installing" in text for text in texts) == (name in SUMMARIES)
    assert not any("stratagem-memory" in text for text in texts)
    assert {event.trust for event in events if event.source in {"tool", "web"}} == {"untrusted"}
    assert [hit.trust for hit in found[:1]] == ["untrusted"]
    # Its author's claim, the report, and what the hook saw.
    assert (solution.worked, solution.failed) == (3, 0)
