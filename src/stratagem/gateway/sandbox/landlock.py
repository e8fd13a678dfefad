"""The layer that runs full interpreters without namespaces, by Landlock.

For machines without bubblewrap, or where namespaces are forbidden, as in most containers. The
kernel denies access to all files except those of the system and the working directory. What
Landlock does not control (the modes and times of files, sockets other than TCP, signals before
version 6) is refused by the seccomp filter. There is no private `/tmp`: only the working directory
can be written to.

Started by root, the code runs as the user nobody, who cannot enter private folders of root. Files
needed from there are opened before: the interpreter's library, the paths of the rules, the working
directory. The code then reaches the directory by relative paths, and cannot start the interpreter
again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Final

from stratagem.errors import ServiceUnavailable
from stratagem.gateway.sandbox import interpreters, restrictions
from stratagem.gateway.sandbox.interpreters import Interpreter
from stratagem.gateway.sandbox.layers import (
    BASE_ENVIRONMENT,
    INSIDE,
    NOBODY,
    NODE_ENVIRONMENT,
    Task,
    find_interpreter,
    node_argv,
    start_command,
)
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName

__all__ = ["DEVICES", "Landlock"]

DEVICES: Final = (
    ("/dev/null", restrictions.READ | restrictions.WRITE_FILE),
    ("/dev/zero", restrictions.READ),
    ("/dev/random", restrictions.READ),
    ("/dev/urandom", restrictions.READ),
)


class Landlock:
    """Rules for paths, a filter and limits."""

    name: LayerName = "landlock"

    def missing_requirement(self, language: Language) -> str | None:
        """Return what this machine lacks, or None."""
        if reason := restrictions.filter_obstacle():
            return reason
        if not self._version:
            return "the kernel has no Landlock (Linux 5.13 or newer, lsm=landlock)"
        if self._python is None:
            return interpreters.NO_PYTHON
        if language == "javascript" and self._node is None:
            return interpreters.NO_NODE
        return None

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task."""
        if (
            task.permissions.process_execution
            and self._version < restrictions.LANDLOCK_SCOPES_SIGNALS
        ):
            raise ServiceUnavailable(
                "This kernel's Landlock cannot keep the signals of several processes apart.",
                hint="Install bubblewrap, or use Linux 6.12 or newer.",
                part="sandbox",
            )
        assert self._python is not None, "asked for only where nothing is missing"
        env = dict(BASE_ENVIRONMENT)
        if task.workdir is not None:
            # The user nobody can reach a directory in a private folder of root only as its cwd.
            private = os.geteuid() == 0 and not interpreters.reachable_by_anyone(task.workdir)
            folder = "/proc/self/cwd" if private else task.workdir
            env |= {"HOME": folder, "TMPDIR": folder}
        instructions = partial(self._instructions, task, env)
        private_python = os.geteuid() == 0 and not self._python.reachable_by_anyone()
        argv = start_command(self._python, str(INSIDE), at_home=not private_python)
        home = self._python.home if private_python else None
        return Launch(argv, env, instructions, task.work, home)

    def _instructions(self, task: Task, env: dict[str, str], pid: int) -> dict[str, Any]:
        as_root = os.geteuid() == 0
        uid = NOBODY if as_root else os.geteuid()
        argv: list[str] = []
        if task.mode == "node":
            assert self._node is not None, "asked for only where nothing is missing"
            env = {**env, **NODE_ENVIRONMENT}
            argv = node_argv(self._node, task.permissions)
        return {
            "mode": task.mode,
            "argv": argv,
            "env": env,
            "harden": {
                "uid": NOBODY if as_root else None,
                "folder": task.workdir or "/",
                "dumpable": 0,
                "parent": os.getpid(),
                "landlock": restrictions.landlock_ruleset(
                    self._version, self._rules(task), network=task.permissions.network
                ),
                "limits": restrictions.resource_limits(
                    task, processes=restrictions.count_processes(uid)
                ),
                "filter": restrictions.filter_text(task, alone=True, pid=pid),
            },
        }

    def _rules(self, task: Task) -> Iterator[tuple[str, int]]:
        execute = restrictions.EXECUTE if task.permissions.process_execution else 0
        for path in (*interpreters.SYSTEM_FOLDERS, *interpreters.SYSTEM_FILES):
            yield path, restrictions.READ | execute
        if task.permissions.network:
            for path in interpreters.NETWORK_FILES:
                yield path, restrictions.READ
        assert self._python is not None, "asked for only where nothing is missing"
        for path in self._python.paths:
            yield path, restrictions.READ | execute
        if task.mode == "node" and self._node is not None:
            for path in (self._node.executable, *restrictions.LINKERS):
                yield path, restrictions.READ | restrictions.EXECUTE
        yield from DEVICES
        if task.workdir is not None:
            writable = task.permissions.filesystem == "workdir"
            yield task.workdir, (restrictions.WORK if writable else restrictions.READ) | execute

    @cached_property
    def _version(self) -> int:
        return restrictions.landlock_version()

    @cached_property
    def _python(self) -> Interpreter | None:
        return find_interpreter(interpreters.find_pythons(), _is_usable)

    @cached_property
    def _node(self) -> Interpreter | None:
        return find_interpreter(interpreters.find_nodes(), _is_usable)


def _is_usable(runtime: Interpreter) -> bool:
    return os.geteuid() != 0 or runtime.startable_by_anyone()
