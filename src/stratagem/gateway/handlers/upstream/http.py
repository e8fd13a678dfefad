"""A server that runs somewhere, called over streamable HTTP.

The SDK's transport ends the whole connection when one request fails on its way. Here each
failure belongs to the call that met it: it is noted on that call, and the transport is given an
answer that says so. Requests go out through the guarded client that the gateway was given.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from stratagem import limits
from stratagem.errors import StratagemError

__all__ = ["Attempt", "attempt_var", "open_http"]

# Raised before anything of a request was written.
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_SESSION_HEADER: Final = "mcp-session-id"
# A call is ended by its own time, not by the quiet of a stream that has nothing to say.
_TIMEOUT: Final = httpx2.Timeout(None, connect=10.0, pool=10.0)
_UNREACHABLE: Final = -32050


@dataclass(slots=True)
class Attempt:
    """What became of the request of one call, for the caller to read."""

    error: Exception | None = None
    sent: bool = True
    # The server no longer knows the session, and did nothing.
    refused: bool = False
    status: int | None = None


# The transport sends in the context of the call, so that a request finds its way back to it.
attempt_var: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class _OneByOne(httpx2.AsyncClient):
    """A client in which the failure of one request is an answer to that request alone."""

    def __init__(
        self,
        inner: httpx2.AsyncClient,
        headers: Mapping[str, str],
        session_ended: Callable[[], None],
    ) -> None:
        super().__init__(
            headers=dict(headers), timeout=_TIMEOUT, transport=_Nowhere(), trust_env=False
        )
        self._inner = inner
        self._session_ended = session_ended

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send through the guarded client; an error becomes an answer."""
        try:
            response = await self._inner.send(request, **options)
            if response.headers.get("content-type", "").startswith("application/json"):
                # A body that breaks off would otherwise break the connection.
                await response.aread()
        except (httpx2.HTTPError, httpx2.InvalidURL, StratagemError, OSError) as error:
            return _as_answer(request, error)
        attempt = attempt_var.get()
        if attempt is not None:
            attempt.status = response.status_code
        if _forgot_session(request, response):
            if attempt is not None:
                attempt.refused = True
            self._session_ended()
        return response


def _forgot_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the server refused a request because it does not know its session any more."""
    if _SESSION_HEADER not in request.headers:
        return False
    if response.status_code == httpx2.codes.NOT_FOUND:
        return True
    # The rule is 404; servers of the TypeScript SDK's examples say 400, and mention the session.
    refused = response.status_code == httpx2.codes.BAD_REQUEST and response.is_stream_consumed
    return refused and b"session" in response.content.lower()


class _Nowhere(httpx2.AsyncBaseTransport):
    """Stands for a transport that is never used; a real one would read certificates."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.UnsupportedProtocol("requests go through the guarded client", request=request)


def _as_answer(request: httpx2.Request, error: Exception) -> httpx2.Response:
    attempt = attempt_var.get()
    if attempt is not None:
        attempt.error = error
        attempt.sent = not isinstance(error, (*_NEVER_SENT, StratagemError))
    fault = {"code": _UNREACHABLE, "message": str(error) or type(error).__name__}
    body = {"jsonrpc": "2.0", "id": None, "error": fault}
    return httpx2.Response(httpx2.codes.BAD_GATEWAY, json=body, request=request)


@contextlib.asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    http_client: Callable[[], httpx2.AsyncClient],
    session_ended: Callable[[], None],
) -> AsyncIterator[Any]:
    """Give the streams of messages from and to a server.

    `session_ended` is called when the server no longer knows us.
    """
    async with (
        http_client() as inner,
        _OneByOne(inner, headers, session_ended) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=limits.UPSTREAM_MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams
