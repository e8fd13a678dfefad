"""Being notified of what other servers write.

Every commit notifies with the workspace and the head of its log. A listener has a connection of its
own; whenever that had to be opened anew it reports the head, for something may have been missed.
A standby sends no notifications: there the head is polled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg import errors as faults

from stratagem.errors import StratagemError
from stratagem.storage.postgres.connection import Connection

__all__ = ["Listener"]

_TURN_SECONDS = 0.5
_AGAIN_SECONDS = 0.5


class Listener:
    """Calls `heard` with the head's sequence after commits, in a thread of its own."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        head: Callable[[Connection], int],
        workspace: int,
        heard: Callable[[int], None],
    ) -> None:
        self._connect = connect
        self._head = head
        self._workspace = workspace
        self._heard = heard
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stratagem-listening", daemon=True)
        self._thread.start()
        self._ready.wait(_TURN_SECONDS * 10)

    def close(self) -> None:
        """Listen no more."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(psycopg.Error, StratagemError), self._connect() as connection:
                turn = self._turn if _listens(connection) else self._look
                last = self._head(connection)
                self._heard(last)
                self._ready.set()
                while not self._stopping.is_set():
                    last = turn(connection, last)
            self._stopping.wait(_AGAIN_SECONDS)

    def _turn(self, connection: Connection, last: int) -> int:
        """Report the newest notification of a while; several commits may be reported as one."""
        for notification in connection.notifies(timeout=_TURN_SECONDS):
            workspace, _, sequence = notification.payload.partition(":")
            # Anybody may send under this name: what is not ours is nothing to us.
            if workspace == str(self._workspace) and sequence.isdecimal():
                last = int(sequence)
                self._heard(last)
            if self._stopping.is_set():
                break
        return last

    def _look(self, connection: Connection, last: int) -> int:
        """Look at the head after a while, and report it where it has moved."""
        self._stopping.wait(_TURN_SECONDS)
        head = self._head(connection)
        if head != last:
            self._heard(head)
        return head


def _listens(connection: Connection) -> bool:
    """Begin to listen, and say whether this server lets anybody."""
    try:
        connection.execute("LISTEN stratagem")
    except faults.ReadOnlySqlTransaction:
        return False
    return True
