"""The attempts of a caller to get one call right, and the corrections that are under way.

Calls of one caller, for one agent, of one tool that end badly one after the other are attempts at
the same thing. They are counted for five minutes at most, and a call that works ends the count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from stratagem import limits
from stratagem.engine import moments
from stratagem.gateway.calls.call import Call

__all__ = ["Attempts", "Problem", "problem_of"]

_KEPT_MAX: Final = 10_000


class Problem(NamedTuple):
    """Whose attempts at what: an actor, the agent it speaks for, a branch and a tool."""

    actor: str
    agent: str | None
    branch: str
    tool: str


def problem_of(call: Call, tool: str) -> Problem:
    """Return what a call is an attempt at."""
    return Problem(call.caller.actor, call.context.get("agentId"), call.branch, tool)


class Attempts:
    """Counts attempts, and knows which corrections have not ended yet."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: OrderedDict[Problem, tuple[int, float]] = OrderedDict()
        self._active: dict[int, dict[str, Any]] = {}

    def number(self, problem: Problem) -> int:
        """Return which attempt a call is, from 1: calls that are under way have not failed."""
        return self._failures(problem)[0] + 1

    def failed(self, problem: Problem) -> None:
        """Count an attempt that did not work."""
        count, since = self._failures(problem)
        self._counts[problem] = (count + 1, since)
        self._counts.move_to_end(problem)
        if len(self._counts) > _KEPT_MAX:
            self._counts.popitem(last=False)

    def settled(self, problem: Problem) -> None:
        """Note that a call worked: the next one is a first attempt."""
        self._counts.pop(problem, None)

    def start(self, call: Call, tool: str, attempt: int, at: int) -> None:
        """Note that a corrected call is under way."""
        self._active[id(call)] = {
            "agentId": call.context.get("agentId"),
            "toolName": tool,
            "attempt": attempt,
            "startedAt": moments.iso(at),
            "status": "processing",
        }

    def end(self, call: Call) -> None:
        """Note that a call has ended."""
        self._active.pop(id(call), None)

    def _failures(self, problem: Problem) -> tuple[int, float]:
        """Return how many attempts failed lately, and since when they are counted."""
        now = self._clock()
        count, since = self._counts.get(problem, (0, now))
        return (0, now) if now - since > limits.CORRECTION_BREAKER_SECONDS else (count, since)

    @property
    def active(self) -> list[dict[str, Any]]:
        """The corrected calls that are under way."""
        return list(self._active.values())
