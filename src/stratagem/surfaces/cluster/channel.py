"""Publish and subscribe between the processes of one server.

Messages are small and none is stored: everything that a process must not miss is in the database.
Each process counts, sends and answers by itself, and continues alone while the others cannot be
reached.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from stratagem import limits

__all__ = ["Channel", "Message", "SendQueue", "encode_messages"]

logger = logging.getLogger(__name__)

# A topic, and the data.
Message = tuple[str, Any]
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


class Channel(ABC):
    """Carries messages to all other processes. Runs on the server's event loop.

    `sender` is the name of this process in what it sends.
    """

    def __init__(self) -> None:
        self.sender = secrets.token_hex(8)
        self._listeners: dict[str, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, topic: str, listener: Callable[[Any], None]) -> None:
        """Call a listener with the data of each message that another process sends on a topic."""
        self._listeners[topic].append(listener)

    @abstractmethod
    def publish(self, topic: str, data: Any) -> None:
        """Send to all other processes, soon; one that cannot be reached misses it."""

    @abstractmethod
    def start(self) -> None:
        """Begin to send and to receive."""

    @abstractmethod
    async def close(self) -> None:
        """Stop both."""

    def _deliver(self, messages: Iterable[Message]) -> None:
        for topic, data in messages:
            for listener in tuple(self._listeners.get(topic, ())):
                try:
                    listener(data)
                except Exception:  # one listener that fails must not stop the others
                    logger.exception("a message about %s could not be read", topic)


class SendQueue:
    """Messages that wait to be sent, up to a bound; what does not fit is dropped."""

    def __init__(self) -> None:
        self._waiting: list[Message] = []
        self._any = asyncio.Event()
        self._full = False

    def put(self, message: Message) -> None:
        """Add a message."""
        if len(self._waiting) < limits.CHANNEL_WAITING_MAX:
            self._waiting.append(message)
            self._any.set()
        elif not self._full:
            self._full = True
            logger.warning(
                "the other processes cannot keep up, so some messages to them are dropped"
            )

    async def take(self, seconds: float | None = None) -> list[Message]:
        """Wait until there are messages and remove all of them; none came within the time: []."""
        try:
            async with asyncio.timeout(seconds):
                await self._any.wait()
        except TimeoutError:
            return []
        return self.clear()

    def clear(self) -> list[Message]:
        """Remove and return what waits now."""
        taken, self._waiting, self._full = self._waiting, [], False
        self._any.clear()
        return taken


def encode_messages(sender: str, messages: list[Message]) -> bytes:
    """Return messages as they are sent; one that JSON cannot express is left out."""
    try:
        return _encode(sender, messages)
    except TypeError:
        return _encode(sender, [message for message in messages if _is_encodable(message)])


def _encode(sender: str, messages: list[Message]) -> bytes:
    return orjson.dumps({"from": sender, "messages": messages}, option=_OPTIONS)


def _is_encodable(message: Message) -> bool:
    try:
        orjson.dumps(message, option=_OPTIONS)
    except TypeError as error:
        logger.warning("messages about %s do not reach the other processes: %s", message[0], error)
        return False
    return True
