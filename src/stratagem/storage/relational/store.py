"""What the stores in SQL have in common: their settings, their writers' queue, and their end."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeVar
from weakref import WeakSet

from stratagem.deferred_modules import defer, importing
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
    from stratagem.storage.relational import eraser
    from stratagem.storage.relational.eraser import Erasure
else:
    eraser = defer("stratagem.storage.relational.eraser")

__all__ = ["Adapters", "SqlStore"]

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
        self._clock_watch.look(log.head(), self.now(), lambda: log)

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

        Connections can neither be used on both sides of a fork nor be closed on this one.
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

_IMPORT_POLL_SECONDS: Final = 0.002

_open_stores: WeakSet[SqlStore] = WeakSet()
# Referred to, so that nothing closes what belongs to the process that this one was forked from.
_inherited: list[Iterable[object]] = []


# Whose writers wait until this process has been forked.
_paused: list[WriterQueue] = []


def _pause_writers_before_fork() -> None:
    """Let commits end that other threads are making, and what they import be imported.

    A child that is forked amid a commit takes over what the driver notes of its locks, and could
    never write to the database. One that is forked amid an import waits for the end of that.
    """
    deadline = monotonic() + _PAUSE_SECONDS_MAX
    while importing and monotonic() < deadline:
        sleep(_IMPORT_POLL_SECONDS)
    for store in list(_open_stores):
        queue = store.pause_writers(deadline)
        # Each at once: whoever is interrupted forks all the same, and resumes these.
        if queue is not None:
            _paused.append(queue)


def _resume_writers_after_fork() -> None:
    while _paused:
        _paused.pop().leading.release()


def _detach_stores_after_fork() -> None:
    # The child's stores get queues of their own.
    _paused.clear()
    importing.clear()
    for store in list(_open_stores):
        store.detach_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_pause_writers_before_fork,
        after_in_parent=_resume_writers_after_fork,
        after_in_child=_detach_stores_after_fork,
    )
