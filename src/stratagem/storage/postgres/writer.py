"""Writing a log in PostgreSQL: the shared writer, terms with their frequencies, and pgvector."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence

import orjson

from stratagem.engine.events import Space
from stratagem.engine.records import Kinds
from stratagem.storage.contract import IndexedText, Indexer, VectorRow
from stratagem.storage.postgres.connection import NO_ROWS, PostgresCursor
from stratagem.storage.postgres.reader import (
    VECTOR_INDEX,
    PostgresSearch,
    PostgresVectorComparer,
    WorkspaceSession,
    make_queries,
    read_vectors,
)
from stratagem.storage.postgres.rows import StoredVector, encode_rows
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.postgres.terms import text_rows
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.session import NUMBER, Queries
from stratagem.storage.relational.settings import SqlSettingWriter
from stratagem.storage.relational.store import Adapters
from stratagem.storage.relational.vectors import SqlVectorWriter
from stratagem.storage.relational.writer import SqlWriter

__all__ = ["look_up_ahead", "make_writer", "remember_subjects"]


def make_writer(
    session: WorkspaceSession,
    kinds: Kinds,
    cache: WriterCache,
    *,
    adapters: Adapters,
    indexer: Indexer | None,
) -> SqlWriter:
    """Return the parts that write, over a session that has begun a transaction."""
    queries = make_queries(session)
    settings = _JsonSettings(queries, cache)
    return SqlWriter(
        queries,
        kinds,
        cache,
        adapters=adapters,
        indexer=indexer,
        documents=_PostgresDocuments(queries, session.workspace),
        search=PostgresSearch(queries, session.workspace),
        settings=settings,
        vectors=_PostgresVectorWriter(queries, settings, session),
        vector_comparer=PostgresVectorComparer(queries, settings, session.workspace),
    )


def look_up_ahead(
    session: WorkspaceSession, subjects: Collection[tuple[Space, str]]
) -> PostgresCursor:
    """Ask for the numbers of subjects and of their spaces by one statement.

    Whoever writes these would ask for each by itself, and wait for the answer.
    """
    # PostgreSQL has no text with NUL in it.
    wanted = [(*space, key) for space, key in subjects if "\0" not in space.namespace + key]
    if not wanted:
        return NO_ROWS
    return session.execute(SQL["subjects_ahead"], encode_rows(("text",) * 3, wanted, {}))


def remember_subjects(cache: WriterCache, found: PostgresCursor) -> None:
    """Remember for writers what was looked up ahead."""
    for kind, namespace, space, key, subject in found.fetchall():
        cache.spaces[Space(kind, namespace)] = space
        cache.subjects[space, key] = subject


class _JsonSettings(SqlSettingWriter):
    """Settings in a column of JSON."""

    __slots__ = ()

    def set(self, name: str, value: str | int | None) -> None:
        self._cache.settings[name] = value
        self._queries.run("set_setting", name, orjson.dumps(value).decode())


class _PostgresVectorWriter(SqlVectorWriter):
    """Vectors in columns of pgvector."""

    __slots__ = ("_session",)

    def __init__(
        self, queries: Queries, settings: SqlSettingWriter, session: WorkspaceSession
    ) -> None:
        super().__init__(queries, settings)
        self._session = session

    def after(self, last: int, limit: int) -> list[VectorRow]:
        return read_vectors(self._session, last, limit)

    def add(self, vectors: Mapping[int, bytes]) -> None:
        super().add({at: StoredVector(vector) for at, vector in vectors.items()})

    def change_embedder(self, name: str) -> None:
        super().change_embedder(name)
        # Vectors of another embedder may have another length, which an index is made for.
        self._settings.set(VECTOR_INDEX, None)


class _PostgresDocuments:
    """Writes texts as terms and frequencies, and vectors as pgvector's own."""

    def __init__(self, queries: Queries, workspace: int) -> None:
        self._queries = queries
        self._workspace = workspace

    def add_texts(self, documents: Sequence[tuple[int, IndexedText]]) -> None:
        rows = [row for at, doc in documents for row in text_rows(self._workspace, at, doc)]
        self._queries.run_many("insert_text", rows)
        self._queries.run("count_texts", len(rows), sum(row.tokens for row in rows))

    def add_own_vectors(self, vectors: Sequence[tuple[int, str]]) -> None:
        rows = [(at, StoredVector(b64decode(vector))) for at, vector in vectors]
        self._queries.run_many("insert_own_vector", rows)

    def copy_vectors(self, pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
        texts, others = [text for text, _ in pairs], [other for _, other in pairs]
        rows = self._queries.rows(NUMBER, "copy_vectors", texts, others)
        return frozenset(row[0] for row in rows)

    def add_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        rows = [(at, StoredVector(vector)) for at, vector in vectors]
        self._queries.run_many("insert_vector", rows)
