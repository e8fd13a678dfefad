"""Messages to and from a remote server, over streamable HTTP.

Each request is a POST of its own, and its answer the response to it: an object, or a stream of
events in which notifications and questions may come first. A failure concerns only its own call:
what became of the POST is recorded for that call. Requests are sent through the gateway's guarded
client.

Servers of 2024 answer a POST with nothing: all they say comes over one stream, which is opened
first and names the address to post to (`EventStreamDispatcher`). The protocol's way to tell them is
that they refuse the first POST.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import anyio
import httpx2
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError
from stratagem.gateway.handlers.upstream.dispatcher import (
    ConnectionLost,
    Message,
    MessageDispatcher,
    PendingRequest,
    read_message,
)
from stratagem.mcp_messages import encode_message

__all__ = [
    "Authorize",
    "EventStreamDispatcher",
    "HttpDispatcher",
    "RequestDelivery",
    "delivery_var",
    "open_http",
]

# Raised before anything of a request was written.
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_FAILURES: Final = (httpx2.HTTPError, httpx2.InvalidURL, StratagemError, OSError)
_SESSION_HEADER: Final = "mcp-session-id"
_LAST_EVENT_HEADER: Final = "last-event-id"
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
# A call has a timeout of its own; a stream may be silent for longer.
_TIMEOUT: Final = httpx2.Timeout(None, connect=10.0, pool=10.0)
_EXTENSIONS: Final = {"timeout": _TIMEOUT.as_dict()}
_UNREACHABLE: Final = -32050
_REDIRECTS_MAX: Final = 5
# A stream that breaks off is asked for again, as the SDK's client does it.
_RESUMPTIONS_MAX: Final = 2
_RESUMPTION_SECONDS: Final = 1.0
# A server says when to ask again, in milliseconds: at once would be a flood, and never is no time.
_RETRY_MIN: Final = 100
_RETRY_MAX: Final = 60_000
# By these a server that takes no POST at its address refuses one.
_NO_POST: Final = frozenset({400, 404, 405})
# After its answer a stream ends; only one that was read to its end leaves its connection usable.
_END_SECONDS: Final = 1.0


@dataclass(slots=True)
class RequestDelivery:
    """Whether and how the HTTP request of one call was delivered."""

    error: Exception | None = None
    sent: bool = True
    # The server no longer knows the session, and did nothing.
    refused: bool = False
    status: int | None = None

    @property
    def takes_no_post(self) -> bool:
        """Whether the server refused it as one does that only sends a stream of events."""
        return self.status in _NO_POST

    def note_failure(self, error: Exception) -> None:
        """Record why there is no response."""
        self.error = error
        self.sent = not isinstance(error, (*_NEVER_SENT, StratagemError))


# Returns a user's access token; called with one that the server did not take, another.
Authorize = Callable[[str | None], Awaitable[str]]

# A request is sent in the context of its call, so that what becomes of it can be related to it.
delivery_var: ContextVar[RequestDelivery | None] = ContextVar("delivery", default=None)


@dataclass(slots=True)
class _StreamPosition:
    """How far a stream of events was read, and when to come back if it breaks off."""

    event_id: str | None = None
    seconds: float = _RESUMPTION_SECONDS


class HttpDispatcher(MessageDispatcher):
    """Exchanges messages with one server, by requests to one address."""

    def __init__(
        self,
        url: str,
        client: httpx2.AsyncClient,
        headers: Mapping[str, str],
        session_ended: Callable[[], None],
        authorize: Authorize | None = None,
    ) -> None:
        super().__init__()
        self._url = httpx2.URL(url)
        self._client = client
        own = {**headers, "accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON}
        self._headers = {**client.headers, **{name.lower(): text for name, text in own.items()}}
        self._session_ended = session_ended
        self._authorize = authorize
        self._session: str | None = None
        # That of the last request, for messages that name none.
        self._version: str | None = None

    async def end_session(self) -> None:
        """Tell the server that its session is over, where it has one."""
        if self._session is not None:
            with contextlib.suppress(MCPError, *_FAILURES):
                response = await self._deliver(self._build("DELETE"), None)
                await response.aclose()

    async def _receive_all(self) -> None:
        # Messages come with the responses, each in the task of its request.
        await anyio.sleep_forever()

    async def _send_request(self, message: Message, pending: PendingRequest) -> None:
        if message["method"] == "initialize":
            # Its answer says which version holds; none that was tried before may be named.
            self._version = None
        else:
            self._version = pending.headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        pending.exchange = self._spawn(self._exchange(message, pending))

    async def _send(self, message: Message) -> None:
        if message.get("method") == "notifications/initialized":
            self._spawn(self._follow_session())
        with contextlib.suppress(MCPError, *_FAILURES):
            response = await self._deliver(self._build("POST", message), None)
            try:
                if not _is_stream(response):
                    await response.aread()
            finally:
                await response.aclose()

    def _abandon(self, pending: PendingRequest, reason: str, *, notify: bool) -> None:
        if pending.exchange is not None:
            # In 2026 it is this that tells the server; earlier, it means nothing.
            pending.exchange.cancel()
        version = pending.headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        if notify and not self._is_closed and version not in MODERN_PROTOCOL_VERSIONS:
            self._spawn(self._send(self._cancellation(pending, reason)))

    async def _exchange(self, message: Message, pending: PendingRequest) -> None:
        """Send a request, and take all that comes in response."""
        delivery = delivery_var.get() or RequestDelivery()
        outcome: MCPError = ConnectionLost("The exchange ended without an answer")
        try:
            response = await self._deliver(self._build("POST", message, pending.headers), delivery)
            try:
                if message["method"] == "initialize":
                    self._session = response.headers.get(_SESSION_HEADER, self._session)
                await self._read_response(response, pending, delivery)
            finally:
                await response.aclose()
        except MCPError as error:
            outcome = error
        except _FAILURES as error:
            delivery.note_failure(error)
            outcome = MCPError(_UNREACHABLE, str(error) or type(error).__name__)
        finally:
            pending.resolve(outcome)

    async def _read_response(
        self, response: httpx2.Response, pending: PendingRequest, delivery: RequestDelivery
    ) -> None:
        """Take the answer out of a response.

        Raises:
            MCPError: There is none.
        """
        kind = response.headers.get("content-type", "").lower()
        if response.status_code >= httpx2.codes.BAD_REQUEST:
            raise self._refusal(response, kind)
        if response.next_request is not None:
            raise _redirect_error(response)
        if response.status_code == httpx2.codes.ACCEPTED:
            raise MCPError(INVALID_REQUEST, "server answered a request with 202 Accepted")
        if kind.startswith(_JSON):
            self._take(response.content, pending)
        elif kind.startswith(_EVENTS):
            await self._read_stream(response, pending, delivery)
        else:
            raise MCPError(INVALID_REQUEST, f"Unexpected content type: {kind}")

    def _refusal(self, response: httpx2.Response, kind: str) -> MCPError:
        """Return what a response that is an error says."""
        if kind.startswith(_JSON):
            with contextlib.suppress(ValueError):
                error = read_message(response.content).get("error")
                if isinstance(error, dict):
                    return MCPError(int(error["code"]), str(error["message"]), error.get("data"))
        if response.status_code != httpx2.codes.NOT_FOUND:
            return MCPError(INTERNAL_ERROR, "Server returned an error response")
        if self._session is None:
            return MCPError(METHOD_NOT_FOUND, "Not Found")
        return MCPError(INVALID_REQUEST, "Session terminated")

    def _take(self, data: bytes | str, pending: PendingRequest | None) -> bool:
        """Take a message; return whether it is the answer.

        Raises:
            MCPError: It is no message, though one was asked for.
        """
        try:
            return self._accept(read_message(data), pending)
        except ValueError as error:
            if pending is None:
                return False
            raise MCPError(PARSE_ERROR, f"Failed to parse the response: {error}") from error

    async def _read_stream(
        self, response: httpx2.Response, pending: PendingRequest, delivery: RequestDelivery
    ) -> None:
        """Take the answer out of a stream; one that breaks off is resumed if it can be.

        Raises:
            MCPError: It ended without an answer.
        """
        position = _StreamPosition()
        try:
            if await self._read_events(response, position, pending):
                return
        except httpx2.SSEError as error:
            raise ConnectionLost(f"SSE stream failed: {error}") from error
        except StratagemError as error:
            delivery.note_failure(error)
            raise MCPError(_UNREACHABLE, str(error)) from error
        except (httpx2.HTTPError, OSError) as error:
            delivery.note_failure(error)
        await self._resume(position, pending)
        delivery.error = None

    async def _resume(self, position: _StreamPosition, pending: PendingRequest) -> None:
        """Ask for the rest of a stream until the answer has come.

        Raises:
            MCPError: The server does not give it.
        """
        failures = 0
        while position.event_id is not None and failures < _RESUMPTIONS_MAX:
            await asyncio.sleep(position.seconds)
            try:
                async with self._listen(position) as response:
                    if await self._read_events(response, position, pending):
                        return
                failures = 0
            except (MCPError, *_FAILURES):
                failures += 1
        raise ConnectionLost("SSE stream ended without a response")

    async def _follow_session(self) -> None:
        """Take what a server of the handshake era sends of its own accord."""
        position, failures = _StreamPosition(), 0
        while self._session is not None and failures < _RESUMPTIONS_MAX:
            try:
                async with self._listen(position) as response:
                    await self._read_events(response, position)
                failures = 0
            except (MCPError, *_FAILURES):
                failures += 1
            await asyncio.sleep(position.seconds)

    @contextlib.asynccontextmanager
    async def _listen(self, position: _StreamPosition) -> AsyncIterator[httpx2.Response]:
        """Open a stream, or the rest of one."""
        headers = {"accept": _EVENTS, "cache-control": "no-store"}
        if position.event_id is not None:
            headers[_LAST_EVENT_HEADER] = position.event_id
        response = await self._deliver(self._build("GET", None, headers), None)
        try:
            if response.next_request is not None:
                raise _redirect_error(response)
            response.raise_for_status()
            yield response
        finally:
            await response.aclose()

    async def _read_events(
        self,
        response: httpx2.Response,
        position: _StreamPosition,
        pending: PendingRequest | None = None,
    ) -> bool:
        """Take the messages of a stream to its end; return whether the answer was among them."""
        bytes_max = limits.UPSTREAM_MESSAGE_BYTES_MAX
        answered = False
        try:
            async with asyncio.timeout(None) as patience:
                async for event in httpx2.EventSource(response, max_event_size=bytes_max):
                    position.event_id = event.id or position.event_id
                    if event.retry is not None:
                        position.seconds = min(max(event.retry, _RETRY_MIN), _RETRY_MAX) / 1000
                    if event.event != "message" or not event.data or answered:
                        continue
                    answered = self._take(event.data, pending) and pending is not None
                    if answered:
                        patience.reschedule(asyncio.get_running_loop().time() + _END_SECONDS)
                    else:
                        # Events that are there already are read without waiting.
                        await asyncio.sleep(0)
        except (TimeoutError, *_FAILURES):
            if not answered:
                raise
        return answered

    def _build(
        self,
        method: str,
        message: Message | None = None,
        headers: Mapping[str, str] | None = None,
        address: httpx2.URL | None = None,
    ) -> httpx2.Request:
        sent = {**self._headers, **(headers or {})}
        if self._session is not None:
            sent[_SESSION_HEADER] = self._session
        if self._version is not None:
            sent.setdefault(MCP_PROTOCOL_VERSION_HEADER, self._version)
        content = None if message is None else encode_message(message)
        # Not by the client: it would send cookies, and look at everything again each time.
        return httpx2.Request(
            method, address or self._url, headers=sent, content=content, extensions=_EXTENSIONS
        )

    async def _deliver(
        self, request: httpx2.Request, delivery: RequestDelivery | None
    ) -> httpx2.Response:
        """Send a request, and follow redirects that stay with the server.

        An object is read whole: where it breaks off the request has failed.
        """
        response = await self._send_authorized(request)
        for _ in range(_REDIRECTS_MAX):
            following = _next_request(response)
            if following is None:
                break
            await response.aread()
            request = following
            response = await self._send_authorized(request)
        if response.headers.get("content-type", "").startswith(_JSON):
            await response.aread()
        if delivery is not None:
            delivery.status = response.status_code
        if _is_session_lost(request, response):
            if delivery is not None:
                delivery.refused = True
            self._session_ended()
        return response

    async def _send_authorized(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request in the name of its user, where there is one; once more by a new token."""
        if self._authorize is None:
            return await self._client.send(request, stream=True)
        token = await self._authorize(None)
        request.headers["authorization"] = f"Bearer {token}"
        response = await self._client.send(request, stream=True)
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return response
        await response.aclose()
        request.headers["authorization"] = f"Bearer {await self._authorize(token)}"
        return await self._client.send(request, stream=True)


