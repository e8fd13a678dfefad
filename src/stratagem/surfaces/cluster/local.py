"""A channel between the worker processes of one machine, by Unix sockets in a private folder.

Workers have numbers, and each listens on the socket of its number; only the server's own user may
enter the folder. What arrives there is a request that another worker relays, or its messages.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.deferred_dataclasses import dataclass
from stratagem.surfaces.cluster.channel import Channel, SendQueue, encode_messages

__all__ = [
    "CLIENT_HEADER",
    "LocalChannel",
    "PeerRequests",
    "WorkerSlot",
    "unix_sockets_fit",
]

MESSAGES_PATH: Final = "/messages"
# Who sent a request that was relayed. Believed on these sockets alone.
CLIENT_HEADER: Final = "x-stratagem-client"
# Names of sockets have at most 104 bytes on some systems, and 108 on others.
_FOLDER_BYTES_MAX: Final = 90
_MESSAGES_SECONDS: Final = 5.0


def unix_sockets_fit(folder: str) -> bool:
    """Whether this system has Unix sockets, and their names fit into the folder."""
    return hasattr(socket, "AF_UNIX") and len(folder.encode()) <= _FOLDER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class WorkerSlot:
    """The number of this worker process, how many there are, and the folder of their sockets."""

    number: int
    count: int
    folder: str

    def socket_path(self, number: int) -> Path:
        """Return the socket on which a worker listens."""
        return Path(self.folder) / f"{number}.sock"

    @property
    def others(self) -> list[int]:
        """The numbers of the other workers."""
        return [number for number in range(self.count) if number != self.number]

    def is_from_peer(self, scope: Scope) -> bool:
        """Whether a request arrived on this worker's own socket in the folder."""
        server = scope.get("server") or ("", 0)
        return scope["type"] in {"http", "websocket"} and (server[0], server[1]) == (
            str(self.socket_path(self.number)),
            None,
        )

    def listen(self) -> socket.socket:
        """Listen for the others, in place of an earlier process of this number."""
        path = self.socket_path(self.number)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(128)
        return listener

    def remove_socket(self, *, and_folder: bool) -> None:
        """Remove the socket, and the folder where no other process will."""
        self.socket_path(self.number).unlink(missing_ok=True)
        if and_folder:
            # The very last worker finds it empty.
            with suppress(OSError):
                Path(self.folder).rmdir()


class LocalChannel(Channel):
    """See the module."""

    def __init__(self, slot: WorkerSlot) -> None:
        super().__init__()
        self.slot = slot
        self._queues = {number: SendQueue() for number in slot.others}
        self._tasks: list[asyncio.Task[None]] = []

    def publish(self, topic: str, data: Any) -> None:
        """Send to all other workers, soon; one that cannot be reached misses it."""
        for queue in self._queues.values():
            queue.put((topic, data))

    def start(self) -> None:
        """Begin to send; receiving is the HTTP server's work."""
        self._tasks = [asyncio.create_task(self._send(number)) for number in self._queues]

    async def close(self) -> None:
        """Send no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def receive(self, request: Request) -> Response:
        """Deliver the messages of another worker."""
        body = orjson.loads(await request.body())
        self._deliver(body["messages"])
        return Response(status_code=204)

    async def _send(self, number: int) -> None:
        async with self.client(number) as client:
            while True:
                # What is published while a request is under way goes with the next one.
                body = encode_messages(self.sender, await self._queues[number].take())
                # A worker that cannot be reached is starting, or gone: it has no clients.
                with suppress(httpx2.TransportError):
                    await client.post(f"http://stratagem{MESSAGES_PATH}", content=body)

    def client(self, number: int, seconds: float | None = _MESSAGES_SECONDS) -> httpx2.AsyncClient:
        """Return an HTTP client for another worker."""
        client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                uds=str(self.slot.socket_path(number)), limits=httpx2.Limits(max_connections=None)
            ),
            timeout=httpx2.Timeout(seconds, connect=_MESSAGES_SECONDS),
            trust_env=False,
        )
        # A relayed request asks for nothing that its client did not, such as compression.
        client.headers.clear()
        return client


class PeerRequests:
    """The outermost application of a worker: takes messages, and restores who sent a request."""

    def __init__(self, app: ASGIApp, channel: LocalChannel) -> None:
        self._app = app
        self._channel = channel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer another worker, or pass a request on."""
        if not self._channel.slot.is_from_peer(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] == MESSAGES_PATH:
            response = await self._channel.receive(Request(scope, receive))
            await response(scope, receive, send)
            return
        await self._app(_restore_client(scope), receive, send)


def _restore_client(scope: Scope) -> Scope:
    """Return the scope of a relayed request with the address of its client."""
    client = Headers(scope=scope).get(CLIENT_HEADER, "")
    name = CLIENT_HEADER.encode()
    headers = [header for header in scope["headers"] if header[0] != name]
    return {**scope, "client": (client, 0), "headers": headers}
