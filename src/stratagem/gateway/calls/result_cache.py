"""Results that need not be computed again: the least recently used go first.

Calls use it on the home loop, upkeep (`configure`, `clear`) from other threads: hence the lock.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson
from cachetools import TLRUCache

from stratagem import limits
from stratagem.gateway.calls.answers import ResultCacheFigures

__all__ = ["Cache", "key_of"]


class _Entry(NamedTuple):
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
        self._entries = self._empty(limits.CACHE_BYTES_DEFAULT)
        self._lock = threading.RLock()
        self.enabled = True
        self.seconds: float | None = None
        self.hits = 0
        self.misses = 0

    def get(self, key: bytes) -> tuple[bool, Any]:
        """Return whether there is a result, and the result."""
        with self._lock:
            entry = self._entries.get(key) if self.enabled else None
            if entry is None:
                self.misses += 1
                return False, None
            self.hits += 1
            return True, orjson.loads(entry.result)

    def put(self, key: bytes, tool: str, result: Any, seconds: float) -> None:
        """Keep a result for a while; one that takes too much of the room is not kept."""
        with self._lock:
            if not self.enabled:
                return
            data = orjson.dumps(result)
            if len(data) > self.bytes_max // 4:
                return
            age = seconds if self.seconds is None else min(seconds, self.seconds)
            self._entries[key] = _Entry(tool, data, self._clock() + age)

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
            if bytes_max is not None and bytes_max != self.bytes_max:
                self._resize(bytes_max)
            if not self.enabled:
                self.clear()

    def clear(self, tool: str | None = None) -> int:
        """Forget the results of a tool, or all; return how many."""
        with self._lock:
            doomed = [key for key, entry in self._entries.items() if tool in {None, entry.tool}]
            for key in doomed:
                self._entries.pop(key, None)
            return len(doomed)

    def figures(self) -> ResultCacheFigures:
        """Return how the cache is doing."""
        with self._lock:
            return {
                "enabled": self.enabled,
                "strategy": "lru",
                "entries": len(self._entries),
                "bytes": int(self._entries.currsize),
                "maxSize": self.bytes_max,
                "ttl": self.seconds,
                "hits": self.hits,
                "misses": self.misses,
            }

    @property
    def bytes_max(self) -> int:
        """How many bytes all results may have together."""
        return int(self._entries.maxsize)

    def _empty(self, bytes_max: int) -> TLRUCache[bytes, _Entry]:
        return TLRUCache(
            bytes_max,
            ttu=lambda _key, entry, _now: entry.until,
            timer=self._clock,
            getsizeof=lambda entry: len(entry.result),
        )

    def _resize(self, bytes_max: int) -> None:
        """Keep the most recently used entries that fit: the size of a cache is fixed."""
        entries, self._entries = self._entries, self._empty(bytes_max)
        while entries:
            key, entry = entries.popitem()
            if len(entry.result) <= bytes_max:
                self._entries[key] = entry
