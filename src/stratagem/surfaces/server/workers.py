"""Worker processes on one address: connections are shared out among them.

The first process is the supervisor: it starts the workers, replaces those that die, and stops them
when it is told to stop. They share only the address and the database, so that killing one affects
no other; none depends on the messages between them (`surfaces.cluster`). If the supervisor dies,
the workers end by themselves.

A worker that accepts connections takes all that wait. With one shared socket, the worker that
starts first would get all clients that are waiting by then, and as these stay connected the other
workers would have nothing to do. So on Linux each worker has a socket of its own on the same port,
and the kernel chooses one for each connection. The supervisor has them all open: what waits at the
socket of a worker that died is accepted by the next one.
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ServiceUnavailable

__all__ = ["end_with_parent", "listen_for_each", "supervise"]

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
# Elsewhere several sockets may have a port, but one of them gets all connections.
_PORTS_ARE_BALANCED: Final = sys.platform == "linux"


def listen_for_each(bound: socket.socket, workers: int) -> list[socket.socket]:
    """Listen on the address that a socket is bound to; return a socket for each worker."""
    # Before it shares the port: of two servers that are bound at once, the second is refused here.
    bound.listen(limits.CONNECTIONS_BACKLOG)
    if workers == 1 or not _PORTS_ARE_BALANCED:
        return [bound] * workers
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listeners = [bound]
    for _ in range(workers - 1):
        listener = socket.socket(bound.family, bound.type, bound.proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(bound.getsockname())
        listener.listen(limits.CONNECTIONS_BACKLOG)
        listeners.append(listener)
    return listeners


def supervise(work: Work, given: Any, listeners: Sequence[socket.socket]) -> None:
    """Run a worker for each listening socket until a signal.

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
    workers = _Workers(work, given, listeners)
    try:
        workers.start()
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

    def __init__(self, work: Work, given: Any, listeners: Sequence[socket.socket]) -> None:
        # A copy of this process would have the locks of threads that it has not.
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._given = given
        self._listeners = listeners
        self._processes: list[BaseProcess] = []
        self._replaced: list[float] = []

    def start(self) -> None:
        for number in range(len(self._listeners)):
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
        arguments = (self._given, self._listeners[number], number)
        process = self._context.Process(target=self._work, args=arguments)
        process.start()
        return process
