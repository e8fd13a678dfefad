"""The outbox, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from stratagem import limits
from stratagem.storage.outbox import OutboxCount, Parcel, Postponed, Registration, Undelivered
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.session import NUMBER, Queries, Shape

__all__ = ["SqlOutbox", "SqlOutboxWriter"]

_PROJECTION_ROW = Shape[tuple[str, str, str | None, int, str | None, int]]()
_TWO_NUMBERS = Shape[tuple[int, int]]()
_STATUS_COUNT = Shape[tuple[str, int]]()
_OUTBOX_ROW = Shape[tuple[int, int, str, int, int, str | None]]()
_NAME = Shape[tuple[str]]()

_PENDING: Final = "pending"
_FAILED: Final = "failed"
# Twice as long as any delay or lease, because the clocks of several machines differ a little. A
# time farther ahead was written by a wrong clock, and would block delivery until then.
_DELAY_MAX: Final = round(3 * limits.OUTBOX_DELAY_SECONDS_MAX * 1_000_000)
_LEASE_MAX: Final = round(2 * limits.OUTBOX_LEASE_SECONDS * 1_000_000)


class SqlOutbox:
    """See `stratagem.storage.outbox.OutboxReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def projections(self) -> list[Registration]:
        rows = self._queries.rows(_PROJECTION_ROW, "projections")
        return [Registration(row[0], tuple(orjson.loads(row[1])), *row[2:]) for row in rows]

    def due(self, name: str, *, now: int, limit: int) -> list[Parcel]:
        return self._queries.rows_as(Parcel, "outbox_due", name, now, limit, now + _DELAY_MAX)

    def oldest_rows(self, name: str, subjects: Sequence[int]) -> dict[int, int]:
        array = self._queries.array(subjects)
        return dict(self._queries.rows(_TWO_NUMBERS, "outbox_waiting", name, array))

    def is_behind(self, name: str) -> bool:
        return self._queries.row(NUMBER, "outbox_any", name) is not None

    def count(self, name: str) -> OutboxCount:
        counts = dict(self._queries.rows(_STATUS_COUNT, "outbox_tally", name))
        return OutboxCount(counts.get(_PENDING, 0), counts.get(_FAILED, 0))

    def rows(self, name: str, *, limit: int) -> list[Undelivered]:
        rows = self._queries.rows(_OUTBOX_ROW, "outbox_rows", name, limit)
        return [Undelivered(name, *row) for row in rows]


class SqlOutboxWriter(SqlOutbox):
    """See `stratagem.storage.outbox.OutboxWriter`."""

    __slots__ = ("_cache",)

    def __init__(self, queries: Queries, cache: WriterCache) -> None:
        super().__init__(queries)
        self._cache = cache

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._cache.projections = None
        self._queries.run("register_projection", name, orjson.dumps(list(kinds)).decode())

    def drop(self, name: str) -> None:
        self._cache.projections = None
        self._queries.run("delete_outbox", name)
        self._queries.run("delete_projection", name)

    def lease(self, name: str, owner: str, *, now: int, until: int) -> bool:
        leased = self._queries.row(
            _NAME, "lease_projection", name, owner, now, until, now + _LEASE_MAX
        )
        return leased is not None

    def mark_delivered(self, name: str, subjects: Sequence[int], *, upto: int) -> int:
        array = self._queries.array(subjects)
        return self._count_delivered(
            name, self._queries.rows(NUMBER, "settle_outbox", name, upto, array)
        )

    def postpone(self, name: str, records: Sequence[Postponed], *, upto: int) -> None:
        rows = [
            (record.attempts, record.next_at, _FAILED if record.failed else _PENDING,
             record.error, name, record.subject, upto)
            for record in records
        ]  # fmt: skip
        self._queries.run_many("postpone_outbox", rows)

    def requeue(self, name: str, records: Mapping[int, int]) -> None:
        rows = [(name, sequence, subject) for subject, sequence in records.items()]
        self._queries.run_many("requeue_outbox", rows)

    def retry_all(self, name: str) -> int:
        failed = self.count(name).failed
        self._queries.run("retry_outbox", name)
        return failed

    def set_built(self, name: str, built: str | None, *, upto: int = 0) -> None:
        self._queries.run("set_built", name, built)
        self._count_delivered(name, self._queries.rows(NUMBER, "settle_outbox_all", name, upto))

    def has_readers(self) -> bool:
        """Whether anybody elsewhere wants to be told of changes."""
        known = self._cache.projections
        return bool(self._registrations() if known is None else known)

    def _registrations(self) -> list[Registration]:
        if self._cache.projections is None:
            # Once for all who commit together: no other can register one before they end.
            self._cache.projections = self.projections()
        return self._cache.projections

    def post(self, changes: Sequence[tuple[int, int, str]]) -> None:
        """Put changes of `default` (sequence, subject, kind of record) into the outbox."""
        rows = [
            (projection.name, sequence, subject)
            for projection in self._registrations()
            for sequence, subject, kind in changes
            if kind in projection.kinds
        ]
        if rows:
            self._queries.run_many("insert_outbox", rows)

    def _count_delivered(self, name: str, deleted: Sequence[tuple[int]]) -> int:
        if deleted:
            self._queries.run("count_processed", name, len(deleted))
        return len(deleted)
