"""A store in PostgreSQL, shared by the threads, processes and machines of a team.

It is opened for one workspace, which has a log of its own. Readers take a connection from a pool
for each look-up; a snapshot keeps one, in a transaction that sees one state. Writers of one
process share commits (`storage.relational.group_commit`) on a connection of their own. Those of
other processes and machines wait for one another at the workspace's row in `heads`: whoever has
locked it reads the head, appends and commits, so that a workspace has one order and one chain.

If a connection breaks during a commit, it is unknown at first whether the commit succeeded. The
store then reconnects, waits for its turn, and looks for the hash of the last event it had written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Event, Head, Space
from stratagem.engine.records import Kinds
from stratagem.engine.values import check_text
from stratagem.errors import StorageUnavailable, StratagemError
from stratagem.places import display_place
from stratagem.storage.contract import Erased, Finding, Indexer, Progress, Reader, WriteRequest
from stratagem.storage.copy_mark import refuse_unfinished
from stratagem.storage.postgres import examination, maintenance, pool, repair, schema
from stratagem.storage.postgres.batch_session import BatchSession
from stratagem.storage.postgres.connection import (
    NO_ROWS,
    Connection,
    Durability,
    PooledSession,
    PostgresCursor,
    PostgresSession,
    connect,
    translating_errors,
)
from stratagem.storage.postgres.listener import Listener
from stratagem.storage.postgres.reader import (
    FacetCache,
    make_queries,
    make_reader,
    make_snapshot_reader,
)
from stratagem.storage.postgres.salvage import salvage
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.postgres.writer import look_up_ahead, make_writer, remember_subjects
from stratagem.storage.relational.cache import NameCache, WriterCache
from stratagem.storage.relational.eraser import Erasure
from stratagem.storage.relational.group_commit import BatchRunner, Ticket
from stratagem.storage.relational.reader import SqlReader
from stratagem.storage.relational.store import Adapters, SqlStore
from stratagem.storage.relational.writer import SqlWriter
from stratagem.storage.rescue import Salvage

__all__ = ["PostgresStore"]

T = TypeVar("T")
# After so many events the store checks whether the vectors need an index.
_TENDED_EVENTS = 1_000
# A workspace as large as this is counted by the server, and again each time it has doubled.
_COUNTED_EVENTS = 64


class _HeadRow(NamedTuple):
    """The head of the log, and what else a writer needs to know about the workspace."""

    sequence: int
    at: int
    hash: bytes
    read_models: int
    unfinished_copy: str | None
    embedder: str | None
    has_projections: bool
    subject_last: int | None
    # The numbers of subjects that the first writers of a commit are about.
    subjects: PostgresCursor = NO_ROWS

    @property
    def head(self) -> Head:
        """The newest event."""
        return Head(self.sequence, self.at, self.hash)

    def tell(self, cache: WriterCache) -> None:
        """Fill a writer's cache with what nearly all writers ask for."""
        cache.settings["embedder"] = self.embedder
        cache.subject_last = self.subject_last or 0
        cache.subjects.clear()
        remember_subjects(cache, self.subjects)
        if not self.has_projections:
            cache.projections = []


