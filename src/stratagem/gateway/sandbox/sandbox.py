"""The sandbox: runs untrusted code in a layer that holds on this machine.

Simple snippets run in small interpreters, all other code in full ones isolated by bubblewrap, or
else by Landlock. Before the first run in a layer the attacks of `trial.py` are tried on it; a
layer that lets one through is never used. If no layer is left, the run is refused.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import PermissionDenied, ServiceUnavailable, ValidationFailed
from stratagem.gateway.sandbox import processes, trial
from stratagem.gateway.sandbox.bubblewrap import Bubblewrap
from stratagem.gateway.sandbox.folders import working_folder
from stratagem.gateway.sandbox.interpreter_choice import (
    find_unsupported_name,
    find_unsupported_permissions,
)
from stratagem.gateway.sandbox.landlock import Landlock
from stratagem.gateway.sandbox.layers import Layer, Task
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.processes import code_result_of
from stratagem.gateway.sandbox.results import CodeResult, Language, OnOutput
from stratagem.gateway.sandbox.snippets import Monty, QuickJS
from stratagem.gateway.sandbox.trial import LayerReport

__all__ = ["Engine", "Sandbox"]

# Which interpreter: the small one if possible, always the small one, always the full one.
Engine: TypeAlias = Literal["auto", "snippet", "full"]

_LANGUAGES: Final[tuple[Language, ...]] = ("python", "javascript")
_NAMES: Final[Mapping[str, Language]] = {
    "python": "python",
    "py": "python",
    "javascript": "javascript",
    "js": "javascript",
}


class Sandbox:
    """Runs code and programs, each in a process of its own that is killed afterwards.

    A server has one sandbox, which remembers the reports on its layers. `network`: code with the
    permission gets the machine's own network, private addresses included.
    """

    def __init__(
        self,
        *,
        small: Sequence[Layer] | None = None,
        full: Sequence[Layer] | None = None,
        network: bool = False,
    ) -> None:
        self._network = network
        self._small = (Monty(), QuickJS()) if small is None else tuple(small)
        self._full = (Bubblewrap(), Landlock()) if full is None else tuple(full)
        self._reports: dict[tuple[str, Language], LayerReport] = {}
        self._lock = threading.Lock()

    async def run_code(
        self,
        language: str,
        code: str,
        *,
        permissions: Permissions,
        stdin: bytes | None = None,
        inputs: Any = None,
        on_output: OnOutput | None = None,
        workdir: str | Path | None = None,
        engine: Engine = "auto",
    ) -> CodeResult:
        """Run code to its end and return its result.

        The code gets `inputs` as a variable. Its result is its variable `result`, or else the
        value of its last expression. Code that fails gives a result with an exit code.
        Cancelling the task that waits for this kills the whole run.

        Raises:
            PermissionDenied: It asks for the network, which the server does not allow.
            ServiceUnavailable: No layer that holds can run this here.
            ValidationFailed: The language is unknown, or something is too large.
        """
        known = _parse_language(language)
        self._check_network(permissions)
        _check_sizes(code, inputs, stdin)
        run = _Run(permissions, stdin, on_output, workdir)
        beyond = find_unsupported_permissions(permissions, has_stdin=stdin is not None)
        if engine == "snippet" and beyond is not None:
            raise ValidationFailed(f"A snippet cannot have {beyond}.", field="engine", limit="full")
        can_be_small = engine != "full" and beyond is None
        work = {"code": code, "inputs": inputs, "hand_on": engine == "auto"}
        handed_on = (
            find_unsupported_name(known, code) if engine == "auto" and can_be_small else None
        )
        if can_be_small and handed_on is None:
            if layer := await self._find_holding_layer(self._small, known):
                process_result = await self._run_in(layer, known, work, run)
                handed_on = process_result.report.get("unsupported")
                if handed_on is None:
                    return code_result_of(process_result, layer.name)
            elif engine == "snippet":
                raise self._refusal(self._small, known)
        if layer := await self._find_holding_layer(self._full, known):
            process_result = await self._run_in(layer, known, work, run)
            return code_result_of(process_result, layer.name, handed_on)
        if can_be_small and (layer := await self._find_holding_layer(self._small, known)):
            # Safe as well: if the code really needs the feature, it fails with an error.
            process_result = await self._run_in(layer, known, {**work, "hand_on": False}, run)
            return code_result_of(process_result, layer.name)
        raise self._refusal(self._full, known)

    def self_test(self) -> list[LayerReport]:
        """Try the attacks on every layer of this machine, once; return a report on each.

        It must not be called on an event loop.
        """
        with self._lock:
            asyncio.run(self._try_all())
            return list(self._reports.values())

    def _check_network(self, permissions: Permissions) -> None:
        """Refuse the network, unless the operator of the server has allowed it."""
        if permissions.network and not self._network:
            raise PermissionDenied(
                "Code has no network here: it could reach this machine and private addresses.",
                reason="sandbox_network",
                hint="Call services with api_caller or a webhook, which are guarded. To give code "
                "the whole network: STRATAGEM_SANDBOX_NETWORK=yes where the server is started.",
            )

    async def _try_all(self) -> None:
        untried = [
            (layer, language)
            for layer in (*self._small, *self._full)
            for language in _LANGUAGES
            if (layer.name, language) in trial.MODES and (layer.name, language) not in self._reports
        ]
        reports = await asyncio.gather(*(trial.try_layer(*pair) for pair in untried))
        self._reports |= {(report.layer, report.language): report for report in reports}

    async def _find_holding_layer(
        self, layers: Sequence[Layer], language: Language
    ) -> Layer | None:
        """Return the first layer that is available and withstood the attacks, or None."""
        for layer in layers:
            if (layer.name, language) not in trial.MODES:
                continue
            report = self._reports.get((layer.name, language))
            if report is None:
                report = await asyncio.to_thread(self._report_on, layer, language)
            if report.holds:
                return layer
        return None

    def _report_on(self, layer: Layer, language: Language) -> LayerReport:
        key = (layer.name, language)
        with self._lock:
            if key not in self._reports:
                self._reports[key] = asyncio.run(trial.try_layer(layer, language))
            return self._reports[key]

    def _refusal(self, layers: Sequence[Layer], language: Language) -> ServiceUnavailable:
        why = {
            layer.name: report.missing or f"let through: {report.breach}"
            for layer in layers
            if (report := self._reports.get((layer.name, language))) is not None
        }
        said = "; ".join(f"{name}: {reason}" for name, reason in why.items())
        return ServiceUnavailable(
            f"No secure sandbox can run {language} here. {said}".rstrip(),
            hint="Install what is missing, then restart; `stratagem doctor` tests the sandbox.",
            part="sandbox",
            layers=why,
        )

    async def _run_in(
        self, layer: Layer, language: Language, work: Mapping[str, Any], run: _Run
    ) -> processes.ProcessResult:
        with working_folder(run.permissions, run.workdir) as folder:
            mode = trial.MODES[layer.name, language]
            return await run.of(layer, Task(mode, run.permissions, work, workdir=folder))


@dataclass(frozen=True, slots=True)
class _Run:
    """The options that all attempts at one run have in common."""

    permissions: Permissions
    stdin: bytes | None
    on_output: OnOutput | None
    workdir: str | Path | None

    async def of(self, layer: Layer, task: Task) -> processes.ProcessResult:
        """Run a task in a layer."""
        return await processes.run(
            layer.launch(task),
            seconds=self.permissions.seconds,
            stdin=self.stdin,
            on_output=self.on_output,
        )


def _parse_language(name: str) -> Language:
    if name not in _NAMES:
        raise ValidationFailed(
            f"`language` must be one of {', '.join(_LANGUAGES)}.",
            field="language",
            limit=list(_LANGUAGES),
        )
    return _NAMES[name]


def _check_sizes(code: str, inputs: Any, stdin: bytes | None) -> None:
    _check_size("code", len(code.encode("utf-8", "replace")), limits.SANDBOX_CODE_BYTES_MAX)
    try:
        size = len(json.dumps(inputs))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationFailed("`inputs` is not JSON.", field="inputs") from error
    _check_size("inputs", size, limits.SANDBOX_INPUT_BYTES_MAX)
    _check_size("stdin", len(stdin or b""), limits.SANDBOX_INPUT_BYTES_MAX)


def _check_size(field: str, size: int, most: int) -> None:
    if size > most:
        raise ValidationFailed(
            f"`{field}` has {size} bytes; the limit is {most}.", field=field, limit=most
        )
