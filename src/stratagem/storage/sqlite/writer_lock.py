"""A lock that admits one writer at a time, in the order in which they asked.

SQLite's own busy handler polls, and under several writing processes some of them wait for
seconds. A file lock taken before the transaction begins queues them in the kernel instead.
It only orders writers: correctness never depends on it, so where there is no such lock
the busy handler is enough.
"""

from __future__ import annotations

import os
import threading
from time import monotonic, sleep
from types import ModuleType
from typing import Final

from stratagem.errors import StorageBusy

__all__ = ["WriterLock"]

_POLL_SECONDS: Final = 0.01

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows has no such lock
    fcntl = None


class WriterLock:
    """A lock on a file beside the database, shared by every process that writes to it.

    The file stays open from one write to the next: opening it takes longer than locking it.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path if fcntl else None
        self._file: int | None = None
        self._held = False

    def acquire(self, timeout_seconds: float) -> None:
        """Wait for the lock.

        Raises:
            StorageBusy: Another process kept it for longer than the timeout.
        """
        if self._path is None or self._acquire_now():
            return
        deadline = monotonic() + timeout_seconds
        file, self._file = self._file, None
        assert file is not None
        try:
            # After a timeout the file is the waiting thread's, which closes it.
            self._file, self._held = _wait(file, timeout_seconds), True
        except RuntimeError:
            # No thread can be started, as at the end of a program.
            self.acquire_before(deadline)

    def acquire_before(self, deadline: float) -> None:
        """Wait for the lock until a moment of the monotonic clock, and not in the kernel's queue.

        Who gives up leaves no thread in that queue, however often. Others come first, too.

        Raises:
            StorageBusy: Another process kept it.
        """
        while self._path is not None and not self._acquire_now():
            if monotonic() >= deadline:
                raise StorageBusy("Another process has locked the database.")
            sleep(_POLL_SECONDS)

    def _acquire_now(self) -> bool:
        """Take the lock; return False where another process has it."""
        assert fcntl is not None
        if self._file is None:
            assert self._path is not None
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # Before it is: whoever is interrupted then releases it all the same.
        self._held = True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held = False
            return False
        return True

    def release(self) -> None:
        """Let the next writer in."""
        if self._file is not None and self._held:
            assert fcntl is not None
            self._held = False
            # Closing would leave it to a child forked meanwhile, which has a copy.
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file.

        In a forked process it lets nobody in: it is the parent process that has the lock.
        """
        if self._file is not None:
            os.close(self._file)
            self._file, self._held = None, False


def _wait(file: int, timeout_seconds: float) -> int:
    """Queue for the lock in a thread of its own: the kernel's queue has no time limit."""
    assert fcntl is not None
    decided = threading.Lock()
    granted = threading.Event()
    abandoned = False

    def queue() -> None:
        assert fcntl is not None
        fcntl.flock(file, fcntl.LOCK_EX)
        with decided:
            if abandoned:
                os.close(file)
            granted.set()

    try:
        threading.Thread(target=queue, name="stratagem-writer-lock", daemon=True).start()
    except RuntimeError:
        os.close(file)
        raise
    try:
        granted.wait(timeout_seconds)
    except BaseException:
        # Nobody would release the lock, not even to this process.
        with decided:
            abandoned = True
            if granted.is_set():
                os.close(file)
        raise
    with decided:
        if granted.is_set():
            return file
        abandoned = True
    raise StorageBusy("Another process has locked the database.")
