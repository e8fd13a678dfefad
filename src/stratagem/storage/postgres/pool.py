"""Connections that all stores of a process share.

A server holds many workspaces open and its database has few connections to give, so stores that
ask for the same take from one pool. A caller that finds none idle opens one, in its own thread: so
a database that is down is reported at once, and one that came back is used at once. The one
that was used last is lent first, for its statements are prepared; the others grow old and are
closed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from stratagem import limits
from stratagem.errors import StorageBusy, StorageUnavailable

__all__ = ["Pool", "join"]

Connection = psycopg.Connection[tuple[Any, ...]]


class Pool:
    """Lends connections, up to a number at a time."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        most: int = limits.SERVER_CONNECTIONS_MAX,
        idle_seconds: float = limits.SERVER_IDLE_SECONDS,
    ) -> None:
        self._connect = connect
        self._owner = os.getpid()
        self._most = most
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._lent = 0
        # Whichever came back last is at the end.
        self._idle: list[tuple[float, Connection]] = []
        self._sweeping: threading.Timer | None = None
        self._closed = False
        self.users = 0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection for a while."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give(connection)

    def take(self) -> Connection:
        """Lend a connection, which has to be given back.

        Raises:
            StorageBusy: All of them were in use for too long.
        """
        with self._changed:
            free = self._changed.wait_for(
                lambda: self._closed or self._lent < self._most, limits.SERVER_WAIT_SECONDS
            )
            if self._closed:
                raise StorageUnavailable("The database was closed.", hint="Open it again.")
            if not free:
                raise StorageBusy(
                    "All connections of this process to the PostgreSQL server are in use.",
                    limit=self._most,
                )
            self._lent += 1
            if self._idle:
                # The one that was used last: the others grow old, and are closed.
                return self._idle.pop()[1]
        # Without the lock: connecting takes long, and it is counted as lent already.
        try:
            return self._connect()
        except BaseException:
            self._put(None)
            raise

    def give(self, connection: Connection) -> None:
        """Take a connection back, and roll back a transaction that is still open on it."""
        if os.getpid() != self._owner:
            # Lent before this process was forked from the one that still uses it.
            return
        try:
            if not connection.closed and not _is_idle(connection):
                with suppress(psycopg.Error):
                    connection.rollback()
        finally:
            # Even if that fails, the connection no longer counts as lent.
            if not (good := _is_idle(connection)):
                connection.close()
            self._put(connection if good else None)

    def end_reading(self, connection: Connection) -> None:
        """End a transaction that only reads, before its connection is given back.

        After a rollback the driver forgets all statements that it had the server prepare, so that
        each would be parsed and planned anew in every transaction. A process that was forked
        meanwhile leaves the transaction to the one that began it.
        """
        in_order = connection.pgconn.transaction_status == TransactionStatus.INTRANS
        if in_order and os.getpid() == self._owner:
            with suppress(psycopg.Error):
                connection.commit()

    def drop_idle(self) -> None:
        """Close the idle connections: one was found broken, so the others will be."""
        with self._changed:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def close(self) -> None:
        """Lend nothing any more, and close what comes back."""
        with self._changed:
            self._closed = True
            if self._sweeping is not None:
                self._sweeping.cancel()
            self._changed.notify_all()
        self.drop_idle()

    def _put(self, connection: Connection | None) -> None:
        with self._changed:
            self._lent -= 1
            kept = connection is not None and not self._closed
            if connection is not None and kept:
                self._idle.append((time.monotonic(), connection))
                self._sweep_later()
            self._changed.notify()
        if connection is not None and not kept:
            connection.close()

    def _sweep_later(self) -> None:
        if self._sweeping is not None or self._closed:
            return
        sweeping = threading.Timer(self._idle_seconds, self._sweep)
        sweeping.daemon = True
        # Where no thread can be started the next connection that comes back tries again: what was
        # done with this one is done.
        with suppress(RuntimeError):
            sweeping.start()
            self._sweeping = sweeping

    def _sweep(self) -> None:
        """Close what was idle for long, and look again later where something is left."""
        with self._changed:
            long_ago = time.monotonic() - self._idle_seconds
            old = [each for since, each in self._idle if since <= long_ago]
            self._idle = self._idle[len(old) :]
            self._sweeping = None
            if self._idle:
                self._sweep_later()
        for connection in old:
            connection.close()


def _is_idle(connection: Connection) -> bool:
    """Whether a connection is good, and nothing was begun on it."""
    return connection.pgconn.transaction_status == TransactionStatus.IDLE


class _Pools:
    """The pools of this process, by what their connections are for."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with none."""
        self.lock = threading.Lock()
        self.open: dict[Hashable, Pool] = {}


_pools = _Pools()
# Kept, not closed: they belong to the process that this one was forked from.
_inherited: list[dict[Hashable, Pool]] = []


def join(key: Hashable, connect: Callable[[], Connection]) -> tuple[Pool, Callable[[], None]]:
    """Return the pool for a purpose, and what to call when it is needed no longer."""
    owner = os.getpid()
    with _pools.lock:
        pool = _pools.open.setdefault(key, Pool(connect))
        pool.users += 1
    left = threading.Event()

    def leave() -> None:
        if left.is_set() or os.getpid() != owner:
            return
        left.set()
        with _pools.lock:
            pool.users -= 1
            last = pool.users == 0
            if last:
                del _pools.open[key]
        if last:
            pool.close()

    return pool, leave


def _detach_after_fork() -> None:
    _inherited.append(_pools.open)
    _pools.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach_after_fork)
