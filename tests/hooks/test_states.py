"""Whatever state the database is in, a hook ends well, quickly and without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem.capture.spool_files import Spool
from tests.hooks.client import Client, make_project

LEAN = ("typer", "rich", "pydantic", "numpy", "mcp", "pathlib", "stratagem.bootstrap")


@contextmanager
def _damaged(database: Path) -> Iterator[None]:
    data = bytearray(database.read_bytes())
    data[100 : len(data) // 2] = os.urandom(len(data) // 2 - 100)
    database.write_bytes(data)
    for name in ("-wal", "-shm"):
        Path(f"{database}{name}").unlink(missing_ok=True)
    yield


@contextmanager
def _not_ours(database: Path) -> Iterator[None]:
    database.write_bytes(b"this is no database at all" * 100)
    yield


@contextmanager
def _newer(database: Path) -> Iterator[None]:
    connection = apsw.Connection(str(database))
    connection.pragma("user_version", 999)
    connection.close()
    yield


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    connection = apsw.Connection(str(database))
    connection.pragma("locking_mode", "exclusive")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("UPDATE settings SET value = value")
    yield
    connection.execute("ROLLBACK")
    connection.close()


@pytest.mark.parametrize("state", [_damaged, _not_ours, _newer, _locked])
def test_a_database_that_cannot_be_used_is_answered_with_nothing(
    state: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    database = make_project(tmp_path)
    client = Client("claude-code", tmp_path)

    with state(database):
        answers = [
            client.send(step, {"STRATAGEM_DEBUG": "", "STRATAGEM_HOOK_TIME_LIMIT": "3"})
            for step in ("start", "prompt", "failure", "stop")
        ]

    assert [answer.status for answer in answers] == [0, 0, 0, 0]
    assert [answer.context for answer in answers] == ["", "", "", ""]


def test_no_database_is_made_that_nobody_asked_for(tmp_path: Path) -> None:
    client = Client("claude-code", tmp_path)
    (tmp_path / ".stratagem").mkdir()

    answers = [client.send(step) for step in ("start", "prompt", "failure", "stop", "end")]

    assert {(answer.status, answer.output) for answer in answers} == {(0, "")}
    assert list((tmp_path / ".stratagem").iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hook_event_name": 5}', "\x00\xff", '{"a":1}'])
def test_what_is_no_event_is_answered_with_nothing(text: str, tmp_path: Path) -> None:
    make_folder = tmp_path / ".stratagem"
    make_folder.mkdir()

    answer = Client("claude-code", tmp_path).send_text(text)

    assert (answer.status, answer.output, answer.errors) == (0, "", "")


def test_what_was_captured_waits_until_the_database_can_be_written(tmp_path: Path) -> None:
    database = make_project(tmp_path)
    client = Client("claude-code", tmp_path)

    with _locked(database):
        client.send("unrelated")
        client.send("stop", {"STRATAGEM_DEBUG": "", "STRATAGEM_HOOK_TIME_LIMIT": "3"})
    waited = not Spool(str(database)).is_empty()
    with stratagem.open(database) as db:
        # Whoever opens the database next has it written.
        texts = [str(event.data) for event in db.memory.events().results]

    assert waited
    assert Spool(str(database)).is_empty()
    assert sum("haiku" in text for text in texts) == 1
    assert sum("pyyaml was missing" in text for text in texts) == 1


@pytest.mark.parametrize("step", ["prompt", "failure", "success"])
def test_prompts_and_tools_import_nothing_heavy(step: str, tmp_path: Path) -> None:
    make_project(tmp_path)
    client = Client("claude-code", tmp_path)
    client.send("start")
    event = json.dumps(client.events[step]).replace("$CWD", str(tmp_path))
    script = (
        "import os, sys\n"
        "end = os._exit\n"
        "def report(status):\n"
        "    print('\\n' + ' '.join(sys.modules), file=sys.stderr, flush=True)\n"
        "    end(status)\n"
        "os._exit = report\n"
        "sys.argv = ['stratagem', 'hook', 'claude-code']\n"
        "from stratagem.surfaces.cli import main\n"
        "main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], input=event.encode(), capture_output=True, check=True
    )

    imported = set(done.stderr.decode().split())
    assert "stratagem.hooks.command" in imported
    assert imported.isdisjoint(LEAN)
    assert b"additionalContext" in done.stdout or step == "success"


def test_secrets_are_masked_before_anything_touches_the_disk(tmp_path: Path) -> None:
    database = make_project(tmp_path)
    secret = "ghp_" + "a1B2" * 9

    Client("claude-code", tmp_path).send_event(
        "UserPromptSubmit", prompt=f"Why does {secret} not work for the registry?"
    )

    kept = [path.read_text() for path in Path(f"{database}-hooks").rglob("*") if path.is_file()]
    assert kept
    assert not any(secret in text for text in kept)


def test_what_was_injected_is_never_captured(tmp_path: Path) -> None:
    database = make_project(tmp_path)
    client = Client("claude-code", tmp_path)
    brief = client.send("start").context

    client.send_event("UserPromptSubmit", prompt=f"{brief}\nAnd now something else entirely")
    client.send_event("Stop", last_assistant_message=f"As noted: {brief}")

    with stratagem.open(database) as db:
        texts = [event.data["content"] for event in db.memory.events().results]
    assert texts == ["And now something else entirely", "As noted:"]
