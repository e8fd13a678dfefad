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
# What could not be done at the end of a burst is tried again, at growing intervals up to this.
_RETRY_SECONDS_MAX: Final = 30.0
# Of a few commits nothing is gained by what is put off.
_COMMITS_MIN: Final = 3
# Who writes and searches in turn gains nothing, either.
_COMMITS_AFTER_NEED: Final = 16


class WriteBursts:
    """Counts the commits of a burst; some time after one that left work, calls `end`.

    `end` returns whether the work is done: it is called again until it is.
    """

    def __init__(self, end: Callable[[], bool]) -> None:
        self._end = end
        self._commits = 0
        self._last = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # Whether work was left since `end` was last called.
        self._has_work = False
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
        # A commit that took longer than the pause is followed by one all the same.
        self._last = monotonic()
        with self._lock:
            self._has_work = True
            if self._thread is None and not self._stopping.is_set():
                thread = threading.Thread(target=self._run, name="stratagem-indexing", daemon=True)
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:
                    # No thread can be started: the next commit or search does the work.
                    self._thread = None

    def close(self) -> None:
        """Wait for a call that is under way, and begin no other."""
        with self._lock:
            self._stopping.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        wait = 0.0
        while not self._stopping.wait(wait):
            wait = self._last + _PAUSE_SECONDS - monotonic()
            if wait > 0:
                continue
            if not self._end_with_retries():
                return
            with self._lock:
                if not self._has_work:
                    self._thread = None
                    return

    def _end_with_retries(self) -> bool:
        """Call `end` until the work is done; return False where the store is closed before."""
        wait = _PAUSE_SECONDS
        self._has_work = False
        while not self._end_once():
            wait = min(2 * wait, _RETRY_SECONDS_MAX)
            if self._stopping.wait(wait):
                return False
        return True

    def _end_once(self) -> bool:
        # Whatever fails here fails nobody's call, and may not fail again.
        with suppress(Exception):
            return self._end()
        return False
