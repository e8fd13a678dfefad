"""How often a caller may call a tool, and how many calls run at once, with priorities.

A slow tool blocks only its own calls: those of other tools overtake the ones that wait for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal

from stratagem import limits
from stratagem.errors import RateLimited
from stratagem.token_buckets import TokenBuckets

__all__ = ["ConcurrencyLimits", "LaneTurn", "Priority", "RateLimits"]

Priority = Literal["low", "normal", "high"]
_ORDER: Final[tuple[Priority, ...]] = ("high", "normal", "low")
_Queue = deque[asyncio.Future[None]]


class ConcurrencyLimits:
    """Admits calls within the limits. Used from one event loop only."""

    def __init__(
        self,
        at_once: int = limits.EXECUTIONS_AT_ONCE_MAX,
        waiting_max: int = limits.EXECUTIONS_WAITING_MAX,
    ) -> None:
        self._at_once = at_once
        self._waiting_max = waiting_max
        self._running: Counter[str] = Counter()
        self.running = 0
        self.waiting = 0
        self.lent = 0
        # For each priority, the tools that are waited for, with those that wait.
        self._queues: dict[Priority, dict[str, _Queue]] = {each: {} for each in _ORDER}
        self._widths: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, tool: str, width: int, priority: Priority) -> AsyncIterator[LaneTurn]:
        """Wait for a turn in a tool's lane of some width, and give it up at the end.

        Raises:
            RateLimited: So many wait already that this one would wait in vain.
        """
        self._widths[tool] = width
        if self._has_room(tool) and not self._would_overtake(tool, priority):
            self._enter(tool)
        else:
            await self._wait(tool, priority)
        turn = LaneTurn(self, tool)
        try:
            yield turn
        finally:
            turn.end()

    def lend(self, tool: str) -> bool:
        """Lend a place to others for a while, if that is safe and not too many are lent already."""
        # A tool of one lane does one thing at a time: nothing else may begin during its call.
        if self._widths[tool] == 1 or self.lent + self.waiting >= self._waiting_max:
            return False
        self.lent += 1
        self.leave(tool)
        return True

    def take_back(self, tool: str, *, run: bool) -> None:
        """End a `lend`; the call continues without waiting, even if the lane is full."""
        self.lent -= 1
        if run:
            self._enter(tool)

    def _has_room(self, tool: str) -> bool:
        return self.running < self._at_once and self._running[tool] < self._widths[tool]

    def _would_overtake(self, tool: str, priority: Priority) -> bool:
        """Whether a call of the same tool that is at least as urgent came first."""
        as_urgent = _ORDER[: _ORDER.index(priority) + 1]
        return any(tool in self._queues[each] for each in as_urgent)

    async def _wait(self, tool: str, priority: Priority) -> None:
        if self.waiting >= self._waiting_max:
            raise RateLimited(
                f"{self.waiting:,} calls are waiting already; the queue is full.",
                limit=self._waiting_max,
                retry_after=1,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues[priority].setdefault(tool, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn had come already: it goes to the next one.
                self.leave(tool)
            else:
                self._withdraw(tool, priority, turn)
            raise

    def _withdraw(self, tool: str, priority: Priority, turn: asyncio.Future[None]) -> None:
        queue = self._queues[priority][tool]
        queue.remove(turn)
        self.waiting -= 1
        if not queue:
            del self._queues[priority][tool]

    def _enter(self, tool: str) -> None:
        self._running[tool] += 1
        self.running += 1

    def leave(self, tool: str) -> None:
        """Give up a place for good; the next one comes."""
        self._running[tool] -= 1
        if not self._running[tool]:
            del self._running[tool]
        self.running -= 1
        self._call_next()

    def _call_next(self) -> None:
        for queues in self._queues.values():
            for tool in tuple(queues):
                queue = queues[tool]
                while queue and self._has_room(tool):
                    self._enter(tool)
                    self.waiting -= 1
                    queue.popleft().set_result(None)
                if not queue:
                    del queues[tool]
                if self.running >= self._at_once:
                    return


class LaneTurn:
    """The place of one call, which others may use while a person is asked something."""

    def __init__(self, lanes: ConcurrencyLimits, tool: str) -> None:
        self._lanes = lanes
        self._tool = tool
        self._pauses = 0
        self._is_lent = False
        self._is_over = False

    def step_aside(self) -> None:
        """Let others run until `come_back`; both are called in pairs, also within each other."""
        self._pauses += 1
        if self._pauses == 1 and not self._is_over:
            self._is_lent = self._lanes.lend(self._tool)

    def come_back(self) -> None:
        """Run again, once nothing is waited for; a call that has ended does not."""
        self._pauses -= 1
        if not self._pauses and self._is_lent:
            self._is_lent = False
            self._lanes.take_back(self._tool, run=True)

    def end(self) -> None:
        """Give the place up for good."""
        self._is_over = True
        if self._is_lent:
            self._is_lent = False
            self._lanes.take_back(self._tool, run=False)
        else:
            self._lanes.leave(self._tool)


class RateLimits:
    """A token bucket for each caller and tool."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._buckets: TokenBuckets[tuple[str, str]] = TokenBuckets(clock)

    def take(self, caller: str, tool: str, per_minute: int) -> None:
        """Take one call out of a bucket.

        Raises:
            RateLimited: It is empty; `retry_after` says for how long.
        """
        wait = self._buckets.take((caller, tool), per_minute, per_minute)
        if wait:
            raise RateLimited(
                f"Each caller may call {tool} {per_minute:,} times a minute.",
                limit=per_minute,
                retry_after=round(wait, 3),
            )
