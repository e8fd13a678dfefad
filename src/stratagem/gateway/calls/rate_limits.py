"""How often a caller may call a tool."""

from __future__ import annotations

from collections.abc import Callable

from stratagem.errors import RateLimited
from stratagem.token_buckets import TokenBuckets

__all__ = ["RateLimits"]


class RateLimits:
    """A token bucket for each caller and tool."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._buckets: TokenBuckets[tuple[str, str]] = TokenBuckets(clock)

    def take(self, caller: str, tool: str, per_minute: int) -> None:
        """Take one call out of a bucket.

        Raises:
            RateLimited: It is empty; `retry_after` says for how long.
        """
        wait = self._buckets.take((caller, tool), per_minute, per_minute)
        if wait:
            raise RateLimited(
                f"{tool} may be called {per_minute:,} times a minute by one caller.",
                limit=per_minute,
                retry_after=round(wait, 3),
            )
