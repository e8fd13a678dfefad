"""What the stores in SQL have in common: their settings, their writers' queue, and their end."""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeVar
from weakref import WeakSet

from stratagem.deferred_modules import defer
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.records import Kinds
from stratagem.errors import ReadOnly, StorageUnavailable
from stratagem.storage.clock_watch import ClockWatch
from stratagem.storage.contract import (
    Erased,
    Indexer,
    Reader,
    Transaction,
    WriteCounters,
    WriteRequest,
)
from stratagem.storage.relational.cache import NameCache, WriterCache
from stratagem.storage.relational.group_commit import Ticket, WriterQueue

if TYPE_CHECKING:
    from types import FrameType

    from stratagem.storage.relational import eraser
    from stratagem.storage.relational.eraser import Erasure
else:
    eraser = defer("stratagem.storage.relational.eraser")

__all__ = ["Adapters", "SqlStore", "await_forks"]

T = TypeVar("T")


class Adapters(NamedTuple):
    """What a store takes from its surroundings: the time, and bytes that cannot be guessed."""

    clock: Callable[[], int]
    entropy: Callable[[int], bytes]


class _Follower(Protocol):
    """Something that tells of commits, in a thread of its own."""

    def close(self) -> None: ...


class SqlStore(ABC):
    """See `stratagem.storage.contract.Store`.

    `copying`: it is the target of a running copy, which only the copy itself may use.
    """

    remote: bool
    # How many writers may share a commit, where it is fewer than elsewhere.
    _batch_max: ClassVar[int | None] = None

    def __init__(
        self,
        location: str,
        *,
        kinds: Kinds,
        indexer: Indexer | None,
        adapters: Adapters,
        read_only: bool,
        lock_wait_seconds: float,
        copying: bool,
    ) -> None:
        self.location = location
        self.kinds = kinds
        self.indexer = indexer
        self.read_only = read_only
        self.copying = copying
        self._adapters = adapters
        self._lock_wait_seconds = lock_wait_seconds
        self._cache = NameCache()
        self._local = threading.local()
        self._writers = WriterQueue(self._commit, batch_max=self._batch_max)
        self._followers: list[_Follower] = []
        self._clock_watch = ClockWatch(location)
        # The reason why the store is unusable, once it is.
        self._unusable = ""

    def now(self) -> int:
        return self._adapters.clock()

    def look_at_clock(self) -> None:
        log = self.reader().log
        self._clock_watch.look(log.head(), self.now(), log)

    @abstractmethod
    def reader(self) -> Reader: ...

    def write(self, work: Callable[[Transaction], T], request: WriteRequest) -> T:
        self._refuse_read_only()
        return self._writers.write(work, request)

    def purge(
        self,
        request: WriteRequest,
        *,
        space: Space,
        key: str | None,
        sequence: int | None,
        sequences: Sequence[int] = (),
        copies: bool = True,
    ) -> Erased:
        return self._erase(
            request, eraser.erasure_of(space, key, sequence, sequences, copies=copies)
        )

    def purge_records(
        self,
        request: WriteRequest,
        records: Sequence[tuple[Space, str]],
        sequences: Sequence[int] = (),
    ) -> Erased:
        return self._erase(request, eraser.Erasure(tuple(records), sequences=tuple(sequences)))

    @abstractmethod
    def _erase(self, request: WriteRequest, wanted: Erasure) -> Erased: ...

    @abstractmethod
    def index_backlog(self, wait_seconds: float) -> None: ...

    def counters(self) -> WriteCounters:
        return self._writers.counters

    def close(self) -> None:
        for follower in self._followers:
            follower.close()
        # A commit that is under way ends first.
        with self._writers.leading:
            self._unusable = self._unusable or "The database was closed."
            self._release()

    def detach_after_fork(self) -> None:
        """Leave everything to the process that this one was forked from.

        A connection cannot be used on both sides of a fork, and one to a server not be closed here.
        """
        self._unusable = "The database was opened before this process was forked."
        _inherited.append(self._abandon())
        self._followers = []
        # The thread that holds its locks is not in this process.
        self._writers = WriterQueue(self._commit, batch_max=self._batch_max)
        self._local = threading.local()

    def pause_writers(self, deadline: float) -> WriterQueue | None:
        """Wait for the commit that is being made, and let no other begin.

        Return the queue that waits until its `leading` is released, or None: nothing need wait.
        """
        # Who forks within its own transaction has the lock itself, and waits in vain.
        wait_seconds = max(deadline - monotonic(), 0.0)
        is_paused = not self.remote and self._writers.leading.acquire(timeout=wait_seconds)
        return self._writers if is_paused else None

    def _take_turn(self, wait_seconds: float, taken: list[bool]) -> None:
        """Wait until no writer is at work, and note in `taken` whether none is.

        By one call: where an interrupt comes behind it, what was taken is known.
        """
        taken.extend(map(self._writers.leading.acquire, (True,), (wait_seconds,)))

    @contextmanager
    def _without_writers(self) -> Iterator[None]:
        # Not where the driver is called: who waits here for a fork holds no lock of it.
        with self._writers.leading:
            yield

    @abstractmethod
    def _commit(self, batch: list[Ticket]) -> None:
        """Run the work of some writers in one transaction, and commit it."""

    @abstractmethod
    def _release(self) -> None:
        """Close all connections."""

    @abstractmethod
    def _abandon(self) -> Iterable[object]:
        """Let go of all connections without closing them, and return them."""

    def _settle(self, batch: list[Ticket], cache: WriterCache) -> None:
        """Publish the state after a commit to readers and followers."""
        # Not after every commit: there may be thousands, and readers look up what is missing.
        if len(self._cache.spaces) < len(cache.spaces):
            self._cache.spaces.update(cache.spaces)
        for ticket in batch:
            ticket.done = True

    def _refuse_read_only(self) -> None:
        if self.read_only:
            raise ReadOnly("The database was opened for reading only.")

    def _refuse_unusable(self) -> None:
        if self._unusable:
            raise StorageUnavailable(self._unusable, hint="Open it again.", path=self.location)

    def _register(self) -> None:
        """Have the store detached in every process that is forked from this one."""
        _open_stores.add(self)


