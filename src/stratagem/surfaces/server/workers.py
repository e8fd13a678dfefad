"""Several processes on one address: each takes requests from the same socket.

The first process only watches: it starts the others, starts one anew that died, and ends them when
it is told to end. Nothing is shared but the socket and the database, so that one that is killed
takes none with it.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

__all__ = ["watch"]

logger = logging.getLogger(__name__)

# One that dies at once, again and again, is not started for ever.
_RESTARTS_MAX: Final = 10
_RESTARTS_SECONDS: Final = 60.0
_STOPPING_SECONDS: Final = 10.0


def watch(
    count: int, work: Callable[[Any, socket.socket], None], given: Any, listener: socket.socket
) -> None:
    """Run so many processes until a signal."""
    context = multiprocessing.get_context("spawn")
    ending = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ending.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)

    def start() -> BaseProcess:
        process = context.Process(target=work, args=(given, listener), daemon=False)
        process.start()
        return process

    processes = [start() for _ in range(count)]
    restarts: list[float] = []
    while not ending.wait(0.2):
        for at, process in enumerate(processes):
            if process.is_alive():
                continue
            now = time.monotonic()
            restarts = [each for each in restarts if now - each < _RESTARTS_SECONDS]
            if len(restarts) >= _RESTARTS_MAX:
                logger.error("processes keep ending; the server stops")
                ending.set()
                break
            restarts.append(now)
            logger.warning("a process ended with %s; another is started", process.exitcode)
            processes[at] = start()
    _end(processes)


def _end(processes: list[BaseProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.terminate()
    until = time.monotonic() + _STOPPING_SECONDS
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
