"""Appending to a log in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from stratagem.storage.contract import Document
from stratagem.storage.postgres.connection import StoredVector
from stratagem.storage.postgres.reading import VECTOR_INDEX, PostgresReader
from stratagem.storage.postgres.texts import text_row
from stratagem.storage.relational.projecting import Projector
from stratagem.storage.relational.receiving import SqlReceiving

__all__ = ["PostgresProjector", "PostgresTransaction"]


class PostgresProjector(Projector):
    """Writes texts as terms and frequencies, and vectors as pgvector's own."""

    _session: Any

    def _write_texts(self, texts: Sequence[tuple[int, Document]]) -> None:
        rows = [text_row(self._session.workspace, at, document) for at, document in texts]
        self._session.executemany(self._sql["insert_text"], rows)
        tokens = sum(row[1] for row in rows)
        self._session.execute(self._sql["count_texts"], (len(rows), tokens))

    def _write_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        rows = [(at, StoredVector(vector)) for at, vector in vectors]
        self._session.executemany(self._sql["insert_vector"], rows)


class PostgresTransaction(SqlReceiving, PostgresReader):
    """See `stratagem.storage.contract.Transaction`."""

    projector = PostgresProjector

    def add_vectors(self, vectors: Mapping[int, bytes]) -> None:
        super().add_vectors({at: StoredVector(vector) for at, vector in vectors.items()})

    def change_embedder(self, name: str) -> None:
        super().change_embedder(name)
        self.set_setting(VECTOR_INDEX, None)

    def set_setting(self, name: str, value: Any) -> None:
        self._names.settings[name] = value
        self._execute(self._sql["set_setting"], (name, orjson.dumps(value).decode()))
