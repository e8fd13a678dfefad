"""Full interpreters and programs without namespaces, by Landlock.

For machines that have no bubblewrap, or that allow no namespaces, as most containers do. The
kernel hides all files but those of the system and one directory; what Landlock does not ask
about (the modes and times of files, sockets other than TCP, signals before version 6) the
filter of system calls refuses. There is no private `/tmp`: nothing can be written but in the
directory that was given.

Started by root the code becomes nobody, who cannot look into the private folders of root. What is
needed from there is opened before: the interpreter's library, the rules' paths, the directory.
The code then reaches the directory by relative paths, and cannot start the interpreter again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Final

from stratagem.errors import ServiceUnavailable
from stratagem.gateway.sandbox import orders, runtimes
from stratagem.gateway.sandbox.layers import (
    BASE_ENVIRONMENT,
    INSIDE,
    NOBODY,
    NODE_ENVIRONMENT,
    Task,
    first,
    node_argv,
    start,
)
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName
from stratagem.gateway.sandbox.runtimes import Runtime

__all__ = ["DEVICES", "Landlock"]

DEVICES: Final = (
    ("/dev/null", orders.READ | orders.WRITE_FILE),
    ("/dev/zero", orders.READ),
    ("/dev/random", orders.READ),
    ("/dev/urandom", orders.READ),
)


class Landlock:
    """Rules for paths, a filter and limits."""

    name: LayerName = "landlock"

    def missing(self, language: Language | None) -> str | None:
        """Say what is missing here, None if nothing is."""
        if reason := orders.filters_missing():
            return reason
        if not self._version:
            return "the kernel has no Landlock (Linux 5.13 or newer, lsm=landlock)"
        if self._python is None:
            return runtimes.NO_PYTHON
        if language == "javascript" and self._node is None:
            return runtimes.NO_NODE
        return None

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task."""
        if task.permissions.process_execution and self._version < orders.LANDLOCK_SCOPES_SIGNALS:
            raise ServiceUnavailable(
                "This kernel's Landlock cannot keep the signals of several processes apart.",
                hint="Install bubblewrap, or use Linux 6.12 or newer.",
                part="sandbox",
            )
        assert self._python is not None, "asked for only where nothing is missing"
        env = dict(BASE_ENVIRONMENT)
        if task.workdir is not None:
            # In a private folder of root's it has a name for nobody only by being where one is.
            private = os.geteuid() == 0 and not runtimes.reachable_by_anyone(task.workdir)
            folder = "/proc/self/cwd" if private else task.workdir
            env |= {"HOME": folder, "TMPDIR": folder}
        told = partial(self._orders, task, {**env, **(task.env or {})})
        private_python = os.geteuid() == 0 and not self._python.reachable_by_anyone()
        argv = start(self._python, str(INSIDE), at_home=not private_python)
        home = self._python.home if private_python else None
        return Launch(argv, env, told, task.work, home)

    def _orders(self, task: Task, env: dict[str, str], pid: int) -> dict[str, Any]:
        as_root = os.geteuid() == 0
        uid = NOBODY if as_root else os.geteuid()
        argv = list(task.argv)
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
                "landlock": orders.landlock_orders(
                    self._version, self._rules(task), network=task.permissions.network
                ),
                "limits": orders.resource_limits(task, processes=orders.processes_of(uid)),
                "filter": orders.filter_text(task, alone=True, pid=pid),
            },
        }

    def _rules(self, task: Task) -> Iterator[tuple[str, int]]:
        programs = task.permissions.process_execution or task.mode == "program"
        execute = orders.EXECUTE if programs else 0
        for path in (*runtimes.SYSTEM_FOLDERS, *runtimes.SYSTEM_FILES):
            yield path, orders.READ | execute
        if task.permissions.network:
            for path in runtimes.NETWORK_FILES:
                yield path, orders.READ
        assert self._python is not None, "asked for only where nothing is missing"
        for path in self._python.paths:
            yield path, orders.READ | execute
        if task.mode == "node" and self._node is not None:
            for path in (self._node.executable, *orders.LINKERS):
                yield path, orders.READ | orders.EXECUTE
        yield from DEVICES
        if task.workdir is not None:
            writable = task.permissions.filesystem == "workdir"
            yield task.workdir, (orders.WORK if writable else orders.READ) | execute

    @cached_property
    def _version(self) -> int:
        return orders.landlock_version()

    @cached_property
    def _python(self) -> Runtime | None:
        return first(runtimes.pythons(), _suits)

    @cached_property
    def _node(self) -> Runtime | None:
        return first(runtimes.nodes(), _suits)


def _suits(runtime: Runtime) -> bool:
    return os.geteuid() != 0 or runtime.startable_by_anyone()
