"""Taking over the events of another log, exactly as they are.

Sequences, times, hashes and salts stay what they were, so that the chain of the copy is that of
the original. Whole transactions have to be given: what a view counts is kept at the end of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import orjson

from stratagem.engine.events import GENESIS, Draft, Event, Head
from stratagem.errors import DatabaseCorrupt, ImportRefused
from stratagem.storage.contract import Remembered
from stratagem.storage.relational import chain
from stratagem.storage.relational.appending import SqlTransaction
from stratagem.storage.relational.erasing import ERASED_MARK
from stratagem.storage.relational.projecting import CONTENT_PURGED, Fact
from stratagem.storage.relational.replaying import events as logged

__all__ = ["SqlReceiving"]

# What erased names began with once; PostgreSQL cannot keep it.
_OLD_MARK = "\0"
# What a new log has from its first event: another log's replaces it.
_BEGINNING = ("events", "branches", "tallies")


class SqlReceiving(SqlTransaction):
    """A transaction that can also take over events."""

    def receive(self, events: Sequence[Event]) -> None:
        if events and events[0].sequence == 1 and self._head.sequence == 1:
            for table in _BEGINNING:
                self._execute(self._sql["empty"].replace("{table}", table))
            self._names.forget()
            self._head = Head(0, 0, GENESIS)
        self._check(events)
        projector = self.projector(self._session, self, self._indexer, embed=False)
        for _at, transaction in groupby(events, key=lambda event: event.at):
            together = list(transaction)
            facts = self._take(together)
            projector.apply(facts, together[0].wall)
            projector.end_transaction(facts[-1].sequence)
            for fact in facts:
                self._post(fact.branch, [fact])

    def remember(self, requests: Sequence[Remembered]) -> None:
        if requests:
            self._session.executemany(self._sql["keep_request"], requests)

    def _check(self, events: Sequence[Event]) -> None:
        """Refuse events that do not continue the log, link by link: their log is damaged."""
        last = next(logged(self, self._head.sequence - 1), None) if self._head.sequence else None
        for event in events:
            found = chain.broken(event, last.hash if last else GENESIS, last)
            if found:
                raise DatabaseCorrupt(
                    f"The source is damaged: {found[0].what}",
                    where=found[0].where,
                    hint="Run `stratagem doctor` on the source: it says what is damaged, and what "
                    "mends it or saves the rest (`stratagem backup --rescue`).",
                )
            if event.kind == CONTENT_PURGED and event.payload is not None:
                self._refuse_purge(orjson.loads(event.payload)["sequences"])
            last = event

    def _refuse_purge(self, sequences: Sequence[int]) -> None:
        """Refuse a purge of what was taken over earlier, with its content."""
        versions = self.payloads([each for each in sequences if each <= self._head.sequence])
        if any(version.payload is not None for version in versions.values()):
            raise ImportRefused(
                "Something was purged from the source after a part of it had been copied.",
                hint="Copy it again into an empty target.",
            )

    def _take(self, events: list[Event]) -> list[Fact]:
        """Write the events of one transaction into the log; return what they mean."""
        keys = [_kept_key(event.key) for event in events]
        drafts = [
            Draft(event.kind, {}, event.space, key) for event, key in zip(events, keys, strict=True)
        ]
        subjects = self._intern_subjects(drafts)
        rows: list[tuple[Any, ...]] = []
        facts: list[Fact] = []
        for event, key in zip(events, keys, strict=True):
            space = self._intern_space(event.space) if event.space else None
            subject, fresh = None, False
            if key is not None:
                assert space is not None
                subject, fresh = subjects[space, key]
                subjects[space, key] = (subject, False)
            rows.append((
                event.sequence, event.at, event.wall, event.branch, event.kind, space, subject,
                event.actor, event.request, event.origin, event.payload, event.salt,
                event.content_hash, event.hash,
            ))  # fmt: skip
            content = orjson.loads(event.payload) if event.payload is not None else None
            facts.append(
                Fact(event.sequence, event.branch, event.kind, space, event.space, subject, key,
                     fresh, content)
            )  # fmt: skip
        self._session.executemany(self._sql["insert_event"], rows)
        last = events[-1]
        self._head = Head(last.sequence, last.at, last.hash)
        return facts


def _kept_key(key: str | None) -> str | None:
    return ERASED_MARK + key[1:] if key is not None and key.startswith(_OLD_MARK) else key
