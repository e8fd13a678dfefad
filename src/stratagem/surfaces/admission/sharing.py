"""Rates that several servers count together, through Redis.

Each server counts for itself and answers at once; a few times a second it tells the others what
was taken from its buckets and takes out of them what it was told. A limit can so be passed by what
fits between two tellings, and by no more. Without Redis each server counts alone until it is back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem.errors import ServiceUnavailable
from stratagem.surfaces.admission.measures import Bucket

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["SharedRates", "check_redis"]

logger = logging.getLogger(__name__)

CHANNEL: Final = "stratagem:rates"
_TELL_SECONDS: Final = 0.1
_AGAIN_SECONDS: Final = 2.0


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


class SharedRates:
    """Keeps the buckets of several servers alike. Runs on the server's event loop."""

    def __init__(self, url: str, bucket: Bucket) -> None:
        self._url = url
        self._bucket = bucket
        self._own = secrets.token_hex(8)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to tell and to listen."""
        self._tasks = [asyncio.create_task(self._lasting())]

    async def close(self) -> None:
        """Count alone from now on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _lasting(self) -> None:
        from redis.asyncio import Redis
        from redis.exceptions import RedisError

        told = False
        while True:
            try:
                async with Redis.from_url(self._url) as redis:
                    await redis.ping()
                    told = False
                    await self._together(redis)
            except (RedisError, OSError) as error:
                if not told:
                    logger.warning("Redis is away, so each server counts rates alone: %s", error)
                told = True
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _together(self, redis: Redis) -> None:
        """Tell and listen until one of them fails."""
        both = [asyncio.create_task(self._tell(redis)), asyncio.create_task(self._listen(redis))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in both:
                task.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _tell(self, redis: Redis) -> None:
        while True:
            await asyncio.sleep(_TELL_SECONDS)
            if taken := self._bucket.taken():
                await redis.publish(CHANNEL, orjson.dumps({"from": self._own, "taken": taken}))

    async def _listen(self, redis: Redis) -> None:
        async with redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(CHANNEL)
            async for message in channel.listen():
                self._hear(orjson.loads(message["data"]))

    def _hear(self, said: dict[str, Any]) -> None:
        if said["from"] == self._own:
            return
        for name, (count, per_minute, burst) in said["taken"].items():
            self._bucket.spend(name, count, per_minute, burst)
