"""Corrections that were worked out lately, so that the same mistake is not looked into twice."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson

from stratagem import limits
from stratagem.gateway.correction import Correction

__all__ = ["KeptCorrections"]


class KeptCorrections:
    """The least recently used go first; none is older than an hour.

    The key holds everything that a correction depends on: the tool's revision, the policy, what
    was learned, and the arguments themselves. So a change of any of them is seen at once.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Correction]] = OrderedDict()
        # A diagnosis looks from another thread than calls do.
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(
        self, about: tuple[Any, ...], arguments: Any, make: Callable[[], Correction]
    ) -> Correction:
        """Return a correction: a kept one, or one that is made now."""
        try:
            data = orjson.dumps(arguments)
        except (orjson.JSONEncodeError, RecursionError):
            # What is no JSON is refused quickly.
            return make()
        if len(data) > limits.CORRECTION_KEPT_BYTES_MAX:
            return make()
        key = hashlib.sha256(repr(about).encode() + b"\0" + data).digest()
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known[0] > self._clock():
                self.hits += 1
                self._kept.move_to_end(key)
                return known[1]
            self.misses += 1
        made = make()
        if made.late:
            return made
        with self._lock:
            self._kept[key] = (self._clock() + limits.CORRECTION_CACHE_SECONDS, made)
            self._kept.move_to_end(key)
            if len(self._kept) > limits.CORRECTION_CACHE_MAX:
                self._kept.popitem(last=False)
        return made

    def figures(self) -> dict[str, Any]:
        """Return how the cache is doing."""
        asked = self.hits + self.misses
        return {
            "entries": len(self._kept),
            "hits": self.hits,
            "misses": self.misses,
            "hitRate": round(self.hits / asked, 4) if asked else None,
        }
