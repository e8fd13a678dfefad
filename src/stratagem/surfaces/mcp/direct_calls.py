"""Calls of tools by clients of 2026 over HTTP, each answered within its own request.

The library opens a task group, two tasks and a stream for each request, because any might send
notifications before its answer. A call that asks for no progress sends none: here it is one task,
and its answer is written directly. Every request that is not certainly such a call is left to the
library, and so is every refusal; tools, rights and middleware are the same on both paths (ADR 64).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.dispatcher import as_request_id
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem.deferred_dataclasses import dataclass
from stratagem.mcp_messages import AnswerContext, encode_message
from stratagem.surfaces.serving.request_scope import prepend_message

__all__ = ["DirectCalls"]

_METHOD: Final = "tools/call"
_METHOD_HEADER: Final = MCP_METHOD_HEADER.lower()
_VERSION_HEADER: Final = MCP_PROTOCOL_VERSION_HEADER.lower()
_OK: Final = 200
_JSON: Final = [(b"content-type", b"application/json")]
_EVENTS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
# Proxies close a connection on which nothing comes for long: from then on there is a sign of life.
_QUIET_SECONDS: Final = 15.0
# By these a client says that it wants to be told something before the answer.
_NOTIFIED: Final = ("progressToken", LOG_LEVEL_META_KEY)


@dataclass(slots=True, kw_only=True)
class _DirectCall(AnswerContext):
    """One call, and what the library is to know of it: nothing can be sent but its answer."""

    params: dict[str, Any]
    route: InboundModernRoute
    request: Request
    # By it the call is stopped; what runs in a thread is waited for, as by the library.
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        """The request, by which tools know who calls."""
        return ServerMessageMetadata(request_context=self.request)


class DirectCalls:
    """Answers calls of tools; passes everything else on."""

    def __init__(
        self, app: ASGIApp, server: Server[Any], path: str, security: TransportSecuritySettings
    ) -> None:
        self._app = app
        self._server = server
        self._path = path
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        headers = self._headers_of_call(scope)
        if headers is None:
            await self._app(scope, receive, send)
            return
        message = await receive()
        call = await self._read(scope, headers, message)
        if call is None:
            await self._app(scope, prepend_message(message, receive), send)
        else:
            await self._answer(call, receive, send)

    def _headers_of_call(self, scope: Scope) -> dict[str, str] | None:
        """Return the headers of what says to be a call of a tool; each is there once."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            return None
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        accept = headers.get("accept", "")
        is_call = (
            len(headers) == len(scope["headers"])
            and headers.get(_METHOD_HEADER) == _METHOD
            and headers.get(_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS
            and "application/json" in accept
            and "text/event-stream" in accept
        )
        return headers if is_call else None

    async def _read(
        self, scope: Scope, headers: Mapping[str, str], message: Message
    ) -> _DirectCall | None:
        """Return the call that a request is; None where it is not, or not surely."""
        if message["type"] != "http.request" or message.get("more_body"):
            return None
        try:
            body = json.loads(message.get("body", b""))
        except (ValueError, RecursionError):
            return None
        request_id = as_request_id(body.get("id")) if isinstance(body, dict) else None
        params = body.get("params") if request_id is not None else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        if request_id is None or not isinstance(params, dict) or not isinstance(meta, dict):
            return None
        if body.get("jsonrpc") != "2.0" or any(name in meta for name in _NOTIFIED):
            return None
        route = classify_inbound_request(body, headers=headers)
        request = Request(scope)
        if not isinstance(route, InboundModernRoute) or (
            await self._security.validate_request(request, is_post=True) is not None
        ):
            return None
        transport = TransportContext(
            kind="streamable-http", can_send_request=False, headers=request.headers
        )
        return _DirectCall(transport, request_id, params=params, route=route, request=request)

    async def _answer(self, call: _DirectCall, receive: Receive, send: Send) -> None:
        """Run a call; a client that goes away stops it."""
        running = asyncio.ensure_future(self._run(call))
        leaving = asyncio.ensure_future(_wait_for_end(receive))
        begun = False
        try:
            while not running.done():
                both = {running, leaving}
                await asyncio.wait(
                    both, timeout=_QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if running.done():
                    break
                if leaving.done():
                    return
                if not begun:
                    await send({"type": "http.response.start", "status": _OK, "headers": _EVENTS})
                    begun = True
                await send(
                    {"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True}
                )
        finally:
            leaving.cancel()
            call.scope.cancel()
            await asyncio.wait({running, leaving})
        status, body = running.result()
        if begun:
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            length = (b"content-length", str(len(body)).encode())
            headers = [*_JSON, length]
            await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _run(self, call: _DirectCall) -> tuple[int, bytes]:
        """Return the status and the message that answer a call."""
        route = call.route
        connection = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call.request_id}
        status = _OK
        with call.scope:
            try:
                answer["result"] = await serve_one(
                    self._server,
                    call,
                    _METHOD,
                    call.params,
                    connection=connection,
                    lifespan_state={},
                )
            except Exception as error:  # noqa: BLE001 - the outermost frame
                fault = modern_error_data(error)
                status = ERROR_CODE_HTTP_STATUS.get(fault.code, _OK)
                answer["error"] = fault.model_dump(mode="json", by_alias=True, exclude_none=True)
        return status, encode_message(answer)


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
