"""A channel between processes on any number of machines, through Redis.

Redis sends what is published back to its publisher. A process that does not receive its own
messages for a while takes the connection for dead, whatever the network says, and makes another.

What is published reaches every subscriber of its Redis channel, whichever of the numbered databases
their addresses name. The number is therefore part of the channel's name: servers of another
database, which take another number, receive nothing of this one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem.errors import ServiceUnavailable
from stratagem.surfaces.cluster.channel import Channel, SendQueue, encode_messages

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["RedisChannel", "channel_name", "check_redis"]

logger = logging.getLogger(__name__)

_RECONNECT_SECONDS: Final = 1.0
# A process that has nothing to send sends an empty heartbeat this often; after so long without
# receiving its own, it connects anew.
_HEARTBEAT_SECONDS: Final = 2.0
_SILENCE_SECONDS: Final = 6.0


def check_redis(url: str) -> None:
    """Refuse what cannot be the address of a Redis server.

    Raises:
        ServiceUnavailable: The client is not installed, or it is no address.
    """
    try:
        from redis.asyncio import Redis

        Redis.from_url(url)
    except ImportError as error:
        raise ServiceUnavailable(
            "The Redis client is not installed.", hint="pip install 'stratagem[redis]'"
        ) from error
    except ValueError as error:
        raise ServiceUnavailable(
            f"This is not the address of a Redis server: {error}",
            hint="Such as redis://127.0.0.1:6379.",
        ) from error


def channel_name(redis: Redis) -> str:
    """Return the Redis channel of the servers of one database."""
    return f"stratagem:{redis.connection_pool.connection_kwargs.get('db') or 0}"


class RedisChannel(Channel):
    """See the module."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._queue = SendQueue()
        self._task: asyncio.Task[None] | None = None
        self._received_own_at = 0.0

    def publish(self, topic: str, data: Any) -> None:
        """Send to all other processes, soon; one that cannot be reached misses it."""
        self._queue.put((topic, data))

    def start(self) -> None:
        """Begin to send and to receive."""
        self._task = asyncio.create_task(self._stay_connected())

    async def close(self) -> None:
        """Stop both."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _stay_connected(self) -> None:
        from redis.asyncio import Redis
        from redis.exceptions import RedisError

        away = False
        while True:
            try:
                async with Redis.from_url(
                    self._url, socket_connect_timeout=_SILENCE_SECONDS
                ) as redis:
                    async with asyncio.timeout(_SILENCE_SECONDS):
                        await redis.ping()
                    if away:
                        logger.warning("Redis answers again")
                    away = False
                    await self._exchange(redis)
            except (RedisError, OSError, TimeoutError) as error:
                if not away:
                    why = str(error) or "it does not answer"
                    logger.warning("Redis does not answer, so this process works alone: %s", why)
                away = True
            # By the time the others can be reached these messages are outdated.
            self._queue.clear()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _exchange(self, redis: Redis) -> None:
        """Send and receive until one of them fails."""
        self._received_own_at = asyncio.get_running_loop().time()
        both = [asyncio.create_task(self._send(redis)), asyncio.create_task(self._receive(redis))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            results = await asyncio.gather(*both, return_exceptions=True)
        for error in results:
            if isinstance(error, Exception):
                raise error

    async def _send(self, redis: Redis) -> None:
        loop = asyncio.get_running_loop()
        messages: list[Any] = []
        while loop.time() - self._received_own_at <= _SILENCE_SECONDS:
            async with asyncio.timeout(_SILENCE_SECONDS):
                await redis.publish(channel_name(redis), encode_messages(self.sender, messages))
            messages = await self._queue.take(_HEARTBEAT_SECONDS)
        raise TimeoutError

    async def _receive(self, redis: Redis) -> None:
        async with redis.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.subscribe(channel_name(redis))
            async for message in subscription.listen():
                try:
                    self._read(orjson.loads(message["data"]))
                except (ValueError, TypeError, KeyError):
                    logger.warning("another program publishes on the channel in Redis")

    def _read(self, body: dict[str, Any]) -> None:
        if body["from"] == self.sender:
            self._received_own_at = asyncio.get_running_loop().time()
        else:
            self._deliver(body["messages"])
