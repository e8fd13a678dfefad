"""Bounded caches of pure functions of texts, which a purge clears all at once.

Words repeat: a few thousand of them make up most of any text. What reads texts therefore computes
the meaning of a word, or of a short text, once and looks it up afterwards. The keys of these caches
are users' texts, so none of them may outlive a purge: every cache is registered when it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, ParamSpec, Protocol, TypeVar
from weakref import WeakValueDictionary

__all__ = ["FunctionCache", "cache_texts", "clear_at_purge", "clear_text_caches"]

Key = TypeVar("Key")
Value = TypeVar("Value")
P = ParamSpec("P")


class FunctionCache(dict[Key, Value]):
    """A function's results by argument: `cache[argument]` computes what it does not hold.

    Holds at most `entries_max` results. When half of them are there they become the older half; a
    result that is not asked for until the next time is dropped. Results for arguments longer than
    `chars_max` are not cached. Safe to share between threads when the function is.
    """

    # A plain look-up of a dict is three times as fast as a call of `functools.lru_cache`,
    # and the look-up is most of what reading a text costs.
    def __init__(
        self,
        function: Callable[[Key], Value],
        *,
        entries_max: int,
        chars_max: int | None = None,
    ) -> None:
        super().__init__()
        self._function = function
        self._half = entries_max // 2
        self._older: dict[Key, Value] = {}
        self._chars_max = chars_max
        self._purges = 0
        clear_at_purge(self)

    def __missing__(self, key: Key) -> Value:
        """Compute, keep and return the result for `key`."""
        older, purges = self._older, self._purges
        value = older[key] if key in older else self._function(key)
        if self._chars_max is None or not isinstance(key, str) or len(key) <= self._chars_max:
            if len(self) >= self._half:
                self._older = dict(self)
                self.clear()
            self[key] = value
            if self._purges != purges:
                # Another thread has purged texts meanwhile, and this may be one of them.
                self._drop()
        return value

    def clear_all(self) -> None:
        """Drop both halves, and what other threads are about to add."""
        self._purges += 1
        self._drop()

    def _drop(self) -> None:
        self._older = {}
        self.clear()


def cache_texts(entries_max: int) -> Callable[[Callable[P, Value]], Callable[P, Value]]:
    """Cache a pure function of texts, as `functools.lru_cache` does, until the next purge.

    The result of a call that another thread began before the purge may be cached after it.
    """

    def decorate(function: Callable[P, Value]) -> Callable[P, Value]:
        cached = lru_cache(entries_max)(function)
        _CLEARERS.append(cached.cache_clear)
        # The wrapper itself, not a function around it: a call of it costs no Python frame.
        return cached  # type: ignore[return-value]

    return decorate


def clear_text_caches() -> None:
    """Drop every cached text of this process: one of them may have been purged."""
    for clear in _CLEARERS:
        clear()
    # A copy that is made at once: another thread may open or close a database meanwhile.
    for reference in _CACHES.valuerefs():
        cache = reference()
        if cache is not None:
            cache.clear_all()


class ClearableCache(Protocol):
    """A cache of its own kind, whose keys or values are users' texts."""

    def clear_all(self) -> None:
        """Drop everything."""
        ...


def clear_at_purge(cache: ClearableCache) -> None:
    """Have a cache cleared with the others, for as long as it is in use."""
    _CACHES[id(cache)] = cache


# Caches at module level live as long as the process; those of an embedder end with it.
_CLEARERS: Final[list[Callable[[], None]]] = []
_CACHES: Final[WeakValueDictionary[int, ClearableCache]] = WeakValueDictionary()
