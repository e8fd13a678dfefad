"""Noticing that commits follow one another closely, and when the last of them was made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

__all__ = ["WriteBursts"]

# Commits that are further apart than this do not follow one another closely.
_PAUSE_SECONDS: Final = 0.05
# Of a few commits nothing is gained by what is put off.
_COMMITS_MIN: Final = 3
# Who writes and searches in turn gains nothing, either.
_COMMITS_AFTER_NEED: Final = 16


class WriteBursts:
    """Counts the commits of a burst; some time after one that left work, calls `end`."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end
        self._commits = 0
        self._last = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def count(self) -> bool:
        """Count a commit; return whether it belongs to a burst, so that more are to be expected."""
        now = monotonic()
        self._commits = self._commits + 1 if now - self._last < _PAUSE_SECONDS else 1
        self._last = now
        return self._commits > _COMMITS_MIN

    def postpone(self) -> None:
        """Take the next commits for no burst: somebody needed at once what was put off."""
        self._commits = -_COMMITS_AFTER_NEED

    def await_end(self) -> None:
        """Have `end` called once no commit has been made for a while."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                thread = threading.Thread(target=self._run, name="stratagem-indexing", daemon=True)
                # Where no thread can be started, the next commit or search does it.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def close(self) -> None:
        """Wait for a call that is under way, and begin no other."""
        with self._lock:
            self._stopping.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while (left := self._last + _PAUSE_SECONDS - monotonic()) > 0:
            if self._stopping.wait(left):
                return
        # A commit that comes from now on has another thread wait for its end.
        self._thread = None
        self._end()
