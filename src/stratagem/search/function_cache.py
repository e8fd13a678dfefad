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

    Holds at most `entries_max` results and forgets all of them at once when they grow
    beyond. Safe to share between threads when the function is.
    """

    # A plain look-up of a dict is three times as fast as a call of `functools.lru_cache`,
    # and the look-up is most of what reading a text costs.
    def __init__(self, function: Callable[[Key], Value], *, entries_max: int) -> None:
        super().__init__()
        self._function = function
        self._entries_max = entries_max

    def __missing__(self, key: Key) -> Value:
        """Compute, keep and return the result for `key`."""
        if len(self) >= self._entries_max:
            self.clear()
        value = self._function(key)
        self[key] = value
        return value
