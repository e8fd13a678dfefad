"""What `doctor` checks in PostgreSQL.

Pages are the server's own business (its checksums find damage, and its backups mend it). Where the
extension amcheck is installed, each index is compared with its table.

The read models of the workspace are made again from the log in tables of the same names that only
this connection sees, and compared with those in use, row by row. All of it is one transaction that
sees one state, and it is never committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from psycopg import errors as faults

from stratagem.storage.contract import Finding, Progress
from stratagem.storage.postgres import maintenance
from stratagem.storage.postgres.connection import (
    SCHEMA,
    Connection,
    PostgresSession,
    translating_errors,
)
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational import chain

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["examine", "examines_indexes"]

_FINDINGS_MAX = 100


def examine(
    store: PostgresStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the chain and the read models; say what is wrong."""
    # A connection of its own: statements prepared before would still mean the tables in use.
    with translating_errors(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        damaged = list(_indexes(connection))
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        findings = list(chain.check(store.reader_over(session).log, progress, expect))
        findings += damaged
        if not findings:
            for table in maintenance.READ_MODELS:
                session.execute(_fill_in("beside", table))
            maintenance.replay(session, store, progress)
            findings = list(_differences(session, progress))
        session.execute("ROLLBACK")
    return findings[:_FINDINGS_MAX]


def examines_indexes(store: PostgresStore) -> bool:
    """Whether the server can compare its indexes with their tables: it needs amcheck."""
    with translating_errors(store.location), store.connect(examining=True) as connection:
        return connection.execute(SQL["amcheck_schema"].encode()).fetchone() is not None


def _indexes(connection: Connection) -> Iterator[Finding]:
    """Have the server compare its indexes with their tables, where it has amcheck."""
    found = connection.execute(SQL["amcheck_schema"].encode()).fetchone()
    if found is None:
        return
    for number, name, table in connection.execute(_fill_in("btree_indexes").encode()).fetchall():
        sql = SQL["check_index"].replace("{amcheck}", found[0]).replace("{index}", str(number))
        try:
            connection.execute(sql.encode())
        except faults.InsufficientPrivilege:
            # It is installed, but this user may not use it.
            return
        except (faults.IndexCorrupted, faults.DataCorrupted) as error:
            words = f"The index {name} differs from its table: {error.diag.message_primary}"
            yield Finding(words, f"index {name} of {table}", repairable=True, part="derived")


def _differences(session: PostgresSession, progress: Progress) -> Iterator[Finding]:
    compared = [table for table in maintenance.READ_MODELS if table != "unembedded"]
    for place, table in enumerate(compared):
        progress(place, len(compared), "comparing the read models")
        if row := session.execute(_fill_in("differences", table)).fetchone():
            words = f"The read model {table} differs from the log."
            if table.startswith("text"):
                words = "The search index differs from the log."
            yield Finding(words, _place(row), repairable=True, part="derived")
    for name, words in (
        ("vector_differences", "A text has neither a vector nor a place in the queue for one."),
        ("vector_strays", "A vector belongs to no text."),
    ):
        if row := session.execute(_fill_in(name)).fetchone():
            yield Finding(words, _place((0, *row)), repairable=True, part="derived")


def _fill_in(name: str, table: str = "") -> str:
    return SQL[name].replace("{table}", table).replace("{schema}", SCHEMA)


def _place(row: Any) -> str:
    """Return what tells a row from others; the workspace, which comes first, does not."""
    return "row " + ", ".join(str(value) for value in row[1:7])
