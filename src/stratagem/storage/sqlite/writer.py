"""Writing a log in SQLite: the shared writer over a connection, FTS5, and the seal of settings."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import orjson

from stratagem.engine.records import Kinds
from stratagem.storage.contract import IndexedText, Indexer
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.session import NUMBER, Queries
from stratagem.storage.relational.settings import SqlSettingWriter
from stratagem.storage.relational.store import Adapters
from stratagem.storage.relational.text_backlog import TextBacklog
from stratagem.storage.relational.writer import SqlWriter
from stratagem.storage.sqlite.connection import DAMAGE, checksum
from stratagem.storage.sqlite.reader import SqliteSearch, make_queries

__all__ = ["make_writer", "setting_writer"]


def make_writer(
    connection: apsw.Connection,
    kinds: Kinds,
    cache: WriterCache,
    *,
    adapters: Adapters,
    indexer: Indexer | None,
) -> SqlWriter:
    """Return the parts that write, over a connection that has begun a transaction."""
    # Errors of the driver mean that the database failed, and stay what they are. What a damaged
    # file makes of decoding is an error of one piece of work.
    queries = make_queries(connection, DAMAGE)
    return SqlWriter(
        queries,
        kinds,
        cache,
        adapters=adapters,
        indexer=indexer,
        documents=_SqliteDocuments(queries),
        backlog=TextBacklog(queries, cache),
        search=SqliteSearch(queries),
        settings=_SealedSettings(queries, cache),
    )


def setting_writer(connection: apsw.Connection) -> SqlSettingWriter:
    """Return the settings of a connection that has begun a transaction."""
    return _SealedSettings(make_queries(connection), WriterCache())


class _SealedSettings(SqlSettingWriter):
    """Settings with a checksum of all of them beside them."""

    __slots__ = ()

    def set(self, name: str, value: str | int | None) -> None:
        # A seal that is broken stays so, for `doctor` to find.
        broken = self._queries.row(NUMBER, "broken_seal")
        super().set(name, value)
        if broken is None:
            self._queries.run("seal_settings")


class _SqliteDocuments:
    """Writes texts into FTS5, and vectors as they come."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def add_texts(self, documents: Sequence[tuple[int, IndexedText]]) -> None:
        rows = [
            (at, place, doc.title, passage, doc.context)
            for at, doc in documents
            for place, passage in enumerate(doc.passages)
        ]
        self._queries.run_many("insert_text", rows)

    def add_own_vectors(self, vectors: Sequence[tuple[int, str]]) -> None:
        """Nothing: they are read from the log, into a file beside the database."""

    def copy_vectors(self, pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
        rows = self._queries.rows(NUMBER, "copy_vectors", orjson.dumps(pairs).decode())
        return frozenset(row[0] for row in rows)

    def add_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        # SQL has the function too. Called back from a statement, it takes ten times as long.
        rows = [(at, vector, checksum(at, vector)) for at, vector in vectors]
        self._queries.run_many("insert_vector", rows)
