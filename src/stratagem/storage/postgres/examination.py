"""What `doctor` checks in PostgreSQL.

Every index is compared with its table (`index_checks`), and the chain is recomputed from the events
themselves. The read models of the workspace are made again from the log in tables of the same names
that only this connection sees, and compared with those in use, row by row. All of it is one
transaction that sees one state, and it is never committed.

Pages belong to the server: its checksums find damage, and its backups repair it. If it cannot read
a page, the report says what the page held: rows of a read model, which can be rebuilt, or events,
and then each lost one is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from stratagem.storage.contract import Finding, Progress
from stratagem.storage.postgres import maintenance
from stratagem.storage.postgres.connection import SCHEMA, PostgresSession, translating_errors
from stratagem.storage.postgres.index_checks import check_indexes, fault_of_table
from stratagem.storage.postgres.reader import make_queries
from stratagem.storage.postgres.salvage import UNREADABLE
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational import chain
from stratagem.storage.relational.requests import SqlRequests, is_genuine
from stratagem.storage.rescue import find_losses

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["examine"]

_FINDINGS_MAX = 100
# What the check of the chain reads.
_CHAIN_TABLES: Final = ("spaces", "subjects", "events")
_DERIVED_TABLES: Final = (*maintenance.READ_MODELS, "vectors")


def examine(
    store: PostgresStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the indexes, the chain and the read models; say what is wrong."""
    # A connection of its own: statements prepared before would still mean the tables in use.
    with translating_errors(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        structure = [*check_indexes(session, progress), *_check_tables(session)]
        log = _check_log(store, session, progress, expect, indexed=not structure)
        findings = [*log, *structure]
        if not log:
            findings += _check_requests(session)
        if not findings:
            findings = _check_read_models(store, session, progress)
    return findings[:_FINDINGS_MAX]


def _check_tables(session: PostgresSession) -> Iterator[Finding]:
    """Say which tables that are made from the log cannot be read."""
    for table in _DERIVED_TABLES:
        if fault := fault_of_table(session, table):
            yield _unreadable_table(table, fault)


def _unreadable_table(table: str, fault: str) -> Finding:
    words = f"The read model {table} cannot be read: {fault}"
    return Finding(words, f"table {table}", repairable=True, part="derived")


def _check_log(
    store: PostgresStore,
    session: PostgresSession,
    progress: Progress,
    expect: tuple[int, str] | None,
    *,
    indexed: bool,
) -> list[Finding]:
    try:
        with _one_state(session):
            if not indexed:
                # Rows that a damaged index hides are not missing from the log.
                _copy_unindexed(session)
            return list(chain.check(store.reader_over(session).log, progress, expect))
    except UNREADABLE as error:
        reason = error.diag.message_primary
    with store.salvage(progress) as readable:
        if lost := list(find_losses(readable, progress)):
            return lost
    words = f"The tables of the log are damaged: {reason}."
    return [Finding(words, "every event can be read", repairable=False, part="file")]


def _check_requests(session: PostgresSession) -> Iterator[Finding]:
    """Say which remembered results were altered, or cannot be read."""
    try:
        for result in SqlRequests(make_queries(session)).all():
            if not is_genuine(result):
                words = "A stored result of a request was altered; a repair removes it."
                where = f"request {result.request!r} of {result.actor!r}"
                yield Finding(words, where, repairable=True, part="derived")
    except UNREADABLE as error:
        words = f"The stored results of requests cannot be read: {error.diag.message_primary}"
        yield Finding(words, "table requests", repairable=False, part="file")


def _check_read_models(
    store: PostgresStore, session: PostgresSession, progress: Progress
) -> list[Finding]:
    with _one_state(session):
        for table in maintenance.READ_MODELS:
            session.execute(_fill_in("beside", table))
        maintenance.replay(session, store, progress)
        return list(_differences(session, progress))


@contextmanager
def _one_state(session: PostgresSession) -> Iterator[None]:
    """Begin a transaction that sees one state, and undo it at the end."""
    with session.connection.transaction(force_rollback=True):
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def _copy_unindexed(session: PostgresSession) -> None:
    """Have this connection read the log from copies with sound indexes, until it commits."""
    for table in _CHAIN_TABLES:
        session.execute(_fill_in("beside", table))
        session.execute(_fill_in("copy_unindexed", table))


def _differences(session: PostgresSession, progress: Progress) -> Iterator[Finding]:
    compared = [table for table in maintenance.READ_MODELS if table != "unembedded"]
    for place, table in enumerate(compared):
        progress(place, len(compared), "comparing the read models")
        words = f"The read model {table} differs from the log."
        if table.startswith("text"):
            words = "The search index differs from the log."
        yield from _ask(session, _fill_in("differences", table), words, skip=1)
    for name, words in _QUESTIONS.items():
        yield from _ask(session, _fill_in(name), words)


_QUESTIONS: Final = {
    "vector_differences": "A text has neither a vector nor a place in the queue for one.",
    "vector_strays": "A vector belongs to no text.",
    "altered_vectors": "A vector was altered.",
}


def _ask(session: PostgresSession, sql: str, words: str, *, skip: int = 0) -> Iterator[Finding]:
    """Query for a row that should not exist; the first columns identify it."""
    try:
        with session.connection.transaction():
            row = session.execute(sql).fetchone()
    except UNREADABLE as error:
        row = (*(None,) * skip, error.diag.message_primary)
    if row:
        where = "row " + ", ".join(str(value) for value in row[skip : skip + 6])
        yield Finding(words, where, repairable=True, part="derived")


def _fill_in(name: str, table: str = "") -> str:
    return SQL[name].replace("{table}", table).replace("{schema}", SCHEMA)
