"""Appending to a log in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stratagem.storage.contract import Document
from stratagem.storage.relational.appending import Adapters
from stratagem.storage.relational.projecting import Projector
from stratagem.storage.relational.receiving import SqlReceiving
from stratagem.storage.sqlite.reading import SqliteReader

__all__ = ["Adapters", "SqliteProjector", "SqliteTransaction"]


class SqliteProjector(Projector):
    """Writes texts into FTS5, and vectors as they come."""

    def _write_texts(self, texts: Sequence[tuple[int, Document]]) -> None:
        rows = [(at, doc.title, doc.body, doc.context) for at, doc in texts]
        self._session.executemany(self._sql["insert_text"], rows)

    def _write_vectors(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._session.executemany(self._sql["insert_vector"], vectors)


class SqliteTransaction(SqlReceiving, SqliteReader):
    """See `stratagem.storage.contract.Transaction`."""

    projector = SqliteProjector
    # Nobody else can write, and the commit has looked at it.
    checks_format = False

    def set_setting(self, name: str, value: Any) -> None:
        # A seal that is broken stays so, for `doctor` to find.
        broken = self._execute(self._sql["broken_seal"]).fetchone()
        super().set_setting(name, value)
        if broken is None:
            self._execute(self._sql["seal_settings"])
