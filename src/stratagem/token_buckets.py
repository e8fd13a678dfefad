"""Rate limits: a token bucket for each name, refilled by so many tokens a minute."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

__all__ = ["TokenBuckets"]

Name = TypeVar("Name", bound=Hashable)

_BUCKETS_MAX: Final = 50_000
_MINUTE: Final = 60.0


class TokenBuckets(Generic[Name]):
    """The buckets of one event loop; the least recently used are forgotten, as if full."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        # What is left in each bucket, and since when.
        self._buckets: LRUCache[Name, tuple[float, float]] = LRUCache(_BUCKETS_MAX)

    def take(self, name: Name, per_minute: int, burst: int) -> float:
        """Take one token; return 0, or after how many seconds there will be one."""
        left = self._remaining(name, per_minute, burst)
        if left < 1:
            return (1 - left) * _MINUTE / per_minute
        self._buckets[name] = (left - 1, self._monotonic())
        return 0.0

    def spend(self, name: Name, count: int, per_minute: int, burst: int) -> None:
        """Take tokens that were used elsewhere; those that are missing are owed."""
        left = self._remaining(name, per_minute, burst)
        self._buckets[name] = (max(left - count, -float(burst)), self._monotonic())

    def _remaining(self, name: Name, per_minute: int, burst: int) -> float:
        now = self._monotonic()
        left, since = self._buckets.get(name, (float(burst), now))
        return min(float(burst), left + (now - since) * per_minute / _MINUTE)
