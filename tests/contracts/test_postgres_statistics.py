"""What a PostgreSQL server is asked to find out about tables that have grown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stratagem.storage.postgres import maintenance
from tests.contracts.backends import open_postgres
from tests.contracts.samples import Clock, a_note, append
from tests.postgres import a_workspace


@pytest.fixture
def store(postgres_address: str) -> Iterator[Any]:
    """A store in a database of its own: whoever writes to a table changes what is known of it."""
    name = a_workspace().replace("-", "_").lower()
    with psycopg.connect(postgres_address, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
        address = f"{postgres_address.rpartition('/')[0]}/{name}"
        store = open_postgres(Path("w"), Clock(), address=address)
        try:
            yield store
        finally:
            store.close()
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def write(store: Any, first: int, count: int) -> None:
    for number in range(first, first + count):
        append(store, a_note(f"n{number}", "red"))


ADD_ROWS = (
    "INSERT INTO knows (workspace, branch, seq, vector)"
    " SELECT 0, 0, n, '' FROM generate_series($1::bigint, $2) n RETURNING seq"
)


def ask(store: Any, sql: str, *given: int) -> list[tuple[Any, ...]]:
    with store.connect() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql.encode(), given).fetchall()
        return rows


def test_rows_are_counted_and_wide_columns_left_out(store: Any) -> None:
    write(store, 0, 40)

    maintenance.count_rows(store)

    [(rows,)] = ask(store, "SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass")
    columns = {name for (name,) in ask(store, "SELECT attname FROM pg_stats")}
    assert rows > 40
    assert {"workspace", "seq", "terms", "subject"} <= columns
    assert columns.isdisjoint({"payload", "hash", "salt", "frequencies", "vector", "checksum"})


def test_a_large_table_is_counted_again_once_it_has_grown_by_a_tenth(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_SMALL_TABLE_ROWS", 0)
    counted = []
    for first, last in ((1, 9_000), (9_001, 9_009), (9_010, 12_000)):
        ask(store, ADD_ROWS, first, last)
        maintenance.count_rows(store)
        counted += ask(store, "SELECT reltuples FROM pg_class WHERE oid = 'knows'::regclass")

    assert counted == [(9_000,), (9_000,), (12_000,)]
