"""Worker processes on one address: each accepts connections from the same socket.

The first process is the supervisor: it starts the workers, replaces those that die, and stops them
when it is told to stop. They share nothing but the socket and the database, so that one that is
killed takes none with it; none depends on the messages between them (`surfaces.cluster`). Should
the supervisor die, the workers end by themselves.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

from stratagem.errors import ServiceUnavailable

__all__ = ["end_with_parent", "supervise"]

logger = logging.getLogger(__name__)

# Called with what all workers are given, the socket, and the number of the worker.
Work = Callable[[Any, socket.socket, int], None]
# Workers that die at once, again and again, are not replaced for ever.
_RESTARTS_MAX: Final = 10
_RESTARTS_SECONDS: Final = 60.0
# Windows runs no signal handler while a process waits, so there it wakes up now and then.
_WAIT_SECONDS: Final = 0.2 if sys.platform == "win32" else None
# Longer than a server takes to end its requests.
_STOPPING_SECONDS: Final = 10.0


def supervise(count: int, work: Work, given: Any, listener: socket.socket) -> None:
    """Run so many workers until a signal.

    Raises:
        ServiceUnavailable: They keep ending.
    """
    # A handler that only set a flag would not end the wait below.
    stopping, stop = multiprocessing.Pipe(duplex=False)

    def request_stop(_signal: int, _frame: FrameType | None) -> None:
        # The wait may be over, and its end of the pipe closed.
        with suppress(OSError):
            stop.send_bytes(b"stop")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request_stop)
    workers = _Workers(work, given, listener)
    try:
        workers.start(count)
        while stopping not in connection.wait([stopping, *workers.sentinels], _WAIT_SECONDS):
            workers.replace_dead(time.monotonic())
    finally:
        workers.end()


def end_with_parent() -> None:
    """Have this process end in good order once the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="stratagem-parent", daemon=True).start()


class _Workers:
    """The worker processes, and when they were last replaced."""

    def __init__(self, work: Work, given: Any, listener: socket.socket) -> None:
        # A copy of this process would have the locks of threads that it has not.
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._arguments = (given, listener)
        self._processes: list[BaseProcess] = []
        self._replaced: list[float] = []

    def start(self, count: int) -> None:
        for number in range(count):
            self._processes.append(self._start_one(number))

    @property
    def sentinels(self) -> list[int]:
        """What becomes ready when a worker ends."""
        return [process.sentinel for process in self._processes]

    def replace_dead(self, now: float) -> None:
        """Start another process for each that has ended."""
        for at, process in enumerate(self._processes):
            if process.is_alive():
                continue
            self._replaced = [each for each in self._replaced if now - each < _RESTARTS_SECONDS]
            if len(self._replaced) >= _RESTARTS_MAX:
                raise ServiceUnavailable(
                    f"{_RESTARTS_MAX} processes ended within a minute.",
                    hint="The log above says why.",
                )
            self._replaced.append(now)
            logger.warning("a process ended with %s; another is started", process.exitcode)
            process.close()
            self._processes[at] = self._start_one(at)

    def end(self) -> None:
        """End all of them, in good order first."""
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + _STOPPING_SECONDS
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()

    def _start_one(self, number: int) -> BaseProcess:
        process = self._context.Process(target=self._work, args=(*self._arguments, number))
        process.start()
        return process
