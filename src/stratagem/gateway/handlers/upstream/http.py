"""The transport to a remote server, over streamable HTTP.

The SDK's transport closes the whole connection when one request fails to be delivered. Here a
failure concerns only its own call: it is recorded for that call, and the transport gets an error
response. Requests are sent through the gateway's guarded client.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from stratagem import limits
from stratagem.errors import StratagemError

__all__ = ["Authorize", "RequestDelivery", "delivery_var", "open_http"]

# Raised before anything of a request was written.
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_SESSION_HEADER: Final = "mcp-session-id"
# A call has a timeout of its own; a stream may be silent for longer.
_TIMEOUT: Final = httpx2.Timeout(None, connect=10.0, pool=10.0)
_UNREACHABLE: Final = -32050


@dataclass(slots=True)
class RequestDelivery:
    """Whether and how the HTTP request of one call was delivered."""

    error: Exception | None = None
    sent: bool = True
    # The server no longer knows the session, and did nothing.
    refused: bool = False
    status: int | None = None


# Returns a user's access token; called with one that the server did not take, another.
Authorize = Callable[[str | None], Awaitable[str]]

# The transport sends in the context of the call, so that a request can be related to its call.
delivery_var: ContextVar[RequestDelivery | None] = ContextVar("attempt", default=None)


class _IsolatingClient(httpx2.AsyncClient):
    """A client that turns the failure of a request into a response to that request alone."""

    def __init__(
        self,
        inner: httpx2.AsyncClient,
        headers: Mapping[str, str],
        session_ended: Callable[[], None],
        authorize: Authorize | None = None,
    ) -> None:
        super().__init__(
            headers=dict(headers), timeout=_TIMEOUT, transport=_UnusedTransport(), trust_env=False
        )
        self._inner = inner
        self._session_ended = session_ended
        self._authorize = authorize

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send through the guarded client; an error becomes an error response."""
        try:
            response = await self._send(request, options)
            if response.headers.get("content-type", "").startswith("application/json"):
                # A body that breaks off would otherwise break the connection.
                await response.aread()
        except (httpx2.HTTPError, httpx2.InvalidURL, StratagemError, OSError) as error:
            return _error_response(request, error)
        delivery = delivery_var.get()
        if delivery is not None:
            delivery.status = response.status_code
        if _is_session_lost(request, response):
            if delivery is not None:
                delivery.refused = True
            self._session_ended()
        return response

    async def _send(self, request: httpx2.Request, options: Mapping[str, Any]) -> httpx2.Response:
        """Send a request in the name of its user, where there is one; once more by a new token."""
        if self._authorize is None:
            return await self._inner.send(request, **options)
        token = await self._authorize(None)
        request.headers["authorization"] = f"Bearer {token}"
        response = await self._inner.send(request, **options)
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return response
        await response.aclose()
        request.headers["authorization"] = f"Bearer {await self._authorize(token)}"
        return await self._inner.send(request, **options)


def _is_session_lost(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the server refused a request because it no longer knows its session."""
    if _SESSION_HEADER not in request.headers:
        return False
    if response.status_code == httpx2.codes.NOT_FOUND:
        return True
    # The rule is 404; servers of the TypeScript SDK's examples say 400, and mention the session.
    refused = response.status_code == httpx2.codes.BAD_REQUEST and response.is_stream_consumed
    return refused and b"session" in response.content.lower()


class _UnusedTransport(httpx2.AsyncBaseTransport):
    """A placeholder that is never used; a real transport would load certificates."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.UnsupportedProtocol("requests go through the guarded client", request=request)


def _error_response(request: httpx2.Request, error: Exception) -> httpx2.Response:
    delivery = delivery_var.get()
    if delivery is not None:
        delivery.error = error
        delivery.sent = not isinstance(error, (*_NEVER_SENT, StratagemError))
    fault = {"code": _UNREACHABLE, "message": str(error) or type(error).__name__}
    body = {"jsonrpc": "2.0", "id": None, "error": fault}
    return httpx2.Response(httpx2.codes.BAD_GATEWAY, json=body, request=request)


@contextlib.asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    http_client: Callable[[], httpx2.AsyncClient],
    session_ended: Callable[[], None],
    authorize: Authorize | None = None,
) -> AsyncIterator[Any]:
    """Yield the streams of messages from and to a server.

    `session_ended` is called when the server no longer knows the session; `authorize` gives the
    token of the user in whose name requests are sent.
    """
    async with (
        http_client() as inner,
        _IsolatingClient(inner, headers, session_ended, authorize) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=limits.UPSTREAM_MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams
