"""The layer that runs full interpreters in Linux namespaces, by bubblewrap.

Code sees the folders of the system, read-only, and its working directory, if any; `/tmp` is
private, small and temporary. Without the permission its network namespace is empty. A seccomp
filter and resource limits apply as well.

Started by root, it creates the mounts as root and then becomes the user nobody, because the limit
on processes does not apply to root. Started by another user, it uses a user namespace, in which no
further one can be created.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from stratagem import limits
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

__all__ = ["Bubblewrap"]

# The first that can bound a tmpfs and forbid further user namespaces.
_VERSION_MIN: Final = (0, 8)
_VERSION_SECONDS_MAX: Final = 5
_TMP: Final = "/tmp"  # noqa: S108 - inside, where it is private
_INSIDE: Final = "/run/sandbox"
_INSTALL: Final = "install bubblewrap 0.8 or newer (apt install bubblewrap, dnf install bubblewrap)"


class Bubblewrap:
    """Namespaces, a filter and limits."""

    name: LayerName = "bubblewrap"

    def missing_requirement(self, language: Language) -> str | None:
        """Return what this machine lacks, or None."""
        if reason := restrictions.filter_obstacle():
            return reason
        if self._program is None:
            return _INSTALL
        if self._version < _VERSION_MIN:
            return f"bubblewrap is too old: {_INSTALL}"
        if self._python is None:
            return interpreters.NO_PYTHON
        if language == "javascript" and self._node is None:
            return interpreters.NO_NODE
        return None

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task."""
        assert self._program is not None, "asked for only where nothing is missing"
        assert self._python is not None, "as above"
        argv = [self._program, *self._namespaces(task), *self._mounts(task), "--"]
        env = {**BASE_ENVIRONMENT, "HOME": _TMP, "TMPDIR": _TMP}
        instructions = self._instructions(task, env)
        return Launch(
            [*argv, *start_command(self._python, _INSIDE)],
            env,
            lambda _pid: instructions,
            task.work,
        )

    def _instructions(self, task: Task, env: dict[str, str]) -> dict[str, Any]:
        as_root = os.geteuid() == 0
        argv: list[str] = []
        if task.mode == "node":
            assert self._node is not None, "asked for only where nothing is missing"
            env = {**env, **NODE_ENVIRONMENT}
            argv = node_argv(self._node, task.permissions)
        # In a user namespace of its own the count starts at zero.
        processes = restrictions.count_processes(NOBODY) if as_root else 0
        return {
            "mode": task.mode,
            "argv": argv,
            "env": env,
            "harden": {
                "uid": NOBODY if as_root else None,
                "folder": task.workdir or _TMP,
                "dumpable": 1,
                "parent": None,
                "landlock": None,
                "limits": restrictions.resource_limits(task, processes=processes),
                "filter": restrictions.filter_text(task, alone=False),
            },
        }

    def _namespaces(self, task: Task) -> Iterator[str]:
        yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
        yield from ("--hostname", "sandbox", "--die-with-parent", "--new-session")
        if not task.permissions.network:
            yield "--unshare-net"
        yield from ("--cap-drop", "ALL")
        if os.geteuid() == 0:
            yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        else:
            yield from ("--unshare-user", "--disable-userns")
            yield from ("--uid", str(NOBODY), "--gid", str(NOBODY))

    def _mounts(self, task: Task) -> Iterator[str]:
        for folder in interpreters.SYSTEM_FOLDERS:
            path = Path(folder)
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), folder)
            elif path.exists():
                yield from ("--ro-bind", folder, folder)
        yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
        yield from ("--perms", "1777", "--size", str(limits.SANDBOX_FILE_BYTES_MAX))
        yield from ("--tmpfs", _TMP)
        made = {"/", _TMP}
        for kind, source, target in self._binds(task):
            for parent in reversed(Path(target).parents):
                if str(parent) not in made:
                    made.add(str(parent))
                    # By default bubblewrap creates folders that only their owner can enter.
                    yield from ("--perms", "0755", "--dir", str(parent))
            yield from (kind, source, target)
        yield from ("--remount-ro", "/")

    def _binds(self, task: Task) -> Iterator[tuple[str, str, str]]:
        files = interpreters.SYSTEM_FILES
        if task.permissions.network:
            files += interpreters.NETWORK_FILES
        for file in files:
            if Path(file).exists():
                yield "--ro-bind", file, file
        yield "--ro-bind", str(INSIDE), _INSIDE
        for runtime in (self._python, self._node if task.mode == "node" else None):
            if runtime is not None:
                for path in interpreters.beyond_system(runtime.paths):
                    yield "--ro-bind", path, path
        if task.workdir is not None:
            writable = task.permissions.filesystem == "workdir"
            yield "--bind" if writable else "--ro-bind", task.workdir, task.workdir

    @cached_property
    def _program(self) -> str | None:
        return shutil.which("bwrap")

    @cached_property
    def _version(self) -> tuple[int, ...]:
        assert self._program is not None, "asked for only where it is there"
        try:
            said = subprocess.run(  # noqa: S603 - found by its name just now
                [self._program, "--version"],
                capture_output=True,
                text=True,
                timeout=_VERSION_SECONDS_MAX,
                check=False,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return (0,)
        return tuple(int(part) for part in re.findall(r"\d+", said)) or (0,)

    @cached_property
    def _python(self) -> Interpreter | None:
        return find_interpreter(interpreters.find_pythons(), _is_usable)

    @cached_property
    def _node(self) -> Interpreter | None:
        return find_interpreter(interpreters.find_nodes(), _is_usable)


def _is_usable(runtime: Interpreter) -> bool:
    # The parent folders do not matter: bubblewrap creates them inside, accessible to everyone.
    return os.geteuid() != 0 or runtime.readable_by_anyone()
