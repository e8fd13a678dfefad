"""Processes on any number of machines, which tell one another through Redis.

Redis sends what is published back to whoever published it. A process that does not hear itself for
a while takes the connection for dead, whatever the network says, and makes another.

What is published reaches whoever listens to its channel, whichever of the numbered databases their
addresses name. The number is therefore part of the channel's name: servers of another database,
which take another number, are not told what happens in this one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem.errors import ServiceUnavailable
from stratagem.surfaces.cluster.channel import Channel, Outgoing, packed

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["RedisChannel", "channel_of", "check_redis"]

logger = logging.getLogger(__name__)

_TELL_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 1.0
# How often this process is heard at least, and after which silence of its own it begins anew.
_BEAT_SECONDS: Final = 2.0
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
            f"This is no address of a Redis server: {error}", hint="Such as redis://127.0.0.1:6379."
        ) from error


def channel_of(redis: Redis) -> str:
    """Return what the servers of one database call the place where they meet."""
    return f"stratagem:{redis.connection_pool.connection_kwargs.get('db') or 0}"


class RedisChannel(Channel):
    """See `Channel`."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._outgoing = Outgoing()
        self._task: asyncio.Task[None] | None = None
        self._heard = 0.0

    def tell(self, topic: str, data: Any) -> None:
        """Tell all others, soon; whoever cannot be reached is not told."""
        self._outgoing.add((topic, data))

    def start(self) -> None:
        """Begin to tell and to listen."""
        self._task = asyncio.create_task(self._lasting())

    async def close(self) -> None:
        """End both."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _lasting(self) -> None:
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
                        logger.warning("Redis is back")
                    away = False
                    await self._together(redis)
            except (RedisError, OSError, TimeoutError) as error:
                if not away:
                    why = str(error) or "it does not answer"
                    logger.warning("Redis is away, so this process works alone: %s", why)
                away = True
            # What nobody could be told is no news by the time somebody can.
            self._outgoing.take()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _together(self, redis: Redis) -> None:
        """Tell and listen until one of them fails."""
        self._heard = asyncio.get_running_loop().time()
        both = [asyncio.create_task(self._tell(redis)), asyncio.create_task(self._listen(redis))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _tell(self, redis: Redis) -> None:
        loop = asyncio.get_running_loop()
        told = float("-inf")
        while True:
            messages = self._outgoing.take()
            if messages or loop.time() - told > _BEAT_SECONDS:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await redis.publish(channel_of(redis), packed(self.own, messages))
                told = loop.time()
            if loop.time() - self._heard > _SILENCE_SECONDS:
                raise TimeoutError
            await asyncio.sleep(_TELL_SECONDS)

    async def _listen(self, redis: Redis) -> None:
        async with redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(channel_of(redis))
            async for message in channel.listen():
                try:
                    self._take(orjson.loads(message["data"]))
                except (ValueError, TypeError, KeyError):
                    logger.warning("somebody else speaks on the channel in Redis")

    def _take(self, said: dict[str, Any]) -> None:
        if said["from"] == self.own:
            self._heard = asyncio.get_running_loop().time()
        else:
            self._hear_all(said["messages"])
