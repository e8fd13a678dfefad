"""The httpx transport whose connections pass the guard.

It uses only the public parts of httpx2, over a pool of connections that the guard opens. A
connection never changes the address it was opened to.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

import h11
import httpx2

from stratagem import limits
from stratagem.gateway.outbound.guard import Guard, check_url
from stratagem.gateway.outbound.guarded_connections import ConnectionPool, GuardedConnection
from stratagem.gateway.outbound.responses import BoundedStream, decompressor_for, too_large

__all__ = ["BYTES_MAX", "GuardedTransport"]

# The request extension that holds the size limit of the response.
BYTES_MAX: Final = "stratagem_bytes_max"
# Derived from the URL, or meant for a proxy: callers may not set them.
_OWN_HEADERS: Final = frozenset({b"host", b"proxy-authorization", b"proxy-connection"})
_COMPRESSION_HEADERS: Final = frozenset({b"content-encoding", b"content-length"})


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that the guard has checked."""

    def __init__(
        self,
        guard: Guard,
        *,
        tls: ssl.SSLContext,
        bytes_max: int = limits.OUTBOUND_BYTES_DEFAULT,
    ) -> None:
        self._guard = guard
        self._bytes_max = bytes_max
        self._pool = ConnectionPool(guard, tls)
        # The address that was checked last: a client often calls one address again and again.
        self._checked: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of the response is decompressed and bounded while it is read.

        Raises:
            ValidationFailed: The URL is not http or https.
            PermissionDenied: It leads to an address that is not public.
        """
        url = self._check(request.url)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        rest = [pair for pair in request.headers.raw if pair[0].lower() not in _OWN_HEADERS]
        try:
            head = h11.Request(
                method=request.method.encode("ascii"),
                target=url.raw_path,
                headers=[(b"host", url.netloc), *rest],
            )
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        timeout = request.extensions.get("timeout", {})
        connection = await self._pool.take(url, timeout)
        body = _Body(self._pool, url, connection, timeout.get("read"))
        try:
            # Who closed before it read all may have answered all the same.
            with contextlib.suppress(httpx2.WriteError):
                await connection.send(head, request.stream, timeout.get("write"))
            answer = await connection.receive_head(timeout.get("read"))
            bytes_max = request.extensions.get(BYTES_MAX, self._bytes_max)
            return _bound_response(answer, body, bytes_max)
        except BaseException:
            await body.aclose()
            raise

    def _check(self, url: httpx2.URL) -> httpx2.URL:
        """Return a URL that may be called, as far as can be told without resolving its name."""
        text = str(url)
        if text != self._checked:
            url = check_url(url)
            self._guard.check(url)
            self._checked = text
        return url

    async def aclose(self) -> None:
        """Close every connection."""
        self._pool.close()


def _bound_response(answer: h11.Response, body: _Body, bytes_max: int) -> httpx2.Response:
    raw: list[tuple[bytes, bytes]] = answer.headers.raw_items()
    headers = httpx2.Headers(raw)
    by_line = headers.get("content-type", "").lower().startswith("text/event-stream")
    length = headers.get("content-length", "")
    if not by_line and length.isdecimal() and int(length[:20]) > bytes_max:
        raise too_large(bytes_max)
    decompressor = decompressor_for(headers.get("content-encoding", ""))
    if decompressor is not None:
        left = [pair for pair in raw if pair[0].lower() not in _COMPRESSION_HEADERS]
        headers = httpx2.Headers(left)
    stream = BoundedStream(body, decompressor, bytes_max, by_line=by_line)
    return httpx2.Response(status_code=answer.status_code, headers=headers, stream=stream)


class _Body(httpx2.AsyncByteStream):
    """The bytes of a response as they arrive on the connection, which is given back at the end."""

    def __init__(
        self,
        pool: ConnectionPool,
        url: httpx2.URL,
        connection: GuardedConnection,
        seconds: float | None,
    ) -> None:
        self._pool = pool
        self._url = url
        self._connection = connection
        self._seconds = seconds
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._connection.receive_body(self._seconds):
            yield chunk

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._pool.release(self._url, self._connection)