class EventStreamDispatcher(HttpDispatcher):
    """Exchanges messages with a server of 2024: they are posted, and come over one stream."""

    def __init__(
        self, url: str, client: httpx2.AsyncClient, headers: Mapping[str, str], *more: Any
    ) -> None:
        super().__init__(url, client, headers, *more)
        # Where messages are posted to: the server says so at the beginning of its stream.
        self._address: asyncio.Future[httpx2.URL] = asyncio.get_running_loop().create_future()

    async def _receive_all(self) -> None:
        try:
            async with self._listen(_StreamPosition()) as response:
                bytes_max = limits.UPSTREAM_MESSAGE_BYTES_MAX
                async for event in httpx2.EventSource(response, max_event_size=bytes_max):
                    if event.event == "endpoint":
                        self._note_address(event.data)
                    elif event.data:
                        self._take(event.data, None)
                    # Events that are there already are read without waiting.
                    await asyncio.sleep(0)
        except (MCPError, *_FAILURES) as error:
            self._end = MCPError(_UNREACHABLE, str(error) or type(error).__name__)
        finally:
            if not self._address.done():
                self._address.cancel()
            self._session_ended()

    def _note_address(self, given: str) -> None:
        address = self._url.join(given)
        if (address.scheme, address.host, address.port) != (
            self._url.scheme,
            self._url.host,
            self._url.port,
        ):
            words = "it names an address on another server to post messages to"
            raise MCPError(INVALID_REQUEST, words)
        if not self._address.done():
            self._address.set_result(address)

    async def _exchange(self, message: Message, pending: PendingRequest) -> None:
        """Post a request; its answer comes over the stream."""
        delivery = delivery_var.get() or RequestDelivery()
        try:
            response = await self._post(message, delivery)
            if response.is_error:
                kind = response.headers.get("content-type", "").lower()
                pending.resolve(self._refusal(response, kind))
        except MCPError as error:
            pending.resolve(error)
        except _FAILURES as error:
            delivery.note_failure(error)
            pending.resolve(MCPError(_UNREACHABLE, str(error) or type(error).__name__))

    async def _send(self, message: Message) -> None:
        with contextlib.suppress(MCPError, *_FAILURES):
            await self._post(message, None)

    async def _post(self, message: Message, delivery: RequestDelivery | None) -> httpx2.Response:
        request = self._build("POST", message, address=await asyncio.shield(self._address))
        response = await self._deliver(request, delivery)
        try:
            await response.aread()
        finally:
            await response.aclose()
        return response


