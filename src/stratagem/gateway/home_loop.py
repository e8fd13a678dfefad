"""The home loop: everything in the gateway that waits runs on one event loop.

A server gives its own; elsewhere a thread of ours runs one from the first call on. Connections,
breakers and caches belong to that loop, so none of them needs a lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["HomeLoop"]

T = TypeVar("T")


class HomeLoop:
    """Runs coroutines on the one loop, from wherever they are asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def adopt(self) -> None:
        """Make the running loop the home; call it before anything has run elsewhere."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()

    def keep_apart(self) -> None:
        """Make a thread the home, for a program whose own loop must not wait for tools."""
        self._home()

    async def join(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work at home and wait for it, from any loop; cancelling the wait cancels it."""
        home = self._home()
        if asyncio.get_running_loop() is home:
            return await work()
        future = asyncio.run_coroutine_threadsafe(work(), home)
        return await asyncio.wrap_future(future)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work at home and wait for it, from a thread that has no loop."""
        future = asyncio.run_coroutine_threadsafe(work(), self._home())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def post(self, call: Callable[[], object]) -> None:
        """Have something done at home, soon."""
        self._home().call_soon_threadsafe(call)

    def close(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the last work, and end the thread that was started."""
        if self._loop is None or self._loop.is_closed():
            return
        if self._thread is None:
            # The server's loop: it is about to end, or has ended.
            return
        self.run(work)
        self.run(_end_tasks)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()

    def _home(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            with self._lock:
                if self._loop is None:
                    self._start()
        assert self._loop is not None
        return self._loop

    def _start(self) -> None:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=loop.run_forever, name="stratagem-gateway", daemon=True
        )
        self._thread.start()
        self._loop = loop


async def _end_tasks() -> None:
    """Cancel what still runs on this loop, and let pipes and connections close.

    Transports that are still open when a loop ends are never closed, and warn when they are
    collected.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    # A transport closes in two turns: its pipes, and then itself.
    for _turn in range(2):
        await asyncio.sleep(0)
