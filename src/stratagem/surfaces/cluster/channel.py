"""A way for the processes of a server to tell one another what happens.

Nothing that is told is kept: what a process must not miss is in the database. Each process counts,
sends and answers by itself, and goes on alone while the others cannot be reached.
"""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from stratagem import limits

__all__ = ["Channel", "Message", "Outgoing", "packed"]

logger = logging.getLogger(__name__)

# What it is about, and what is told.
Message = tuple[str, Any]
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


class Channel(ABC):
    """Runs on the server's event loop. `own` is the name of this process."""

    def __init__(self) -> None:
        self.own = secrets.token_hex(8)
        self._listeners: dict[str, list[Callable[[Any], None]]] = defaultdict(list)

    def hear(self, topic: str, listener: Callable[[Any], None]) -> None:
        """Have a listener told of what other processes say about a topic."""
        self._listeners[topic].append(listener)

    @abstractmethod
    def tell(self, topic: str, data: Any) -> None:
        """Tell all others, soon; whoever cannot be reached is not told."""

    @abstractmethod
    def start(self) -> None:
        """Begin to tell and to listen."""

    @abstractmethod
    async def close(self) -> None:
        """End both."""

    def _hear_all(self, messages: Iterable[Message]) -> None:
        for topic, data in messages:
            for listener in tuple(self._listeners.get(topic, ())):
                try:
                    listener(data)
                except Exception:  # one that fails must not keep others from hearing
                    logger.exception("a message about %s was not understood", topic)


class Outgoing:
    """What is still to be told, up to a bound; what does not fit is lost."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._full = False

    def add(self, message: Message) -> None:
        """Keep something to be told."""
        if len(self._waiting) < limits.CHANNEL_WAITING_MAX:
            self._waiting.append(message)
        elif not self._full:
            self._full = True
            logger.warning("the other processes cannot keep up, so they are not told everything")

    def take(self) -> list[Message]:
        """Return what is to be told, and forget it."""
        taken, self._full = list(self._waiting), False
        self._waiting.clear()
        return taken


def packed(sender: str, messages: list[Message]) -> bytes:
    """Return messages as they go over the wire; one that cannot is left out."""
    try:
        return _written(sender, messages)
    except TypeError:
        return _written(sender, [each for each in messages if _is_writable(each)])


def _written(sender: str, messages: list[Message]) -> bytes:
    return orjson.dumps({"from": sender, "messages": messages}, option=_OPTIONS)


def _is_writable(message: Message) -> bool:
    try:
        orjson.dumps(message, option=_OPTIONS)
    except TypeError as error:
        logger.warning("the other processes are not told about %s: %s", message[0], error)
        return False
    return True
