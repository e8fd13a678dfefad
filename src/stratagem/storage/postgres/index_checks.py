"""Whether every index of a workspace's tables is there and leads to every row.

Through an ordered index each row of the workspace is looked up by its key, and the rows that it
lists are counted. Through the index of words each word is looked up, and the texts with it are
counted. The index of vectors is approximate by nature: even a new one may lead to fewer than all.
Where it misses any, another is made beside it of the same vectors, and it is damaged if it misses
more than twice as many as that one. Where the extension amcheck is installed, it checks the
structure of ordered indexes too.

Which indexes there should be is learnt from the migrations, run in the connection's own temporary
schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as faults

from stratagem.deferred_tuples import NamedTuple
from stratagem.storage.contract import Finding, Progress
from stratagem.storage.postgres.connection import (
    SCHEMA,
    Connection,
    PostgresSession,
    translating_errors,
)
from stratagem.storage.postgres.reader import VECTOR_INDEX
from stratagem.storage.postgres.salvage import UNREADABLE
from stratagem.storage.postgres.statements import SQL, migrations

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["check_indexes", "fault_of_table", "list_unchecked_indexes", "restore_indexes"]

_WORDS: Final = "texts_terms"
_ONLINE: Final = "CONCURRENTLY "


class OrderedIndex(NamedTuple):
    """A B-tree index: `rows` are those of the workspace, `predicate` says which it holds."""

    number: int
    name: str
    table: str
    columns: list[str]
    order: list[str]
    rows: str
    predicate: str


class IndexDefinition(NamedTuple):
    """An index as in the catalogue of PostgreSQL.

    `constraint` is the one that it implements, if any.
    """

    table: str
    name: str
    unique: bool
    form: str
    valid: bool
    constraint: str | None

    @property
    def meaning(self) -> tuple[str, bool, str]:
        """The identity of the index, which does not include its name."""
        return self.table, self.unique, self.form


def check_indexes(session: PostgresSession, progress: Progress) -> Iterator[Finding]:
    """Say which indexes are lost, and which differ from their tables."""
    for lost in _lost_indexes(session.connection):
        yield _index_finding(f"The index {lost.name} is missing.", lost.name, lost.table)
    indexes = _list_ordered(session)
    unreadable: set[str] = set()
    for place, index in enumerate(indexes):
        progress(place, len(indexes) + 2, "comparing indexes with their tables")
        if index.table not in unreadable:
            yield from _check_ordered(session, index, unreadable)
    if "texts" not in unreadable:
        yield from _check_words(session)
    progress(len(indexes) + 1, len(indexes) + 2, "comparing indexes with their tables")
    if "vectors" not in unreadable:
        yield from _check_vectors(session)


def list_unchecked_indexes(store: PostgresStore) -> list[str]:
    """Return the names of the indexes that the server does not read through when it is asked to."""
    with translating_errors(store.location), store.connect(examining=True) as connection:
        session = store.session(connection)
        with connection.transaction():
            session.execute(SQL["read_through_indexes"])
            unused = [each.name for each in _list_ordered(session) if not _is_used(session, each)]
        with connection.transaction():
            session.execute(SQL["read_through_words"])
            comparison = _words_comparison(session)
            if comparison is not None and not _indexes_read(session, comparison):
                unused.append(_WORDS)
    return unused


def fault_of_table(session: PostgresSession, table: str) -> str | None:
    """Say why a table cannot be read, whatever its indexes are; None where it can."""
    try:
        with session.connection.transaction():
            session.execute("SET LOCAL statement_timeout = 0")
            session.execute(_fill_in("read_table", table)).fetchone()
    except UNREADABLE as error:
        return error.diag.message_primary or type(error).__name__
    return None


def restore_indexes(session: PostgresSession) -> None:
    """Make the indexes that are missing; others may not write to their tables meanwhile."""
    for lost in _lost_indexes(session.connection):
        with session.connection.transaction():
            # One that is there and not valid has the name.
            for name in ("drop_index", "make_constraint" if lost.constraint else "make_index"):
                session.execute(_creation(name, lost))


def _creation(name: str, index: IndexDefinition) -> str:
    sql = _fill_in(name, index.table)
    for part, value in (
        ("unique", "UNIQUE" if index.unique else ""),
        ("form", index.form),
        ("constraint", index.constraint or ""),
        ("index", index.name),
    ):
        sql = sql.replace(f"{{{part}}}", value)
    return sql


def _lost_indexes(connection: Connection) -> list[IndexDefinition]:
    sql = SQL["index_definitions"]
    there = {
        each.meaning
        for each in _definitions(connection, sql.replace("{of}", f"'{SCHEMA}'::regnamespace"))
        if each.valid
    }
    with connection.transaction(force_rollback=True):
        connection.execute(SQL["build_in_temporary_schema"].encode())
        for _, script in migrations():
            connection.execute(script.replace(_ONLINE, "").encode())
        wanted = _definitions(connection, sql.replace("{of}", "pg_my_temp_schema()"))
    return [each for each in wanted if each.meaning not in there]


def _definitions(connection: Connection, sql: str) -> list[IndexDefinition]:
    return [IndexDefinition(*row) for row in connection.execute(sql.encode())]


def _list_ordered(session: PostgresSession) -> list[OrderedIndex]:
    # The statement has no parameter: what looks like one is a part of its answer.
    rows = session.connection.execute(_fill_in("btree_indexes").encode()).fetchall()
    return [OrderedIndex(*row) for row in rows]


def _check_ordered(
    session: PostgresSession, index: OrderedIndex, unreadable: set[str]
) -> Iterator[Finding]:
    try:
        fault = _compare(session, index)
        if fault is None:
            _run_amcheck(session, index)
    except UNREADABLE as error:
        fault = error.diag.message_primary
        if fault_of_table(session, index.table) is not None:
            # Reported for the table, when it is read.
            unreadable.add(index.table)
            return
    if fault is not None:
        words = f"The index {index.name} differs from its table: {fault}"
        yield _index_finding(words, index.name, index.table)


def _index_finding(words: str, index: str, table: str) -> Finding:
    return Finding(words, f"index {index} of {table}", repairable=True, part="derived")


def _run_amcheck(session: PostgresSession, index: OrderedIndex) -> None:
    schema = session.execute(SQL["amcheck_schema"]).fetchone()
    if schema is None:
        return
    sql = SQL["check_index"].replace("{amcheck}", schema[0]).replace("{index}", str(index.number))
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
    return _indexes_read(session, _comparison(index)) == [index.name] * 2


def _indexes_read(session: PostgresSession, sql: str) -> list[str]:
    """Return the names of the indexes that the server would read for a statement."""
    row = session.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()
    assert row is not None
    return list(_index_names(row[0][0]["Plan"]))


def _index_names(plan: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from _index_names(part)


def _comparison(index: OrderedIndex) -> str:
    """Return the statement that compares an index with its table."""
    here, there = (
        ", ".join(f"{side}.{column}" for column in index.columns) for side in ("here", "found")
    )
    # With equalities the order says nothing, and any index on some of the columns would do.
    same_key = f"ROW({there}) >= ROW({here}) AND ROW({there}) <= ROW({here})"
    if index.order != index.columns:
        # Rows compare in one direction only.
        same_key = f"ROW({there}) = ROW({here})"
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


def _check_words(session: PostgresSession) -> Iterator[Finding]:
    """Compare the index of words with the texts."""
    try:
        with session.connection.transaction():
            session.execute(SQL["read_through_words"])
            comparison = _words_comparison(session)
            if comparison is None or not _indexes_read(session, comparison):
                return
            row = session.execute(comparison).fetchone()
    except UNREADABLE as error:
        if fault_of_table(session, "texts") is not None:
            return
        row = (error.diag.message_primary,)
    if row is not None:
        words = f"The index {_WORDS} does not find a text by one of its words."
        yield _index_finding(words, _WORDS, "texts")


def _words_comparison(session: PostgresSession) -> str | None:
    """Return the statement that compares the index of words with its table; None without texts."""
    row = session.execute(_fill_in("table_of_texts")).fetchone()
    return SQL["compare_words"].replace("{table}", row[0]) if row else None


def _check_vectors(session: PostgresSession) -> Iterator[Finding]:
    """Compare the workspace's index of vectors, if it has one, with the vectors."""
    row = session.execute(SQL["setting"], (VECTOR_INDEX,)).fetchone()
    if row is None or row[0] is None:
        return
    dimensions = int(row[0])
    name = f"vectors_near_{session.workspace}_{dimensions}"
    if not _is_valid(session, name):
        yield _index_finding(f"The index {name} is missing.", name, "vectors")
        return
    try:
        missed = _missed_vectors(session, f"{SCHEMA}.vectors", dimensions)
        # Making another takes a while, and is only worth it on a suspicion.
        damaged = missed > 0 and missed > 2 * _missed_by_another(session, dimensions)
        fault = f"it misses {missed:,} vectors."
    except UNREADABLE as error:
        if fault_of_table(session, "vectors") is not None:
            return
        damaged, fault = True, error.diag.message_primary or ""
    if damaged:
        words = f"The index {name} differs from its table: {fault}"
        yield _index_finding(words, name, "vectors")