def _is_session_lost(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the server refused a request because it no longer knows its session."""
    if _SESSION_HEADER not in request.headers:
        return False
    if response.status_code == httpx2.codes.NOT_FOUND:
        return True
    # The rule is 404; servers of the TypeScript SDK's examples say 400, and mention the session.
    refused = response.status_code == httpx2.codes.BAD_REQUEST and response.is_stream_consumed
    return refused and b"session" in response.content.lower()


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith(_EVENTS)


def _next_request(response: httpx2.Response) -> httpx2.Request | None:
    """Return the request that a redirect asks for, if it is the same one to the same server."""
    following = response.next_request
    if following is None or following.method != response.request.method:
        return None
    old, new = response.request.url, following.url
    default_ports = old.port is None and new.port is None
    upgraded = (old.scheme, new.scheme) == ("http", "https") and default_ports
    same = (old.scheme, old.port) == (new.scheme, new.port)
    return following if old.host == new.host and (same or upgraded) and not new.userinfo else None


def _redirect_error(response: httpx2.Response) -> MCPError:
    assert response.next_request is not None
    # Without what may hold secrets.
    place = response.next_request.url.copy_with(userinfo=b"", query=None, fragment=None)
    words = (
        f"it redirects to {place}, which is not followed: use that address if it is the right one"
    )
    return MCPError(INVALID_REQUEST, words)


@contextlib.asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    http_client: Callable[[], httpx2.AsyncClient],
    session_ended: Callable[[], None],
    authorize: Authorize | None = None,
    *,
    by_event_stream: bool = False,
) -> AsyncIterator[HttpDispatcher]:
    """Yield what exchanges messages with a server; `by_event_stream` with one of 2024.

    `session_ended` is called when the server no longer knows the session; `authorize` gives the
    token of the user in whose name requests are sent.
    """
    kind = EventStreamDispatcher if by_event_stream else HttpDispatcher
    async with http_client() as client:
        dispatcher = kind(url, client, headers, session_ended, authorize)
        try:
            yield dispatcher
        finally:
            await dispatcher.end_session()
