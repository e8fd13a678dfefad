"""Vectors and the queue for them, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Mapping

from stratagem.storage.contract import VectorRow, VersionSpan
from stratagem.storage.relational.session import NUMBER, Queries, Shape
from stratagem.storage.relational.settings import SqlSettingWriter

__all__ = ["SqlVectorWriter", "SqlVectors"]

_TWO_NUMBERS = Shape[tuple[int, int]]()


class SqlVectors:
    """See `stratagem.storage.contract.VectorReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def after(self, last: int, limit: int) -> list[VectorRow]:
        return self._queries.rows_as(VectorRow, "vectors_after", last, limit)

    def superseded_after(self, sequence: int) -> list[tuple[int, int]]:
        return self._queries.rows(_TWO_NUMBERS, "superseded_after", sequence)

    def count(self) -> int:
        return self._queries.number("vector_count")

    def last(self) -> int | None:
        return self._queries.value(int, "vector_last")

    def in_space(self, space: int, after: int, limit: int) -> list[VersionSpan]:
        return self._queries.rows_as(VersionSpan, "versions_in_space", space, after, limit)

    def pending(self, limit: int) -> list[int]:
        return [row[0] for row in self._queries.rows(NUMBER, "unembedded", limit)]

    def pending_count(self) -> int:
        return self._queries.number("unembedded_count")


class SqlVectorWriter(SqlVectors):
    """See `stratagem.storage.contract.VectorWriter`."""

    __slots__ = ("_settings",)

    def __init__(self, queries: Queries, settings: SqlSettingWriter) -> None:
        super().__init__(queries)
        self._settings = settings

    def add(self, vectors: Mapping[int, bytes]) -> None:
        # Only where the text still waits: it may be purged, or embedded by another process.
        self._queries.run_many("insert_waiting_vector", list(vectors.items()))
        self._queries.run_many("delete_unembedded", [(sequence,) for sequence in vectors])

    def change_embedder(self, name: str) -> None:
        self._settings.set("embedder", name)
        self._queries.run("delete_vectors")
        self._queries.run("queue_all_texts")
        # Tells every process that its copy of the vectors is out of date.
        generation = self._settings.number("vector_generation") or 0
        self._settings.set("vector_generation", generation + 1)
