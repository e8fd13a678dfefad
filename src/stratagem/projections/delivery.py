"""Delivering the outbox to one read model.

One round takes the records that wait longest, reads their present state, sends them, and removes
all their rows in one transaction. If anything fails in between, the rows are still there and the
records are sent again: delivery is at least once and idempotent.

A refused record is retried alone, after growing delays, and given up in the end; the others of its
batch are delivered. A record that links others waits for them. If the service does not answer, no
attempt is counted, and everything waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ServiceUnavailable, StratagemError
from stratagem.projections import items
from stratagem.projections.backoff import delay
from stratagem.projections.contract import ReadModel, RecordState
from stratagem.projections.leases import ACTOR, Lease, LeaseLost
from stratagem.storage.contract import Store, Transaction
from stratagem.storage.outbox import Parcel, Postponed

__all__ = ["Delivery", "apply_each"]

_MICROSECONDS: Final = 1_000_000


class _Batch(NamedTuple):
    """Records to send, as they are at `head`; and those that wait for others."""

    head: int
    parcels: dict[int, Parcel]
    items: list[RecordState]
    # By record: those it links, as far as they wait themselves.
    blockers: dict[int, set[int]]


class Delivery:
    """Delivers to one read model, in one process."""

    def __init__(
        self, store: Store, model: ReadModel, lease: Lease, draw: Callable[[], float]
    ) -> None:
        self._store = store
        self._model = model
        self._lease = lease
        self._draw = draw
        self._leased = False

    def round(self) -> int:
        """Deliver one batch; return how many records were looked at.

        Raises:
            ServiceUnavailable: The read model does not answer. Everything waits.
        """
        if not self._due():
            self.rest()
            return 0
        self._leased = self._lease.take()
        if not self._leased:
            return 0
        batch = self._batch()
        try:
            refused, blocked = self._send(batch)
            self._close(batch, refused, blocked)
        except LeaseLost:
            self._leased = False
            return 0
        return len(batch.items)

    def rest(self) -> None:
        """Let another process deliver, where this one holds the lease."""
        if self._leased:
            self._leased = False
            self._lease.give_back()

    def _due(self) -> list[Parcel]:
        return self._store.reader().outbox.due(
            self._model.name, now=self._store.now(), limit=limits.OUTBOX_BATCH
        )

    def _batch(self) -> _Batch:
        with self._store.snapshot() as reader:
            parcels = reader.outbox.due(
                self._model.name, now=self._store.now(), limit=limits.OUTBOX_BATCH
            )
            wanted = {each.subject: each.last for each in parcels}
            read = items.read(reader, wanted, self._model.companion)
            ends = items.ends(reader.records, read)
            linked = sorted({end for pair in ends.values() for end in pair})
            waiting = reader.outbox.oldest_rows(self._model.name, linked)
            blockers = {
                item.subject: {
                    end
                    for end in ends[item.subject]
                    if waiting.get(end, item.sequence) < item.sequence
                }
                for item in read
                if item.subject in ends
            }
            head = reader.log.head().sequence
        return _Batch(head, {each.subject: each for each in parcels}, read, blockers)

    def _send(self, batch: _Batch) -> tuple[dict[int, StratagemError], set[int]]:
        """Send a batch; return what was refused, and what waits for something else."""
        refused: dict[int, StratagemError] = {}
        blocked: set[int] = set()
        delivered: set[int] = set()
        for kind in self._model.kinds:
            ready = []
            for item in batch.items:
                if item.kind == kind:
                    if batch.blockers.get(item.subject, set()) - delivered:
                        blocked.add(item.subject)
                    else:
                        ready.append(item)
            refused |= apply_each(self._model, ready)
            delivered |= {item.subject for item in ready} - refused.keys()
        return refused, blocked

    def _close(self, batch: _Batch, refused: dict[int, StratagemError], blocked: set[int]) -> None:
        """Take delivered rows away and put the others off, if this process may still do so."""
        now = self._store.now()
        delivered = [
            item.subject
            for item in batch.items
            if item.subject not in refused and item.subject not in blocked
        ]
        later = now + round(limits.OUTBOX_BLOCKED_SECONDS * _MICROSECONDS)
        put_off = [
            self._postpone(batch.parcels[subject], error, now) for subject, error in refused.items()
        ] + [
            Postponed(subject, batch.parcels[subject].attempts, later, failed=False, error=None)
            for subject in sorted(blocked)
        ]

        def work(transaction: Transaction) -> None:
            self._lease.insist(transaction)
            transaction.outbox.mark_delivered(self._model.name, delivered, upto=batch.head)
            transaction.outbox.postpone(self._model.name, put_off, upto=batch.head)

        self._store.write(work, ACTOR)

    def _postpone(self, parcel: Parcel, error: StratagemError, now: int) -> Postponed:
        attempts = parcel.attempts + 1
        return Postponed(
            parcel.subject,
            attempts,
            now + delay(attempts, self._draw),
            failed=attempts >= limits.OUTBOX_ATTEMPTS_MAX,
            error=f"{error.code}: {error.message}"[: limits.OUTBOX_ERROR_CHARS],
        )


def apply_each(model: ReadModel, ready: Sequence[RecordState]) -> dict[int, StratagemError]:
    """Send items together; where they are refused, find out which of them it is.

    Raises:
        ServiceUnavailable: The read model does not answer.
    """
    if not ready:
        return {}
    try:
        model.apply(ready)
    except ServiceUnavailable:
        raise
    except StratagemError as error:
        if len(ready) == 1:
            return {ready[0].subject: error}
        half = len(ready) // 2
        return apply_each(model, ready[:half]) | apply_each(model, ready[half:])
    return {}
