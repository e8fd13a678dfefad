"""Quotas: how many requests and open streams each holder of a token may have.

A holder above its quota is answered with 429, after a delay that slows it down; the others do not
notice. Runs on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from stratagem import limits
from stratagem.access.identity import Identity
from stratagem.errors import RateLimited
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.token_buckets import TokenBuckets

__all__ = ["Quotas", "RateBuckets", "UnauthenticatedSockets"]

_COUNTED_MAX: Final = 10_000


class RateBuckets(TokenBuckets[str]):
    """Token buckets that also count what was taken, for processes that count together.

    `changed` is set while there is something to `drain`. Runs on one event loop.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__(monotonic)
        self.changed = asyncio.Event()
        # What was taken here since it was last drained.
        self._taken: dict[str, tuple[int, int, int]] = {}

    def take(self, name: str, per_minute: int, burst: int) -> float:
        """Take one token; return 0, or after how many seconds there will be one."""
        wait = super().take(name, per_minute, burst)
        if not wait and (name in self._taken or len(self._taken) < _COUNTED_MAX):
            count = self._taken.get(name, (0, 0, 0))[0]
            self._taken[name] = (count + 1, per_minute, burst)
            self.changed.set()
        return wait

    def drain(self) -> dict[str, tuple[int, int, int]]:
        """Return what was taken since the last time: how many, and the limits."""
        taken, self._taken = self._taken, {}
        self.changed.clear()
        return taken


class UnauthenticatedSockets:
    """Sockets that have not authenticated yet, oldest first.

    There is always room for one more: the oldest of the address that has most of them is closed for
    it. So an address that opens many takes places from itself, and a browser, which authenticates
    at once, finds one.
    """

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}

    def __contains__(self, socket: str) -> bool:
        """Whether a socket is one of them."""
        return socket in self._addresses

    def __len__(self) -> int:
        """Count them."""
        return len(self._addresses)

    def add(self, socket: str, address: str) -> str | None:
        """Add a socket; return the one that has to be closed for it, if any."""
        self._addresses[socket] = address
        if len(self._addresses) <= limits.UNKNOWN_SOCKETS_MAX:
            return None
        ((most, _count),) = Counter(self._addresses.values()).most_common(1)
        oldest = next(each for each, owner in self._addresses.items() if owner == most)
        self.discard(oldest)
        return oldest

    def discard(self, socket: str) -> None:
        """Remove a socket: it has authenticated, or is closed."""
        self._addresses.pop(socket, None)


class Quotas:
    """What is in use, and by whom; see the module."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.rates = RateBuckets(monotonic)
        self.wrong_tokens = RateBuckets(monotonic)
        self._requests: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._all = 0
        self.unauthenticated_sockets = UnauthenticatedSockets()
        self._paused = 0
        self.large_bodies = LargeBodyQueue()

    def count_request(self, identity: Identity) -> None:
        """Count a request.

        Raises:
            RateLimited: There were too many within the last minute.
        """
        per_minute = identity.rate or limits.TOKEN_REQUESTS_PER_MINUTE
        burst = min(per_minute, limits.TOKEN_REQUESTS_BURST)
        wait = self.rates.take(identity.key, per_minute, burst)
        if wait:
            raise RateLimited(
                f"Your token may make {per_minute:,} requests a minute.",
                limit=per_minute,
                retry_after=round(wait, 3),
            )

    def count_wrong_token(self, address: str) -> None:
        """Count a wrong token.

        Raises:
            RateLimited: There were too many from this address within the last minute.
        """
        most = limits.WRONG_TOKENS_PER_MINUTE
        wait = self.wrong_tokens.take(address, most, most)
        if wait:
            raise RateLimited(
                "Too many invalid tokens were sent from your address.",
                limit=most,
                retry_after=round(wait, 3),
            )

    @contextmanager
    def server_slot(self) -> Iterator[None]:
        """Hold one of the requests that the whole server may have under way.

        Raises:
            RateLimited: All are taken.
        """
        if self._all >= limits.SERVER_REQUESTS_MAX:
            raise RateLimited(
                "The server has as many connections as it can hold.",
                limit=limits.SERVER_REQUESTS_MAX,
                retry_after=1,
            )
        self._all += 1
        try:
            yield
        finally:
            self._all -= 1

    def request_slot(self, identity: Identity) -> AbstractContextManager[None]:
        """Hold one of the requests that a holder may have under way.

        Raises:
            RateLimited: All of them are.
        """
        most = identity.concurrency or limits.TOKEN_REQUESTS_AT_ONCE
        return self._slot(self._requests, identity, most, "requests at once")

    def stream_slot(self, identity: Identity) -> AbstractContextManager[None]:
        """Hold one of the streams and sockets that a holder may keep open.

        Raises:
            RateLimited: All of them are.
        """
        return self._slot(self._streams, identity, limits.TOKEN_STREAMS_MAX, "open streams")

    async def delay_refusal(self) -> None:
        """Delay the refusal of a request above its quota, as long as few are delayed."""
        if self._paused >= limits.REFUSALS_PAUSED_MAX:
            return
        self._paused += 1
        try:
            await asyncio.sleep(limits.REFUSAL_PAUSE_SECONDS)
        finally:
            self._paused -= 1

    @contextmanager
    def _slot(
        self, counter: Counter[str], identity: Identity, most: int, what: str
    ) -> Iterator[None]:
        if counter[identity.key] >= most:
            raise RateLimited(f"Your token may have {most:,} {what}.", limit=most, retry_after=1)
        counter[identity.key] += 1
        try:
            yield
        finally:
            counter[identity.key] -= 1
            if not counter[identity.key]:
                del counter[identity.key]
