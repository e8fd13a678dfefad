"""Rates that several processes count together.

Each process counts for itself and answers at once; a few times a second it tells the others what
was taken from its buckets and takes out of them what it was told. A limit can so be passed by what
fits between two tellings, and by no more. Whoever cannot be reached counts alone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from stratagem.surfaces.admission.quotas import Bucket
from stratagem.surfaces.cluster.channel import Channel

__all__ = ["SharedRates"]

_TOPIC: Final = "rates"
_TELL_SECONDS: Final = 0.1


class SharedRates:
    """Keeps the buckets of several processes alike. Runs on the server's event loop.

    `what` is counted: several may be, each in buckets of its own.
    """

    def __init__(self, channel: Channel, bucket: Bucket, what: str) -> None:
        self._channel = channel
        self._topic = f"{_TOPIC}:{what}"
        self._bucket = bucket
        self._task: asyncio.Task[None] | None = None
        channel.hear(self._topic, self._hear)

    def start(self) -> None:
        """Begin to tell."""
        self._task = asyncio.create_task(self._tell())

    async def close(self) -> None:
        """Count alone from now on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_TELL_SECONDS)
            if taken := self._bucket.taken():
                self._channel.tell(self._topic, taken)

    def _hear(self, taken: dict[str, Any]) -> None:
        for name, (count, per_minute, burst) in taken.items():
            self._bucket.spend(name, count, per_minute, burst)
