"""Noticing what any process appends to the file.

SQLite notifies no other process. The head is one indexed look-up of a few microseconds, so it is
polled, in a thread with a reader of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from stratagem.errors import StratagemError

__all__ = ["Watcher"]

_SECONDS: Final = 0.1


class Watcher:
    """Calls `heard` with the head's sequence whenever it has moved."""

    def __init__(self, head: Callable[[], int], heard: Callable[[int], None]) -> None:
        self._head = head
        self._heard = heard
        self._last = head()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stratagem-watching", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no more."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            # The file may be busy, or gone; the next look may find it again.
            with suppress(StratagemError):
                self._look()

    def _look(self) -> None:
        head = self._head()
        if head != self._last:
            self._last = head
            self._heard(head)
