"""Stoppable threads for blocking functions.

Python cannot kill a thread, but it can raise an exception in it, which takes effect when the
thread next runs Python code. That stops a function that loops or computes, but not one that is
blocked in a C call or waits for a lock. Such a thread is abandoned: it is counted until it ends,
and with too many of them no new call is accepted, so that a tool that hangs costs some memory but
never the process.
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

_INTERRUPT_INTERVAL_SECONDS: Final = 0.05


_STEPS_TO_ARRIVE: Final = 1_000
# An exception between acquiring a lock and the `try` that releases it would leave it locked.
_LOCKING_MODULES: Final = (
    "threading.py",
    "queue.py",
    "logging/__init__.py",
    "importlib._bootstrap>",
)

_raise_in: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class _StopThread(SystemExit):
    """Raised in a thread to stop it.

    It is a SystemExit, because `except Exception` does not catch it and a thread that ends with it
    prints nothing.
    """


def _is_in_locking_code(ident: int) -> bool:
    """Tell whether a thread is inside a module of the standard library that holds locks."""
    frame = sys._current_frames().get(ident)  # noqa: SLF001 -- the only way to see another thread
    return frame is not None and frame.f_code.co_filename.endswith(_LOCKING_MODULES)


class Threads:
    """Runs functions in threads, a bounded number at once. Used from one event loop."""

    def __init__(
        self,
        *,
        threads_max: int = limits.TOOL_THREADS_MAX,
        abandoned_max: int = limits.TOOL_THREADS_ABANDONED_MAX,
        grace_seconds: float = limits.TOOL_THREAD_GRACE_SECONDS,
    ) -> None:
        self._slots = asyncio.Semaphore(threads_max)
        self._abandoned_max = abandoned_max
        self._grace_seconds = grace_seconds
        self._abandoned: set[_Job] = set()

    @property
    def abandoned_count(self) -> int:
        """The number of abandoned threads that have not ended yet."""
        self._abandoned = {job for job in self._abandoned if job.alive}
        return len(self._abandoned)

    async def call(self, function: Callable[[], T], *, name: str = "tool") -> T:
        """Run a function in a thread and return its result; on cancellation, stop the thread.

        Raises:
            ExecutionFailed: Too many threads hang; the function was not started.
        """
        if self.abandoned_count >= self._abandoned_max:
            raise ExecutionFailed(
                f"{self.abandoned_count} functions hang and cannot be stopped, "
                "so no other is started.",
                safe=True,
                hint="Restart the server, and add timeouts inside the functions that hang.",
                limit=self._abandoned_max,
            )
        async with self._slots:
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
            # Repeated, because the code may catch the exception.
            while job.alive and clock() < deadline:
                job.interrupt()
                await asyncio.wait([job.future], timeout=_INTERRUPT_INTERVAL_SECONDS)
        finally:
            if job.alive:
                self._abandoned.add(job)


class _Job:
    """One function in a thread of its own."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()
        # Retrieve the exception, so that asyncio does not log one that nobody awaits.
        self.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._function = function
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._running = True
        # A daemon: the process must not wait for a thread that may hang for ever.
        self._thread = threading.Thread(target=self._run, name=f"tool-{name}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._running and self._thread.is_alive()

    def interrupt(self) -> None:
        """Raise an exception in the thread, if the function still runs and it is safe."""
        ident = self._thread.ident
        # If the lock is taken, the thread itself holds it and is about to end; do not block.
        if ident is None or _is_in_locking_code(ident) or not self._lock.acquire(blocking=False):
            return
        try:
            if self._running:
                _raise_in(ident, _StopThread)
                # Up to Python 3.12 the whole interpreter checks for pending exceptions until some
                # thread has received its own, and a thread that waits in C receives none: every
                # step of every thread would be slower, and under a tracer of 3.11 none would be
                # made at all. So this thread receives one too. The other thread is flagged again
                # when it continues.
                _raise_in(threading.get_ident(), _StopThread)
                for _ in range(_STEPS_TO_ARRIVE):
                    pass
        except _StopThread:
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
        self._deliver(result, error)

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._complete_future, result, error)
        except RuntimeError:
            # The loop was closed: nobody waits.
            return

    def _complete_future(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:
            # Set on a future, these would stop the event loop itself.
            name = type(error).__name__
            self.future.set_exception(ExecutionFailed(f"{name}: {error}", exception=name))
