"""Taking over the events of another log, exactly as they are.

Sequences, times, hashes and salts stay what they were, so that the chain of the copy is that of
the original. Whole transactions have to be given: tallies are written at the end of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import orjson

from stratagem.engine.events import GENESIS, Event, Head
from stratagem.errors import DatabaseCorrupt, ImportRefused
from stratagem.storage.relational import chain
from stratagem.storage.relational.appender import Appender
from stratagem.storage.relational.eraser import ERASED_MARK
from stratagem.storage.relational.projector import CONTENT_PURGED, Fact, Projector
from stratagem.storage.relational.session import Parameter
from stratagem.storage.relational.writer import SqlWriter

__all__ = ["Receiver"]

# The first character of erased names in older versions; PostgreSQL cannot store it.
_OLD_MARK: Final = "\0"
# What a new log has from its first event: another log's replaces it.
_FIRST_EVENT_TABLES: Final = ("events", "branches", "tallies")


class Receiver:
    """Writes the events of another log in one transaction of this one."""

    def __init__(self, writer: SqlWriter, appender: Appender) -> None:
        self._writer = writer
        self._queries = writer.queries
        self._appender = appender
        self._interner = writer.interner

    def receive(self, events: Sequence[Event]) -> None:
        """See `stratagem.storage.contract.Transaction`."""
        if events and events[0].sequence == 1 and self._appender.head.sequence == 1:
            for table in _FIRST_EVENT_TABLES:
                self._queries.run_on_table("empty", table)
            self._writer.cache.clear()
            self._appender.head = Head(0, 0, GENESIS)
        self._check(events)
        projector = Projector(self._writer, embed=False)
        # Events that were appended together have one recorded time, and no others have it.
        for _at, transaction in groupby(events, key=lambda event: event.at):
            together = list(transaction)
            facts = self._write(together)
            projector.apply(facts, together[0].wall)
            projector.end_transaction(facts[-1].sequence)
            for fact in facts:
                self._appender.post(fact.branch, [fact])

    def _check(self, events: Sequence[Event]) -> None:
        """Refuse events that do not continue the log, link by link: their log is damaged."""
        head = self._appender.head.sequence
        last = next(self._writer.log.events(head - 1), None) if head else None
        for event in events:
            found = chain.faults_of(event, last.hash if last else GENESIS, last)
            if found:
                raise DatabaseCorrupt(
                    f"The source is damaged: {found[0].what}",
                    where=found[0].where,
                    hint="Run `stratagem doctor` on the source: it shows what is damaged, "
                    "and how to repair it or rescue the rest (`stratagem backup --rescue`).",
                )
            if event.kind == CONTENT_PURGED and event.payload is not None:
                self._refuse_purge(orjson.loads(event.payload)["sequences"])
            last = event

    def _refuse_purge(self, sequences: Sequence[int]) -> None:
        """Refuse a purge of what was taken over earlier, with its content."""
        head = self._appender.head.sequence
        versions = self._writer.log.versions([each for each in sequences if each <= head])
        if any(version.payload is not None for version in versions.values()):
            raise ImportRefused(
                "Something was purged from the source after a part of it had been copied.",
                hint="Copy it again into an empty target.",
            )

    def _write(self, events: list[Event]) -> list[Fact]:
        """Write the events of one transaction into the log.

        Return their facts for the read models.
        """
        names = [(event.space, _storable_key(event.key)) for event in events]
        numbered = self._interner.number(names)
        rows: list[tuple[Parameter, ...]] = []
        facts: list[Fact] = []
        for event, (_, key), (space, subject, is_new) in zip(events, names, numbered, strict=True):
            rows.append((
                event.sequence, event.at, event.wall, event.branch, event.kind, space, subject,
                event.actor, event.request, event.origin, event.payload, event.salt,
                event.content_hash, event.hash,
            ))  # fmt: skip
            content = orjson.loads(event.payload) if event.payload is not None else None
            facts.append(
                Fact(event.sequence, event.branch, event.kind, space, event.space, subject, key,
                     is_new, content)
            )  # fmt: skip
        self._queries.run_many("insert_event", rows)
        last = events[-1]
        self._appender.head = Head(last.sequence, last.at, last.hash)
        return facts


def _storable_key(key: str | None) -> str | None:
    return ERASED_MARK + key[1:] if key is not None and key.startswith(_OLD_MARK) else key
