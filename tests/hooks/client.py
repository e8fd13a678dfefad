"""A client of a coding agent, as far as hooks are concerned."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import stratagem
from tests import forkserver

EVENTS = Path(__file__).parent / "events"
CLIENTS = ("claude-code", "codex", "gemini", "vscode", "cursor", "opencode")
_numbers = itertools.count()
ERROR = (
    'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in <module>\n'
    "    import yaml\nModuleNotFoundError: No module named 'yaml'"
)


def _unlike_others() -> dict[str, int]:
    """Return what tells an event from all others, as ids and times of clients do."""
    return {"duration_ms": next(_numbers)}


class Answer(NamedTuple):
    status: int
    output: str
    errors: str

    @property
    def context(self) -> str:
        """What the client puts before the model."""
        if not self.output.strip():
            return ""
        told: dict[str, Any] = json.loads(self.output)
        nested = told.get("hookSpecificOutput", {}).get("additionalContext")
        return nested or told.get("additional_context") or told.get("context") or ""


class Client:
    """Calls the real command, as a client does."""

    def __init__(self, name: str, folder: Path, session: str = "session-1") -> None:
        self.name = name
        self.folder = folder
        self.session = session
        self.events: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())

    def send(self, step: str, environment: Mapping[str, str] | None = None) -> Answer:
        """Send a recorded event."""
        text = json.dumps(self.events[step] | _unlike_others())
        text = text.replace("$CWD", str(self.folder)).replace("$SESSION", self.session)
        return self.send_text(text, environment)

    def send_event(self, name: str, **fields: Any) -> Answer:
        """Send an event in the form that most clients have."""
        event = {"hook_event_name": name, "session_id": self.session, "cwd": str(self.folder)}
        return self.send_text(json.dumps(event | _unlike_others() | fields))

    def send_text(self, text: str, environment: Mapping[str, str] | None = None) -> Answer:
        done = forkserver.run(
            [sys.executable, "-m", "stratagem", "hook", self.name],
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=120,
            env={
                **os.environ,
                "STRATAGEM_DEBUG": "1",
                "STRATAGEM_HOOK_TIME_LIMIT": "60",
                **(environment or {}),
            },
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def make_project(folder: Path) -> Path:
    """Make a project with a memory that knows something; return the database."""
    (folder / ".stratagem").mkdir(parents=True)
    database = folder / ".stratagem" / "stratagem.db"
    with stratagem.open(database) as db:
        db.memory.store(
            "deploy/staging",
            "Staging deploys run with `make deploy-staging`; the token is in vault under ci/staging",
        )
        db.memory.store("billing/owner", "Mara Lindqvist owns the billing service", tags=["pinned"])
        db.memory.store("task/auth", "Move sign-in to OAuth by June", tags=["task"])
        db.memory.store("office/plants", "The ficus in the kitchen is watered on Mondays")
        added = db.debugging.add_incident(
            "yaml is not installed",
            ["Run pip install pyyaml in the project's environment"],
            "auto",
            True,
            error_signature=ERROR,
        )
        assert added.solution_id is not None
        db.debugging.record_outcome(added.solution_id, True, "auto")
    return database
