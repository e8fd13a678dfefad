"""The cache of results: the least recently used are dropped first.

Calls use the cache on the home loop, upkeep (`configure`, `clear`) from other threads: hence the
lock. Each server has a cache of its own; its limits are a record of the log that all servers of a
workspace read. The time of the last clearing is part of the key of a result, so that clearing the
cache on one server invalidates the results on all.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import orjson
from cachetools import TLRUCache

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.calls.answers import CacheRules, ResultCacheFigures
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import PURGED_AT, Reader, Transaction

__all__ = [
    "Cache",
    "CacheSettings",
    "ToolCacheState",
    "configure_cache",
    "forget_results",
    "key_of",
]

_RULES: Final = "cache"
_FORGOTTEN: Final = "cache_forgotten"
_NAMES: Final = tuple(CacheRules.__annotations__)


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


class ToolCacheState(NamedTuple):
    """The cache settings that apply to a tool.

    `version` is that of the rules. `forgotten` are the sequences of the last clearing of all tools
    and of this one, and of the last purge, since any result may quote what was purged.
    """

    version: int
    rules: CacheRules
    forgotten: tuple[int, int, int]


def _read_state(reader: Reader, view: View, tool: str) -> ToolCacheState:
    """Return the cache settings that apply to a tool."""
    rules = reader.records.current(view.lineage, names.SETTINGS, _RULES)
    stored = orjson.loads(rules.payload) if rules is not None and rules.payload else {}
    # A newer version may have written more.
    known = cast("CacheRules", {name: stored[name] for name in _NAMES if name in stored})
    every, own = (
        reader.records.current(view.lineage, names.SETTINGS, key)
        for key in (_FORGOTTEN, _clear_key(tool))
    )
    return ToolCacheState(
        rules.sequence if rules else 0,
        known,
        (
            every.sequence if every else 0,
            own.sequence if own else 0,
            int(reader.settings.number(PURGED_AT) or 0),
        ),
    )


def configure_cache(transaction: Transaction, view: View, changes: CacheRules) -> CacheRules:
    """Change the rules; return all of them."""
    known = transaction.records.current(view.lineage, names.SETTINGS, _RULES)
    before: CacheRules = orjson.loads(known.payload) if known and known.payload else {}
    rules: CacheRules = {**before, **changes}
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, rules, names.SETTINGS, _RULES)])
    return rules


def forget_results(transaction: Transaction, view: View, tool: str | None) -> None:
    """Invalidate the cached results of a tool, or of all tools, on every server."""
    key = _clear_key(tool) if tool is not None else _FORGOTTEN
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, {}, names.SETTINGS, key)])


def _clear_key(tool: str) -> str:
    return f"{_FORGOTTEN}:{tool}"


class CacheSettings:
    """Applies the settings in the log to a server's cache. Runs on the home loop."""

    def __init__(self, foundation: Foundation, cache: Cache) -> None:
        self._foundation = foundation
        self._cache = cache
        self._version = 0
        self._purged_at = 0

    async def last_clear(self, tool: str) -> tuple[int, int, int]:
        """Configure the cache as it is set now; return what was last cleared."""
        settings = await self._foundation.read_async(lambda: self._read(tool))
        if settings.version != self._version:
            self._version = settings.version
            self._cache.configure(**settings.rules)
        if settings.forgotten[-1] != self._purged_at:
            # Another process has purged something: older results are dropped.
            self._purged_at = settings.forgotten[-1]
            self._cache.clear()
        return settings.forgotten

    def _read(self, tool: str) -> ToolCacheState:
        reader = self._foundation.store.reader()
        return _read_state(reader, self._foundation.views.view(reader, "default"), tool)
