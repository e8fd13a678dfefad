"""Threads for functions that block, and that can be stopped.

Python cannot end a thread. What it can do is raise an exception in one, which arrives when that
thread next runs Python code. A function that loops or computes is stopped by it; one that waits
inside a C call is not, until it comes back, nor one that waits for a lock. Such a thread is left
behind: it is counted until it ends, and with too many of them no new call is taken, so that a
tool that hangs can cost some memory and never the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from stratagem import limits
from stratagem.errors import ExecutionFailed

__all__ = ["Threads"]

T = TypeVar("T")

_SECONDS_BETWEEN_KNOCKS: Final = 0.05


_STEPS_TO_ARRIVE: Final = 1_000
# An exception between taking a lock and the `try` behind it would leave the lock taken for good.
_DELICATE: Final = ("threading.py", "queue.py", "logging/__init__.py", "importlib._bootstrap>")

_raise_in: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class _Stopped(SystemExit):
    """Raised in a thread whose result nobody waits for.

    A SystemExit, because `except Exception` lets it pass and a thread that ends with it prints
    nothing.
    """


def _is_delicate(ident: int) -> bool:
    """Tell whether a thread is within code of the interpreter's that takes locks."""
    frame = sys._current_frames().get(ident)  # noqa: SLF001 -- the only way to see another thread
    return frame is not None and frame.f_code.co_filename.endswith(_DELICATE)


class Threads:
    """Runs functions in threads, a bounded number at once. Used from one event loop."""

    def __init__(
        self,
        *,
        threads_max: int = limits.TOOL_THREADS_MAX,
        abandoned_max: int = limits.TOOL_THREADS_ABANDONED_MAX,
        grace_seconds: float = limits.TOOL_THREAD_GRACE_SECONDS,
    ) -> None:
        self._room = asyncio.Semaphore(threads_max)
        self._abandoned_max = abandoned_max
        self._grace_seconds = grace_seconds
        self._abandoned: set[_Job] = set()

    @property
    def abandoned(self) -> int:
        """How many threads were left behind and have not ended yet."""
        self._abandoned = {job for job in self._abandoned if job.alive}
        return len(self._abandoned)

    async def call(self, function: Callable[[], T], *, name: str = "tool") -> T:
        """Return what a function returns; when this is cancelled, the function is stopped.

        Raises:
            ExecutionFailed: Too many threads hang; nothing was begun.
        """
        if self.abandoned >= self._abandoned_max:
            raise ExecutionFailed(
                f"{self.abandoned} functions hang and cannot be stopped; no other is begun.",
                safe=True,
                hint="Restart the server, and give the functions that hang timeouts of their own.",
                limit=self._abandoned_max,
            )
        async with self._room:
            job = _Job(function, name)
            try:
                result: T = await asyncio.shield(job.future)
            except asyncio.CancelledError:
                await self._stop(job)
                raise
            return result

    async def _stop(self, job: _Job) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._grace_seconds
        try:
            # Code that swallows the exception gets it again.
            while job.alive and clock() < deadline:
                job.knock()
                await asyncio.wait([job.future], timeout=_SECONDS_BETWEEN_KNOCKS)
        finally:
            if job.alive:
                self._abandoned.add(job)


class _Job:
    """One function in a thread of its own."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()
        # A failure that comes after nobody waits any more is no news.
        self.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._function = function
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._running = True
        # The process does not wait for it: it may hang for good.
        self._thread = threading.Thread(target=self._run, name=f"tool-{name}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._running and self._thread.is_alive()

    def knock(self) -> None:
        """Raise an exception in the thread, if the function still runs and it is safe."""
        ident = self._thread.ident
        # Whoever holds the lock is the thread itself, about to end; the loop waits for nobody.
        if ident is None or _is_delicate(ident) or not self._lock.acquire(blocking=False):
            return
        try:
            if self._running:
                _raise_in(ident, _Stopped)
                # Up to Python 3.12 the whole interpreter stays on the alert until some thread has
                # taken its exception, and one that waits in C takes none: every step of every
                # thread would be slower, and under a tracer of 3.11 none would be made at all. So
                # this thread takes one too. The other is put on the alert again as it goes on.
                _raise_in(threading.get_ident(), _Stopped)
                for _ in range(_STEPS_TO_ARRIVE):
                    pass
        except _Stopped:
            pass
        finally:
            self._lock.release()

    def _run(self) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            try:
                result = self._context.run(self._function)
            finally:
                with self._lock:
                    self._running = False
        except BaseException as raised:  # noqa: BLE001 -- whatever it is belongs to the caller
            error = raised
        # An exception set just before the function ended may arrive anywhere up to here.
        self._running = False
        self._tell(result, error)

    def _tell(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            # The loop was closed: nobody waits.
            return

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:
            # A loop would take these for its own, and end.
            name = type(error).__name__
            self.future.set_exception(ExecutionFailed(f"{name}: {error}", exception=name))
