"""Taking connections from a listening socket.

asyncio's own loop accepts as many at a time as the backlog has, before any of them can be counted,
and when there is no file descriptor left it retries constantly and logs each attempt. Here a few
are accepted at a time, each gets a place first (`Connections`), and a process without a free
descriptor closes a waiting connection, or waits itself.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import ServiceUnavailable
from stratagem.surfaces.server.connections import Connections

__all__ = ["Acceptor"]

logger = logging.getLogger(__name__)

_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Takes the connections of one listening socket, until it is closed."""

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        make_protocol: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._make_protocol = make_protocol
        self._beginning: set[asyncio.Task[object]] = set()
        listener.settimeout(0)
        listener.listen(limits.CONNECTIONS_BACKLOG)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Take no more connections."""
        self._task.cancel()
        await asyncio.gather(self._task, *self._beginning, return_exceptions=True)
        self._listener.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._take(*await loop.sock_accept(self._listener))
                # Others that wait already are taken with it, without asking the loop for each.
                for _ in range(limits.CONNECTIONS_ACCEPTED_AT_ONCE - 1):
                    self._take(*self._listener.accept())
            except BlockingIOError:
                continue
            except OSError as error:
                await self._recover(error)
            else:
                await asyncio.sleep(0)

    def _take(self, connection: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if not self._connections.make_room(host):
            logger.warning("a connection was refused: all %s are busy", self._connections.most)
            _refuse(connection)
            return
        connection.settimeout(0)
        loop = asyncio.get_running_loop()
        task: asyncio.Task[object] = loop.create_task(
            loop.connect_accepted_socket(self._make_protocol, connection)
        )
        self._beginning.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[object]) -> None:
        self._beginning.discard(task)
        # A client that left before it was served is no error.
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("a connection ended before it began: %s", error)

    async def _recover(self, error: OSError) -> None:
        if error.errno not in _NO_ROOM:
            # The client left between connecting and being taken.
            logger.debug("a connection could not be accepted: %s", error)
            await asyncio.sleep(0)
            return
        logger.warning("no file descriptor is left for another connection: %s", error)
        self._connections.close_one()
        await asyncio.sleep(limits.ACCEPT_PAUSE_SECONDS)


def _refuse(connection: socket.socket) -> None:
    """Say that there is no room, as far as that can be said without waiting."""
    with connection, suppress(OSError):
        connection.settimeout(0)
        connection.send(_REFUSAL)


def _refusal() -> bytes:
    error = ServiceUnavailable(
        "The server has as many connections as it can hold.",
        retry_after=1,
        hint="Try again in a moment.",
    )
    body = orjson.dumps(error.envelope())
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


_REFUSAL: Final = _refusal()
