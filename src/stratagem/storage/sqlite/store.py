"""A store in one SQLite file, shared by threads and processes.

Readers have a connection for each thread and see the newest commit. Writers of one
process share commits (`storage.relational.group_commit`); the leader takes the file lock first.
They write by a connection of their own, unless one thread does all of it: that one writes by the
connection that it reads by, which forgets all pages that it has read when another one commits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

import apsw

from stratagem import limits
from stratagem.deferred_modules import defer
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import GENESIS, Event, Head
from stratagem.engine.records import Kinds
from stratagem.errors import StorageUnavailable, StratagemError
from stratagem.storage.contract import (
    Erased,
    Finding,
    Indexer,
    Progress,
    Reader,
    Transaction,
    WriteRequest,
)
from stratagem.storage.copy_mark import refuse_unfinished
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.group_commit import BatchRunner, Ticket
from stratagem.storage.relational.reader import SqlReader
from stratagem.storage.relational.store import Adapters, SqlStore, await_forks
from stratagem.storage.sqlite import schema
from stratagem.storage.sqlite.connection import (
    MEMORY,
    Durability,
    connect,
    immutable_uri,
    is_frozen,
    translating_errors,
)
from stratagem.storage.sqlite.format import check_format
from stratagem.storage.sqlite.passage_ranking import LengthCache
from stratagem.storage.sqlite.reader import FormatGuard, lookup_reader
from stratagem.storage.sqlite.statements import SQL
from stratagem.storage.sqlite.watcher import Watcher
from stratagem.storage.sqlite.write_bursts import WriteBursts
from stratagem.storage.sqlite.writer_lock import WriterLock

if TYPE_CHECKING:
    from stratagem.storage.relational.eraser import Erasure
    from stratagem.storage.relational.session import SqlSession
    from stratagem.storage.relational.writer import SqlWriter
    from stratagem.storage.sqlite import examination, maintenance, replacement
    from stratagem.storage.sqlite import writer as sqlite_writer
else:
    # Only writes and upkeep need them.
    examination = defer("stratagem.storage.sqlite.examination")
    maintenance = defer("stratagem.storage.sqlite.maintenance")
    replacement = defer("stratagem.storage.sqlite.replacement")
    sqlite_writer = defer("stratagem.storage.sqlite.writer")

__all__ = ["BESIDE", "MEMORY", "SqliteStore"]

# The files beside an open database; all of them are made again by need.
BESIDE = ("-wal", "-shm", "-vectors", ".lock")

# How long the end of a burst waits for other writers, before it leaves its texts for later.
_BACKLOG_WAIT_SECONDS = 1.0
# So long nobody waits for them again, or every search would.
_IMPATIENT_SECONDS = 1.0
_UPKEEP = WriteRequest("stratagem")

# A thread that has led so many commits in a row is taken for the only one that writes.
_COMMITS_IN_A_ROW = 3

T = TypeVar("T")


class _ThreadReader(NamedTuple):
    """What a thread reads with."""

    connection: apsw.Connection
    reader: SqlReader
    guard: FormatGuard


class _LastCommit(NamedTuple):
    """The cache of the last commit, and the version of the file for which it is valid."""

    connection: apsw.Connection
    data_version: int
    runner: BatchRunner
    head: Head


class SqliteStore(SqlStore):
    """See `stratagem.storage.contract.Store`."""

    remote = False

    def __init__(
        self,
        path: str,
        *,
        kinds: Kinds,
        indexer: Indexer | None,
        adapters: Adapters,
        durability: Durability = "full",
        read_only: bool = False,
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        copying: bool = False,
    ) -> None:
        # Threads connect later, and the working directory may be another by then.
        path = path if path == MEMORY else os.path.abspath(path)  # noqa: PTH100
        super().__init__(
            path,
            kinds=kinds,
            indexer=indexer,
            adapters=adapters,
            read_only=read_only,
            lock_wait_seconds=lock_wait_seconds,
            copying=copying,
        )
        self._durability: Durability = durability
        # A name of its own for a database in memory, so that its threads share it.
        self.uri = path if path != MEMORY else f"file:/stratagem-{id(self)}?vfs=memdb"
        # Time and size of the file, where it is read as one that does not change.
        self._frozen: tuple[int, int] | None = None
        if read_only and path != MEMORY and is_frozen(path):
            self.uri, self._frozen = immutable_uri(path), _state(path)
        # Weak, so that a thread's connection goes with the thread.
        self._connections: WeakSet[apsw.Connection] = WeakSet()
        self._last_commit: _LastCommit | None = None
        # The thread that led the last commit, and how many it has led in a row.
        self._leader, self._led = 0, 0
        self._distrusts_writer = False
        self._bursts = WriteBursts(self._end_burst)
        self._has_backlog = False
        # Until when nobody waits to index the backlog, because others kept the database for long.
        self._impatient_until = 0.0
        self._lengths = LengthCache()
        self._translating = translating_errors(path)
        self._file_lock = WriterLock(None if path == MEMORY else f"{path}.lock")
        self._file: tuple[int, int] | None = None
        self._register()
        try:
            with translating_errors(path):
                self._writer = schema.open_writer(self)
        except BaseException:
            self.close()
            raise
        self._file = None if path == MEMORY else _identity(path)
        if not read_only:
            self._adopt_backlog()

    def reader(self) -> Reader:
        return self._thread_reader().reader

    def thread_connection(self) -> apsw.Connection:
        """Return the connection that this thread reads with."""
        return self._thread_reader().connection

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        connection, reader, guard = self._thread_reader()
        with translating_errors(self.location):
            nested = connection.in_transaction
            if nested:
                yield reader
                return
            try:
                connection.execute("BEGIN")
                guard.begin_snapshot()
                yield reader
            finally:
                # Without a call of a function in Python, before which an interrupt may come: the
                # transaction would stay open, and the thread would see this state from then on.
                guard.queries.answers = None
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def exclusive(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run work on the writing connection with every other writer kept out."""
        self._refuse_read_only()
        if self._has_backlog:
            self._end_burst()
        with self._without_writers(), translating_errors(self.location), self.lock_file():
            self._last_commit = None
            self._head_to_write_after(self._writer)
            return work(self._writer)

    def _adopt_backlog(self) -> None:
        """Have the texts indexed that another process has left: one that was killed, say."""
        # What is damaged is opened all the same, to be repaired.
        with suppress(StratagemError, apsw.Error):
            if self.reader().search.unindexed_count():
                self._has_backlog = True
                self._bursts.await_end()

    def index_backlog(self, wait_seconds: float) -> None:
        self._bursts.postpone()
        self._end_burst(wait_seconds)

    def _end_burst(self, wait_seconds: float = _BACKLOG_WAIT_SECONDS) -> bool:
        """Index what the last commits have left; return False where others write for too long."""
        if self.read_only:
            return False
        began, done = monotonic(), False
        if began < self._impatient_until:
            wait_seconds = 0.0
        leading, taken = self._writers.leading, list[bool]()
        try:
            self._take_turn(wait_seconds, taken)
            if True in taken:
                # Another process may have the lock, or the disk be full: searches go on without.
                with suppress(StratagemError):
                    self._commit([Ticket(_index_backlog, _UPKEEP)], deadline=began + wait_seconds)
                    done = True
        finally:
            if True in taken:
                leading.release()
        if not done and wait_seconds:
            self._impatient_until = monotonic() + _IMPATIENT_SECONDS
        return done

    @contextmanager
    def lock_file(self) -> Iterator[None]:
        """Keep the writers of other processes out."""
        self._refuse_unusable()
        self._file_lock.acquire(self._lock_wait_seconds)
        try:
            yield
        finally:
            self._file_lock.release()

    def log(self, after: int = 0) -> Iterator[Event]:
        with translating_errors(self.location):
            yield from self._thread_reader().reader.log.events(after)

    def rebuild(self, progress: Progress) -> None:
        self.exclusive(lambda writer: maintenance.rebuild(writer, self, progress))
        self._cache.branches.clear()

    def repair(self, progress: Progress) -> None:
        self._refuse_read_only()
        # Not even the head may be readable, so nothing is asked of the log before.
        with self._without_writers(), translating_errors(self.location), self.lock_file():
            self._last_commit = None
            check_format(int(self._writer.pragma("user_version")), None, self.location)
            replacement.replace_contents(self._writer, self, progress)
        self._cache.clear()

    def beside(self, path: str) -> SqliteStore:
        """Return a store of the same kind in another file."""
        return SqliteStore(
            path,
            kinds=self.kinds,
            indexer=self.indexer,
            adapters=self._adapters,
            durability="fast",
        )

    def examine(self, progress: Progress, expect: tuple[int, str] | None) -> list[Finding]:
        return examination.examine(self, progress, expect)

    def _erase(self, request: WriteRequest, wanted: Erasure) -> Erased:
        return maintenance.purge(self, request, wanted)

    def size(self) -> int | None:
        if self.location == MEMORY:
            return None
        files = (Path(f"{self.location}{end}") for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def flush(self) -> None:
        self.exclusive(maintenance.flush)

    def compact(self) -> bool:
        return self.exclusive(maintenance.compact)

    def discard(self) -> None:
        def remove(_writer: apsw.Connection) -> None:
            for end in (*BESIDE, ""):
                Path(f"{self.location}{end}").unlink(missing_ok=True)

        self.exclusive(remove)
        self.close()

    def follow(self, heard: Callable[[int], None]) -> Callable[[], None]:
        watcher = Watcher(lambda: self.reader().log.head().sequence, heard)
        self._followers.append(watcher)
        return watcher.close

    def writer(self, connection: apsw.Connection) -> SqlWriter:
        """Return the parts that write, over a connection that has begun a transaction."""
        return sqlite_writer.make_writer(
            connection,
            self.kinds,
            WriterCache(),
            adapters=self._adapters,
            indexer=self.indexer,
        )

    def connect(self) -> apsw.Connection:
        """Open one more connection, which `close` will close."""
        self._refuse_unusable()
        connection = connect(
            self.uri,
            durability=self._durability,
            read_only=self.read_only,
            lock_wait_seconds=self._lock_wait_seconds,
        )
        self._connections.add(connection)
        return connection

    def close(self) -> None:
        try:
            self._bursts.close()
            if self._has_backlog:
                # What cannot be indexed now is by whoever writes or searches next.
                self._end_burst()
        finally:
            self._has_backlog = False
            super().close()

    def _release(self) -> None:
        for connection in list(self._connections):
            with suppress(apsw.Error):
                connection.close()
        self._connections.clear()
        # It refers to the connection of the thread that wrote last.
        self._last_commit = None
        self._file_lock.close()
        self._local = threading.local()

    def _abandon(self) -> Iterable[object]:
        # SQLite shares the locks of a file among the connections of a process. Those of our parent
        # would stand for locks that this process does not have.
        left = [each for each in self._connections if not _close_after_fork(each)]
        self._connections.clear()
        self._last_commit = None
        self._file_lock.close()
        # The thread that awaits the end of a burst is not in this process, either.
        self._bursts, self._has_backlog = WriteBursts(self._end_burst), False
        return left

    def _thread_reader(self) -> _ThreadReader:
        await_forks()
        if self._frozen is not None and self._frozen != _state(self.location):
            raise StorageUnavailable(
                "Another process wrote to the database while it was read.",
                hint="Open it again.",
                path=self.location,
            )
        try:
            own: _ThreadReader = self._local.reader
        except AttributeError:
            with translating_errors(self.location):
                connection = self.connect()
                parts = lookup_reader(connection, self.kinds, self._cache, self._lengths)
                own = self._local.reader = _ThreadReader(connection, *parts)
        return own

    def _refuse_unusable(self) -> None:
        if self._unusable:
            super()._refuse_unusable()
        if self._file is not None and self._file != _identity(self.location):
            # What is written to a file without a name is gone when it is closed.
            raise StorageUnavailable(
                "The database file was moved, deleted or replaced while it was open.",
                hint="Open it again.",
                path=self.location,
            )

    def _commit(self, batch: list[Ticket], *, deadline: float | None = None) -> None:
        """See the store of any database; with a `deadline`, wait for others no longer than that."""
        with self._translating:
            # As `lock_file` does, which takes as long as a statement: it is made of a generator.
            self._refuse_unusable()
            try:
                if deadline is None:
                    self._file_lock.acquire(self._lock_wait_seconds)
                else:
                    self._file_lock.acquire_before(deadline)
                self._commit_locked(batch, deadline)
            finally:
                self._file_lock.release()

    def _head_to_write_after(self, connection: apsw.Connection) -> Head:
        """Return the head, in the transaction that is to write after it.

        Raises:
            DatabaseTooNew: A newer Stratagem has upgraded the file while this one had it open.
            CopyUnfinished: Something is being copied into it.
        """
        row = connection.execute(SQL["head_to_write_after"]).fetchone()
        if row is None:
            return Head(0, 0, GENESIS)
        check_format(row[3], row[4], self.location)
        if not self.copying:
            refuse_unfinished(row[5], self.location)
        return Head(*row[:3])

    def _reopen_writer(self) -> None:
        opened = schema.open_writer(self)
        self._writer.close(True)  # noqa: FBT003 -- apsw takes it by position
        self._writer = opened
        self._distrusts_writer = False

    def _commit_locked(self, batch: list[Ticket], deadline: float | None) -> None:
        if self.location == MEMORY:
            # In memory, a connection that is opened within a transaction of its own thread would
            # wait for the end of it. So the thread has one before, and goes on reading by it.
            self._thread_reader()
            self._run_and_commit(self._writer, batch, deadline)
            return
        own = self._thread_reader() if self._writes_alone() else None
        if own is not None and not own.connection.in_transaction:
            self._commit_by_reader(own, batch, deadline)
            return
        if self._distrusts_writer:
            self._reopen_writer()
        try:
            self._run_and_commit(self._writer, batch, deadline)
        except apsw.Error:
            self._distrusts_writer = True
            raise

    def _writes_alone(self) -> bool:
        """Count a commit that this thread leads; return whether it has led the last ones, too."""
        thread = threading.get_ident()
        self._leader, self._led = thread, self._led + 1 if thread == self._leader else 1
        return self._led > _COMMITS_IN_A_ROW

    def _commit_by_reader(
        self, own: _ThreadReader, batch: list[Ticket], deadline: float | None
    ) -> None:
        """Commit by the connection that this thread reads by.

        What is read meanwhile, but by the transaction, is read by another one: it sees only what is
        committed.
        """
        local = self._local.__dict__
        del local["reader"]
        if "reader_beside" in local:
            local["reader"] = local.pop("reader_beside")
        is_trusted = True
        try:
            self._run_and_commit(own.connection, batch, deadline)
        except apsw.Error:
            is_trusted = False
            raise
        finally:
            if "reader" in local:
                local["reader_beside"] = local.pop("reader")
            if is_trusted:
                local["reader"] = own

    def _run_and_commit(
        self, connection: apsw.Connection, batch: list[Ticket], deadline: float | None
    ) -> None:
        """Run the work of some writers in one transaction, and commit it.

        Raises:
            apsw.Error: The disk failed. The full-text index counts texts in memory, and may have
                counted wrong then: the next write begins with a connection that has read nothing.
        """
        try:
            # Here, so that whoever interrupts it leaves no transaction open: that would lock out
            # every other writer.
            if deadline is None:
                self._session_of(connection).execute("BEGIN IMMEDIATE")
            else:
                self._begin_before(deadline, connection)
            runner, head = self._begin_writing(connection)
            backlog = runner.writer.backlog
            assert backlog is not None, "a store in SQLite has one"
            backlog.begin(is_open=self._bursts.count())
            head = runner.run(batch, head)
            runner.writer.queries.session.execute("COMMIT")
            self._last_commit = _LastCommit(connection, connection.data_version(), runner, head)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        left = backlog.may_have_texts
        if left is not None:
            self._has_backlog = left
        if left:
            self._bursts.await_end()
        self._settle(batch, runner.writer.cache)

    def _begin_before(self, deadline: float, connection: apsw.Connection) -> None:
        """Begin a transaction, unless another connection writes for longer than until then."""
        connection.set_busy_timeout(int(max(deadline - monotonic(), 0.0) * 1000))
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.set_busy_timeout(int(self._lock_wait_seconds * 1000))

    def _session_of(self, connection: apsw.Connection) -> SqlSession | apsw.Connection:
        """Return what runs statements on a connection: what the last commit by it ran them with."""
        last = self._last_commit
        if last is None or last.connection is not connection:
            return connection
        return last.runner.writer.queries.session

    def _begin_writing(self, connection: apsw.Connection) -> tuple[BatchRunner, Head]:
        """Return what writes and the head, in the transaction that has begun.

        The version changes with every commit to the file, by whatever connection: as long as it
        is the one that our last commit left, what was known then is still true. Taken away here,
        so that work which fails leaves nothing behind.
        """
        last, self._last_commit = self._last_commit, None
        if (
            last is None
            or last.connection is not connection
            or last.data_version != connection.data_version()
        ):
            runner = BatchRunner(self.writer(connection), (apsw.Error,), self._clock_watch)
            return runner, self._head_to_write_after(connection)
        return last.runner, last.head


def _index_backlog(transaction: Transaction) -> None:
    transaction.index_backlog()


def _close_after_fork(connection: apsw.Connection) -> bool:
    """Close a connection of the process that this one was forked from; return whether it was.

    That leaves the files alone, unless something was being written: it would be undone.
    """
    with suppress(apsw.Error):
        if connection.txn_state() != apsw.SQLITE_TXN_WRITE:
            # The last connection of a process makes a checkpoint, but it is not the last one.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()
            return True
    return False


def _state(path: str) -> tuple[int, int] | None:
    """Return a value that changes with every write to a file."""
    try:
        found = os.stat(path)  # noqa: PTH116 -- twice as fast, and asked before every read
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _identity(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at a path."""
    try:
        found = os.stat(path)  # noqa: PTH116 -- twice as fast, and asked before every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
