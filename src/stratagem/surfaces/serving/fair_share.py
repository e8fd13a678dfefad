"""How many calls of each caller run at once while others call too.

Python computes in one thread at a time, so that sixteen calls of one caller leave a seventeenth of
it to the single call of another. While several callers are active, each has a few running calls and
its other calls wait; a single caller has no such limit.

A caller whose calls queue up pauses after each, in proportion to its duration: otherwise two calls
that always run would leave only a third of the interpreter to the single call of another.

A tool call that has run for a moment is taken to wait for something outside, and then no longer
counts: slow tools delay no caller. An operation that only computes counts until it ends.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cachetools import TTLCache

from stratagem import limits
from stratagem.deferred_modules import asyncio

__all__ = ["FairShare"]


class FairShare:
    """See the module. Runs on one event loop."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        # The callers that began a call lately.
        self._seen: TTLCache[str, None] = TTLCache(
            limits.CALLERS_ABOUT_MAX, limits.CALLER_ABOUT_SECONDS, timer=monotonic
        )
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, caller: str, *, computes: bool = False) -> AsyncIterator[None]:
        """Wait until another call of a caller may run, and count it as long as it computes.

        `computes`: it does so until it ends. Of any other only the beginning counts.
        """
        self._seen[caller] = None
        if caller in self._waiting or not self._has_room(caller):
            await self._wait(caller)
        else:
            self._running[caller] += 1
        began = self._monotonic()
        turn = _Turn(lambda: self._end(caller, self._monotonic() - began, computes=computes))
        ending = None
        if not computes:
            loop = asyncio.get_running_loop()
            ending = loop.call_later(limits.CALL_TURN_SECONDS, turn.end)
        try:
            yield
        finally:
            if ending is not None:
                ending.cancel()
            turn.end()

    def _end(self, caller: str, took: float, *, computes: bool) -> None:
        """Give the turn to the caller's next call; at once, unless it keeps others waiting."""
        computed = computes or took < limits.CALL_TURN_SECONDS
        if computed and caller in self._waiting and not self._is_alone(caller):
            rest = took * limits.CALL_REST
            asyncio.get_running_loop().call_later(rest, self._leave, caller)
        else:
            self._leave(caller)

    def _has_room(self, caller: str) -> bool:
        return self._is_alone(caller) or self._running[caller] < limits.CALLS_BESIDE_OTHERS_MAX

    def _is_alone(self, caller: str) -> bool:
        """Whether no other caller is active; its own last call may have begun long ago."""
        return len(self._seen) <= (1 if caller in self._seen else 0)

    async def _wait(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn had come already: it goes to the next one.
                self._leave(caller)
            else:
                self._waiting[caller].remove(turn)
                self._call_next(caller)
            raise

    def _leave(self, caller: str) -> None:
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self._call_next(caller)

    def _call_next(self, caller: str) -> None:
        queue = self._waiting.get(caller)
        while queue and self._has_room(caller):
            turn = queue.popleft()
            if not turn.done():
                self._running[caller] += 1
                turn.set_result(None)
        if queue is not None and not queue:
            del self._waiting[caller]


class _Turn:
    """Something that ends once."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def end(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()
