"""Results computed from a state of the log, cached until the log has moved on.

Each is asked for together with the state that its reader sees, so a stale one is never returned.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

__all__ = ["StateCache"]

T = TypeVar("T")

# Enough for the branches that are worked on at a time; each may hold thousands of rows.
_ENTRIES_MAX: Final = 16


class StateCache:
    """See the module. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The one that was asked for least recently comes first.
        self._entries: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()

    def get(self, name: Hashable, state: Hashable, make: Callable[[], T]) -> T:
        """Return the cached result of `make` for this state, or compute it.

        The result must not be modified.
        """
        return self.renew(name, state, lambda _last: make())

    def renew(self, name: Hashable, state: Hashable, make: Callable[[T | None], T]) -> T:
        """Return the same; `make` is given the result for the state before, if there is any."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                self._entries.move_to_end(name)
        if entry is not None and entry[0] == state:
            cached: T = entry[1]
            return cached
        value = make(None if entry is None else entry[1])
        with self._lock:
            self._entries[name] = (state, value)
            self._entries.move_to_end(name)
            if len(self._entries) > _ENTRIES_MAX:
                self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Drop all results: one of them may contain purged content."""
        with self._lock:
            self._entries.clear()
