"""Hooks that call a running server: the answers of the command, and who is answered."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import stratagem
from tests import forkserver
from tests.hooks.client import Answer, Client, make_project
from tests.surfaces.serving import Served, serving

PATH = "/stratagem/hook/claude-code"
_IDS = re.compile(r"look_[0-9a-f]+|sol_\w+|\(\d{4}-\d\d-\d\d\)")


class ServedClient(Client):
    """A client whose hooks call a server, but for the start of a session, which is a command."""

    def __init__(self, folder: Path, served: Served, session: str = "session-1") -> None:
        super().__init__("claude-code", folder, session)
        self.served = served

    def send_text(self, text: str, environment: Mapping[str, str] | None = None) -> Answer:
        if json.loads(text)["hook_event_name"] == "SessionStart":
            return super().send_text(text, environment)
        done = self.served.client.post(PATH, content=text.encode())
        return Answer(done.status_code - 200, done.text, "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture
def served(project: Path) -> Iterator[Served]:
    with serving(project / ".stratagem" / "stratagem.db") as running:
        yield running


def memory_of(folder: Path) -> tuple[list[str], tuple[int, int]]:
    with stratagem.open(folder / ".stratagem" / "stratagem.db") as db:
        events = db.memory.events(limit=100).results
        texts = [f"{each.source} {each.data}".replace(str(folder), "") for each in events]
        [solution] = db.debugging.list_solutions().results
    return texts, (solution.worked, solution.failed)


def test_a_server_answers_and_keeps_what_the_command_does(
    project: Path, served: Served, tmp_path: Path
) -> None:
    other = tmp_path / "commands"
    make_project(other)
    by_server, by_command = ServedClient(project, served), Client("claude-code", other)

    answers = [
        [_IDS.sub("", client.send(step).context) for step in client.events]
        for client in (by_server, by_command)
    ]

    assert answers[0] == answers[1]
    assert any("pip install pyyaml" in context for context in answers[0])
    assert any("make deploy-staging" in context for context in answers[0])
    assert memory_of(project) == memory_of(other)


def test_another_projects_memory_is_left_to_the_command(
    project: Path, served: Served, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    make_project(other)
    before = memory_of(project)

    answer = ServedClient(other, served).send("prompt")

    assert (answer.status, answer.context) == (0, "")
    assert memory_of(project) == before
    assert not (other / ".stratagem" / "stratagem.db-hooks").exists()


def test_switches_of_the_project_hold_for_a_server(project: Path, served: Served) -> None:
    (project / ".stratagem" / "config.toml").write_text('hooks_off = "prompt"\n')

    off = ServedClient(project, served).send("prompt")
    (project / ".stratagem" / "config.toml").unlink()
    on = ServedClient(project, served).send("prompt")

    assert off.context == ""
    assert "make deploy-staging" in on.context


def test_who_is_answered_and_with_what(served: Served) -> None:
    bodies = (
        b"",
        b"[]",
        b"no json",
        b'{"hook_event_name": "Unknown"}',
        b'{"prompt": "half \\ud83d"}',
    )

    no_events = [served.client.post(PATH, content=body) for body in bodies]
    elsewhere = served.client.post(PATH, content=b"{}", headers={"x-forwarded-for": "192.0.2.7"})
    page = served.client.post(PATH, content=b"{}", headers={"origin": "https://evil.example"})
    unknown = served.client.post("/stratagem/hook/nobody", content=b"{}")

    assert {(each.status_code, each.text) for each in no_events} == {(200, "{}")}
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "permission_denied")
    assert page.status_code == 403
    assert unknown.status_code == 404


def make_token(database: Path, name: str, *scopes: str) -> str:
    command = [sys.executable, "-m", "stratagem", "--db", str(database), "token", "create", name]
    given = [word for scope in scopes for word in ("--scope", scope)]
    made = forkserver.run([*command, *given, "--json"], capture_output=True, check=True)
    return str(json.loads(made.stdout)["token"])


def test_a_token_gets_fixes_only_if_it_may_use_the_debugging_memory(project: Path) -> None:
    database = project / ".stratagem" / "stratagem.db"
    tokens = {
        "both": make_token(database, "both", "memory:write", "debugging:write"),
        "memory": make_token(database, "memory", "memory:write"),
    }

    told = {}
    with serving(database) as served:
        for name, token in tokens.items():
            served.client.headers["authorization"] = f"Bearer {token}"
            client = ServedClient(project, served, f"session-of-{name}")
            # The first is the start of a session, which the server does not answer.
            told[name] = [client.send(step).context for step in [*client.events][1:]]

    assert "pip install pyyaml" in str(told["both"])
    assert "pip install" not in str(told["memory"])
    assert all("make deploy-staging" in str(each) for each in told.values())


def test_a_token_must_allow_writing(project: Path) -> None:
    database = project / ".stratagem" / "stratagem.db"
    tokens = {
        name: make_token(database, name, scope)
        for name, scope in (("writer", "memory:write"), ("reader", "memory:read"))
    }

    with serving(database) as served:
        statuses = [
            served.client.post(
                PATH, content=b"{}", headers={"authorization": f"Bearer {token}"} if token else {}
            ).status_code
            for token in ("", tokens["reader"], tokens["writer"])
        ]

    assert statuses == [401, 403, 200]
