"""The walls that code can be put behind: what a layer is, and what it is asked.

A layer knows whether this machine has what it needs, and turns a task into a process to start.
It promises nothing: whether its walls hold is found out by `trial.py`, before any code of a
caller runs behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
# What is started inside.
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


def start(python: Runtime, folder: str, *, at_home: bool = True) -> list[str]:
    """Return the command that begins inside; the number of the socket is added to it.

    Not `at_home`: its library is found where the variable PYTHONHOME says (see `Launch.home`).
    """
    # -I and -S: no variable of the environment and no package of the machine has a say. Without
    # -I the variables are heard, of which only ours are there.
    isolated = ("-I",) if at_home else ("-s", "-P")
    code = f"import sys; sys.path.insert(0, {folder!r}); import start; start.main()"
    return [python.executable, *isolated, "-S", "-B", "-c", code]


def node_argv(node: Runtime, permissions: Permissions) -> list[str]:
    """Return the command that runs JavaScript.

    Where the program is, and the socket's number, are put in when it starts.
    """
    heap = f"--max-old-space-size={permissions.memory_bytes >> 20}"
    # The program is no link to be followed: its name is that of a descriptor.
    options = ("--no-addons", "--preserve-symlinks-main", heap)
    return [node.executable, *options, "{program}", "{socket}"]


def first(
    runtimes: Iterable[Runtime], suits: Callable[[Runtime], bool] = lambda _runtime: True
) -> Runtime | None:
    """Return the first that exists and suits."""
    for runtime in runtimes:
        if Path(runtime.executable).exists() and suits(runtime):
            return runtime
    return None
