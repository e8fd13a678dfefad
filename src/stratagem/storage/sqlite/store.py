"""A store in one SQLite file, shared by threads and processes.

Readers have a connection for each thread and see the newest commit. Writers of one
process queue up; whoever is first in line becomes the leader, takes the file lock, runs
the work of everybody waiting in one SQLite transaction and commits once for all of them.
Each piece of work stands behind a savepoint, so that one failing does not undo the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

import apsw
import orjson

from stratagem import limits
from stratagem.engine.events import Event, Head, Space
from stratagem.engine.records import Kinds
from stratagem.errors import ReadOnly, StorageUnavailable
from stratagem.storage.contract import Finding, Indexer, Progress, Reader, Request, Transaction
from stratagem.storage.sqlite import examining, maintenance, schema
from stratagem.storage.sqlite.appending import Adapters, SqliteTransaction
from stratagem.storage.sqlite.connection import Durability, connect, translated
from stratagem.storage.sqlite.locking import WriterLock
from stratagem.storage.sqlite.reading import Names, SqliteReader

__all__ = ["SqliteStore"]

T = TypeVar("T")
MEMORY = ":memory:"


class _Ticket:
    """One piece of work in the writers' queue, and what became of it."""

    def __init__(self, work: Callable[[Transaction], Any], request: Request) -> None:
        self.work = work
        self.request = request
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self, error: BaseException | None = None) -> None:
        self.error = error
        self.done = True


class SqliteStore:
    """See `stratagem.storage.contract.Store`."""

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
    ) -> None:
        self.kinds = kinds
        self.location = path
        self.read_only = read_only
        self._indexer = indexer
        self._adapters = adapters
        self._durability: Durability = durability
        self._lock_wait_seconds = lock_wait_seconds
        # A name of its own for a database in memory, so that its threads share it.
        self.uri = path if path != MEMORY else f"file:/stratagem-{id(self)}?vfs=memdb"
        self._names = Names()
        self._local = threading.local()
        # Weak, so that a thread's connection goes with the thread.
        self._connections: WeakSet[apsw.Connection] = WeakSet()
        self._queue: deque[_Ticket] = deque()
        self._leading = threading.Lock()
        self._file_lock = WriterLock(None if path == MEMORY else f"{path}.lock")
        self._closed = False
        with translated(path):
            self._writer = schema.open_writer(self)

    def now(self) -> int:
        return self._adapters.clock()

    def reader(self) -> Reader:
        try:
            reader: Reader = self._local.reader
        except AttributeError:
            with translated(self.location):
                connection = self._local.connection = self.connect()
                reader = self._local.reader = SqliteReader(connection, self.kinds, self._names)
        return reader

    def thread_connection(self) -> apsw.Connection:
        """Return the connection that this thread reads with."""
        self.reader()
        connection: apsw.Connection = self._local.connection
        return connection

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        reader = self.reader()
        connection = self.thread_connection()
        with translated(self.location):
            nested = connection.in_transaction
            if not nested:
                connection.execute("BEGIN")
            try:
                yield reader
            finally:
                if not nested:
                    connection.execute("COMMIT")

    def write(self, work: Callable[[Transaction], T], request: Request) -> T:
        if self.read_only:
            raise ReadOnly("The database was opened for reading only.")
        ticket = _Ticket(work, request)
        self._queue.append(ticket)
        with self._leading:
            # A group has a limit: the first one led here may be full without this ticket.
            while not ticket.done:
                self._lead()
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def exclusive(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run work on the writing connection with every other writer kept out."""
        if self.read_only:
            raise ReadOnly("The database was opened for reading only.")
        with self._leading, translated(self.location), self.locked():
            return work(self._open_writer())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the writers of other processes out."""
        self._file_lock.acquire(self._lock_wait_seconds)
        try:
            yield
        finally:
            self._file_lock.release()

    def log(self, after: int = 0) -> Iterator[Event]:
        with translated(self.location):
            yield from maintenance.log(self.thread_connection(), after)

    def rebuild(self, progress: Progress) -> None:
        self.exclusive(lambda writer: maintenance.rebuild(writer, self, progress))
        self._names.branches.clear()

    def examine(self, progress: Progress, expect: tuple[int, str] | None) -> list[Finding]:
        return examining.examine(self, progress, expect)

    def purge(
        self, request: Request, *, space: Space, key: str | None, sequence: int | None
    ) -> int:
        return maintenance.purge(self, request, space=space, key=key, sequence=sequence)

    def close(self) -> None:
        with self._leading:
            self._closed = True
            for connection in list(self._connections):
                with suppress(apsw.Error):
                    connection.close()
            self._connections.clear()
            self._local = threading.local()

    def transaction(
        self, connection: apsw.Connection, request: Request, head: Head, names: Names
    ) -> SqliteTransaction:
        """Return a transaction over a connection that has begun one."""
        return SqliteTransaction(
            connection,
            self.kinds,
            names,
            indexer=self._indexer,
            adapters=self._adapters,
            request=request,
            head=head,
        )

    @property
    def indexer(self) -> Indexer | None:
        """What turns texts into documents."""
        return self._indexer

    def connect(self) -> apsw.Connection:
        """Open one more connection, which `close` will close."""
        if self._closed:
            raise StorageUnavailable("The database was closed.", hint="Open it again.")
        connection = connect(self.uri, durability=self._durability, read_only=self.read_only)
        self._connections.add(connection)
        return connection

    def _open_writer(self) -> apsw.Connection:
        if self._closed:
            raise StorageUnavailable("The database was closed.", hint="Open it again.")
        return self._writer

    def _lead(self) -> None:
        """Run and commit the work of everybody in the queue."""
        batch: list[_Ticket] = []
        while self._queue and len(batch) < limits.GROUP_COMMIT_MAX:
            batch.append(self._queue.popleft())
        try:
            with translated(self.location), self.locked():
                self._commit(batch)
        except BaseException as error:
            for ticket in batch:
                if not ticket.done or ticket.error is None:
                    ticket.settle(error)
            if not isinstance(error, Exception):
                raise

    def _commit(self, batch: list[_Ticket]) -> None:
        connection = self._open_writer()
        connection.execute("BEGIN IMMEDIATE")
        names = Names()
        try:
            head = SqliteReader(connection, self.kinds, names).head()
            for ticket in batch:
                head = self._run(connection, ticket, head, names, alone=len(batch) == 1)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._names.spaces.update(names.spaces)
        for ticket in batch:
            ticket.done = True

    def _run(
        self, connection: apsw.Connection, ticket: _Ticket, head: Head, names: Names, *, alone: bool
    ) -> Head:
        """Run one piece of work; undo it alone if it fails, and return the new head."""
        if not alone:
            connection.execute("SAVEPOINT work")
        transaction = self.transaction(connection, ticket.request, head, names)
        try:
            remembered = transaction.remembered()
            if remembered is None:
                ticket.result = ticket.work(transaction)
                transaction.finish(ticket.result)
            else:
                ticket.result = orjson.loads(remembered)
        except apsw.Error:
            # The database itself failed: SQLite may have undone everybody's work.
            raise
        except Exception as error:
            if alone:
                raise
            ticket.error = error
            names.spaces.clear()
            names.branches.clear()
            connection.execute("ROLLBACK TO work")
            connection.execute("RELEASE work")
            return head
        if not alone:
            connection.execute("RELEASE work")
        return transaction.head()
