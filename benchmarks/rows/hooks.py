"""Hooks of coding agents: what a prompt, a failure and a tool cost beside `python -c pass`.

Each is a process of its own, as a client starts it; what counts is its time on the processor.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import stratagem
from benchmarks.bench import Bench, Row
from benchmarks.results import Figure

__all__ = ["HOOKS"]

_EXTRA_SECONDS: Final = 0.06
_INCIDENTS: Final = 200
_ERROR: Final = (
    'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in <module>\n'
    "    import yaml\nModuleNotFoundError: No module named 'yaml'"
)
_PROMPT: Final = "How do I deploy the billing service to the staging cluster?"


def cost(bench: Bench) -> Iterator[Figure]:
    """Send each event in a session of its own, by turns with an empty program."""
    for size in bench.sizes(10_000):
        dataset = bench.datasets.get(size, embedded=True)
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder)
            _make_project(project, dataset.ours_path)
            for name, event, answered in _events():
                yield _figure(bench, size, name, event, project, answered=answered)


def _make_project(project: Path, source: Path) -> None:
    (project / ".stratagem").mkdir()
    database = project / ".stratagem" / "stratagem.db"
    shutil.copy(source, database)
    with stratagem.open(database) as db:
        db.memory.store(
            "deploy/staging", "The billing service is deployed to staging by `make deploy-staging`"
        )
        for number in range(_INCIDENTS):
            db.debugging.add_incident(
                f"Cannot import module_{number}",
                [f"Install package_{number}"],
                "auto",
                worked=True,
                error_signature=f"ModuleNotFoundError: No module named 'module_{number}'",
            )
        db.debugging.add_incident(
            "yaml is missing",
            ["Run pip install pyyaml"],
            "auto",
            worked=True,
            error_signature=_ERROR,
        )
        db.memory.search("anything")
    _run(project, {"hook_event_name": "SessionStart"}, "start")


def _events() -> Iterator[tuple[str, dict[str, Any], bool]]:
    tool = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}}
    failed = {"hook_event_name": "PostToolUseFailure", **tool}
    yield "a prompt", {"hook_event_name": "UserPromptSubmit", "prompt": _PROMPT}, True
    yield "a known failure", {**failed, "error": f"Exit code 1\n{_ERROR}"}, True
    yield "an unknown failure", {**failed, "error": "Exit code 1\nsegmentation fault"}, False
    done = {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "ok"}}
    yield "a tool", {**done, **tool}, False


def _figure(
    bench: Bench, size: int, name: str, event: dict[str, Any], project: Path, *, answered: bool
) -> Figure:
    ours, plain = [], []
    for number in range(bench.rounds(15)):
        seconds, output = _run(project, event, f"session-{number}")
        assert bool(output.strip()) == answered, f"{name}: {output!r}"
        ours.append(seconds)
        plain.append(_time([sys.executable, "-c", "pass"], b"")[0])
    took, bare = median(ours), median(plain)
    return Figure(
        "hooks",
        name,
        size,
        took,
        "s",
        bare,
        "<= python -c pass + 60 ms",
        passed=took <= bare + _EXTRA_SECONDS,
        note="time on the processor, of the whole process",
    )


def _run(project: Path, event: dict[str, Any], session: str) -> tuple[float, bytes]:
    given = {"session_id": session, "cwd": str(project), **event}
    command = [sys.executable, "-c", _ENTRY, "hook", "claude-code"]
    return _time(command, json.dumps(given).encode())


# What the installed command runs.
_ENTRY: Final = "from stratagem.surfaces.cli import main; main()"


def _time(command: Sequence[str], given: bytes) -> tuple[float, bytes]:
    """Run a command; return its time on the processor, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, done.stdout


HOOKS: Final = Row("hooks", "what an agent's client waits for", cost)
