"""Handing a request on to the process that knows its socket.

A Socket.IO client that polls makes many requests, each of which may meet another process than the
one it began with. The id of its socket says whose it is: a number, a dot, and the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

import httpx2
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from stratagem import limits
from stratagem.surfaces.cluster.local import CLIENT_HEADER, Neighbours
from stratagem.surfaces.serving.request_ids import HEADER as REQUEST_HEADER
from stratagem.surfaces.serving.request_ids import request_id

__all__ = ["Relaying", "numbered"]

_SOCKETS: Final = "/socket.io"
_BETWEEN: Final = "."
# These are about one connection, and each of the two has its own.
_OWN: Final = frozenset(
    {
        b"connection",
        b"date",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
        CLIENT_HEADER.encode(),
    }
)


def numbered(number: int, own: str) -> str:
    """Return an id that says which process has given it."""
    return f"{number}{_BETWEEN}{own}"


class Relaying:
    """Answers a request here, or has the process answer that knows its socket."""

    def __init__(self, app: ASGIApp, neighbours: Neighbours) -> None:
        self._app = app
        self._neighbours = neighbours
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
        """Return whose a request is, if another's that was not handed on already."""
        if scope["type"] not in {"http", "websocket"} or not scope["path"].startswith(_SOCKETS):
            return None
        if self._neighbours.seat.is_from_another(scope):
            return None
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("sid", [""])[0]
        number = given.partition(_BETWEEN)[0]
        if not number.isdecimal() or len(number) > 3:  # noqa: PLR2004 -- no server has a thousand
            return None
        return int(number) if int(number) in self._neighbours.seat.others else None

    async def _relay(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        if number not in self._clients:
            # A poll waits for as long as the server lets it.
            self._clients[number] = self._neighbours.client(number, None)
        request = self._clients[number].build_request(
            scope["method"],
            _address("http", scope),
            headers=_headers(scope),
            content=_body(receive) if scope["method"] == "POST" else None,
        )
        try:
            response = await self._clients[number].send(request, stream=True)
        except httpx2.TransportError:
            await _gone(scope, receive, send)
            return
        try:
            headers = [each for each in response.headers.raw if each[0].lower() not in _OWN]
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
        place = str(self._neighbours.seat.place_of(number))
        try:
            connection = await unix_connect(
                place,
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
                asyncio.ensure_future(_inwards(connection, receive)),
                asyncio.ensure_future(_outwards(connection, send)),
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)


async def _inwards(connection: ClientConnection, receive: Receive) -> None:
    """Hand on what the client says, until it leaves."""
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        await connection.send(text if text is not None else message["bytes"])


async def _outwards(connection: ClientConnection, send: Send) -> None:
    """Hand on what the other process says, until it ends."""
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


async def _gone(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as for a socket that is no more: its client begins a new one."""
    await PlainTextResponse("Invalid session\n", 400)(scope, receive, send)


def _address(scheme: str, scope: Scope) -> str:
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    target: bytes = path.split(b"?")[0] + (b"?" + query if query else b"")
    # The other process looks at it like this one: it is one of the server's names.
    return f"{scheme}://{Headers(scope=scope)['host']}{target.decode('latin-1')}"


def _headers(scope: Scope) -> list[tuple[str, str]]:
    raw: Iterable[tuple[bytes, bytes]] = scope["headers"]
    kept: list[tuple[Any, Any]] = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in raw if name not in _OWN
    ]
    client = scope.get("client")
    kept.append((CLIENT_HEADER, client[0] if client else ""))
    if own := request_id():
        kept = [each for each in kept if each[0] != REQUEST_HEADER] + [(REQUEST_HEADER, own)]
    return kept
