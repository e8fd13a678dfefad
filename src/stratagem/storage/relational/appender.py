"""Appending events to the tip of the log.

An event is bound to the one before it by its hash, so the appender carries the head of the log
along: each event is hashed against the head, and then is the head. No other writer can move it: the
write lock is held from before the head was read until after the commit.

Rows are gathered for all events of one call and written by one statement for each table; then the
projector brings the read models up to date, and the outbox learns what has to be delivered.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from stratagem.engine.events import SALT_BYTES, Draft, Head, content_hash, event_hash
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.storage.contract import Appended, WriteRequest
from stratagem.storage.relational.interner import NumberedName
from stratagem.storage.relational.projector import Fact, Projector
from stratagem.storage.relational.session import Parameter
from stratagem.storage.relational.writer import SqlWriter

__all__ = ["Appender"]

# As a named tuple is made, without the call of its class for each of thousands.
_new_tuple = tuple.__new__


class Appender:
    """Appends the events of one transaction after another, those of each in the name of a request.

    `wall` is the clock time, `at` the recorded time: later than that of every earlier transaction,
    even when the clock was set back.
    """

    head: Head
    wall: int
    at: int

    def __init__(self, writer: SqlWriter) -> None:
        self._writer = writer
        self._queries = writer.queries
        self._interner = writer.interner
        self._projector = Projector(writer)

    def begin(self, request: WriteRequest, head: Head) -> tuple[int, int]:
        """Begin a transaction after a head; return its clock time and its recorded time."""
        self._request = request
        self._projector.begin_transaction()
        self.head = head
        self.wall = self._writer.adapters.clock()
        self.at = max(self.wall, head.at + 1)
        return self.wall, self.at

    def append(self, branch: int, drafts: Sequence[Draft]) -> list[Appended]:
        """Append drafts to a branch; return where each landed and what it replaced."""
        # One call for the salts of all drafts: each is a system call.
        salts = self._writer.adapters.entropy(SALT_BYTES * len(drafts))
        names = self._number(drafts)
        rows: list[tuple[Parameter, ...]] = []
        facts: list[Fact] = []
        repeated: dict[int, int] = {}
        (sequence, _, link), at, wall = self.head, self.at, self.wall
        actor, request = self._request.actor, self._request.id
        # Each event is bound to the one before it. In place, not by a function for each: there may
        # be thousands.
        for place, (draft, (space_id, subject, is_new)) in enumerate(
            zip(drafts, names, strict=True)
        ):
            sequence += 1
            kind, space, key, origin = draft.kind, draft.space, draft.key, draft.origin
            salt = salts[place * SALT_BYTES : (place + 1) * SALT_BYTES]
            payload = orjson.dumps(draft.content)
            content = content_hash(salt, space, key, payload)
            link = event_hash(
                link, sequence=sequence, at=at, wall=wall, branch=branch, kind=kind, actor=actor,
                request=request, origin=origin, content=content,
            )  # fmt: skip
            rows.append(
                (sequence, at, wall, branch, kind, space_id, subject, actor, request, origin,
                 payload, salt, content, link)
            )  # fmt: skip
            facts.append(
                _new_tuple(
                    Fact,
                    (sequence, branch, kind, space_id, space, subject, key, is_new, draft.content),
                )
            )
            if draft.repeats is not None:
                repeated[sequence] = draft.repeats
        first, self.head = self.head.sequence + 1, Head(sequence, at, link)
        self._queries.run_many("insert_event", rows)
        replaced = self._projector.apply(facts, wall, repeated)
        if self._writer.outbox.has_readers():
            self.post(branch, facts)
        return [
            _new_tuple(Appended, (sequence, at, before))
            for sequence, before in enumerate(replaced, first)
        ]

    def _number(self, drafts: Sequence[Draft]) -> list[NumberedName]:
        if len(drafts) == 1:
            return [self._interner.number_one(drafts[0].space, drafts[0].key)]
        return self._interner.number(
            [(draft.space, draft.key) for draft in drafts], [draft.subject for draft in drafts]
        )

    def end(self) -> None:
        """Write the rows of the read models that exist once for each transaction."""
        self._projector.end_transaction(self.head.sequence)

    def index_backlog(self) -> None:
        """Index the texts that earlier commits have left."""
        self._projector.index_backlog()

    def post(self, branch: int, facts: Sequence[Fact]) -> None:
        """Put into the outbox what external read models have to be sent.

        They mirror the branch `default` alone.
        """
        outbox = self._writer.outbox
        if outbox.has_readers() and self._writer.branches.by_id(branch).name == DEFAULT_BRANCH:
            outbox.post(
                [
                    (fact.sequence, fact.subject, fact.space.kind)
                    for fact in facts
                    if fact.subject is not None and fact.space is not None
                ]
            )
