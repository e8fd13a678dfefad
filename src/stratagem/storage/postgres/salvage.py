"""Every event of a damaged workspace that can still be read and proves genuine by its own hash.

The tables are read in the order of their pages, without their indexes. If the server cannot read a
range of pages, the range is halved until the damaged page is found, and each row of that page is
then requested singly. All of it is one transaction that sees one state, so that a row stays where
it was first seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import errors as faults

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Event, Space, content_hash
from stratagem.errors import StorageUnavailable
from stratagem.places import display_place
from stratagem.storage.contract import Progress
from stratagem.storage.postgres.connection import (
    SCHEMA,
    PostgresSession,
    connect,
    translating_errors,
)
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.rescue import Salvage, Trace, highest_sequence

__all__ = ["UNREADABLE", "salvage"]

# The errors of the server for pages and rows that it cannot read.
UNREADABLE: Final = (
    faults.DataCorrupted,
    faults.IndexCorrupted,
    faults.InternalError_,
    faults.IoError,
    faults.UndefinedFile,
    # Lengths, numbers and texts of a row that was overwritten.
    faults.ProgramLimitExceeded,
    psycopg.DataError,
)
_PAGES_AT_ONCE: Final = 1_000
_EVENTS_AT_ONCE: Final = 500
# A row and its line pointer take at least so many bytes of a page.
_ROW_BYTES_MIN: Final = 28


class _Part(NamedTuple):
    """A table, or one of the parts of a table that is parted by workspace."""

    name: str
    pages: int
    page_bytes: int


class _Place(NamedTuple):
    """Where a row lies: a part of its table, and the row's number there."""

    part: str
    row: str


@contextmanager
def salvage(address: str, workspace: str, progress: Progress) -> Iterator[Salvage]:
    """Read every page of a workspace's tables; give what can be read of its log.

    Raises:
        StorageUnavailable: There is no such workspace.
    """
    place = display_place(f"{address}#{workspace}")
    with (
        translating_errors(place),
        closing(connect(address, read_only=True)) as connection,
        connection.transaction(),
    ):
        connection.execute(SQL["read_through_pages"].encode())
        row = connection.execute(SQL["workspace_number"].encode(), (workspace,)).fetchone()
        if row is None:
            raise StorageUnavailable("There is no such workspace.", path=place)
        yield _Scan(PostgresSession(connection, row[0]), progress)


class _Scan:
    """See `stratagem.storage.rescue.Salvage`."""

    def __init__(self, session: PostgresSession, progress: Progress) -> None:
        self._session = session
        self._progress = progress
        self._spaces: dict[int, Space] = {
            number: Space(*names) for _, number, *names in self._rows("spaces")
        }
        self._keys: dict[int, str] = {number: key for _, number, key in self._rows("subjects")}
        self.branches: dict[int, tuple[Any, ...]] = {
            number: tuple(known) for _, number, *known in self._rows("branches")
        }
        self._versions = {
            sequence: Trace(subject, branch, space, None)
            for _, sequence, subject, branch, space in self._rows("versions")
        }
        self.branches_used = {trace.branch for trace in self._versions.values()}
        self._places: dict[int, list[_Place]] = {}
        for place, sequence, branch in self._rows("events"):
            self._places.setdefault(sequence, []).append(place)
            self.branches_used.add(branch)
        self.last = highest_sequence({*self._places, *self._versions})
        # Events that were read ahead, by sequence; the sequences go up to `_ahead`.
        self._read: dict[int, list[tuple[Any, ...]]] = {}
        self._ahead = 0

    def candidates(self, sequence: int) -> Iterator[Event]:
        """See `Salvage`."""
        if sequence > self._ahead:
            self._read_ahead(sequence)
        for row in self._read.get(sequence, ()):
            yield from self._genuine(row)

    def trace(self, sequence: int) -> Trace | None:
        """See `Salvage`."""
        trace = self._versions.get(sequence)
        if trace is None or trace.subject is None:
            return trace
        return trace._replace(key=self._keys.get(trace.subject))

    def space(self, number: int) -> Space | None:
        """See `Salvage`."""
        return self._spaces.get(number)

    def _genuine(self, row: tuple[Any, ...]) -> Iterator[Event]:
        """Return an event whose content is what was written; a purged one as it is."""
        sequence, at, wall, branch, kind, space, subject, actor, request, origin, *rest = row
        payload, salt, content, link = rest
        names, key = self._spaces.get(space), self._keys.get(subject)
        if (names is None and space is not None) or (key is None and subject is not None):
            # Its name is lost, and the content hash cannot be checked without it.
            return
        event = Event(
            sequence, at, wall, branch, kind, names, key, actor, request, origin, payload,
            salt, content, link,
        )  # fmt: skip
        purged = payload is None and salt is None
        if purged or content_hash(salt or b"", names, key, payload or b"") == content:
            yield event

    def _read_ahead(self, first: int) -> None:
        """Read some events from where they were seen, each by itself where one cannot be read."""
        self._ahead = first + _EVENTS_AT_ONCE - 1
        self._read = {}
        by_part: dict[str, list[str]] = {}
        for sequence in range(first, self._ahead + 1):
            for place in self._places.get(sequence, ()):
                by_part.setdefault(place.part, []).append(place.row)
        for part, rows in by_part.items():
            for row in self._at("event_contents", part, rows):
                self._read.setdefault(row[0], []).append(row)

    def _at(self, name: str, part: str, rows: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows at some places; those that cannot be read are left out."""
        sql = SQL[name].replace("{table}", part)
        try:
            return self._run(sql, list(rows))
        except UNREADABLE:
            if len(rows) == 1:
                return []
        return [found for row in rows for found in self._at(name, part, [row])]

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Go through the rows of a table, each after its place."""
        parts = self._run(SQL["table_parts"].replace("{table}", f"{SCHEMA}.{table}"))
        for part in (_Part(*row) for row in parts):
            for first in range(0, part.pages, _PAGES_AT_ONCE):
                last = min(first + _PAGES_AT_ONCE, part.pages)
                for row, *columns in self._pages(f"pages_of_{table}", part, first, last):
                    yield _Place(part.name, row), *columns
                self._progress(last, part.pages, f"reading pages of {table}")

    def _pages(self, name: str, part: _Part, first: int, last: int) -> list[tuple[Any, ...]]:
        """Return the rows of some pages, without those that cannot be read."""
        sql = SQL[name].replace("{table}", part.name)
        try:
            return self._run(sql, f"({first},0)", f"({last},0)")
        except UNREADABLE:
            if last - first > 1:
                middle = (first + last) // 2
                return self._pages(name, part, first, middle) + self._pages(
                    name, part, middle, last
                )
        return self._single_rows(sql, part, first)

    def _single_rows(self, sql: str, part: _Part, page: int) -> list[tuple[Any, ...]]:
        """Return the rows of a page that can be read by themselves."""
        found = []
        for number in range(1, part.page_bytes // _ROW_BYTES_MIN):
            with suppress(*UNREADABLE):
                found += self._run(sql, f"({page},{number})", f"({page},{number + 1})")
        return found

    def _run(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        # Within a savepoint: the transaction goes on after what fails.
        with self._session.connection.transaction():
            return self._session.execute(sql, parameters).fetchall()
