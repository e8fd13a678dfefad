"""The contract of isolation layers.

A layer knows whether this machine meets its requirements, and turns a task into a process to
start. Whether the layer really isolates is tested by `trial.py` before any code of a caller runs
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.sandbox.interpreters import Interpreter
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName

__all__ = [
    "BASE_ENVIRONMENT",
    "INSIDE",
    "NOBODY",
    "NODE_ENVIRONMENT",
    "Layer",
    "Mode",
    "Task",
    "find_interpreter",
    "node_argv",
    "start_command",
]

Mode: TypeAlias = Literal["python", "node", "monty", "quickjs"]

# A user that owns nothing and runs nothing else.
NOBODY: Final = 65534
# The modules that run inside the sandbox.
INSIDE: Final = Path(__file__).resolve().parent / "inside"
BASE_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
# OpenSSL in Node fails to start if it cannot read its configuration file, which is hidden.
NODE_ENVIRONMENT: Final = {"OPENSSL_CONF": "/dev/null"}


@dataclass(frozen=True, slots=True)
class Task:
    """One run: what to run, with which permissions, where."""

    mode: Mode
    permissions: Permissions
    work: Mapping[str, Any]
    workdir: str | None = None


class Layer(Protocol):
    """One kind of isolation."""

    @property
    def name(self) -> LayerName:
        """The name of the layer in results and reports."""
        ...

    def missing_requirement(self, language: Language) -> str | None:
        """Return what this machine lacks to run a language, or None."""
        ...

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task.

        Raises:
            ServiceUnavailable: A permission of the task cannot be enforced on this machine.
        """
        ...


def start_command(python: Interpreter, folder: str, *, at_home: bool = True) -> list[str]:
    """Return the command that runs `inside/start.py`; the number of the socket is appended to it.

    Without `at_home`, PYTHONHOME says where the library is (see `Launch.home`).
    """
    # -I and -S ignore the variables of the environment and the installed packages. PYTHONHOME
    # needs Python without -I; then no other variables of Python are set.
    isolated = ("-I",) if at_home else ("-s", "-P")
    code = f"import sys; sys.path.insert(0, {folder!r}); import start; start.main()"
    return [python.executable, *isolated, "-S", "-B", "-c", code]


def node_argv(node: Interpreter, permissions: Permissions) -> list[str]:
    """Return the command that runs JavaScript.

    The placeholders for the program and the socket are filled in by `inside/start.py`.
    """
    heap = f"--max-old-space-size={permissions.memory_bytes >> 20}"
    # The path of the program is that of a descriptor, which must not be resolved as a link.
    options = ("--no-addons", "--preserve-symlinks-main", heap)
    return [node.executable, *options, "{program}", "{socket}"]


def find_interpreter(
    interpreters: Iterable[Interpreter],
    is_usable: Callable[[Interpreter], bool] = lambda _interpreter: True,
) -> Interpreter | None:
    """Return the first interpreter that exists and is usable, or None."""
    for interpreter in interpreters:
        if Path(interpreter.executable).exists() and is_usable(interpreter):
            return interpreter
    return None
