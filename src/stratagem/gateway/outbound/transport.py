"""The httpx transport whose connections pass the guard.

It uses only the public parts of httpx2 and httpcore2: a connection pool that opens connections
through `GuardedBackend`. A connection never changes the address it was opened to.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore2
import httpx2

from stratagem import limits
from stratagem.gateway.outbound.guard import Guard, GuardedBackend, check_url
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
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=limits.OUTBOUND_CONNECTIONS_MAX,
            max_keepalive_connections=limits.OUTBOUND_IDLE_CONNECTIONS_MAX,
            keepalive_expiry=limits.OUTBOUND_IDLE_SECONDS,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of the response is decompressed and bounded while it is read.

        Raises:
            ValidationFailed: The URL is not http or https.
            PermissionDenied: It leads to an address that is not public.
        """
        url = check_url(request.url)
        self._guard.check(url)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        host = (b"host", url.netloc)
        rest = [pair for pair in request.headers.raw if pair[0].lower() not in _OWN_HEADERS]
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=[host, *rest],
            content=request.stream,
            extensions={"timeout": request.extensions.get("timeout", {})},
        )
        with _translate_errors():
            answer = await self._pool.handle_async_request(outgoing)
        bytes_max = request.extensions.get(BYTES_MAX, self._bytes_max)
        try:
            return _bound_response(answer, bytes_max)
        except BaseException:
            await answer.aclose()
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


def _bound_response(answer: httpcore2.Response, bytes_max: int) -> httpx2.Response:
    headers = httpx2.Headers(answer.headers)
    by_line = headers.get("content-type", "").lower().startswith("text/event-stream")
    length = headers.get("content-length", "")
    if not by_line and length.isdecimal() and int(length[:20]) > bytes_max:
        raise too_large(bytes_max)
    decompressor = decompressor_for(headers.get("content-encoding", ""))
    headers_left: list[tuple[bytes, bytes]] = list(answer.headers)
    if decompressor is not None:
        headers_left = [
            pair for pair in headers_left if pair[0].lower() not in _COMPRESSION_HEADERS
        ]
    stream = BoundedStream(_RawBody(answer), decompressor, bytes_max, by_line=by_line)
    return httpx2.Response(status_code=answer.status, headers=headers_left, stream=stream)


class _RawBody(httpx2.AsyncByteStream):
    """The bytes of a response as they arrive on the connection."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream: Any = self._answer.stream
        with _translate_errors():
            async for chunk in stream:
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of httpcore as the httpx errors of the same names."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise kind(str(error)) from error
