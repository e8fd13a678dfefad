"""What `doctor` checks.

The chain is recomputed from the events themselves. The read models are made again from
the log in a database of their own and compared with those in use, row by row: they are
functions of the log, so any difference is damage, and a rebuild mends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw

from stratagem.storage.contract import Finding, Progress
from stratagem.storage.relational import chain
from stratagem.storage.scratch import scratch_folder
from stratagem.storage.sqlite import maintenance
from stratagem.storage.sqlite.connection import translated
from stratagem.storage.sqlite.reading import Names, SqliteReader
from stratagem.storage.sqlite.statements import SQL, script

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["examine"]

_COMPARED = ("branches", "versions", "tallies", "knows", "tags", "links", "numbers", "turns")
_FINDINGS_MAX = 100


def examine(
    store: SqliteStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the file, the chain and the read models; say what is wrong."""
    with translated(store.location):
        connection = store.connect()
        reader = SqliteReader(connection, store.kinds, Names())
        connection.execute("BEGIN")
        findings = [*_file(connection), *chain.check(reader, progress, expect)]
        connection.execute("COMMIT")
        if not findings:
            findings = _read_models(store, progress)
    return findings[:_FINDINGS_MAX]


def _file(connection: apsw.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield Finding(f"SQLite's own check says: {line}", "file", repairable=False)


def _read_models(store: SqliteStore, progress: Progress) -> list[Finding]:
    with scratch_folder("stratagem-doctor-") as folder:
        # A database in memory can only be attached by its URI.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        fresh = apsw.Connection(str(folder / "fresh.db"), flags=flags)
        fresh.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        try:
            fresh.pragma("synchronous", "off")
            fresh.execute(script("read_models.sql"))
            fresh.execute("ATTACH ? AS source", (store.uri,))
            fresh.execute(SQL["text_vocabularies"])
            fresh.execute("BEGIN")
            maintenance.replay(fresh, store, progress)
            findings = list(_differences(fresh, progress))
            fresh.execute("ROLLBACK")
        finally:
            fresh.close()
    return findings


def _differences(fresh: apsw.Connection, progress: Progress) -> Iterator[Finding]:
    for place, table in enumerate(_COMPARED):
        progress(place, len(_COMPARED), "comparing the read models")
        difference = SQL["differences"].replace("{table}", table)
        if row := fresh.execute(difference).fetchone():
            words = f"The read model {table} differs from the log."
            yield Finding(words, _place(row), repairable=True)
    for name, words in (
        ("text_differences", "The search index differs from the log."),
        ("vector_differences", "A text has neither a vector nor a place in the queue for one."),
        ("vector_strays", "A vector belongs to no text."),
    ):
        if row := fresh.execute(SQL[name]).fetchone():
            yield Finding(words, _place(row), repairable=True)


def _place(row: Any) -> str:
    return "row " + ", ".join(str(value) for value in row[:6])
