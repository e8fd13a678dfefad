"""Several processes on one address: each takes requests from the same socket.

The first process only watches: it starts the others, starts one anew that died, and ends them when
it is told to end. Nothing is shared but the socket and the database, so that one that is killed
takes none with it; on what they tell one another (`surfaces.cluster`) none depends. Should the
first one die, the others end by themselves.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

from stratagem.errors import ServiceUnavailable

__all__ = ["end_with_parent", "watch"]

logger = logging.getLogger(__name__)

# Called with what all are given, the socket, and which of the processes it is.
Work = Callable[[Any, socket.socket, int], None]
# One that dies at once, again and again, is not started for ever.
_RESTARTS_MAX: Final = 10
_RESTARTS_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
# Longer than a server takes to end its requests.
_STOPPING_SECONDS: Final = 10.0


def watch(count: int, work: Work, given: Any, listener: socket.socket) -> None:
    """Run so many processes until a signal.

    Raises:
        ServiceUnavailable: They keep ending.
    """
    ending = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ending.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    workers = _Workers(work, given, listener)
    try:
        workers.start(count)
        while not ending.wait(_LOOK_SECONDS):
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
    """The processes, and when others had to take their places."""

    def __init__(self, work: Work, given: Any, listener: socket.socket) -> None:
        # A copy of this process would have the locks of threads that it has not.
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._arguments = (given, listener)
        self._processes: list[BaseProcess] = []
        self._replaced: list[float] = []

    def start(self, count: int) -> None:
        for number in range(count):
            self._processes.append(self._started(number))

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
            self._processes[at] = self._started(at)

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

    def _started(self, number: int) -> BaseProcess:
        process = self._context.Process(target=self._work, args=(*self._arguments, number))
        process.start()
        return process
