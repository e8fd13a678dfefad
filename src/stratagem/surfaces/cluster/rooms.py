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

_EVENTS: Final = "sockets"
_QUESTION: Final = "where"
_ANSWER: Final = "here"
_NAMESPACE: Final = "/"
# A healthy process answers within milliseconds.
_ANSWER_SECONDS: Final = 2.0


class SharedRooms(AsyncPubSubManager):  # type: ignore[misc]
    """The client manager of python-socketio, on a channel of ours.

    Its own `AsyncRedisManager` waits for Redis with each event; a channel makes no client wait.
    """

    name = "stratagem"

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel=_EVENTS)
        # The parent class has its topic in `channel`.
        self._cluster = channel
        self._received: asyncio.Queue[dict[str, Any]] | None = None
        self._questions: dict[str, asyncio.Future[None]] = {}
        channel.subscribe(_EVENTS, self._receive)
        channel.subscribe(_QUESTION, self._answer_where)
        channel.subscribe(_ANSWER, self._take_answer)

    def initialize(self) -> None:
        """Begin to receive: from the first client on."""
        self._received = asyncio.Queue()
        super().initialize()

    async def is_connected_anywhere(self, client: str) -> bool:
        """Whether any process has a client."""
        if self.is_connected(client, _NAMESPACE):
            return True
        question = secrets.token_hex(8)
        answer = self._questions[question] = asyncio.get_running_loop().create_future()
        self._cluster.publish(_QUESTION, [question, client])
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await answer
        except TimeoutError:
            return False
        finally:
            del self._questions[question]
        return True

    async def _publish(self, data: dict[str, Any]) -> None:
        self._cluster.publish(_EVENTS, data)

    async def _listen(self) -> AsyncIterator[dict[str, Any]]:
        assert self._received is not None
        while True:
            yield await self._received.get()

    def _receive(self, message: dict[str, Any]) -> None:
        if self._received is not None:
            self._received.put_nowait(message)
        elif message.get("method") == "callback":
            # A process without clients of its own may have called one of another's.
            self.server.start_background_task(self._handle_callback, message)

    def _answer_where(self, asked: list[str]) -> None:
        question, client = asked
        if self.is_connected(client, _NAMESPACE):
            self._cluster.publish(_ANSWER, question)

    def _take_answer(self, question: str) -> None:
        answer = self._questions.get(question)
        if answer is not None and not answer.done():
            answer.set_result(None)
