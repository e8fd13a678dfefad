"""Circuit breakers: a tool that keeps failing is left alone for a while.

Closed: calls pass. Open, after so many failures in a row: calls are refused at once. Half-open,
when the time is over: one call is let through; if it succeeds the breaker closes, else it opens
again. What is the caller's fault, or nobody's (`errors.blame_of`), is no failure of the tool, nor
is an answer that refuses (`ExecutionFailed.answered`), such as 404 or the `isError` of an MCP tool.
Where callers choose what is called, as with `api_caller`, each host has a breaker of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stratagem import limits
from stratagem.errors import ExecutionFailed
from stratagem.gateway.calls.answers import BreakerState

__all__ = ["Breakers", "State"]

State = Literal["closed", "open", "half-open"]
# Told of each change: the tool, its new state and why.
Listener = Callable[[str, State, str], None]


@dataclass(slots=True)
class _Breaker:
    state: State = "closed"
    failures: int = 0
    opened_at: float = 0.0
    last_failure: float | None = None
    reason: str = ""
    trial: bool = False


class Breakers:
    """One breaker for each tool. Used from one event loop only."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        failures: int = limits.BREAKER_FAILURES,
        seconds: float | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._clock = clock
        self._failures = failures
        self._seconds = limits.BREAKER_SECONDS if seconds is None else seconds
        self.listener = listener
        self._breakers: dict[str, _Breaker] = {}

    def is_open(self, tool: str) -> bool:
        """Whether a tool is left alone now."""
        breaker = self._breakers.get(tool)
        return breaker is not None and breaker.state != "closed"

    def enter(self, tool: str) -> None:
        """Ask to call a tool.

        Raises:
            ExecutionFailed: The breaker is open, or its one trial is under way.
        """
        breaker = self._breakers.get(tool)
        if breaker is None or breaker.state == "closed":
            return
        left = self._left(breaker)
        if breaker.state == "open" and left <= 0:
            self._change(tool, breaker, "half-open", "the waiting time is over")
        if breaker.state == "half-open" and not breaker.trial:
            breaker.trial = True
            return
        raise ExecutionFailed(
            f"{tool} failed {breaker.failures} times in a row and is left alone for now.",
            safe=True,
            reason="circuit_open",
            retry_after=max(1, round(left)),
            last_error=breaker.reason,
            hint="Call again when retry_after seconds are over, use another tool, or, once it "
            "works again, have breaker_reset close it.",
        )

    def succeed(self, tool: str) -> None:
        """Note that a call of a tool worked."""
        breaker = self._breakers.pop(tool, None)
        if breaker is not None and breaker.state != "closed":
            self._change(tool, breaker, "closed", "the trial call worked")

    def fail(self, tool: str, reason: str) -> None:
        """Note that a tool failed."""
        breaker = self._breakers.get(tool)
        if breaker is None:
            self._make_room()
            breaker = self._breakers[tool] = _Breaker()
        breaker.failures += 1
        breaker.trial = False
        breaker.reason = reason
        breaker.last_failure = self._clock()
        if breaker.state == "half-open" or (
            breaker.state == "closed" and breaker.failures >= self._failures
        ):
            breaker.opened_at = self._clock()
            self._change(tool, breaker, "open", reason)

    def _make_room(self) -> None:
        """Forget the oldest breaker; one that is open goes last."""
        if len(self._breakers) < limits.BREAKERS_MAX:
            return
        closed = (name for name, each in self._breakers.items() if each.state == "closed")
        del self._breakers[next(closed, next(iter(self._breakers)))]

    def leave(self, tool: str) -> None:
        """Note that a call ended without saying anything about the tool."""
        breaker = self._breakers.get(tool)
        if breaker is not None:
            breaker.trial = False

    def age(self, at: float | None) -> float | None:
        """Return how many seconds ago a time of this clock was."""
        return None if at is None else self._clock() - at

    def reset(self, tool: str, reason: str = "reset by hand") -> bool:
        """Close a breaker by hand; return whether it was open."""
        breaker = self._breakers.pop(tool, None)
        if breaker is None or breaker.state == "closed":
            return False
        self._change(tool, breaker, "closed", reason)
        return True

    def list(self) -> list[BreakerState]:
        """Return the breakers that have anything to tell."""
        return [
            {
                "toolName": tool,
                "status": breaker.state,
                "failures": breaker.failures,
                "reason": breaker.reason,
                "lastFailure": breaker.last_failure,
                "retryAfter": self._left(breaker) if breaker.state == "open" else None,
            }
            for tool, breaker in sorted(self._breakers.items())
        ]

    def _left(self, breaker: _Breaker) -> float:
        """Return for how many more seconds an open breaker lets no call through."""
        return breaker.opened_at + self._seconds - self._clock()

    def _change(self, tool: str, breaker: _Breaker, state: State, reason: str) -> None:
        breaker.state = state
        if self.listener is not None:
            self.listener(tool, state, reason)
