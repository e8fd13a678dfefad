"""A queue in which large bodies are parsed one at a time, callers in rotation.

A parser holds the interpreter lock until it is done, in any thread: a caller who sends one large
body after the other would block all others. After each body the next one waits for a multiple of
its processor time, so that parsing takes only a small share of the interpreter. Callers take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread

from stratagem import limits

__all__ = ["LargeBodyQueue"]

T = TypeVar("T")


class LargeBodyQueue:
    """See the module. Runs on one event loop."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._busy = False

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """Do the work in a thread when it is the caller's turn; what it raises is raised."""
        await self._enter(caller)
        took = 0.0

        def measure() -> T:
            nonlocal took
            began = time.thread_time()
            try:
                return work()
            finally:
                # The time that it waited for others is no time that others waited for it.
                took = time.thread_time() - began

        try:
            return await to_thread.run_sync(measure)
        finally:
            self._rest(took)

    async def _enter(self, caller: str) -> None:
        if self._busy:
            await self._queue(caller)
        self._busy = True

    async def _queue(self, caller: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(caller, deque())
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in queue:
                queue.remove(turn)
                if not queue:
                    self._waiting.pop(caller, None)
            elif turn.done() and not turn.cancelled():
                # It was given the turn, and left: the next one has it.
                self._next()
            raise

    def _rest(self, took: float) -> None:
        rest = took * limits.LARGE_REQUEST_REST
        asyncio.get_running_loop().call_later(rest, self._next)

    def _next(self) -> None:
        """Give the turn to the caller who had it longest ago."""
        while self._waiting:
            caller, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[caller] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
