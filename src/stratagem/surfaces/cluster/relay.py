"""Relaying a Socket.IO request to the worker that has its session.

A client that polls makes many requests, each of which may meet another worker than the one it began
with. The id of its session begins with the number of its worker and a dot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs

import httpx2
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from stratagem import limits
from stratagem.surfaces.cluster.local import CLIENT_HEADER, LocalChannel
from stratagem.surfaces.serving.request_ids import HEADER as REQUEST_HEADER
from stratagem.surfaces.serving.request_ids import request_id
from stratagem.surfaces.serving.request_scope import is_of_sockets

__all__ = ["SocketRelay", "worker_sid"]

_SEPARATOR: Final = "."
# Hop-by-hop: each of the two connections has its own.
_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"date",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
        CLIENT_HEADER.encode(),
    }
)


def worker_sid(number: int, sid: str) -> str:
    """Return the id of a session with the number of its worker."""
    return f"{number}{_SEPARATOR}{sid}"


class SocketRelay:
    """Answers a request here, or has the worker answer that has its session."""

    def __init__(self, app: ASGIApp, channel: LocalChannel) -> None:
        self._app = app
        self._channel = channel
        self._clients: dict[int, httpx2.AsyncClient] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        number = self._owner(scope)
        if number is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._bridge(number, scope, receive, send)
        else:
            await self._relay(number, scope, receive, send)

    def _owner(self, scope: Scope) -> int | None:
        """Return the worker of a request, if it is another that has not relayed it already."""
        if scope["type"] not in {"http", "websocket"} or not is_of_sockets(scope):
            return None
        if self._channel.slot.is_from_peer(scope):
            return None
        sid = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("sid", [""])[0]
        number = sid.partition(_SEPARATOR)[0]
        if not number.isdecimal() or len(number) > 3:  # noqa: PLR2004 -- no server has a thousand
            return None
        return int(number) if int(number) in self._channel.slot.others else None

    async def _relay(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        if number not in self._clients:
            # A poll waits for as long as the server lets it.
            self._clients[number] = self._channel.client(number, None)
        request = self._clients[number].build_request(
            scope["method"],
            _address("http", scope),
            headers=_headers(scope),
            content=_body(receive) if scope["method"] == "POST" else None,
        )
        try:
            response = await self._clients[number].send(request, stream=True)
        except httpx2.TransportError:
            await _answer_invalid_session(scope, receive, send)
            return
        try:
            headers = [
                header for header in response.headers.raw if header[0].lower() not in _HOP_BY_HOP
            ]
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": [(name.lower(), value) for name, value in headers],
                }
            )
            with suppress(httpx2.TransportError):
                async for part in response.aiter_raw():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()

    async def _bridge(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            connection = await unix_connect(
                str(self._channel.slot.socket_path(number)),
                _address("ws", scope),
                additional_headers=[
                    (name, value)
                    for name, value in _headers(scope)
                    if name != "host" and not name.startswith("sec-websocket")
                ],
                max_size=limits.REQUEST_BYTES_MAX,
                compression=None,
            )
        except (OSError, InvalidHandshake, TimeoutError):
            await send({"type": "websocket.close", "code": 1008})
            return
        async with connection:
            await send({"type": "websocket.accept"})
            both = [
                asyncio.ensure_future(_forward_incoming(connection, receive)),
                asyncio.ensure_future(_forward_outgoing(connection, send)),
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)


async def _forward_incoming(connection: ClientConnection, receive: Receive) -> None:
    """Pass on what the client sends, until it leaves."""
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        await connection.send(text if text is not None else message["bytes"])


async def _forward_outgoing(connection: ClientConnection, send: Send) -> None:
    """Pass on what the other worker sends, until it ends."""
    try:
        async for message in connection:
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
    except ConnectionClosed:
        pass
    code = connection.close_code or 1011
    await send({"type": "websocket.close", "code": code if code != 1006 else 1011})  # noqa: PLR2004


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx2.ReadError("the client left")
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def _answer_invalid_session(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as for a session that has ended: its client begins a new one."""
    await PlainTextResponse("Invalid session\n", 400)(scope, receive, send)


def _address(scheme: str, scope: Scope) -> str:
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    target: bytes = path.split(b"?")[0] + (b"?" + query if query else b"")
    # The other worker checks the host as this one did: it is one of the server's names.
    return f"{scheme}://{Headers(scope=scope)['host']}{target.decode('latin-1')}"


def _headers(scope: Scope) -> list[tuple[str, str]]:
    raw: Iterable[tuple[bytes, bytes]] = scope["headers"]
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in raw
        if name not in _HOP_BY_HOP
    ]
    client = scope.get("client")
    headers.append((CLIENT_HEADER, client[0] if client else ""))
    if current := request_id():
        headers = [header for header in headers if header[0] != REQUEST_HEADER]
        headers.append((REQUEST_HEADER, current))
    return headers
