"""Results that need not be computed again: the least recently used go first.

Calls use it on the home loop, upkeep (`configure`, `clear`) from other threads: hence the lock.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from stratagem import limits

__all__ = ["Cache", "key_of"]


class _Kept(NamedTuple):
    tool: str
    result: bytes
    until: float


def key_of(parts: Sequence[Any]) -> bytes:
    """Return what identifies a result: everything it may depend on."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()


class Cache:
    """Results by key, bounded by bytes and by age."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._bytes = 0
        self._lock = threading.RLock()
        self.enabled = True
        self.bytes_max = limits.CACHE_BYTES_DEFAULT
        self.seconds: float | None = None
        self.hits = 0
        self.misses = 0

    def get(self, key: bytes) -> tuple[bool, Any]:
        """Return whether there is a result, and the result."""
        with self._lock:
            kept = self._kept.get(key) if self.enabled else None
            if kept is not None and kept.until <= self._clock():
                self._drop(key)
                kept = None
            if kept is None:
                self.misses += 1
                return False, None
            self.hits += 1
            self._kept.move_to_end(key)
            return True, orjson.loads(kept.result)

    def put(self, key: bytes, tool: str, result: Any, seconds: float) -> None:
        """Keep a result for a while; one that takes too much of the room is not kept."""
        with self._lock:
            if not self.enabled:
                return
            data = orjson.dumps(result)
            if len(data) > self.bytes_max // 4:
                return
            if key in self._kept:
                self._drop(key)
            age = seconds if self.seconds is None else min(seconds, self.seconds)
            self._kept[key] = _Kept(tool, data, self._clock() + age)
            self._bytes += len(data)
            self._shrink()

    def configure(
        self,
        *,
        enabled: bool | None = None,
        seconds: float | None = None,
        bytes_max: int | None = None,
    ) -> None:
        """Change what is kept, and for how long."""
        with self._lock:
            if enabled is not None:
                self.enabled = enabled
            if seconds is not None:
                self.seconds = seconds
            if bytes_max is not None:
                self.bytes_max = bytes_max
            if not self.enabled:
                self.clear()
            self._shrink()

    def clear(self, tool: str | None = None) -> int:
        """Forget the results of a tool, or all; return how many."""
        with self._lock:
            doomed = [key for key, kept in self._kept.items() if tool in {None, kept.tool}]
            for key in doomed:
                self._drop(key)
            return len(doomed)

    def figures(self) -> dict[str, Any]:
        """Return how the cache is doing."""
        with self._lock:
            return {
                "enabled": self.enabled,
                "strategy": "lru",
                "entries": len(self._kept),
                "bytes": self._bytes,
                "maxSize": self.bytes_max,
                "ttl": self.seconds,
                "hits": self.hits,
                "misses": self.misses,
            }

    def _shrink(self) -> None:
        while self._bytes > self.bytes_max:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        self._bytes -= len(self._kept.pop(key).result)