def _is_valid(session: PostgresSession, index: str) -> bool:
    sql = SQL["index_is_valid"].replace("{index}", f"{SCHEMA}.{index}")
    row = session.execute(sql).fetchone()
    return row is not None and bool(row[0])


def _missed_vectors(session: PostgresSession, table: str, dimensions: int) -> int:
    """Return how many vectors an index does not lead to."""
    with session.connection.transaction():
        session.execute(SQL["read_through_vectors"])
        sql = SQL["missed_vectors"].replace("{table}", table)
        sql = sql.replace("{workspace}", str(session.workspace))
        sql = sql.replace("{dimensions}", str(dimensions))
        if not _indexes_read(session, sql):
            # Whoever searches compares every vector then.
            return 0
        row = session.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def _missed_by_another(session: PostgresSession, dimensions: int) -> int:
    """Build a new index of the same vectors, and return how many vectors it does not lead to."""
    with session.connection.transaction(force_rollback=True):
        session.execute("SET LOCAL statement_timeout = 0")
        for name in ("vectors_beside", "index_beside"):
            sql = SQL[name].replace("{schema}", SCHEMA)
            sql = sql.replace("{workspace}", str(session.workspace))
            session.execute(sql.replace("{dimensions}", str(dimensions)))
        return _missed_vectors(session, "pg_temp.vectors_beside", dimensions)


def _fill_in(name: str, table: str = "") -> str:
    return SQL[name].replace("{table}", table).replace("{schema}", SCHEMA)
