"""What `doctor` checks in PostgreSQL.

The read models of the workspace are made again from the log in tables of the same names that only
this connection sees, and compared with those in use, row by row. All of it is one transaction that
sees one state, and it is never committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stratagem.storage.contract import Finding, Progress
from stratagem.storage.postgres import maintenance
from stratagem.storage.postgres.connection import SCHEMA, PostgresSession, translated
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational import chain

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["examine"]

_FINDINGS_MAX = 100


def examine(
    store: PostgresStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the chain and the read models; say what is wrong."""
    # A connection of its own: statements prepared before would still mean the tables in use.
    with translated(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        findings = list(chain.check(store.reader_over(session), progress, expect))
        if not findings:
            for table in maintenance.READ_MODELS:
                session.execute(_named("beside", table))
            maintenance.replay(session, store, progress)
            findings = list(_differences(session, progress))
        session.execute("ROLLBACK")
    return findings[:_FINDINGS_MAX]


def _differences(session: PostgresSession, progress: Progress) -> Iterator[Finding]:
    compared = [table for table in maintenance.READ_MODELS if table != "unembedded"]
    for place, table in enumerate(compared):
        progress(place, len(compared), "comparing the read models")
        if row := session.execute(_named("differences", table)).fetchone():
            words = f"The read model {table} differs from the log."
            if table.startswith("text"):
                words = "The search index differs from the log."
            yield Finding(words, _place(row), repairable=True)
    for name, words in (
        ("vector_differences", "A text has neither a vector nor a place in the queue for one."),
        ("vector_strays", "A vector belongs to no text."),
    ):
        if row := session.execute(_named(name)).fetchone():
            yield Finding(words, _place((0, *row)), repairable=True)


def _named(name: str, table: str = "") -> str:
    return SQL[name].replace("{table}", table).replace("{schema}", SCHEMA)


def _place(row: Any) -> str:
    """Return what tells a row from others; the workspace, which comes first, does not."""
    return "row " + ", ".join(str(value) for value in row[1:7])
