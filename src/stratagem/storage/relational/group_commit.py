"""Group commit: writers that wait at the same time share one transaction.

A durable commit waits for the disk, so committing once for many costs about as much as committing
once for one. Writers of one process queue up; the first in line becomes the leader, runs the work
of everybody waiting in one transaction and commits once for all of them. Each piece of work runs
behind a savepoint, so that one failing does not undo the rest.

Invariants:

* There is at most one leader at a time: whoever holds `leading`. It runs in the thread of its own
  ticket's writer: no thread is started.
* A writer returns only after its work is committed or has failed. Its gate is opened when its
  ticket is done, or when it is to lead.
* A leader that ends, even by an exception, appoints the next in line. An interrupt (Ctrl-C) may
  come just before it does: so who has waited for long leads where nobody does.
* An error of the database itself fails the whole batch, because it may have undone all of it; an
  error of one piece of work fails that one alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from stratagem import limits
from stratagem.deferred_modules import defer
from stratagem.engine.events import Head
from stratagem.errors import StorageUnavailable
from stratagem.storage.clock_watch import ClockWatch
from stratagem.storage.collection_pause import CollectionPause
from stratagem.storage.contract import Transaction, WriteCounters, WriteRequest

if TYPE_CHECKING:
    from stratagem.storage.relational import transaction as writing
    from stratagem.storage.relational.writer import SqlWriter
else:
    # Imported by need: a process that only reads does without it.
    writing = defer("stratagem.storage.relational.transaction")

__all__ = ["RELEASE", "ROLLBACK_TO", "SAVEPOINT", "BatchRunner", "Ticket", "WriterQueue"]

# How a piece of work among several is begun, undone and ended.
SAVEPOINT: Final = "SAVEPOINT work"
ROLLBACK_TO: Final = "ROLLBACK TO work"
RELEASE: Final = "RELEASE work"

# Who has waited for so long looks whether anybody leads at all.
_PATIENCE_SECONDS: Final = 1.0

T = TypeVar("T")


class Ticket:
    """One piece of work in the writers' queue, and its result."""

    __slots__ = ("_gate", "done", "error", "request", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any], request: WriteRequest) -> None:
        self.work = work
        self.request = request
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        # Most writers lead at once, and need none.
        self._gate: threading.Lock | None = None

    def fail(self, error: BaseException) -> None:
        """Note that the work failed."""
        self.error = error
        self.done = True

    def shut_gate(self) -> None:
        """Have the writer wait until its work is done, or it is to lead."""
        self._gate = threading.Lock()
        self._gate.acquire()

    def wait(self) -> bool:
        """Wait to be woken, for a while at most; return whether that came."""
        assert self._gate is not None, "who waits has shut the gate"
        return self._gate.acquire(timeout=_PATIENCE_SECONDS)

    def wake(self) -> None:
        """Let the writer go on, if it waits: its work is done, or it is to lead."""
        if self._gate is not None and self._gate.locked():
            self._gate.release()


class WriterQueue:
    """The queue of one process's writers. `commit` runs and commits a batch of their work.

    A writer that finds no leader leads; the others sleep until their work is done or they are
    next to lead. Each sleeps at a gate of its own. At one lock for all, those whose work is done
    would queue up again only to learn it, and the next leader would meet them there instead of
    writers that return with more work, so batches would stay small.
    """

    def __init__(
        self, commit: Callable[[list[Ticket]], None], *, batch_max: int | None = None
    ) -> None:
        self._commit = commit
        self._batch_max = min(limits.GROUP_COMMIT_MAX, batch_max or limits.GROUP_COMMIT_MAX)
        self._queue: deque[Ticket] = deque()
        # For the queue and for who leads; never held while work is done.
        self._order = threading.Lock()
        self._leader: Ticket | None = None
        # Held while a batch is written, and for work that needs the database to itself.
        self.leading = threading.Lock()
        self._counted = (0, 0, 0)

    @property
    def counters(self) -> WriteCounters:
        """What was written so far."""
        return WriteCounters(*self._counted)

    @property
    def waiting(self) -> int:
        """How many wait for a commit that has not begun."""
        return len(self._queue)

    def write(self, work: Callable[[Transaction], T], request: WriteRequest) -> T:
        """Run work together with that of other waiting writers; return once it is committed."""
        ticket = Ticket(work, request)
        try:
            if not self._enter(ticket):
                while not (ticket.wait() or ticket.done) and self.leading.locked():
                    pass
            if not ticket.done:
                self._lead(ticket)
        finally:
            self._leave(ticket)
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def _enter(self, ticket: Ticket) -> bool:
        """Queue up; return whether to lead."""
        with self._order:
            leads = self._leader is None
            if leads:
                self._leader = ticket
            else:
                # Before anybody can find it in the queue, and wake its writer.
                ticket.shut_gate()
            self._queue.append(ticket)
            return leads

    def _leave(self, ticket: Ticket) -> None:
        """Let the next in line lead, after a leader or one that was interrupted."""
        with self._order:
            if ticket in self._queue:
                self._queue.remove(ticket)
            if self._leader is ticket:
                self._leader = self._queue[0] if self._queue else None
                if self._leader is not None:
                    self._leader.wake()

    def _lead(self, leader: Ticket) -> None:
        """Run and commit the work of those in the queue, until that of the leader is done."""
        with self.leading:
            while not leader.done:
                if self._leader is not leader:
                    with self._order:
                        self._leader = leader
                self._commit_waiting(leader)

    def _commit_waiting(self, leader: Ticket) -> None:
        """Run and commit the work of those in the queue."""
        batch: list[Ticket] = []
        try:
            self.admit(batch)
            if batch:
                self._commit(batch)
            else:
                # A leader that was interrupted had taken it out of the queue.
                leader.fail(_interruption())
        except Exception as error:  # noqa: BLE001 -- each raises it in its own thread
            _fail_pending(batch, error)
        except BaseException:
            # It ends the thread that leads; the others were not interrupted.
            _fail_pending(batch, _interruption())
            raise
        finally:
            self._count(batch)
            if len(batch) > 1:
                with self._order:
                    for ticket in batch:
                        ticket.wake()

    def admit(self, batch: list[Ticket]) -> None:
        """Add those that wait to a batch, as far as there is room in it.

        A store whose transactions take a while to begin does it again once one has begun.
        """
        with self._order:
            while self._queue and len(batch) < self._batch_max:
                batch.append(self._queue.popleft())

    def _count(self, batch: list[Ticket]) -> None:
        """Count a batch; whoever leads is alone."""
        failed = 0
        for ticket in batch:
            failed += ticket.error is not None
        writes, commits, failures = self._counted
        done = len(batch) - failed
        self._counted = (writes + done, commits + (done > 0), failures + failed)


