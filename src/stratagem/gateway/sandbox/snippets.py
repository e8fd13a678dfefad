"""Snippets in interpreters that have nothing to reach the machine with.

Monty runs a subset of Python, QuickJS all of JavaScript; neither knows files, sockets,
processes or the environment. They run in a child that the clock can kill. Its limits, and on
Linux the filter of system calls and Landlock, are a second wall in case an interpreter itself
is broken.
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

from stratagem.gateway.sandbox import orders, runtimes
from stratagem.gateway.sandbox.landlock import DEVICES
from stratagem.gateway.sandbox.layers import BASE_ENVIRONMENT, INSIDE, Task, first, start
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language, LayerName
from stratagem.gateway.sandbox.runtimes import Runtime

__all__ = ["Monty", "QuickJS"]

_INSTALL: Final = "install the small interpreters: pip install 'stratagem[sandbox]'"


class _Snippets:
    """A small interpreter in a child process."""

    name: LayerName
    _language: Language
    _module: str

    def missing(self, language: Language | None) -> str | None:
        """Say what is missing here, None if nothing is."""
        if language != self._language:
            return f"{self.name} runs {self._language} only"
        if self._packages is None:
            return _INSTALL
        return None

    def launch(self, task: Task) -> Launch:
        """Return the process that runs the task."""
        assert self._python is not None, "this very process runs on one"
        told = partial(self._orders, task)
        env = dict(BASE_ENVIRONMENT)
        return Launch(start(self._python, str(INSIDE)), env, told, self._work(task))

    def _work(self, task: Task) -> dict[str, Any]:
        permissions = task.permissions
        return {
            **task.work,
            "memory_bytes": permissions.memory_bytes,
            "seconds": permissions.seconds,
        }

    def _orders(self, task: Task, pid: int) -> dict[str, Any]:
        version = orders.landlock_version()
        can_filter = orders.filters_missing() is None
        rules = orders.landlock_orders(version, self._rules(), network=False) if version else None
        harden = {
            "uid": None,
            "folder": "/",
            "dumpable": 0,
            "parent": os.getpid(),
            "landlock": rules,
            "limits": orders.resource_limits(
                task, processes=orders.processes_of(os.geteuid()) if can_filter else 0
            ),
            "filter": orders.filter_text(task, alone=True, pid=pid) if can_filter else None,
        }
        return {"mode": task.mode, "packages": self._packages, "harden": harden}

    def _rules(self) -> Iterator[tuple[str, int]]:
        for path in (*runtimes.SYSTEM_FOLDERS, *runtimes.SYSTEM_FILES, str(INSIDE)):
            yield path, orders.READ
        assert self._python is not None, "this very process runs on one"
        for path in self._python.paths:
            yield path, orders.READ
        yield from DEVICES

    @cached_property
    def _packages(self) -> str | None:
        spec = importlib.util.find_spec(self._module)
        if spec is None or spec.origin is None:
            return None
        file = Path(spec.origin)
        return str(file.parent.parent if file.name == "__init__.py" else file.parent)

    @cached_property
    def _python(self) -> Runtime | None:
        return first(runtimes.pythons())


class QuickJS(_Snippets):
    """JavaScript without anything around it."""

    name = "quickjs"
    _language = "javascript"
    # The package above it starts a thread, which no filter would bind.
    _module = "_quickjs"


class Monty(_Snippets):
    """A subset of Python, in a worker of its own below the child."""

    name = "monty"
    _language = "python"
    _module = "pydantic_monty"

    def missing(self, language: Language | None) -> str | None:
        """Say what is missing here, None if nothing is."""
        reason = super().missing(language)
        return reason or (None if self._worker is not None else _INSTALL)

    def _work(self, task: Task) -> dict[str, Any]:
        return {**super()._work(task), "binary": self._worker}

    def _rules(self) -> Iterator[tuple[str, int]]:
        yield from super()._rules()
        assert self._packages is not None, "asked for only where nothing is missing"
        yield self._packages, orders.READ
        assert self._worker is not None, "as above"
        for path in (self._worker, *orders.LINKERS):
            yield path, orders.READ | orders.EXECUTE

    @cached_property
    def _worker(self) -> str | None:
        beside = Path(sysconfig.get_path("scripts"), "monty")
        return str(beside) if beside.exists() else shutil.which("monty")
