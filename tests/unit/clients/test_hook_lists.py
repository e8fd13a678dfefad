"""Hooks as clients call them: the lists of events, and the plugin of opencode."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stratagem.clients.hook_lists import HOOKS, is_own_handler, plugin_source
from stratagem.hooks.clients import parse_event
from tests.manifest import proves

PROGRAM = str(Path(sys.executable).parent / "stratagem")


@pytest.mark.parametrize(
    ("client", "event"), [(client, hook.event) for client, hooks in HOOKS.items() for hook in hooks]
)
def test_every_event_that_is_set_up_is_one_that_the_hooks_answer(client: str, event: str) -> None:
    read = parse_event(client, json.dumps({"hook_event_name": event, "session_id": "s"}))

    assert read is not None
    assert read.name == event


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("stratagem hook codex", True),
        ("'/a b/stratagem' hook codex", True),
        ("uvx stratagem hook codex", True),
        ("stratagem --db '/a b/m.db' hook codex", True),
        ("stratagem --db hook codex", False),
        (r"'C:\tools\stratagem.exe' hook codex", True),
        ("stratagem mcp", False),
        ("echo stratagem; hook", False),
        ("'unfinished", False),
    ],
)
def test_a_hook_of_ours_is_known_by_its_command(command: str, ours: bool) -> None:
    assert is_own_handler({"type": "command", "command": command}) is ours


CONVERSATION = """
import { StratagemPlugin } from "./stratagem.mjs"
const client = { session: { messages: async () => ({ data: [] }) } }
const hooks = await StratagemPlugin({ client, directory: process.argv[2] })
const ask = async (text) => {
  const output = { message: { id: "m" }, parts: [{ type: "text", text }] }
  await hooks["chat.message"]({ sessionID: "s" }, output)
  return output.parts.slice(1)
}
const first = await ask("How do I deploy to staging?")
const again = await ask("How do I deploy to staging?")
const failed = { output: "boom", metadata: { exit: 1 } }
await hooks["tool.execute.after"]({ sessionID: "s", tool: "bash", args: { command: "x" } }, failed)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "s" } } } })
console.log(JSON.stringify({ first, again, failed }))
"""


def run_plugin(folder: Path, program: list[str]) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is needed to run the plugin of opencode")
    (folder / "stratagem.mjs").write_text(plugin_source(program))
    (folder / "conversation.mjs").write_text(CONVERSATION)
    done = subprocess.run(
        [node, "conversation.mjs", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return dict(json.loads(done.stdout))


@proves("init:hooks-of-opencode")
def test_the_plugin_of_opencode_brings_a_memory_to_a_prompt_and_logs_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STRATAGEM_DB", raising=False)
    (tmp_path / ".stratagem").mkdir()
    database = tmp_path / ".stratagem" / "stratagem.db"
    note = ("deploy/staging", "Staging deploys run with make deploy-staging")
    subprocess.run([PROGRAM, "--db", database, "store", *note], check=True, capture_output=True)

    said = run_plugin(tmp_path, [PROGRAM])
    logged = subprocess.run(
        [PROGRAM, "--db", database, "--json", "events"],
        check=True,
        capture_output=True,
        text=True,
    )

    (part,) = said["first"]
    assert "make deploy-staging" in part["text"]
    assert part["synthetic"] is True
    assert "make deploy-staging" not in json.dumps(said["again"])
    assert "How do I deploy to staging?" in logged.stdout


@pytest.mark.parametrize("program", ["/no/such/program", "/bin/cat"])
def test_the_plugin_of_opencode_adds_nothing_where_the_command_fails(
    tmp_path: Path, program: str
) -> None:
    said = run_plugin(tmp_path, [program])

    assert (said["first"], said["again"]) == ([], [])
    assert said["failed"]["output"] == "boom"
