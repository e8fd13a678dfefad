"""Socket.IO clients of several processes, as if they were connected to one.

An event for a room goes to the clients of all processes, one for a client to whichever process has
it. Which client is where is not known beforehand; it can be asked.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any, Final

from socketio.async_pubsub_manager import AsyncPubSubManager

from stratagem.surfaces.cluster.channel import Channel

__all__ = ["SharedRooms"]

_TOPIC: Final = "sockets"
_WHERE: Final = "where"
_HERE: Final = "here"
_NAMESPACE: Final = "/"
# Another process of a server that is well answers within milliseconds.
_HERE_SECONDS: Final = 2.0


class SharedRooms(AsyncPubSubManager):  # type: ignore[misc]
    """The clients of this process, and a way to those of the others."""

    name = "stratagem"

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel=_TOPIC)
        self._others = channel
        self._heard: asyncio.Queue[dict[str, Any]] | None = None
        self._asked: dict[str, asyncio.Future[None]] = {}
        channel.hear(_TOPIC, self._hear)
        channel.hear(_WHERE, self._tell_where)
        channel.hear(_HERE, self._found)

    def initialize(self) -> None:
        """Begin to hear: from the first client on."""
        self._heard = asyncio.Queue()
        super().initialize()

    async def is_connected_somewhere(self, client: str) -> bool:
        """Whether any process has a client."""
        if self.is_connected(client, _NAMESPACE):
            return True
        question = secrets.token_hex(8)
        found = self._asked[question] = asyncio.get_running_loop().create_future()
        self._others.tell(_WHERE, [question, client])
        try:
            async with asyncio.timeout(_HERE_SECONDS):
                await found
        except TimeoutError:
            return False
        finally:
            del self._asked[question]
        return True

    async def _publish(self, data: dict[str, Any]) -> None:
        self._others.tell(_TOPIC, data)

    async def _listen(self) -> AsyncIterator[dict[str, Any]]:
        assert self._heard is not None
        while True:
            yield await self._heard.get()

    def _hear(self, message: dict[str, Any]) -> None:
        if self._heard is not None:
            self._heard.put_nowait(message)
        elif message.get("method") == "callback":
            # A process without clients of its own may have called one of another's.
            self.server.start_background_task(self._handle_callback, message)

    def _tell_where(self, asked: list[str]) -> None:
        question, client = asked
        if self.is_connected(client, _NAMESPACE):
            self._others.tell(_HERE, question)

    def _found(self, question: str) -> None:
        found = self._asked.get(question)
        if found is not None and not found.done():
            found.set_result(None)
