"""The transport of httpx with the guard below it.

Built from the public parts of httpx2 and httpcore2 only: a pool of connections for each origin
that opens them through `GuardedBackend`. A connection stays with the address it was opened to.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore2
import httpx2

from stratagem import limits
from stratagem.gateway.outbound.guarding import Guard, GuardedBackend, check_url
from stratagem.gateway.outbound.reading import BoundedStream, too_large, unpacking_for

__all__ = ["BYTES_MAX", "GuardedTransport"]

# The extension of a request that says how large its answer may be.
BYTES_MAX: Final = "stratagem_bytes_max"
# Set from the address itself, or meant for a proxy: nobody above may choose them.
_OWN_HEADERS: Final = frozenset({b"host", b"proxy-authorization", b"proxy-connection"})
_UNPACKED_HEADERS: Final = frozenset({b"content-encoding", b"content-length"})


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that the guard has passed."""

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
        """Send one request and return its answer, unpacked and bounded while it is read.

        Raises:
            ValidationFailed: The address is not one of http or https.
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
        with _translated():
            answer = await self._pool.handle_async_request(outgoing)
        bytes_max = request.extensions.get(BYTES_MAX, self._bytes_max)
        try:
            return _bounded(answer, bytes_max)
        except BaseException:
            await answer.aclose()
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


def _bounded(answer: httpcore2.Response, bytes_max: int) -> httpx2.Response:
    headers = httpx2.Headers(answer.headers)
    by_line = headers.get("content-type", "").lower().startswith("text/event-stream")
    length = headers.get("content-length", "")
    if not by_line and length.isdecimal() and int(length[:20]) > bytes_max:
        raise too_large(bytes_max)
    unpacking = unpacking_for(headers.get("content-encoding", ""))
    kept: list[tuple[bytes, bytes]] = list(answer.headers)
    if unpacking is not None:
        kept = [pair for pair in kept if pair[0].lower() not in _UNPACKED_HEADERS]
    stream = BoundedStream(_Arriving(answer), unpacking, bytes_max, by_line=by_line)
    return httpx2.Response(status_code=answer.status, headers=kept, stream=stream)


class _Arriving(httpx2.AsyncByteStream):
    """The bytes of an answer as they come from the connection."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream: Any = self._answer.stream
        with _translated():
            async for chunk in stream:
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the errors of the connection pool as those of httpx, which have the same names."""
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
