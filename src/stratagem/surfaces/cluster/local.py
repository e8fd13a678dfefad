"""Processes of one machine that serve one address, and reach one another by sockets in a folder.

Each has a number, and listens on a socket of that name; only the server's own user may enter the
folder. What comes in there is a request that another process handed on, or what it has to tell.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.surfaces.cluster.channel import Channel, Outgoing, packed

__all__ = ["CLIENT_HEADER", "Neighbours", "Seat", "Threshold", "can_neighbour"]

TOLD_PATH: Final = "/told"
# Who sent a request that was handed on. Believed on these sockets alone.
CLIENT_HEADER: Final = "x-stratagem-client"
_TELL_SECONDS: Final = 0.02
# Names of sockets have at most 104 bytes on some systems, and 108 on others.
_FOLDER_BYTES_MAX: Final = 90
_TOLD_SECONDS: Final = 5.0


def can_neighbour(folder: str) -> bool:
    """Whether this system has sockets in folders, and in one of so long a name."""
    return hasattr(socket, "AF_UNIX") and len(folder.encode()) <= _FOLDER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Seat:
    """Which of how many processes this is, and where they meet."""

    number: int
    count: int
    folder: str

    def place_of(self, number: int) -> Path:
        """Return where a process listens."""
        return Path(self.folder) / f"{number}.sock"

    @property
    def others(self) -> list[int]:
        """The numbers of the other processes."""
        return [each for each in range(self.count) if each != self.number]

    def is_from_another(self, scope: Scope) -> bool:
        """Whether a request came in by this process's own socket in the folder."""
        server = scope.get("server") or ("", 0)
        return scope["type"] in {"http", "websocket"} and (server[0], server[1]) == (
            str(self.place_of(self.number)),
            None,
        )

    def listener(self) -> socket.socket:
        """Listen for the others, in the place of an earlier process of this number."""
        place = self.place_of(self.number)
        place.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(place))
        listener.listen(128)
        return listener

    def leave(self, *, last: bool) -> None:
        """Take the socket away; `last`: nobody else will take the folder away."""
        self.place_of(self.number).unlink(missing_ok=True)
        if last:
            # Whoever is the very last finds it empty.
            with suppress(OSError):
                Path(self.folder).rmdir()


class Neighbours(Channel):
    """See `Channel`."""

    def __init__(self, seat: Seat) -> None:
        super().__init__()
        self.seat = seat
        self._outgoing = {number: Outgoing() for number in seat.others}
        self._tasks: list[asyncio.Task[None]] = []

    def tell(self, topic: str, data: Any) -> None:
        """Tell all others, soon; whoever cannot be reached is not told."""
        for outgoing in self._outgoing.values():
            outgoing.add((topic, data))

    def start(self) -> None:
        """Begin to tell; listening is the server's."""
        self._tasks = [asyncio.create_task(self._tell(number)) for number in self._outgoing]

    async def close(self) -> None:
        """End it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def take(self, request: Request) -> Response:
        """Take what another process tells."""
        said = orjson.loads(await request.body())
        self._hear_all(said["messages"])
        return Response(status_code=204)

    async def _tell(self, number: int) -> None:
        outgoing = self._outgoing[number]
        async with self.client(number) as client:
            while True:
                await asyncio.sleep(_TELL_SECONDS)
                if not (messages := outgoing.take()):
                    continue
                try:
                    body = packed(self.own, messages)
                    await client.post(f"http://stratagem{TOLD_PATH}", content=body)
                except httpx2.TransportError:
                    # It is starting, or gone: it has no clients to be told.
                    continue

    def client(self, number: int, seconds: float | None = _TOLD_SECONDS) -> httpx2.AsyncClient:
        """Return a client that speaks to another process."""
        client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                uds=str(self.seat.place_of(number)), limits=httpx2.Limits(max_connections=None)
            ),
            timeout=httpx2.Timeout(seconds, connect=_TOLD_SECONDS),
            trust_env=False,
        )
        # What a client did not ask for, such as a compressed answer, is not asked for it.
        client.headers.clear()
        return client


class Threshold:
    """Stands before everything: takes what other processes tell, and who their clients are."""

    def __init__(self, app: ASGIApp, neighbours: Neighbours) -> None:
        self._app = app
        self._neighbours = neighbours

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer another process, or hand a request on."""
        if not self._neighbours.seat.is_from_another(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] == TOLD_PATH:
            response = await self._neighbours.take(Request(scope, receive))
            await response(scope, receive, send)
            return
        await self._app(_as_sent(scope), receive, send)


def _as_sent(scope: Scope) -> Scope:
    """Return a scope that says who sent a request in the first place."""
    client = Headers(scope=scope).get(CLIENT_HEADER, "")
    name = CLIENT_HEADER.encode()
    headers = [each for each in scope["headers"] if each[0] != name]
    return {**scope, "client": (client, 0), "headers": headers}