def _fail_pending(batch: list[Ticket], error: Exception) -> None:
    """Fail every ticket that is not done, with its own error where it has one."""
    for ticket in batch:
        if not ticket.done:
            ticket.fail(ticket.error or error)


def _interruption() -> StorageUnavailable:
    return StorageUnavailable(
        "The thread that wrote for several callers was interrupted: it is not known "
        "whether the write succeeded.",
        hint="Send it again with the same request id: then it is written only once.",
    )


def _admit_nobody(_batch: list[Ticket]) -> None:
    pass


class BatchRunner:
    """Runs batches of work by one writer, each in a transaction that has begun.

    `faults` are the driver's errors: after one of them everybody's work may be undone.
    """

    __slots__ = ("_clock_watch", "_faults", "_transaction", "writer")

    def __init__(
        self, writer: SqlWriter, faults: tuple[type[Exception], ...], clock_watch: ClockWatch
    ) -> None:
        self.writer = writer
        self._faults = faults
        self._clock_watch = clock_watch
        self._transaction = writing.SqlTransaction(writer)

    def run(
        self,
        batch: list[Ticket],
        head: Head,
        admit: Callable[[list[Ticket]], object] | None = None,
    ) -> Head:
        """Run the work of a batch, and return the new head.

        `admit` adds those that have queued up meanwhile to the batch: they are run, too.
        """
        with CollectionPause():
            if admit is None and len(batch) == 1:
                return self._run(batch[0], head)
            return self._run_batch(batch, head, admit or _admit_nobody)

    def _run_batch(
        self, batch: list[Ticket], head: Head, admit: Callable[[list[Ticket]], object]
    ) -> Head:
        admit(batch)
        ended = 0
        if len(batch) == 1:
            # Rolling back the whole transaction undoes a single piece of work.
            head = self._run(batch[0], head)
            ended = 1
            admit(batch)
        while ended < len(batch):
            for ticket in batch[ended:]:
                head = self._run_apart(ticket, head)
                ended += 1
            admit(batch)
        return head

    def _run(self, ticket: Ticket, head: Head) -> Head:
        """Run one piece of work, or find the result of the same request."""
        transaction = self._transaction.begin(ticket.request, head)
        self._clock_watch.look(head, transaction.wall, transaction.log)
        earlier = transaction.earlier_result() if ticket.request.id is not None else None
        if earlier is None:
            ticket.result = ticket.work(transaction)
            transaction.finish(ticket.result)
        else:
            ticket.result = orjson.loads(earlier)
        return transaction.log.head()

    def _run_apart(self, ticket: Ticket, head: Head) -> Head:
        """Run one piece of work of several; undo it alone if it fails."""
        session = self.writer.queries.session
        session.execute(SAVEPOINT)
        try:
            head = self._run(ticket, head)
        except self._faults:
            # The database itself failed: it may have undone everybody's work.
            raise
        except Exception as error:  # noqa: BLE001 -- its own writer raises it
            ticket.error = error
            # It may hold numbers and names that are being undone.
            self.writer.cache.clear()
            session.execute(ROLLBACK_TO)
        session.execute(RELEASE)
        return head
