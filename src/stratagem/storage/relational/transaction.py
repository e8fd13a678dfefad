"""One piece of work's transaction: the parts of a writer, and its own place in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import orjson

from stratagem.engine.events import Draft, Event, Head
from stratagem.engine.lineage import Branch
from stratagem.storage.contract import Appended, RequestResult, WriteRequest
from stratagem.storage.relational.appender import Appender
from stratagem.storage.relational.branches import SqlBranchWriter
from stratagem.storage.relational.log import SqlLog
from stratagem.storage.relational.receiver import Receiver
from stratagem.storage.relational.search import SqlSearch
from stratagem.storage.relational.vectors import SqlVectorWriter
from stratagem.storage.relational.verification import verify_payloads
from stratagem.storage.relational.writer import SqlWriter

__all__ = ["SqlTransaction"]


class _TransactionLog(SqlLog):
    """The log of a transaction: its head is known without asking the database."""

    __slots__ = ("_appender",)

    # A merge reads each content once: there is nothing to recognise it for.
    _check_payloads = staticmethod(verify_payloads)

    def __init__(self, writer: SqlWriter, appender: Appender) -> None:
        super().__init__(writer.queries)
        self._appender = appender

    def head(self) -> Head:
        return self._appender.head


class SqlTransaction:
    """See `stratagem.storage.contract.Transaction`.

    One lives as long as its writer, and is begun anew for each piece of work: putting its parts
    together takes as long as one of its statements.
    """

    def __init__(self, writer: SqlWriter) -> None:
        self._writer = writer
        self._appender = appender = Appender(writer)
        self.kinds = writer.kinds
        self.log: SqlLog = _TransactionLog(writer, appender)
        self.branches = SqlBranchWriter(
            writer.queries,
            writer.cache,
            append=appender.append,
            next_sequence=lambda: appender.head.sequence + 1,
        )
        self.records = writer.records
        self.catalogue = writer.catalogue
        self.listing = writer.listing
        self.changes = writer.changes
        self.vector_comparer = writer.vector_comparer
        self.outbox = writer.outbox
        self.settings = writer.settings
        self.requests = writer.requests

    def begin(self, request: WriteRequest, head: Head) -> Self:
        """Begin with a piece of work; nothing is left of the one before, even if that failed."""
        self._request = request
        self._first = head.sequence + 1
        self.wall, self.at = self._appender.begin(request, head)
        return self

    @property
    def search(self) -> SqlSearch:
        """The full-text index, with the texts that earlier commits have left."""
        self.index_backlog()
        return self._writer.search

    @property
    def vectors(self) -> SqlVectorWriter:
        """The vectors of texts, with those of the texts that earlier commits have left."""
        self.index_backlog()
        return self._writer.vectors

    def index_backlog(self) -> None:
        """Index the texts that earlier commits have left."""
        self._appender.index_backlog()

    def append(self, branch: Branch, drafts: Sequence[Draft]) -> list[Appended]:
        if self._request.check is not None:
            self._request.check(drafts)
        return self._appender.append(branch.id, drafts)

    def receive(self, events: Sequence[Event]) -> None:
        Receiver(self._writer, self._appender).receive(events)

    def earlier_result(self) -> bytes | None:
        """Return the result of an earlier request with this id, as JSON, or None."""
        return self.requests.result_of(self._request)

    def finish(self, result: Any) -> None:
        """Complete the read models and store the result for a repeat of the request."""
        last = self._appender.head.sequence
        if last >= self._first:
            self._appender.end()
        request = self._request
        if request.id is not None:
            stored = RequestResult(
                request.actor, request.id, request.fingerprint, orjson.dumps(result),
                self._first, last,
            )  # fmt: skip
            self.requests.record(stored)
