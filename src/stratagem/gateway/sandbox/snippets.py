"""The small interpreters, which give code no access to the machine.

Monty runs a subset of Python, QuickJS all of JavaScript; neither provides files, sockets,
processes or the environment. They run in a child process that is killed on timeout. Its resource
limits, and on Linux the seccomp filter and Landlock, are a second line of defence against faults
of the interpreter itself.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from stratagem.gateway.sandbox import interpreters, restrictions
from stratagem.gateway.sandbox.interpreters import Interpreter
from stratagem.gateway.sandbox.landlock import DEVICES
from stratagem.gateway.sandbox.layers import (
    BASE_ENVIRONMENT,
    INSIDE,
    Task,
    find_interpreter,
    start_command,
)
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName

__all__ = ["Monty", "QuickJS"]

_INSTALL: Final = "install the small interpreters: pip install 'stratagem[sandbox]'"


class _SmallInterpreter:
    """A small interpreter in a child process."""

    name: LayerName
    _language: Language
    _module: str

    def missing_requirement(self, language: Language) -> str | None:
        """Return what this machine lacks, or None."""
        if language != self._language:
            return f"{self.name} runs {self._language} only"
        if self._packages is None:
            return _INSTALL
        return None

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task."""
        assert self._python is not None, "this very process runs on one"
        instructions = partial(self._instructions, task)
        env = dict(BASE_ENVIRONMENT)
        return Launch(start_command(self._python, str(INSIDE)), env, instructions, self._work(task))

    def _work(self, task: Task) -> dict[str, Any]:
        permissions = task.permissions
        return {
            **task.work,
            "memory_bytes": permissions.memory_bytes,
            "seconds": permissions.seconds,
        }

    def _instructions(self, task: Task, pid: int) -> dict[str, Any]:
        version = restrictions.landlock_version()
        can_filter = restrictions.filter_obstacle() is None
        rules = (
            restrictions.landlock_ruleset(version, self._rules(), network=False)
            if version
            else None
        )
        harden = {
            "uid": None,
            "folder": "/",
            "dumpable": 0,
            "parent": os.getpid(),
            "landlock": rules,
            "limits": restrictions.resource_limits(
                task, processes=restrictions.count_processes(os.geteuid()) if can_filter else 0
            ),
            "filter": restrictions.filter_text(task, alone=True, pid=pid) if can_filter else None,
        }
        return {"mode": task.mode, "packages": self._packages, "harden": harden}

    def _rules(self) -> Iterator[tuple[str, int]]:
        for path in (*interpreters.SYSTEM_FOLDERS, *interpreters.SYSTEM_FILES, str(INSIDE)):
            yield path, restrictions.READ
        assert self._python is not None, "this very process runs on one"
        for path in self._python.paths:
            yield path, restrictions.READ
        yield from DEVICES

    @cached_property
    def _packages(self) -> str | None:
        spec = importlib.util.find_spec(self._module)
        if spec is None or spec.origin is None:
            return None
        file = Path(spec.origin)
        return str(file.parent.parent if file.name == "__init__.py" else file.parent)

    @cached_property
    def _python(self) -> Interpreter | None:
        return find_interpreter(interpreters.find_pythons())


class QuickJS(_SmallInterpreter):
    """JavaScript without anything around it."""

    name = "quickjs"
    _language = "javascript"
    # The package `quickjs` starts a thread, to which a seccomp filter would not apply.
    _module = "_quickjs"


class Monty(_SmallInterpreter):
    """A subset of Python, in a worker process started by the child process."""

    name = "monty"
    _language = "python"
    _module = "pydantic_monty"

    def missing_requirement(self, language: Language) -> str | None:
        """Return what this machine lacks, or None."""
        reason = super().missing_requirement(language)
        return reason or (None if self._worker is not None else _INSTALL)

    def _work(self, task: Task) -> dict[str, Any]:
        return {**super()._work(task), "binary": self._worker}

    def _rules(self) -> Iterator[tuple[str, int]]:
        yield from super()._rules()
        assert self._packages is not None, "asked for only where nothing is missing"
        yield self._packages, restrictions.READ
        assert self._worker is not None, "as above"
        for path in (self._worker, *restrictions.LINKERS):
            yield path, restrictions.READ | restrictions.EXECUTE

    @cached_property
    def _worker(self) -> str | None:
        beside = Path(sysconfig.get_path("scripts"), "monty")
        return str(beside) if beside.exists() else shutil.which("monty")
