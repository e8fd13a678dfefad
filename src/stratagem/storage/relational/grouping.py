"""Group commit: writers that wait at the same time share one transaction.

Writers of one process queue up; whoever is first in line becomes the leader, runs the work of
everybody waiting in one transaction and commits once for all of them. Each piece of work stands
behind a savepoint, so that one failing does not undo the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import orjson

from stratagem import limits
from stratagem.engine.events import Head
from stratagem.errors import StorageUnavailable
from stratagem.storage.contract import Request, Transaction
from stratagem.storage.relational.reading import Names
from stratagem.storage.relational.receiving import SqlReceiving
from stratagem.storage.relational.sessions import Session

__all__ = ["Group", "Ticket", "Writers"]

T = TypeVar("T")


class Ticket:
    """One piece of work in the writers' queue, and what became of it."""

    def __init__(self, work: Callable[[Transaction], Any], request: Request) -> None:
        self.work = work
        self.request = request
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        # Shut until the work is done, or its writer is to lead.
        self._gate = threading.Lock()
        self._gate.acquire()

    def settle(self, error: BaseException) -> None:
        """Note that the work failed."""
        self.error = error
        self.done = True

    def wait(self) -> None:
        """Wait to be woken."""
        self._gate.acquire()

    def wake(self) -> None:
        """Let the writer go on: its work is done, or it is to lead."""
        self._gate.release()


class Writers:
    """The queue of one process's writers. `commit` runs and commits a batch of their work.

    Whoever finds nobody leading leads; the others sleep until their work is done or they are
    next to lead. None of them has to queue again only to hear that it is done: behind those, a
    leader would find but a few that have come back with more.
    """

    def __init__(self, commit: Callable[[list[Ticket]], None], *, most: int | None = None) -> None:
        self._commit = commit
        self._most = min(limits.GROUP_COMMIT_MAX, most or limits.GROUP_COMMIT_MAX)
        self._queue: deque[Ticket] = deque()
        # For the queue and for who leads; never held while work is done.
        self._order = threading.Lock()
        self._leader: Ticket | None = None
        # Held while a batch is written, and by whoever wants the database for itself.
        self.leading = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for a commit that has not begun."""
        return len(self._queue)

    def write(self, work: Callable[[Transaction], T], request: Request) -> T:
        """Run work with that of whoever else is waiting; return once it is committed."""
        ticket = Ticket(work, request)
        try:
            if not self._enter(ticket):
                ticket.wait()
            if not ticket.done:
                self._lead()
        finally:
            self._leave(ticket)
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def _enter(self, ticket: Ticket) -> bool:
        """Queue up; return whether to lead."""
        with self._order:
            self._queue.append(ticket)
            if self._leader is None:
                self._leader = ticket
            return self._leader is ticket

    def _leave(self, ticket: Ticket) -> None:
        """Let the next in line lead, after a leader or one that was interrupted."""
        with self._order:
            if ticket in self._queue:
                self._queue.remove(ticket)
            if self._leader is ticket:
                self._leader = self._queue[0] if self._queue else None
                if self._leader is not None:
                    self._leader.wake()

    def _lead(self) -> None:
        """Run and commit the work of those in the queue, of which the leader is the first."""
        batch: list[Ticket] = []
        with self.leading:
            try:
                with self._order:
                    count = min(len(self._queue), self._most)
                    batch.extend(self._queue.popleft() for _ in range(count))
                self._commit(batch)
            except Exception as error:  # noqa: BLE001 -- each raises it in its own thread
                _settle(batch, error)
            except BaseException:
                # It ends the thread that leads; the others were not interrupted.
                _settle(batch, _interrupted())
                raise
            finally:
                for ticket in batch[1:]:
                    ticket.wake()


def _settle(batch: list[Ticket], error: Exception) -> None:
    """Tell everybody that is not done of an error, unless they have one of their own."""
    for ticket in batch:
        if not ticket.done:
            ticket.settle(ticket.error or error)


def _interrupted() -> StorageUnavailable:
    return StorageUnavailable(
        "The thread that wrote for several was interrupted: whether it was written is not known.",
        hint="Send it again with the same request id: it is then written once.",
    )


class Group:
    """A batch of work in one transaction that has begun.

    `faults` are the driver's errors: after one of them everybody's work may be undone.
    """

    def __init__(
        self,
        session: Session,
        names: Names,
        transaction: Callable[[Request, Head], SqlReceiving],
        faults: tuple[type[Exception], ...],
    ) -> None:
        self._session = session
        self._names = names
        self._transaction = transaction
        self._faults = faults

    def run(self, batch: list[Ticket], head: Head) -> Head:
        """Run the work of a batch, and return the new head."""
        for ticket in batch:
            head = self._run(ticket, head, alone=len(batch) == 1)
        return head

    def _run(self, ticket: Ticket, head: Head, *, alone: bool) -> Head:
        """Run one piece of work; undo it alone if it fails."""
        if not alone:
            self._session.execute("SAVEPOINT work")
        transaction = self._transaction(ticket.request, head)
        try:
            remembered = transaction.remembered()
            if remembered is None:
                ticket.result = ticket.work(transaction)
                transaction.finish(ticket.result)
            else:
                ticket.result = orjson.loads(remembered)
        except self._faults:
            # The database itself failed: it may have undone everybody's work.
            raise
        except Exception as error:
            if alone:
                raise
            ticket.error = error
            self._names.forget()
            self._session.execute("ROLLBACK TO work")
            self._session.execute("RELEASE work")
            return head
        if not alone:
            self._session.execute("RELEASE work")
        return transaction.head()
