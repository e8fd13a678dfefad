"""Entries of the current namespace and branch by key, as a dict has them: `memory["city"]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stratagem import limits
from stratagem.memory.service import Memory
from stratagem.sdk.method_bases import ServiceMethods

__all__ = ["KeyAccess"]

_PAGE: Final = limits.LIST_PAGE_MAX


class KeyAccess(ServiceMethods[Memory]):
    """The base of the memory's methods that reads and writes by key."""

    def __getitem__(self, key: str) -> Any:
        """Return the value that is stored under a key."""
        entry = self._invoke(Memory.recall, {"key": key})
        if entry is None:
            raise KeyError(key)
        return entry.value

    def __setitem__(self, key: str, value: Any) -> None:
        self._invoke(Memory.store, {"key": key, "value": value})

    def __delitem__(self, key: str) -> None:
        if not self._invoke(Memory.forget, {"key": key}).deleted:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._invoke(Memory.recall, {"key": key}) is not None

    def __iter__(self) -> Iterator[str]:
        """Return the keys of the current namespace in their order, as they were at the start."""
        cursor: str | None = None
        while True:
            page = self._invoke(Memory.list, {"order": "key", "cursor": cursor, "limit": _PAGE})
            yield from (entry.key for entry in page.results)
            cursor = page.next
            if cursor is None:
                return
