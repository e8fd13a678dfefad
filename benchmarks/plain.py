"""The yardstick: plain SQLite doing the least that a job needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import orjson

from benchmarks import texts

__all__ = ["PlainSqlite"]

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS versions (
        id INTEGER PRIMARY KEY, key TEXT, branch INTEGER, value BLOB, at INTEGER
    );
    CREATE INDEX IF NOT EXISTS versions_key ON versions (key, branch);
    CREATE TABLE IF NOT EXISTS branches (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (body, content='', tokenize='porter');
"""
# Ours has the same.
_CACHE_KIB: Final = 16 * 1024
_WAL_PAGES: Final = 4_000


class PlainSqlite:
    """A table of values by key, and an FTS5 table of their texts; nothing else."""

    def __init__(self, path: Path, *, synchronous: str = "normal") -> None:
        self.connection = apsw.Connection(str(path), statementcachesize=200)
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("synchronous", synchronous)
        self.connection.pragma("cache_size", -_CACHE_KIB)
        self.connection.wal_autocheckpoint(_WAL_PAGES)
        self.connection.execute(_SCHEMA)
        self._execute = self.connection.execute

    def get(self, key: str) -> Any:
        """Read a value by its key."""
        row: Any = self._execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return orjson.loads(row[0])

    def put(self, entry: tuple[str, str]) -> None:
        """Write one value and index its text, in a commit of its own."""
        key, value = entry
        self._execute("BEGIN IMMEDIATE")
        self._execute("INSERT INTO entries VALUES (?, ?)", (key, orjson.dumps(value)))
        self._execute("INSERT INTO texts (body) VALUES (?)", (value,))
        self._execute("COMMIT")

    def put_version(self, entry: tuple[str, str]) -> None:
        """Append a version of a value, in a commit of its own: the least that keeps history."""
        key, value = entry
        row = (key, 1, orjson.dumps(value), time.time_ns())
        self._execute("BEGIN IMMEDIATE")
        self._execute("INSERT INTO versions (key, branch, value, at) VALUES (?, ?, ?, ?)", row)
        self._execute("COMMIT")

    def put_many(self, entries: Iterable[tuple[str, str]]) -> None:
        """Write and index several in one commit."""
        listed = list(entries)
        many = self.connection.executemany
        self._execute("BEGIN IMMEDIATE")
        many(
            "INSERT INTO entries VALUES (?, ?)", [(key, orjson.dumps(text)) for key, text in listed]
        )
        many("INSERT INTO texts (body) VALUES (?)", [(text,) for _key, text in listed])
        self._execute("COMMIT")

    def match(self, query: str, k: int = 10) -> list[int]:
        """Return the best texts for any of the words of a query."""
        expression = " OR ".join(f'"{word}"' for word in query.split())
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self._execute(sql, (expression, k))]

    def number_entries(self, count: int) -> None:
        """Make it possible to find an entry by the number of its text."""
        self._execute("CREATE TABLE numbered (id INTEGER PRIMARY KEY, key TEXT, value BLOB)")
        rows = (
            (number, key, orjson.dumps(text))
            for number, (key, text) in enumerate(texts.entries(count), start=1)
        )
        with self.connection:
            self.connection.executemany("INSERT INTO numbered VALUES (?, ?, ?)", rows)

    def match_values(self, query: str, k: int = 10) -> list[dict[str, Any]]:
        """Return the keys and values of the best texts."""
        numbers = self.match(query, k)
        rows = (
            self._execute("SELECT key, value FROM numbered WHERE id = ?", (n,)) for n in numbers
        )
        return [
            {"key": key, "value": orjson.loads(value)} for found in rows for key, value in found
        ]

    def one_row_commit(self, name: str) -> None:
        """Commit one row of a table of names: what the least of forks would do."""
        self._execute("INSERT INTO branches VALUES (?)", (name,))

    def overlay(self, name: str, entries: Sequence[tuple[str, str]]) -> None:
        """Put changes into a table of their own, as the least of branches would."""
        self._execute(f'CREATE TABLE "{name}" (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID')
        rows = [(key, orjson.dumps(text)) for key, text in entries]
        with self.connection:
            self.connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?)', rows)

    def compare_overlay(self, name: str) -> list[tuple[str, Any, Any]]:
        """Return what the changes change."""
        rows = self._execute(
            "SELECT changed.key, entries.value, changed.value "
            f'FROM "{name}" AS changed LEFT JOIN entries USING (key)'
        )
        return [(key, old and orjson.loads(old), orjson.loads(new)) for key, old, new in rows]

    def apply_overlay(self, name: str) -> None:
        """Take the changes over, in one commit."""
        self._execute("BEGIN IMMEDIATE")
        self._execute(f'REPLACE INTO entries SELECT key, value FROM "{name}"')
        changed = [(orjson.loads(new),) for (new,) in self._execute(f'SELECT value FROM "{name}"')]
        self.connection.executemany("INSERT INTO texts (body) VALUES (?)", changed)
        self._execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
