"""Maintenance of a workspace: rebuilding, erasing, counting, indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stratagem.storage.contract import Erased, Progress, WriteRequest
from stratagem.storage.postgres.connection import SCHEMA, PostgresSession, translating_errors
from stratagem.storage.postgres.reader import VECTOR_INDEX, make_queries
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational import replay as log_replay
from stratagem.storage.relational.eraser import Erasure, erase
from stratagem.storage.relational.projector import Projector
from stratagem.storage.relational.transaction import SqlTransaction

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = [
    "READ_MODELS",
    "count_rows",
    "index_vectors",
    "purge",
    "remove",
    "replay",
    "replay_all",
]

# All but vectors, which are kept: they depend on a text alone, and cost the most.
READ_MODELS: Final = (
    "branches", "versions", "tallies", "knows", "tags", "links", "numbers", "turns", "texts",
    "text_totals", "unembedded", "own_vectors",
)  # fmt: skip
# Counting so few takes no time. All workspaces share the tables, so that one of them may double
# without changing what is known about a larger table.
_SMALL_TABLE_ROWS: Final = 10_000


def replay_all(session: PostgresSession, store: PostgresStore, progress: Progress) -> None:
    """Rebuild the read models of a workspace, in the current transaction."""
    for table in READ_MODELS:
        session.execute(SQL["empty"].replace("{table}", table))
    replay(session, store, progress)
    session.execute(SQL["drop_stray_vectors"])
    session.execute(SQL["drop_altered_vectors"])
    session.execute(SQL["seal_vectors"])
    session.execute(SQL["settle_unembedded"])
    settings = store.writer(session).settings
    settings.set("vector_generation", (settings.number("vector_generation") or 0) + 1)


def replay(session: PostgresSession, store: PostgresStore, progress: Progress) -> None:
    """Write what every event of the log means into empty read models."""
    writer = store.writer(session)
    log_replay.replay(writer.log, Projector(writer, embed=False), progress)


def purge(
    session: PostgresSession,
    store: PostgresStore,
    request: WriteRequest,
    wanted: Erasure,
) -> Erased:
    """Erase content from the log and from everything made of it, in the transaction at hand."""
    writer = store.writer(session)
    erased = erase(SqlTransaction(writer).begin(request, writer.log.head()), writer.queries, wanted)
    if erased.events:
        replay_all(session, store, lambda _done, _total, _what: None)
    return erased


def remove(session: PostgresSession) -> None:
    """Take everything of a workspace away, its name too, in the transaction at hand."""
    tables = session.execute(SQL["workspace_tables"].replace("{schema}", SCHEMA)).fetchall()
    for (table,) in tables:
        session.execute(SQL["empty"].replace("{table}", table))
    session.execute(SQL["remove_head"])
    session.execute(SQL["remove_workspace"])


def count_rows(store: PostgresStore) -> None:
    """Have the server count the rows of the tables that have grown.

    It does so by itself, but a minute late: until then it takes a new workspace for empty, and
    compares every row of one table with every row of another.
    """
    tables = ["events", "subjects", "vectors", *READ_MODELS]
    with translating_errors(store.location), store.connect() as connection:
        given = (tables, _SMALL_TABLE_ROWS)
        grown = connection.execute(SQL["tables_to_count"].encode(), given).fetchall()
        for table, columns in grown:
            # A table whose index is being built is left out: the two would wait for each other.
            connection.execute(f"ANALYZE (SKIP_LOCKED) {table} ({columns})".encode())


def index_vectors(store: PostgresStore, *, at_least: int, lost: bool = False) -> bool:
    """Give a workspace with many vectors an index of its own; say whether it has one now.

    `lost`: also where it is said to have one; an index that is there stays as it is.

    May take minutes. Searches do not wait for it: until it is there every vector is compared.
    """
    reader = store.reader()
    if (reader.vectors.last() or 0) < at_least or reader.vectors.count() < at_least:
        return False
    with translating_errors(store.location), store.connect() as connection:
        queries = make_queries(store.session(connection))
        dimensions = queries.number("vector_dimensions")
        if reader.settings.number(VECTOR_INDEX) == dimensions and not lost:
            return True
        connection.execute("SET lock_timeout TO 0; SET statement_timeout TO 0")
        if not queries.number("lock_vector_index"):
            # Another server is at it.
            return False
        numbers = {"workspace": store.number, "dimensions": dimensions}
        # An incomplete index of a killed server would be maintained and never used.
        left = queries.number("vector_index_left", dimensions)
        for name in ("drop_vector_index", "build_vector_index")[0 if left else 1 :]:
            connection.execute(SQL[name].format(**numbers).encode())
    store.write(
        lambda transaction: transaction.settings.set(VECTOR_INDEX, dimensions),
        WriteRequest("stratagem"),
    )
    return True
