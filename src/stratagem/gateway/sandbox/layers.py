"""The walls that code can be put behind: what a layer is, and what it is asked.

A layer knows whether this machine has what it needs, and turns a task into a process to start.
It promises nothing: whether its walls hold is found out by `trial.py`, before any code of a
caller runs behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName
from stratagem.gateway.sandbox.runtimes import Runtime

__all__ = [
    "BASE_ENVIRONMENT",
    "INSIDE",
    "NOBODY",
    "NODE_ENVIRONMENT",
    "Layer",
    "Mode",
    "Task",
    "first",
    "node_argv",
    "start",
]

Mode: TypeAlias = Literal["python", "node", "program", "monty", "quickjs"]

# A user that owns nothing and runs nothing else.
NOBODY: Final = 65534
# What is started inside; the code sees this folder too.
INSIDE: Final = Path(__file__).resolve().parent / "inside"
BASE_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
# Its cryptography would not start without the settings of the machine, which it cannot see.
NODE_ENVIRONMENT: Final = {"OPENSSL_CONF": "/dev/null"}


@dataclass(frozen=True, slots=True)
class Task:
    """One run: what to run, with which permissions, where."""

    mode: Mode
    permissions: Permissions
    work: Mapping[str, Any]
    argv: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    workdir: str | None = None


class Layer(Protocol):
    """One kind of wall."""

    @property
    def name(self) -> LayerName:
        """The name that results and reports use."""
        ...

    def missing(self, language: Language | None) -> str | None:
        """Say what is missing here to run a language (None: a program); None if nothing is."""
        ...

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task.

        Raises:
            ServiceUnavailable: A permission of the task cannot be kept within bounds here.
        """
        ...


def start(python: Runtime, folder: str) -> list[str]:
    """Return the command that begins inside; the number of the socket is added to it."""
    # -I and -S: no variable of the environment and no package of the machine has a say.
    code = f"import sys; sys.path.insert(0, {folder!r}); import start; start.main()"
    return [python.executable, "-I", "-S", "-B", "-c", code]


def node_argv(node: Runtime, folder: str, permissions: Permissions) -> list[str]:
    """Return the command that runs JavaScript; the socket's number is put in when it starts."""
    heap = f"--max-old-space-size={permissions.memory_bytes >> 20}"
    return [node.executable, "--no-addons", heap, f"{folder}/node_code.js", "{socket}"]


def first(runtimes: Iterable[Runtime], *, for_anyone: bool) -> Runtime | None:
    """Return the first that exists, and that anyone may start where that is asked."""
    for runtime in runtimes:
        if Path(runtime.executable).exists() and (not for_anyone or runtime.reachable_by_anyone()):
            return runtime
    return None
