"""What was worked out from a state of the log, kept until the log has moved on.

It is asked for with the state that its reader sees, so nobody is ever given anything older: not
who wrote last, and nobody else either.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")

# Enough for the branches that are worked on at a time; each may hold thousands of rows.
_ENTRIES_MAX: Final = 16


class Kept:
    """See the module. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()

    def get(self, name: Hashable, state: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gave for this state, or gives now. Nobody may change it."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and entry[0] == state:
                self._entries.move_to_end(name)
                value: T = entry[1]
                return value
        value = make()
        with self._lock:
            self._entries[name] = (state, value)
            self._entries.move_to_end(name)
            if len(self._entries) > _ENTRIES_MAX:
                self._entries.popitem(last=False)
        return value
