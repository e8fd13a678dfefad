"""How a run ended, judged from what its process left behind."""

from __future__ import annotations

import re
import signal
from typing import Final

from stratagem.gateway.sandbox.processes import Outcome
from stratagem.gateway.sandbox.results import CodeResult, Killed, LayerName

__all__ = ["as_result"]

# A shell's way of saying that a signal ended a process, which bubblewrap follows.
_SIGNAL_BASE: Final = 128
_SIGNAL_MAX: Final = 64
_OUT_OF_MEMORY: Final = re.compile(
    r"MemoryError|out of memory|Cannot allocate memory|bad_alloc|Array buffer allocation failed",
    re.IGNORECASE,
)


def as_result(outcome: Outcome, layer: LayerName, handed_on: str | None = None) -> CodeResult:
    """Return what a caller is told of a run."""
    ended_by = _signal(outcome)
    reported = outcome.report.get("exit")
    if ended_by is not None:
        status = _SIGNAL_BASE + ended_by
    else:
        status = reported if isinstance(reported, int) else outcome.status
    return CodeResult(
        stdout=outcome.texts["stdout"],
        stderr=outcome.texts["stderr"],
        exit_code=status,
        result=outcome.report.get("result"),
        duration=outcome.duration,
        killed=_killed(outcome, ended_by),
        layer=layer,
        handed_on=handed_on,
    )


def _signal(outcome: Outcome) -> int | None:
    """Return the signal that ended the process, None if it ended by itself."""
    if outcome.stopped is not None:
        return int(signal.SIGKILL)
    if outcome.status < 0:
        return -outcome.status
    # Code that ended by itself said so; without that a status this high is a signal's.
    if "exit" not in outcome.report and 0 < outcome.status - _SIGNAL_BASE <= _SIGNAL_MAX:
        return outcome.status - _SIGNAL_BASE
    return None


def _killed(outcome: Outcome, ended_by: int | None) -> Killed | None:
    if outcome.stopped is not None:
        return outcome.stopped
    if outcome.report.get("killed") in {"memory", "signal"}:
        return "memory" if outcome.report["killed"] == "memory" else "signal"
    if ended_by == signal.SIGXCPU:
        return "time"
    if ended_by is not None:
        return "memory" if _OUT_OF_MEMORY.search(outcome.texts["stderr"]) else "signal"
    return None
