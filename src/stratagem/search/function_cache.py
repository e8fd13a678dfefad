"""Remembered answers of a pure function, with a bound.

Words repeat: a few thousand of them make up most of any text. Both readers of text in
this package therefore ask what a word means once and look it up afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["FunctionCache"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class FunctionCache(dict[Key, Value]):
    """A function's results by argument: `memo[argument]` computes what it does not hold.

    Holds at most `entries_max` results. When half of them are there they become the older half, and
    what is not asked for until the next time is forgotten. Of arguments longer than `chars_max` it
    holds none. Safe to share between threads when the function is.
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

    def __missing__(self, key: Key) -> Value:
        """Compute, keep and return the result for `key`."""
        older = self._older
        value = older[key] if key in older else self._function(key)
        if self._chars_max is None or not isinstance(key, str) or len(key) <= self._chars_max:
            if len(self) >= self._half:
                self._older = dict(self)
                self.clear()
            self[key] = value
        return value
