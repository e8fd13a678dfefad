"""What `doctor` checks in PostgreSQL.

Pages are the server's own business (its checksums find damage, and its backups mend it). Each
ordered index is compared with its table: every row of the workspace is looked up by its key, and
the rows that the index lists are counted. Where the extension amcheck is installed, it checks the
structure of the index too.

The read models of the workspace are made again from the log in tables of the same names that only
this connection sees, and compared with those in use, row by row. All of it is one transaction that
sees one state, and it is never committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import errors as faults

from stratagem.storage.contract import Finding, Progress
from stratagem.storage.postgres import maintenance
from stratagem.storage.postgres.connection import (
    SCHEMA,
    PostgresSession,
    translating_errors,
)
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational import chain

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["examine", "list_unchecked_indexes"]

_FINDINGS_MAX = 100
# What the check of the chain reads.
_CHAIN_TABLES: Final = ("spaces", "subjects", "events")


class OrderedIndex(NamedTuple):
    """A B-tree index: `rows` are those of the workspace, `predicate` says which it holds."""

    number: int
    name: str
    table: str
    columns: list[str]
    order: list[str]
    rows: str
    predicate: str


def examine(
    store: PostgresStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the chain and the read models; say what is wrong."""
    # A connection of its own: statements prepared before would still mean the tables in use.
    with translating_errors(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        findings = list(_check_indexes(session, progress))
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        if findings:
            # Rows that a damaged index hides are not missing from the log.
            _copy_unindexed(session)
        findings += chain.check(store.reader_over(session).log, progress, expect)
        if not findings:
            for table in maintenance.READ_MODELS:
                session.execute(_fill_in("beside", table))
            maintenance.replay(session, store, progress)
            findings = list(_differences(session, progress))
        session.execute("ROLLBACK")
    return findings[:_FINDINGS_MAX]


def list_unchecked_indexes(store: PostgresStore) -> list[str]:
    """Return the names of the indexes that the server does not read through when it is asked to."""
    with translating_errors(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        with connection.transaction():
            session.execute(SQL["read_through_indexes"])
            return [each.name for each in _list_indexes(session) if not _is_used(session, each)]


def _list_indexes(session: PostgresSession) -> list[OrderedIndex]:
    # The statement has no parameter: what looks like one is a part of its answer.
    rows = session.connection.execute(_fill_in("btree_indexes").encode()).fetchall()
    return [OrderedIndex(*row) for row in rows]


def _check_indexes(session: PostgresSession, progress: Progress) -> Iterator[Finding]:
    """Compare the indexes with their tables."""
    amcheck = session.execute(SQL["amcheck_schema"]).fetchone()
    indexes = _list_indexes(session)
    for place, index in enumerate(indexes):
        progress(place, len(indexes), "comparing indexes with their tables")
        try:
            fault = _compare(session, index)
            if amcheck is not None and fault is None:
                _run_amcheck(session, amcheck[0], index)
        except (faults.IndexCorrupted, faults.DataCorrupted) as error:
            fault = error.diag.message_primary
        if fault is not None:
            words = f"The index {index.name} differs from its table: {fault}"
            where = f"index {index.name} of {index.table}"
            yield Finding(words, where, repairable=True, part="derived")


def _run_amcheck(session: PostgresSession, schema: str, index: OrderedIndex) -> None:
    sql = SQL["check_index"].replace("{amcheck}", schema).replace("{index}", str(index.number))
    # It may be installed without this user being allowed to use it.
    with suppress(faults.InsufficientPrivilege):
        session.execute(sql)


def _compare(session: PostgresSession, index: OrderedIndex) -> str | None:
    """Say how an index differs from its table; None where it does not, or is not read."""
    with session.connection.transaction():
        session.execute(SQL["read_through_indexes"])
        if not _is_used(session, index):
            return None
        row = session.execute(_comparison(index)).fetchone()
    assert row is not None
    count, missing, listed = row
    if missing:
        return f"{missing:,} of {count:,} rows are not found by their key."
    return None if listed == count else f"it lists {listed:,} of {count:,} rows."


def _is_used(session: PostgresSession, index: OrderedIndex) -> bool:
    """Whether the server compares the table with this index, and not with another."""
    row = session.execute(f"EXPLAIN (FORMAT JSON) {_comparison(index)}").fetchone()
    assert row is not None
    return list(_index_names(row[0][0]["Plan"])) == [index.name] * 2


def _index_names(plan: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from _index_names(part)


def _comparison(index: OrderedIndex) -> str:
    """Return the statement that compares an index with its table."""
    here, found = (
        ", ".join(f"{side}.{column}" for column in index.columns) for side in ("here", "found")
    )
    # With equalities the order says nothing, and any index on some of the columns would do.
    same_key = f"ROW({found}) >= ROW({here}) AND ROW({found}) <= ROW({here})"
    if index.order != index.columns:
        # Rows compare in one direction only.
        same_key = f"ROW({found}) = ROW({here})"
    sql = _fill_in("compare_index", index.table)
    for name, value in (
        ("columns", here),
        ("rows", index.rows),
        ("predicate", index.predicate),
        ("same_key", same_key),
        ("order", ", ".join(index.order)),
    ):
        sql = sql.replace(f"{{{name}}}", value)
    return sql


def _copy_unindexed(session: PostgresSession) -> None:
    """Have this connection read the log from copies with sound indexes, until it commits."""
    for table in _CHAIN_TABLES:
        session.execute(_fill_in("beside", table))
        session.execute(_fill_in("copy_unindexed", table))


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