class PostgresStore(SqlStore):
    """See `stratagem.storage.contract.Store`."""

    remote = True
    _batch_max = limits.SERVER_GROUP_MAX

    def __init__(
        self,
        address: str,
        *,
        workspace: str = "default",
        kinds: Kinds,
        indexer: Indexer | None,
        adapters: Adapters,
        durability: Durability = "full",
        read_only: bool = False,
        server_clock: bool = False,
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        copying: bool = False,
    ) -> None:
        super().__init__(
            display_place(f"{address}#{workspace}"),
            kinds=kinds,
            indexer=indexer,
            adapters=adapters,
            read_only=read_only,
            lock_wait_seconds=lock_wait_seconds,
            copying=copying,
        )
        self.workspace = check_text(
            workspace, field="workspace", chars_max=limits.WORKSPACE_NAME_CHARS_MAX
        )
        self._address = address
        self._durability: Durability = durability
        self._server_clock = server_clock
        # How far the server's clock is ahead of this machine's, in microseconds.
        self._ahead = 0
        opening = partial(
            connect,
            address,
            durability=durability,
            read_only=read_only,
            lock_wait_seconds=lock_wait_seconds,
        )
        alike = (address, durability, read_only, lock_wait_seconds)
        self._pool, self._leave_pool = pool.join(("reading", *alike), opening)
        # Apart, so that neither waits for the other, and each prepares its own statements.
        self._writer_pool, self._leave_writer_pool = pool.join(("writing", *alike), opening)
        self._writer: Connection | None = None
        # Where the last commit left the log, and what it knew.
        self._last_commit: tuple[Head, WriterCache] | None = None
        self._facets: FacetCache = {}
        try:
            with translating_errors(self.location):
                connection = self._writing_connection()
                self.number = schema.enter(connection, self)
                schema.begin(self, connection)
            self._return_writer()
        except BaseException:
            self.close()
            raise
        session = PooledSession(self._pool, self.number, self.location)
        self._reader = make_reader(session, self.kinds, self._cache)
        self._register()

    def now(self) -> int:
        return self._adapters.clock() + self._ahead

    def reader(self) -> Reader:
        return self._own_reader()

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        if (held := getattr(self._local, "reader", None)) is not None:
            yield held
            return
        with translating_errors(self.location), self._snapshot_connection() as connection:
            session = self.session(connection)
            reader = make_snapshot_reader(session, self.kinds, self._cache, self._facets)
            self._local.reader = reader
            try:
                yield reader
            finally:
                self._local.reader = None
                self._pool.end_reading(connection)

    def log(self, after: int = 0) -> Iterator[Event]:
        yield from self._own_reader().log.events(after)

    def index_backlog(self, wait_seconds: float) -> None:
        """Nothing: texts are indexed in the commit that stores them."""

    def rebuild(self, progress: Progress) -> None:
        self._exclusively(lambda session: maintenance.replay_all(session, self, progress))
        self._cache.branches.clear()

    def repair(self, progress: Progress) -> None:
        repair.mend_tables(self, progress)
        self._exclusively(repair.forget_altered_results)
        self.rebuild(progress)
        repair.mend_vector_index(self)

    def examine(self, progress: Progress, expect: tuple[int, str] | None) -> list[Finding]:
        return examination.examine(self, progress, expect)

    def _erase(self, request: WriteRequest, wanted: Erasure) -> Erased:
        erased = self._exclusively(
            lambda session: maintenance.purge(session, self, request, wanted)
        )
        if erased.events:
            self._vacuum()
        return erased

    def salvage(self, progress: Progress) -> AbstractContextManager[Salvage]:
        """Give what can be read of the workspace's log, however damaged it is."""
        return salvage(self._address, self.workspace, progress)

    def index_vectors(self, *, at_least: int = limits.SERVER_EXACT_VECTORS_MAX) -> bool:
        """Give a workspace with many vectors an index; see `maintenance.index_vectors`."""
        return maintenance.index_vectors(self, at_least=at_least)

    def size(self) -> int | None:
        with translating_errors(self.location), self.connect() as connection:
            return make_queries(self.session(connection)).number("database_size")

    def flush(self) -> None:
        # A commit is on the server's disk when it is acknowledged, or soon after where the
        # durability is "fast"; one that waits for the disk comes after all of these.
        with translating_errors(self.location), self.connect() as connection:
            connection.execute("SET synchronous_commit TO on")
            connection.execute(SQL["empty_commit"].encode())

    def compact(self) -> bool:
        self._refuse_read_only()
        self._vacuum()
        return True

    def discard(self) -> None:
        # Other servers that have the workspace open find nothing to lock, and refuse to write.
        self._exclusively(maintenance.remove)
        self.close()

    def follow(self, heard: Callable[[int], None]) -> Callable[[], None]:
        listener = Listener(
            self.connect,
            lambda connection: self._head(connection).sequence,
            self.number,
            heard,
        )
        self._followers.append(listener)
        return listener.close

    def session(self, connection: Connection) -> PostgresSession:
        """Return a connection as the shared code uses it."""
        return PostgresSession(connection, self.number)

    def reader_over(self, session: PostgresSession) -> SqlReader:
        """Return a reader that knows no names yet: a transaction may be undone."""
        return make_reader(session, self.kinds, NameCache())

    def writer(self, session: PostgresSession, cache: WriterCache | None = None) -> SqlWriter:
        """Return the parts that write, over a session that has begun a transaction."""
        return make_writer(
            session,
            self.kinds,
            cache or WriterCache(),
            adapters=Adapters(self.now, self._adapters.entropy),
            indexer=self.indexer,
        )

    def connect(self, *, examining: bool = False) -> Connection:
        """Open one more connection, which the caller closes."""
        self._refuse_unusable()
        return connect(
            self._address,
            durability=self._durability,
            read_only=self.read_only and not examining,
            lock_wait_seconds=self._lock_wait_seconds,
        )

    @contextmanager
    def writing(self, connection: Connection) -> Iterator[None]:
        """Hold the workspace's head for the length of a transaction."""
        try:
            self._begin(connection)
        except BaseException:
            _undo(connection)
            raise
        with self._committing(connection):
            yield

    @contextmanager
    def _committing(self, connection: Connection) -> Iterator[Connection]:
        """Commit what was done on a connection that holds the head, or undo it."""
        try:
            yield connection
            self.session(connection).execute(SQL["tell"], (self._head(connection).sequence,))
            connection.execute("COMMIT", prepare=False)
        except BaseException:
            _undo(connection)
            raise

    def _release(self) -> None:
        self._return_writer()
        self._leave_writer_pool()
        self._leave_pool()

    def _abandon(self) -> Iterable[object]:
        connection, self._writer = self._writer, None
        return [connection]

    def _own_reader(self) -> SqlReader:
        self._refuse_unusable()
        return getattr(self._local, "reader", None) or self._reader

    @contextmanager
    def _snapshot_connection(self) -> Iterator[Connection]:
        """Give a connection from the pool that has begun a snapshot."""
        self._refuse_unusable()
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._pool.connection() as connection:
            try:
                connection.execute(begin, prepare=False)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
            else:
                yield connection
                return
        self._pool.drop_idle()
        with self._pool.connection() as connection:
            connection.execute(begin, prepare=False)
            yield connection

    def _writing_connection(self) -> Connection:
        """Return the connection that this process writes with, opened anew where it broke."""
        self._refuse_unusable()
        if self._writer is not None and self._writer.closed:
            self._return_writer()
            # The server was restarted: the idle ones are as dead as this one is.
            self._writer_pool.drop_idle()
        if self._writer is None:
            self._writer = self._writer_pool.take()
        return self._writer

    def _return_writer(self) -> None:
        """Let others write with the connection that this store wrote with."""
        if self._writer is not None:
            connection, self._writer = self._writer, None
            self._writer_pool.give(connection)

    def _begin(
        self, connection: Connection, subjects: Collection[tuple[Space, str]] = ()
    ) -> _HeadRow | None:
        """Begin a transaction, wait for this workspace's turn to write, and read the log's end.

        In a pipeline all of this is one round trip: a statement sees what was committed before it
        began, and those after the lock begin when it is held.
        """
        session = self.session(connection)
        session.execute("BEGIN")
        lock = session.execute(SQL["lock_head"])
        head = session.execute(SQL["head_to_write_after"])
        numbers = look_up_ahead(session, subjects)
        row = lock.fetchone()
        if row is None:
            raise StorageUnavailable(
                "The workspace was removed while it was open.",
                hint="Open it again.",
                path=self.location,
            )
        if self._server_clock:
            # Servers on several machines then agree on the time.
            self._ahead = row[0] - self._adapters.clock()
        found = head.fetchone()
        return None if found is None else _HeadRow(*found)._replace(subjects=numbers)

    def _head(self, connection: Connection) -> Head:
        return self.reader_over(self.session(connection)).log.head()

    def _head_to_write_after(self, row: _HeadRow) -> Head:
        """Return the head, once this workspace is held, if it can be written after.

        Raises:
            DatabaseTooNew: A newer server made the read models anew while this one was running.
            CopyUnfinished: Something is being copied into it.
        """
        schema.check_read_models(self, row.read_models)
        if not self.copying:
            refuse_unfinished(row.unfinished_copy, self.location)
        return row.head

    def _exclusively(self, work: Callable[[PostgresSession], T]) -> T:
        """Run work in a transaction with every other writer of the workspace kept out."""
        self._refuse_read_only()
        with self._writers.leading, translating_errors(self.location):
            self._last_commit = None
            try:
                connection, row = self._begin_writing()
                with self._committing(connection):
                    session = self.session(connection)
                    self._head_to_write_after(row)
                    return work(session)
            finally:
                self._return_writer()

    def _commit(self, batch: list[Ticket]) -> None:
        last, self._last_commit = self._last_commit, None
        known, cache = last or (None, WriterCache())
        try:
            with translating_errors(self.location):
                ended = self._run(batch, cache, known)
                if ended is not None:
                    self._confirm_commit(*ended)
        finally:
            self._return_writer()
        self._settle(batch, cache)

    def _run(
        self, batch: list[Ticket], cache: WriterCache, known: Head | None
    ) -> tuple[Head | None, psycopg.Error] | None:
        """Run a batch and commit it.

        `cache` was filled when the log ended at the head `known`: while it still ends there, nobody
        has appended, and the cache is valid. If the answer to COMMIT was lost, return the new head,
        if there is one, and the error.
        """
        pipeline = ExitStack()
        admitted = len(batch)
        connection, row = self._begin_writing(pipeline, _subjects(batch))
        session = BatchSession(connection, self.number)
        # The new head once COMMIT was sent; None where nothing was appended.
        sent, head = False, None
        try:
            with pipeline:
                before = self._head_to_write_after(row)
                if before == known:
                    cache.forget_unlogged()
                else:
                    cache.clear()
                row.tell(cache)
                writer = self.writer(session, cache)
                running = BatchRunner(writer, (psycopg.Error,), self._clock_watch)
                after = running.run(batch, before, self._admission(session, cache, admitted))
                session.flush()
                if after.sequence > before.sequence:
                    session.execute(SQL["tell"], (after.sequence,))
                    head = after
                sent = True
                session.execute("COMMIT")
            self._last_commit = after, cache
            self._maintain_if_grown(before.sequence, after.sequence)
        except psycopg.Error as error:
            _undo(connection)
            if sent and connection.closed:
                return head, error
            raise
        except BaseException:
            _undo(connection)
            raise
        return None

    def _admission(
        self, session: PostgresSession, cache: WriterCache, looked_up: int
    ) -> Callable[[list[Ticket]], None]:
        """Return what admits writers to a batch, and looks up for all what they will ask for.

        That was done already for the first `looked_up`.
        """

        def admit(batch: list[Ticket]) -> None:
            nonlocal looked_up
            self._writers.admit(batch)
            late, looked_up = batch[looked_up:], len(batch)
            remember_subjects(cache, look_up_ahead(session, _subjects(late)))

        return admit

    def _begin_writing(
        self, pipeline: ExitStack | None = None, subjects: Collection[tuple[Space, str]] = ()
    ) -> tuple[Connection, _HeadRow]:
        """Return the writer's connection, with a transaction begun and the head locked.

        `pipeline`, where given, ends the pipeline that all statements are sent in. `subjects` are
        those that will be written.
        """
        for again in (True, False):
            connection = self._writing_connection()
            try:
                with ExitStack() as begun:
                    if pipeline is not None:
                        begun.enter_context(connection.pipeline())
                    row = self._begin(connection, subjects)
                    assert row is not None, "a workspace has a first event before it has a second"
                    if pipeline is not None:
                        pipeline.push(begun.pop_all())
                    return connection, row
            except psycopg.OperationalError:
                _undo(connection)
                # Nothing was done yet, so it is safe to try again after a restart of the server.
                if not (again and connection.closed):
                    raise
        raise AssertionError("the second try returns or raises")

    def _confirm_commit(self, head: Head | None, lost: psycopg.Error) -> None:
        """Find out whether a commit whose answer was lost has happened.

        Raises:
            StorageUnavailable: It has not, or it cannot be found out.
        """
        try:
            if head is None:
                # No event: vectors, a lease, a result. It may all be written again.
                raise lost
            connection, _ = self._begin_writing()
            found = self.reader_over(self.session(connection)).log.hash_of(head.sequence)
            connection.rollback()
        except (psycopg.Error, StratagemError) as error:
            raise StorageUnavailable(
                "The connection broke during a commit: it is not known whether the write "
                "succeeded.",
                hint="Send it again with the same request id: then it is written only once.",
                path=self.location,
            ) from error
        if found != head.hash:
            raise StorageUnavailable(
                "The connection broke before a commit: nothing was written.",
                hint="Try again.",
                path=self.location,
            ) from lost

    def _maintain_if_grown(self, before: int, after: int) -> None:
        """Run occasional maintenance in the background that keeps a growing workspace fast."""
        doubled = before.bit_length() < after.bit_length() and after >= _COUNTED_EVENTS
        grown = before // _TENDED_EVENTS < after // _TENDED_EVENTS
        if not (doubled or grown) or self._unusable:
            return

        def look() -> None:
            # An error is no reason to report anything: it is tried again later.
            with suppress(StratagemError, psycopg.Error):
                if doubled:
                    maintenance.count_rows(self)
                if grown:
                    self.index_vectors()

        # What was committed is acknowledged, even where no thread can be started.
        with suppress(RuntimeError):
            threading.Thread(target=look, name="stratagem-tending", daemon=True).start()

    def _vacuum(self) -> None:
        """Remove what was erased from the pages of the tables, as far as can be done online."""
        with (
            suppress(StratagemError),
            translating_errors(self.location),
            self.connect() as connection,
        ):
            for table in ("events", "subjects", "requests", "vectors", *maintenance.READ_MODELS):
                connection.execute(f"VACUUM {table}".encode())


def _subjects(batch: Iterable[Ticket]) -> set[tuple[Space, str]]:
    """Return what some writers are expected to write."""
    return {subject for ticket in batch for subject in ticket.request.subjects}


def _undo(connection: Connection) -> None:
    """Undo what was begun on a connection; where that is not possible, close it."""
    # Not by a statement of our own: the driver then forgets what it had the server prepare. What
    # it sent behind a statement that failed was never prepared.
    with suppress(psycopg.Error):
        connection.rollback()
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()
