"""Many sessions at once, processes that are killed, and a disk that takes no more."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

import stratagem
from stratagem.capture.spool_files import Spool
from tests.hooks.client import CLIENTS, Client, make_project

SESSIONS = 10
PROMPTS = 3


def texts(database: Path) -> Counter[str]:
    with stratagem.open(database) as db:
        events = db.memory.events(limit=500).results
    return Counter(event.data["content"] for event in events if event.event == "message")


@pytest.mark.slow
def test_ten_sessions_at_once_lose_and_repeat_nothing(tmp_path: Path) -> None:
    database = make_project(tmp_path)

    def session(number: int) -> None:
        client = Client("claude-code", tmp_path, f"session-{number}")
        assert client.send("start").status == 0
        for place in range(PROMPTS):
            said = f"Prompt {place} of session {number}"
            assert client.send_event("UserPromptSubmit", prompt=said).status == 0
            answer = f"Answer {place} of session {number}"
            assert client.send_event("Stop", last_assistant_message=answer).status == 0
        assert client.send("end").status == 0

    with ThreadPoolExecutor(SESSIONS) as workers:
        list(workers.map(session, range(SESSIONS)))

    expected = {
        f"{what} {place} of session {number}": 1
        for what in ("Prompt", "Answer")
        for place in range(PROMPTS)
        for number in range(SESSIONS)
    }
    assert texts(database) == expected


@pytest.mark.parametrize("name", CLIENTS)
def test_an_event_that_several_hooks_are_called_with_is_answered_and_kept_once(
    tmp_path: Path, name: str
) -> None:
    database = make_project(tmp_path)
    client = Client(name, tmp_path)
    client.send("start")

    def call(step: str) -> list[str]:
        event = json.dumps(client.events[step]).replace("$SESSION", client.session)
        text = event.replace("$CWD", str(tmp_path))
        with ThreadPoolExecutor(2) as hooks:
            return [each.context for each in hooks.map(client.send_text, (text, text))]

    told = [call("prompt"), call("failure"), call("stop")]

    assert all("" in answers for answers in told)
    assert set(texts(database).values()) == {1}
    with stratagem.open(database) as db:
        assert len(db.memory.events("tool").results) == 1


def test_an_event_that_comes_again_later_is_another(tmp_path: Path) -> None:
    database = make_project(tmp_path)
    client = Client("claude-code", tmp_path)
    prompt = {"prompt": "continue", "duration_ms": 0}
    client.send_event("UserPromptSubmit", **prompt)

    for mark in Path(f"{database}-hooks", "calls").iterdir():
        os.utime(mark, (mark.stat().st_mtime - 5,) * 2)
    client.send_event("UserPromptSubmit", **prompt)
    client.send_event("Stop", last_assistant_message="")

    assert texts(database) == {"continue": 2}


@pytest.mark.slow
def test_a_hook_that_is_killed_at_any_moment_loses_and_repeats_nothing(tmp_path: Path) -> None:
    database = make_project(tmp_path)
    client = Client("claude-code", tmp_path)
    random = Random(20)
    for number in range(12):
        client.send_event("UserPromptSubmit", prompt=f"Kept prompt {number}")
        event = {
            "hook_event_name": "Stop",
            "session_id": client.session,
            "cwd": str(tmp_path),
            "last_assistant_message": "",
            "duration_ms": number,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "stratagem", "hook", "claude-code"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "STRATAGEM_HOOK_TIME_LIMIT": "60"},
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(event).encode())
        process.stdin.close()
        try:
            process.wait(random.uniform(0.05, 3.0))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()

    assert texts(database) == {f"Kept prompt {number}": 1 for number in range(12)}
    assert Spool(str(database)).is_empty()


def test_a_batch_that_was_written_before_a_crash_is_not_written_again(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    stratagem.open(database).close()
    spool = Spool(str(database))
    data = {"role": "user", "content": "once"}
    spool.put({"do": "log", "event": "message", "data": data, "source": "user", "key": "s"})
    with spool.batches() as batches:
        [(name, _items)] = list(batches)
    folder = Path(f"{database}-hooks") / "spool"
    batch = (folder / f"{name}.json").read_bytes()
    stratagem.open(database).close()

    # As if the process had been killed after the commit, before the batch was removed.
    (folder / f"{name}.json").write_bytes(batch)
    stratagem.open(database).close()

    assert texts(database) == {"once": 1}
    assert spool.is_empty()


def test_a_disk_that_takes_no_more_is_answered_with_silence(tmp_path: Path) -> None:
    make_project(tmp_path)
    client = Client("claude-code", tmp_path)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    for step in ("prompt", "failure", "stop"):
        event = json.dumps(client.events[step]).replace("$CWD", str(tmp_path))
        done = subprocess.run(
            [sys.executable, "-m", "stratagem", "hook", "claude-code"],
            input=event.encode(),
            capture_output=True,
            check=False,
            preexec_fn=limit,
            env={**os.environ, "STRATAGEM_HOOK_TIME_LIMIT": "20"},
        )

        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