# How long a fork waits for commits, of all stores together.
_PAUSE_SECONDS_MAX: Final = 1.0
# How long it waits for other locks: a child without them could never search. An import of large
# modules from a busy disk takes seconds.
_LOCKS_SECONDS_MAX: Final = 10.0
_POLL_SECONDS: Final = 0.002

# These call SQLite and BLAS, which have locks and threads for the whole process.
_CALLING_NATIVE: Final = (
    "stratagem.storage.sqlite.",
    "stratagem.storage.relational.session",
    "stratagem.search.",
)
# These call BLAS, too, or hold a lock while they call others, as before Python 3.12
# `functools.cached_property` does.
_LOCKING: Final = ("importlib._bootstrap", "functools", "numpy.")

_open_stores: WeakSet[SqlStore] = WeakSet()
# Referred to, so that nothing closes what belongs to the process that this one was forked from.
_inherited: list[Iterable[object]] = []

# The queues that a thread keeps waiting until it has forked, and the threads that are about to.
_paused: dict[int, list[WriterQueue]] = {}
_forking: set[int] = set()


def await_forks() -> None:
    """Wait until no other thread is about to fork: called before the driver is."""
    while _forking and _forking != {threading.get_ident()}:
        sleep(_POLL_SECONDS)


def _pause_threads_before_fork() -> None:
    """Let commits end that other threads are making, and whatever else holds a lock.

    A child that is forked amid a commit takes over what the driver notes of its locks, and could
    never write to the database. Any other lock that is held nobody in the child would release.
    """
    own, began = threading.get_ident(), monotonic()
    queues = _paused[own] = []
    for store in list(_open_stores):
        queue = store.pause_writers(began + _PAUSE_SECONDS_MAX)
        # Each at once: whoever is interrupted forks all the same, and resumes these.
        if queue is not None:
            queues.append(queue)
    # Only now: a commit may have to read before it ends.
    _forking.add(own)
    while _others_hold_locks(own) and monotonic() < began + _LOCKS_SECONDS_MAX:
        sleep(_POLL_SECONDS)


def _others_hold_locks(own: int) -> bool:
    """Whether another thread is in a call of ours that may hold a lock of the process.

    Their frames tell, so that no call has to count itself. None of them goes on before the fork:
    a thread that has just got the interpreter keeps it for longer than this takes.
    """
    frames = sys._current_frames()  # noqa: SLF001 -- there is no other way to see them
    return any(_may_hold_lock(frame) for thread, frame in frames.items() if thread != own)


def _may_hold_lock(innermost: FrameType) -> bool:
    if _module_of(innermost).startswith(_CALLING_NATIVE):
        return True
    frame: FrameType | None = innermost
    is_locking = False
    while frame is not None:
        module = _module_of(frame)
        if is_locking and module.startswith("stratagem."):
            return True
        is_locking = is_locking or module.startswith(_LOCKING)
        frame = frame.f_back
    return False


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _resume_threads_after_fork() -> None:
    own = threading.get_ident()
    _forking.discard(own)
    for queue in _paused.pop(own, []):
        queue.leading.release()


def _detach_stores_after_fork() -> None:
    # The child's stores get queues of their own.
    _paused.clear()
    _forking.clear()
    for store in list(_open_stores):
        store.detach_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_pause_threads_before_fork,
        after_in_parent=_resume_threads_after_fork,
        after_in_child=_detach_stores_after_fork,
    )
