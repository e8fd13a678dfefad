"""The events of the log, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import GENESIS, Event, Head, Space
from stratagem.engine.lineage import Cut, Lineage
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import EventContent, Version
from stratagem.storage.relational.session import Queries, Shape
from stratagem.storage.relational.verification import (
    PAYLOAD_ROW,
    ContentRow,
    missing_event,
    recognise_payloads,
    verified_version,
    verify,
)

__all__ = ["PAGE", "LogRow", "SqlLog"]

PAGE: Final = 1_000

# A content row, after the names of what the event is about.
_NAMED_ROW = Shape[
    tuple[str | None, str | None, str | None, int, int, str, bytes | None, str, bytes | None, bytes]
]()


class LogRow(NamedTuple):
    """An event with the names of what it is about, and their numbers."""

    sequence: int
    at: int
    wall: int
    branch: int
    kind: str
    space_kind: str | None
    namespace: str | None
    key: str | None
    actor: str
    request: str | None
    origin: int | None
    payload: bytes | None
    salt: bytes | None
    content_hash: bytes
    hash: bytes
    space_id: int | None
    subject: int | None

    @property
    def space(self) -> Space | None:
        """The space that the event belongs to; events about branches belong to none."""
        return _space(self.space_kind, self.namespace)

    @property
    def content_row(self) -> ContentRow:
        """The columns that the content hash is checked with."""
        return (
            self.sequence, self.at, self.kind, self.payload, self.actor, self.salt,
            self.content_hash,
        )  # fmt: skip

    @property
    def event(self) -> Event:
        """The event, unchecked."""
        return Event(
            self.sequence, self.at, self.wall, self.branch, self.kind, self.space, self.key,
            self.actor, self.request, self.origin, self.payload, self.salt, self.content_hash,
            self.hash,
        )  # fmt: skip


class SqlLog:
    """See `stratagem.storage.contract.LogReader`."""

    __slots__ = ("_queries",)

    _check_payloads = staticmethod(recognise_payloads)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def head(self) -> Head:
        return self._queries.row_as(Head, "head") or Head(0, 0, GENESIS)

    def sequence_at(self, at: int) -> int:
        return self._queries.number("sequence_at", at)

    def end_of(self, sequence: int) -> int | None:
        # All events of a transaction, and no others, have its recorded time.
        at = self.time_of(sequence)
        return None if at is None else self.sequence_at(at)

    def time_of(self, sequence: int) -> int | None:
        return self._queries.value(int, "time_of", sequence)

    def wall_of(self, sequence: int) -> int | None:
        return self._queries.value(int, "wall_of", sequence)

    def sequence_ahead(self, wall: int) -> int | None:
        return self._queries.value(int, "sequence_ahead", wall)

    def hash_of(self, sequence: int) -> bytes | None:
        return self._queries.value(bytes, "hash_of", sequence)

    def branch_of(self, sequence: int) -> int:
        branch = self._queries.value(int, "branch_of", sequence)
        if branch is None:
            raise missing_event(sequence)
        return branch

    def span(self, lineage: Lineage, spaces: Sequence[int] | None = None) -> tuple[Cut, Cut] | None:
        among = None if spaces is None else self._queries.array(spaces)
        firsts = [self._queries.row_as(Cut, "first_event", *cut, among) for cut in lineage]
        lasts = [self._queries.row_as(Cut, "last_event", *cut, among) for cut in lineage]
        first = min(filter(None, firsts), default=None)
        last = max(filter(None, lasts), default=None)
        return (first, last) if first and last else None

    def versions(self, sequences: Sequence[int]) -> dict[int, Version]:
        found = {
            row[3]: verified_version(row[3:], _space(row[0], row[1]), row[2])
            for row in self._queries.rows(_NAMED_ROW, "payloads", self._queries.array(sequences))
        }
        _refuse_missing(found, sequences)
        return found

    def payloads(self, names: Mapping[int, tuple[Space, str]]) -> dict[int, bytes | None]:
        # In order: events that lie beside each other are found without a search for each.
        array = self._queries.array(sorted(names))
        rows = self._queries.rows(PAYLOAD_ROW, "record_payloads", array)
        self._check_payloads(rows, names)
        found = {row[0]: row[1] for row in rows}
        if len(found) < len(names):
            _refuse_missing(found, names)
        return found

    def contents(self, sequences: Sequence[int]) -> dict[int, EventContent]:
        found: dict[int, EventContent] = {}
        space: Space | None = None
        for row in self._queries.rows(_NAMED_ROW, "hits", self._queries.array(sequences)):
            if space is None or space != row[:2]:
                space = _space(row[0], row[1])
            key = row[2]
            verify(row[3:], space, key)
            sequence, at, kind, payload, actor = row[3:8]
            if space is None or payload is None:
                raise DatabaseCorrupt(f"Event {sequence} has no content.", sequence=sequence)
            found[sequence] = EventContent(sequence, at, kind, space, key, payload, actor)
        _refuse_missing(found, sequences)
        return found

    def page(self, after: int, limit: int) -> list[LogRow]:
        """Return some events after a sequence, in order."""
        return self._queries.rows_as(LogRow, "log_page", after, limit)

    def events(self, after: int) -> Iterator[Event]:
        """Return every event after a sequence, in pages: none of them keeps a reader open."""
        while rows := self.page(after, PAGE):
            for row in rows:
                yield row.event
            after = rows[-1].sequence


def _space(kind: str | None, namespace: str | None) -> Space | None:
    return None if kind is None or namespace is None else Space(kind, namespace)


def _refuse_missing(found: Container[int], sequences: Iterable[int]) -> None:
    """Refuse events that a read model refers to and the log does not have."""
    for sequence in sequences:
        if sequence not in found:
            raise missing_event(sequence)
