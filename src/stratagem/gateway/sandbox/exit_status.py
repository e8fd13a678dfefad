"""Interprets how a sandboxed process ended: exit code, signal, or a limit that was hit."""

from __future__ import annotations

import re
import signal
from typing import Final

from stratagem.gateway.sandbox.processes import ProcessResult
from stratagem.gateway.sandbox.results import CodeResult, Killed, LayerName

__all__ = ["code_result_of"]

# As shells do, bubblewrap exits with this number plus the signal that ended the process.
_SIGNAL_BASE: Final = 128
_SIGNAL_MAX: Final = 64
_OUT_OF_MEMORY: Final = re.compile(
    r"MemoryError|out of memory|Cannot allocate memory|bad_alloc|Array buffer allocation failed",
    re.IGNORECASE,
)


def code_result_of(
    process: ProcessResult, layer: LayerName, handed_on: str | None = None
) -> CodeResult:
    """Return the result of a run from that of its process."""
    ended_by = _ending_signal(process)
    reported = process.report.get("exit")
    if ended_by is not None:
        status = _SIGNAL_BASE + ended_by
    else:
        status = reported if isinstance(reported, int) else process.status
    return CodeResult(
        stdout=process.texts["stdout"],
        stderr=process.texts["stderr"],
        exit_code=status,
        result=process.report.get("result"),
        duration=process.duration,
        killed=_kill_reason(process, ended_by),
        layer=layer,
        handed_on=handed_on,
    )


def _ending_signal(process: ProcessResult) -> int | None:
    """Return the signal that ended the process, None if it ended by itself."""
    if process.stopped is not None:
        return int(signal.SIGKILL)
    if process.status < 0:
        return -process.status
    # Code that ended by itself reported its exit; without a report such a status means a signal.
    if "exit" not in process.report and 0 < process.status - _SIGNAL_BASE <= _SIGNAL_MAX:
        return process.status - _SIGNAL_BASE
    return None


def _kill_reason(process: ProcessResult, ended_by: int | None) -> Killed | None:
    if process.stopped is not None:
        return process.stopped
    if process.report.get("killed") in {"memory", "signal"}:
        return "memory" if process.report["killed"] == "memory" else "signal"
    if ended_by == signal.SIGXCPU:
        return "time"
    if ended_by is not None:
        return "memory" if _OUT_OF_MEMORY.search(process.texts["stderr"]) else "signal"
    return None
