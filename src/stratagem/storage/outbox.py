"""What every store must do for read models that are kept elsewhere.

A projection is registered in the database by its name and by the kinds of record that it wants.
From then on every event about such a record on the branch `default`, whichever process appends
it, gets a row in the outbox in the transaction of the event itself; nothing has to be sent before
the transaction ends, and nothing can be lost after it. The worker that delivers holds the lease of
the projection, sends the present state of a record, and removes all rows of the record in one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "OutboxCount",
    "OutboxReader",
    "OutboxWriter",
    "Parcel",
    "Postponed",
    "Registration",
    "Undelivered",
]


class Registration(NamedTuple):
    """A projection as the database knows it.

    `built` identifies the code that last built it from the log; None until it was built once.
    `processed` counts the rows that were delivered.
    """

    name: str
    kinds: tuple[str, ...]
    built: str | None
    processed: int
    lease_owner: str | None
    lease_until: int


class Parcel(NamedTuple):
    """A record whose events wait to be delivered: the oldest of them, the newest, the attempts.

    The attempts are those of the newest event, because it may correct the record.
    """

    subject: int
    first: int
    last: int
    attempts: int


class Undelivered(NamedTuple):
    """A row of the outbox, as it is shown."""

    projection: str
    sequence: int
    subject: int
    status: str
    attempts: int
    next_at: int
    error: str | None


class Postponed(NamedTuple):
    """A record that could not be delivered, and when it is tried again; never where `failed`."""

    subject: int
    attempts: int
    next_at: int
    failed: bool
    error: str | None


class OutboxCount(NamedTuple):
    """How many rows of a projection wait, and how many were given up."""

    pending: int
    failed: int


class OutboxReader(Protocol):
    """The part of a reader that sees projections and what waits for them."""

    def projections(self) -> list[Registration]:
        """Return the registered projections, by name."""
        ...

    def due(self, name: str, *, now: int, limit: int) -> list[Parcel]:
        """Return records with a pending row whose time has come, those that wait longest first."""
        ...

    def oldest_rows(self, name: str, subjects: Sequence[int]) -> dict[int, int]:
        """Return which of some records have rows, failed ones too, and the oldest of each."""
        ...

    def is_behind(self, name: str) -> bool:
        """Return whether anything waits for a projection, or was given up."""
        ...

    def count(self, name: str) -> OutboxCount:
        """Return how many rows of a projection there are."""
        ...

    def rows(self, name: str, *, limit: int) -> list[Undelivered]:
        """Return rows of a projection: failed ones first, then the oldest."""
        ...


class OutboxWriter(OutboxReader, Protocol):
    """The part of a transaction that changes projections and what waits for them."""

    def register(self, name: str, kinds: Sequence[str]) -> None:
        """Have every later event about some kinds of record put into the outbox; repeatable.

        Where a projection wants other kinds than before, it has to be built again.
        """
        ...

    def drop(self, name: str) -> None:
        """Forget a projection and all that waits for it."""
        ...

    def lease(self, name: str, owner: str, *, now: int, until: int) -> bool:
        """Take or keep a projection for one owner until a time; False where another has it."""
        ...

    def mark_delivered(self, name: str, subjects: Sequence[int], *, upto: int) -> int:
        """Take away the rows of records that were delivered as of a sequence; say how many."""
        ...

    def postpone(self, name: str, records: Sequence[Postponed], *, upto: int) -> None:
        """Put off the rows of records, up to a sequence, or give them up."""
        ...

    def requeue(self, name: str, records: Mapping[int, int]) -> None:
        """Put records back, each with the sequence of its newest event; what waits is left."""
        ...

    def retry_all(self, name: str) -> int:
        """Make every row of a projection due at once, failed ones too; say how many failed."""
        ...

    def set_built(self, name: str, built: str | None, *, upto: int = 0) -> None:
        """Record which code built a projection, and that it includes rows up to a sequence."""
        ...
