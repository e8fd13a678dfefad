"""Rate limits that the processes of one server count together.

Each process counts for itself and decides at once; soon afterwards it publishes what was taken from
its buckets, and subtracts what others publish. A limit can be exceeded only by the requests between
two messages. A process that reaches no other counts alone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from stratagem.surfaces.admission.quotas import RateBuckets
from stratagem.surfaces.cluster.channel import Channel

__all__ = ["SharedRates"]

# Requests of one client come in bursts: what comes within this time goes in one message.
_GATHER_SECONDS: Final = 0.1


class SharedRates:
    """Synchronizes the buckets of several processes. Runs on the server's event loop.

    `what` is counted: each kind has buckets of its own.
    """

    def __init__(self, channel: Channel, buckets: RateBuckets, what: str) -> None:
        self._channel = channel
        self._topic = f"rates:{what}"
        self._buckets = buckets
        self._task: asyncio.Task[None] | None = None
        channel.subscribe(self._topic, self._apply)

    def start(self) -> None:
        """Begin to publish."""
        self._task = asyncio.create_task(self._publish())

    async def close(self) -> None:
        """Count alone from now on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _publish(self) -> None:
        while True:
            await self._buckets.changed.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._channel.publish(self._topic, self._buckets.drain())

    def _apply(self, taken: dict[str, Any]) -> None:
        for name, (count, per_minute, burst) in taken.items():
            self._buckets.spend(name, count, per_minute, burst)
