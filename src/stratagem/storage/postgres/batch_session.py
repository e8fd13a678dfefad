"""The session of one commit: rows are gathered, and sent once for all its writers.

Most writes are rows for tables that nobody reads before the commit. They wait here, by statement,
and each statement is sent once with the rows of all writers. Before a statement that reads a table,
the waiting rows of that table are sent, so that it sees earlier writes.

Work that fails is undone by dropping its waiting rows. The server gets a savepoint only if some of
them had to be sent early: first all rows of earlier writers are sent, because a rollback to the
savepoint would undo them too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final

from stratagem.storage.postgres.connection import (
    NO_ROWS,
    READS,
    Connection,
    PostgresCursor,
    PostgresSession,
)
from stratagem.storage.postgres.rows import column_types
from stratagem.storage.relational.group_commit import RELEASE, ROLLBACK_TO, SAVEPOINT
from stratagem.storage.relational.session import Parameter

__all__ = ["BatchSession"]

_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE(?! SET)|USING) (\w+)\b(?!\()")
# Rows of more bytes than this are sent without waiting for more.
_SIZE_MAX: Final = 8_000_000

_Waiting = dict[str, list[Sequence[Parameter]]]


@cache
def _tables(sql: str) -> frozenset[str]:
    """Return the tables that a statement reads or writes, and names that are none."""
    return frozenset(_TABLE.findall(sql))


@cache
def _can_wait(sql: str) -> bool:
    """Whether the rows of a statement can wait: it adds to one table, whatever is in others."""
    return bool(column_types(sql)) and not sql.startswith("DELETE") and len(_tables(sql)) == 1


class BatchSession(PostgresSession):
    """A connection within a transaction that several writers share."""

    def __init__(self, connection: Connection, workspace: int) -> None:
        super().__init__(connection, workspace)
        # The rows of the piece of work at hand, and of those before it, by statement.
        self._own: _Waiting = {}
        self._earlier: _Waiting = {}
        # The bytes of all that waits, names and numbers not counted.
        self._size = 0
        # Whether the work at hand can fail alone, and whether the server has a savepoint for it.
        self._apart = False
        self._has_savepoint = False
        self._control: dict[str, Callable[[], None]] = {
            SAVEPOINT: self._begin_work,
            ROLLBACK_TO: self._undo_work,
            RELEASE: self._end_work,
        }

    def execute(
        self, sql: str, parameters: Sequence[Parameter] = (), /, *, binary: bool = False
    ) -> PostgresCursor:
        if (control := self._control.get(sql)) is not None:
            control()
            return NO_ROWS
        if _can_wait(sql):
            self._gather(sql, [parameters])
            return NO_ROWS
        self._send_before(sql)
        return super().execute(sql, parameters, binary=binary)

    def executemany(self, sql: str, rows: Iterable[Sequence[Parameter]], /) -> None:
        if _can_wait(sql):
            self._gather(sql, rows)
            return
        self._send_before(sql)
        super().executemany(sql, rows)

    def flush(self) -> None:
        """Send all rows that wait."""
        self._send(self._earlier)
        self._send(self._own)
        self._size = 0

    def _gather(self, sql: str, rows: Iterable[Sequence[Parameter]]) -> None:
        waiting = self._own.setdefault(sql, [])
        before = len(waiting)
        waiting.extend(rows)
        self._size += sum(
            len(value) for row in waiting[before:] for value in row if isinstance(value, bytes)
        )
        if self._size > _SIZE_MAX:
            self._make_savepoint()
            self.flush()

    def _send_before(self, sql: str) -> None:
        """Send the rows that a statement may look at; have a savepoint before one that writes."""
        tables = _tables(sql)
        self._send(self._earlier, tables)
        writes = not sql.startswith(READS)
        if writes or any(not tables.isdisjoint(_tables(own)) for own in self._own):
            self._make_savepoint()
            self._send(self._own, tables)

    def _send(self, waiting: _Waiting, tables: frozenset[str] | None = None) -> None:
        """Send the rows that wait for some tables, or for any."""
        for sql in [*waiting]:
            if tables is None or not tables.isdisjoint(_tables(sql)):
                self.send_rows(sql, column_types(sql), waiting.pop(sql))

    def _begin_work(self) -> None:
        # The first of a batch may have been run before others came, as if it were alone.
        self._end_work()
        self._apart = True

    def _make_savepoint(self) -> None:
        if self._apart and not self._has_savepoint:
            self._send(self._earlier)
            self.connection.execute(SAVEPOINT.encode(), prepare=False)
            self._has_savepoint = True

    def _undo_work(self) -> None:
        self._own.clear()
        if self._has_savepoint:
            self.connection.execute(ROLLBACK_TO.encode(), prepare=False)

    def _end_work(self) -> None:
        for sql, rows in self._own.items():
            self._earlier.setdefault(sql, []).extend(rows)
        self._own.clear()
        if self._has_savepoint:
            self.connection.execute(RELEASE.encode(), prepare=False)
        self._apart = self._has_savepoint = False
