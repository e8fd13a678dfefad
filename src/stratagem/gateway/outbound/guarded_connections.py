"""HTTP/1.1 connections, opened through the guard and kept for the next request.

h11 reads and writes the protocol; a connection is a protocol of the event loop around it, and sends
a request in one piece. The pool of the HTTP library asks for cancel scopes, locks and generators at
every step: a small request through it took three times as long (ADR 63).
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import h11
import httpx2

from stratagem import limits
from stratagem.gateway.outbound.guard import Guard, port_of

__all__ = ["ConnectionPool", "GuardedConnection"]

_HEAD_BYTES_MAX: Final = 100 * 1024
# Reading pauses while this much has arrived that nobody has asked for.
_UNREAD_BYTES_MAX: Final = 256 * 1024
# More than this is sent at once: joining it would cost a copy and gain nothing.
_JOINED_BYTES_MAX: Final = 64 * 1024
_SWITCHING: Final = 101

Origin = tuple[str, str, int]


class GuardedConnection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._error: Exception | None = None
        self._is_lost = False
        self._arrival: asyncio.Future[None] | None = None
        self._unread = 0
        self._is_paused = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        # When the last response was read, if nothing is under way.
        self.idle_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be told that the connection is open."""
        # That of another event loop need not be one of asyncio's own.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        if self.idle_since is not None:
            # Nothing was asked for.
            self.close()
            return
        self._unread += len(data)
        if self._unread > _UNREAD_BYTES_MAX and not self._is_paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._is_paused = True
        self._receive(data)

    def eof_received(self) -> None:
        """Be told that the other side sends no more; the connection is then closed."""
        if self.idle_since is not None:
            self.close()
        elif self._http.their_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._is_lost = True
            self._wake()
        else:
            self._receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Be told that the connection is over."""
        self._error = self._error or exc
        self._is_lost = True
        self._may_write.set()
        self._wake()

    def pause_writing(self) -> None:
        """Be told that the other side does not keep up."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Be told that it does again."""
        self._may_write.set()

    def is_usable(self) -> bool:
        """Whether a request can be sent."""
        return not self._is_lost and self._transport is not None

    async def send(self, request: h11.Request, body: Any, seconds: float | None) -> None:
        """Send a request.

        Raises:
            httpx2.TransportError: It cannot be sent.
        """
        self.idle_since = None
        with _translate_errors(httpx2.WriteError):
            async with _within(seconds, httpx2.WriteTimeout):
                pending = self._http.send(request) or b""
                async for chunk in body:
                    pending += self._http.send(h11.Data(data=chunk)) or b""
                    if len(pending) > _JOINED_BYTES_MAX:
                        await self._write(pending)
                        pending = b""
                await self._write(pending + (self._http.send(h11.EndOfMessage()) or b""))

    async def receive_head(self, seconds: float | None) -> h11.Response:
        """Return the head of the response.

        Raises:
            httpx2.TransportError: There is none.
        """
        while True:
            event = await self._next_event(seconds)
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse) and event.status_code != _SWITCHING:
                continue
            raise httpx2.RemoteProtocolError("The server sent something that is not a response.")

    async def receive_body(self, seconds: float | None) -> AsyncIterator[bytes]:
        """Yield the body of the response as it arrives.

        Raises:
            httpx2.TransportError: It breaks off.
        """
        while isinstance(event := await self._next_event(seconds), h11.Data):
            yield bytes(event.data)

    def finish(self, now: float) -> bool:
        """End an exchange; return whether the connection can be used for another."""
        both = (self._http.our_state, self._http.their_state)
        if both != (h11.DONE, h11.DONE) or not self.is_usable() or self._http.trailing_data[0]:
            self.close()
            return False
        self._http.start_next_cycle()
        self.idle_since = now
        self._unread = 0
        self._resume_reading()
        return True

    def close(self) -> None:
        """Close the connection."""
        self._is_lost = True
        if self._transport is not None:
            # Not after what is still to be written: who closes here has given the exchange up.
            self._transport.abort()

    async def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if self._is_lost:
            raise self._error or ConnectionResetError("the connection is closed")
        self._transport.write(data)
        if not self._may_write.is_set():
            await self._may_write.wait()

    async def _next_event(self, seconds: float | None) -> Any:
        """Return what the server sends next."""
        with _translate_errors(httpx2.ReadError):
            while (event := self._http.next_event()) is h11.NEED_DATA:
                if self._is_lost:
                    if self._error is not None:
                        raise self._error
                    words = "Server disconnected without sending a response."
                    raise httpx2.RemoteProtocolError(words)
                async with _within(seconds, httpx2.ReadTimeout):
                    await self._await_arrival()
        return event

    async def _await_arrival(self) -> None:
        self._unread = 0
        self._resume_reading()
        self._arrival = asyncio.get_running_loop().create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _resume_reading(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def _receive(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
        except RuntimeError as error:
            # More than the end of the stream has come.
            self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class ConnectionPool:
    """The connections of one client; a guard says to which addresses they may be opened."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext) -> None:
        self._guard = guard
        self._tls = tls
        self._tls.set_alpn_protocols(["http/1.1"])
        self._places = asyncio.Semaphore(limits.OUTBOUND_CONNECTIONS_MAX)
        # Each origin's, from the one that was used longest ago to the one used last.
        self._idle: dict[Origin, deque[GuardedConnection]] = {}
        self._all: set[GuardedConnection] = set()

    async def take(self, url: httpx2.URL, seconds: Mapping[str, float | None]) -> GuardedConnection:
        """Return a connection to the server of a URL; `release` gives it back.

        Raises:
            PermissionDenied: It leads to an address that is not public.
            httpx2.TransportError: It cannot be opened.
        """
        async with _within(seconds.get("pool"), httpx2.PoolTimeout):
            await self._places.acquire()
        try:
            origin = _origin(url)
            return self._take_idle(origin) or await self._open(origin, seconds.get("connect"))
        except BaseException:
            self._places.release()
            raise

    def release(self, url: httpx2.URL, connection: GuardedConnection) -> None:
        """Take a connection back after an exchange; one that was read to its end is kept."""
        self._places.release()
        now = asyncio.get_running_loop().time()
        self._close_old(now)
        if connection.finish(now):
            self._idle.setdefault(_origin(url), deque()).append(connection)
        else:
            self._all.discard(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._idle.clear()

    def _take_idle(self, origin: Origin) -> GuardedConnection | None:
        self._close_old(asyncio.get_running_loop().time())
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.is_usable():
                return connection
            self._all.discard(connection)
        return None

    def _close_old(self, now: float) -> None:
        """Close connections that nobody has used for long, and those that are too many."""
        count = sum(map(len, self._idle.values()))
        for origin, idle in list(self._idle.items()):
            while idle and (
                count > limits.OUTBOUND_IDLE_CONNECTIONS_MAX
                or now - (idle[0].idle_since or now) > limits.OUTBOUND_IDLE_SECONDS
                or not idle[0].is_usable()
            ):
                connection = idle.popleft()
                connection.close()
                self._all.discard(connection)
                count -= 1
            if not idle:
                del self._idle[origin]

    async def _open(self, origin: Origin, seconds: float | None) -> GuardedConnection:
        scheme, host, port = origin
        async with _within(seconds, httpx2.ConnectTimeout):
            addresses = await self._guard.addresses(host, port)
        tls = {"ssl": self._tls, "server_hostname": host} if scheme == "https" else {}
        connection = await self._connect(addresses, port, tls, seconds)
        self._all.add(connection)
        return connection

    async def _connect(
        self, addresses: Sequence[str], port: int, tls: Mapping[str, Any], seconds: float | None
    ) -> GuardedConnection:
        """Open a connection to one of the addresses that the guard passed, in their order."""
        failure: Exception = httpx2.ConnectError("no address")
        loop = asyncio.get_running_loop()
        for address in addresses:
            try:
                with _translate_errors(httpx2.ConnectError):
                    async with _within(seconds, httpx2.ConnectTimeout):
                        _, connection = await loop.create_connection(
                            GuardedConnection, address, port, **tls
                        )
                return connection
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure


def _origin(url: httpx2.URL) -> Origin:
    return url.scheme, url.raw_host.decode("ascii"), port_of(url)


class _within:  # noqa: N801 - used as a function, without the cost of a generator
    """Bound what is inside to so many seconds, if any; the error then is that of the library."""

    __slots__ = ("_error", "_scope")

    def __init__(self, seconds: float | None, error: type[httpx2.TimeoutException]) -> None:
        self._scope = None if seconds is None else asyncio.timeout(seconds)
        self._error = error

    async def __aenter__(self) -> None:
        if self._scope is not None:
            await self._scope.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:  # noqa: PYI036 - as the one that it wraps
        if self._scope is not None:
            try:
                await self._scope.__aexit__(*raised)
            except TimeoutError as error:
                raise self._error("it took too long") from error


@contextmanager
def _translate_errors(kind: type[httpx2.TransportError]) -> Iterator[None]:
    """Raise errors of the network and of h11 as those of the HTTP library."""
    try:
        yield
    except (h11.RemoteProtocolError, RuntimeError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx2.LocalProtocolError(str(error)) from error
    except OSError as error:
        raise kind(str(error)) from error
