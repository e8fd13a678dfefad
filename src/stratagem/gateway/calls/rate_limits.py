"""How often a caller may call a tool: a bucket of tokens that fills again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from stratagem.errors import RateLimited

__all__ = ["Rates"]

_BUCKETS_MAX: Final = 50_000


class Rates:
    """A bucket for each caller and tool; those unused for longest are forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, caller: str, tool: str, per_minute: int) -> None:
        """Take one call out of a bucket.

        Raises:
            RateLimited: It is empty; `retry_after` says for how long.
        """
        now = self._clock()
        key = (caller, tool)
        left, since = self._buckets.get(key, (float(per_minute), now))
        left = min(float(per_minute), left + (now - since) * per_minute / 60)
        if left < 1:
            wait = (1 - left) * 60 / per_minute
            raise RateLimited(
                f"{tool} may be called {per_minute:,} times a minute by one caller.",
                limit=per_minute,
                retry_after=round(wait, 3),
            )
        self._buckets[key] = (left - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
