"""The Socket.IO server with bounds on messages, and on sockets that have not authenticated."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

import orjson
import socketio
from engineio.packet import Packet
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
from stratagem.errors import InvalidInput, RequestTooLarge
from stratagem.surfaces.admission.quotas import UnauthenticatedSockets
from stratagem.surfaces.cluster.relay import worker_sid
from stratagem.surfaces.serving.json_bodies import check_depth
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.surfaces.serving.request_scope import prepend_message
from stratagem.surfaces.serving.responses import error_response

__all__ = [
    "BoundedJson",
    "BoundedPosts",
    "BoundedServer",
    "KnownPackets",
    "TooDeepData",
    "WebsocketsOnly",
]

logger = logging.getLogger(__name__)

_NAMESPACE: Final = "/"
_EVENT_NAME: Final = re.compile(rb'\s*+\[\s*+("(?:[^"\\]|\\.){0,200}")')
# The first characters of packets that announce pieces of binary data to come.
_BINARY: Final = ("5", "6")
# The longest of the layer below says which transports there are.
_PACKET_CHARS_MAX: Final = 4_096
# What its packets begin with. It fails on others, and logs each failure with a traceback.
_PACKET_TYPES: Final = frozenset("0123456")
_UNKNOWN_PACKET: Final = re.compile(rb"(?:\A|\x1e)(?![0-6])")
# Names of handlers that the library calls itself. An event of a client with such a name would reach
# them with forged data: another address, another socket, a disconnection that never happened.
_RESERVED_NAMES: Final = frozenset({*socketio.AsyncServer.reserved_events, "*"})
_MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError)


@dataclass(frozen=True, slots=True)
class TooDeepData:
    """Stands for what was nested too deeply to be read, so that it can be refused by name."""

    error: RequestTooLarge


class BoundedJson:
    """JSON as the server reads and writes it; what is nested too deeply is not read."""

    @staticmethod
    def loads(text: str | bytes, **_options: Any) -> Any:
        """Read a message; of an event that is too deep its name is left, and what is wrong.

        Raises:
            ValueError: It is no JSON, or something else than an event that is too deep.
        """
        body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            check_depth(body)
        except RequestTooLarge as error:
            name = _EVENT_NAME.match(body)
            if name is None:
                raise ValueError(error.message) from error
            return [orjson.loads(name[1]), TooDeepData(error)]
        return values.read(body)

    @staticmethod
    def dumps(value: Any, **_options: Any) -> str:
        """Write a message."""
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


class _ShortJson:
    """JSON of the layer below: its own packets are short, and others are read by this one."""

    dumps = BoundedJson.dumps

    @staticmethod
    def loads(text: str | bytes, **_options: Any) -> Any:
        """Read what a packet of that layer may be; anything else is left as it is.

        Raises:
            ValueError: It is longer than those, or no JSON.
        """
        if len(text) > _PACKET_CHARS_MAX:
            raise ValueError("read by the layer above")
        return orjson.loads(text)


class BoundedServer(socketio.AsyncServer):  # type: ignore[misc]
    """Bounds the size of messages, and the number and age of unauthenticated sockets."""

    def __init__(
        self,
        unauthenticated: UnauthenticatedSockets,
        large_bodies: LargeBodyQueue,
        number: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(json=BoundedJson, **options)
        # Set by the line above for both layers: the lower one would read every message as well.
        Packet.json = _ShortJson
        self._large_bodies = large_bodies
        if number is not None:
            new_id = self.eio.generate_id
            self.eio.generate_id = lambda: worker_sid(number, new_id())
        self._unauthenticated = unauthenticated
        self._waiting: set[asyncio.Task[None]] = set()

    def is_authenticated(self, eio_sid: str) -> bool:
        """Whether a socket has authenticated."""
        sid = self.manager.sid_from_eio_sid(eio_sid, _NAMESPACE)
        return sid is not None and self.manager.is_connected(sid, _NAMESPACE)

    async def _handle_eio_connect(self, eio_sid: str, environ: dict[str, Any]) -> Any:
        client = environ["asgi.scope"].get("client") or ("",)
        surplus = self._unauthenticated.add(eio_sid, client[0])
        if surplus is not None:
            self._run_soon(self._end(surplus))
        self._run_soon(self._expire(eio_sid))
        return await super()._handle_eio_connect(eio_sid, environ)

    async def _handle_connect(self, eio_sid: str, namespace: str | None, data: Any) -> None:
        await super()._handle_connect(eio_sid, namespace, data)
        if self.is_authenticated(eio_sid):
            self._unauthenticated.discard(eio_sid)

    async def _handle_eio_message(self, eio_sid: str, data: Any) -> None:
        """Handle a message; a malformed one ends its own socket, without a line in the log.

        Nothing here takes binary data, of which a packet may announce any amount. An
        unauthenticated socket has nothing to send but its token.
        """
        try:
            if not isinstance(data, str) or data.startswith(_BINARY):
                raise ValueError("binary data")
            if len(data) > limits.UNKNOWN_SOCKET_BYTES_MAX and not self.is_authenticated(eio_sid):
                raise ValueError("long, and not authenticated")
            if len(data) <= limits.REQUEST_INLINE_BYTES:
                await super()._handle_eio_message(eio_sid, data)
            else:
                await self._handle_large(eio_sid, data)
        except _MALFORMED as error:
            logger.debug("a message was malformed: %s", type(error).__name__)
            await self._reject(eio_sid)

    async def _handle_event(
        self, eio_sid: str, namespace: str | None, packet_id: int | None, data: Any
    ) -> None:
        if data[0] in _RESERVED_NAMES:
            raise ValueError("an event with a reserved name")
        await super()._handle_event(eio_sid, namespace, packet_id, data)

    async def _handle_large(self, eio_sid: str, data: str) -> None:
        """Take an event or an acknowledgement that is too large to be read on the loop."""
        read = partial(self.packet_class, encoded_packet=data)
        packet = await self._large_bodies.run(eio_sid, read)
        given = (eio_sid, packet.namespace, packet.id, packet.data)
        if packet.packet_type == socketio.packet.EVENT:
            await self._handle_event(*given)
        elif packet.packet_type == socketio.packet.ACK:
            await self._handle_ack(*given)
        else:
            raise ValueError("large, and neither an event nor an acknowledgement")

    async def _reject(self, eio_sid: str) -> None:
        """End a socket that breaks the protocol; it is told so where it has authenticated."""
        if self.is_authenticated(eio_sid):
            error = InvalidInput(
                "The message is not an event with valid JSON.",
                hint="Send [name, object] as the Socket.IO clients do, without binary data.",
            )
            sid = self.manager.sid_from_eio_sid(eio_sid, _NAMESPACE)
            await self.emit("mcp:error", error.gateway_body(), to=sid)
        await self._end(eio_sid)

    async def _handle_eio_disconnect(self, eio_sid: str, reason: Any) -> None:
        self._unauthenticated.discard(eio_sid)
        await super()._handle_eio_disconnect(eio_sid, reason)

    async def _expire(self, eio_sid: str) -> None:
        await asyncio.sleep(limits.UNKNOWN_SOCKET_SECONDS)
        if eio_sid in self._unauthenticated:
            self._unauthenticated.discard(eio_sid)
            await self._end(eio_sid)

    async def _end(self, eio_sid: str) -> None:
        """End a socket without waiting for its client, which may never take another word."""
        socket = self.eio.sockets.get(eio_sid)
        if socket is not None:
            await socket.close(wait=False)
            # The task that writes to its websocket closes it then.
            await socket.queue.put(None)
            self.eio.sockets.pop(eio_sid, None)

    def _run_soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)


class BoundedPosts:
    """Passes on what a polling client sends in one piece, and refuses what is too large."""

    def __init__(self, app: ASGIApp, is_authenticated: Callable[[str], bool]) -> None:
        self._app = app
        self._is_authenticated = is_authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        most = self._bytes_max(scope)
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > most:
                error = RequestTooLarge(f"The body is larger than {most:,} bytes.", limit=most)
                await error_response(error, enveloped=True)(scope, receive, send)
                return
        body = b"".join(parts)
        if not _is_of_packets(body):
            fault = InvalidInput("The body is not one of Socket.IO's packets.")
            await error_response(fault, enveloped=True)(scope, receive, send)
            return
        await self._app(
            scope, prepend_message({"type": "http.request", "body": body}, receive), send
        )

    def _bytes_max(self, scope: Scope) -> int:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        authenticated = any(map(self._is_authenticated, query.get("sid", ())))
        return limits.REQUEST_BYTES_MAX if authenticated else limits.UNKNOWN_SOCKET_BYTES_MAX


def _is_of_packets(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return _UNKNOWN_PACKET.search(body) is None


class KnownPackets:
    """Ends a websocket that sends what is no packet."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def receive_packet() -> Message:
            message = await receive()
            text = message.get("text")
            if text is not None and text[:1] not in _PACKET_TYPES:
                return {"type": "websocket.disconnect", "code": 1002}
            return message

        is_websocket = scope["type"] == "websocket"
        await self._app(scope, receive_packet if is_websocket else receive, send)


class WebsocketsOnly:
    """Refuses polling, where a client's next request may meet another process."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        error = InvalidInput(
            "With several servers (--redis) Socket.IO accepts only websockets.",
            field="transport",
            hint='Connect with io(url, {transports: ["websocket"]}).',
        )
        await error_response(error, enveloped=True)(scope, receive, send)
