"""The outbox, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.storage.outbox import Parcel, Postponed, Registration, Tally, Undelivered

__all__ = ["SqlOutbox", "SqlOutboxReader"]

_PENDING: Final = "pending"
_FAILED: Final = "failed"
# Twice as long as any wait or lease is: clocks of several machines differ a little. What lies
# farther ahead was written by a clock that was wrong, and would hold everything up until then.
_DELAY_MAX: Final = round(3 * limits.OUTBOX_DELAY_SECONDS_MAX * 1_000_000)
_LEASE_MAX: Final = round(2 * limits.OUTBOX_LEASE_SECONDS * 1_000_000)


class SqlOutboxReader:
    """See `stratagem.storage.outbox.OutboxReader`."""

    _execute: Any
    _sql: dict[str, str]
    _array: Any

    def projections(self) -> list[Registration]:
        return [
            Registration(name, tuple(orjson.loads(kinds)), *rest)
            for name, kinds, *rest in self._execute(self._sql["projections"])
        ]

    def outbox_due(self, name: str, *, now: int, limit: int) -> list[Parcel]:
        rows = self._execute(self._sql["outbox_due"], (name, now, limit, now + _DELAY_MAX))
        return [Parcel(*row) for row in rows]

    def outbox_waiting(self, name: str, subjects: Sequence[int]) -> dict[int, int]:
        rows = self._execute(self._sql["outbox_waiting"], (name, self._array(subjects)))
        return dict(rows)

    def outbox_behind(self, name: str) -> bool:
        return self._execute(self._sql["outbox_any"], (name,)).fetchone() is not None

    def outbox_tally(self, name: str) -> Tally:
        counts = {status: int(count) for status, count in self._tallied(name)}
        return Tally(counts.get(_PENDING, 0), counts.get(_FAILED, 0))

    def outbox_rows(self, name: str, *, limit: int) -> list[Undelivered]:
        rows = self._execute(self._sql["outbox_rows"], (name, limit))
        return [Undelivered(name, *row) for row in rows]

    def _tallied(self, name: str) -> Any:
        return self._execute(self._sql["outbox_tally"], (name,))


class SqlOutbox(SqlOutboxReader):
    """See `stratagem.storage.outbox.Outbox`."""

    _session: Any
    _names: Any

    def register_projection(self, name: str, kinds: Sequence[str]) -> None:
        self._names.projections = None
        wanted = orjson.dumps(list(kinds)).decode()
        self._execute(self._sql["register_projection"], (name, wanted))

    def drop_projection(self, name: str) -> None:
        self._names.projections = None
        self._execute(self._sql["delete_outbox"], (name,))
        self._execute(self._sql["delete_projection"], (name,))

    def lease_projection(self, name: str, owner: str, *, now: int, until: int) -> bool:
        parameters = (name, owner, now, until, now + _LEASE_MAX)
        return self._execute(self._sql["lease_projection"], parameters).fetchone() is not None

    def settle_outbox(self, name: str, subjects: Sequence[int], *, upto: int) -> int:
        parameters = (name, upto, self._array(subjects))
        return self._processed(name, self._execute(self._sql["settle_outbox"], parameters))

    def postpone_outbox(self, name: str, records: Sequence[Postponed], *, upto: int) -> None:
        rows = [
            (each.attempts, each.next_at, _FAILED if each.failed else _PENDING, each.error,
             name, each.subject, upto)
            for each in records
        ]  # fmt: skip
        self._session.executemany(self._sql["postpone_outbox"], rows)

    def requeue_outbox(self, name: str, records: Mapping[int, int]) -> None:
        rows = [(name, sequence, subject) for subject, sequence in records.items()]
        self._session.executemany(self._sql["requeue_outbox"], rows)

    def retry_outbox(self, name: str) -> int:
        failed = self.outbox_tally(name).failed
        self._execute(self._sql["retry_outbox"], (name,))
        return failed

    def set_built(self, name: str, built: str | None, *, upto: int = 0) -> None:
        self._execute(self._sql["set_built"], (name, built))
        self._processed(name, self._execute(self._sql["settle_outbox_all"], (name, upto)))

    def post(self, changes: Sequence[tuple[int, int, str]]) -> None:
        """Put changes of `default` (sequence, subject, kind of record) into the outbox."""
        if self._names.projections is None:
            # Once for all who commit together: no other can register one before they end.
            self._names.projections = self.projections()
        rows = [
            (projection.name, sequence, subject)
            for projection in self._names.projections
            for sequence, subject, kind in changes
            if kind in projection.kinds
        ]
        if rows:
            self._session.executemany(self._sql["insert_outbox"], rows)

    def _processed(self, name: str, taken: Any) -> int:
        count = len(taken.fetchall())
        if count:
            self._execute(self._sql["count_processed"], (name, count))
        return count
