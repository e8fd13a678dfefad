"""What `doctor --repair` does in PostgreSQL, before the read models are rebuilt from the log.

Tables of read models are rewritten if the server cannot read all of their pages: the lost rows come
back with the rebuild. That needs a superuser, because the server must be told to skip damaged
pages. Then missing indexes are created, and all others rebuilt. The tables of the log are never
rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg import errors as faults

from stratagem.errors import StorageUnavailable
from stratagem.storage.contract import Progress
from stratagem.storage.postgres.connection import SCHEMA, PostgresSession, translating_errors
from stratagem.storage.postgres.index_checks import fault_of_table, restore_indexes
from stratagem.storage.postgres.maintenance import READ_MODELS, index_vectors
from stratagem.storage.postgres.reader import VECTOR_INDEX, make_queries
from stratagem.storage.postgres.statements import SQL
from stratagem.storage.relational.requests import SqlRequests, is_genuine

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["forget_altered_results", "mend_tables", "mend_vector_index"]

_DERIVED_TABLES: Final = (*READ_MODELS, "vectors")
_OTHER_TABLES: Final = (
    "events", "subjects", "spaces", "requests", "settings", "workspaces", "heads", "projections",
    "outbox",
)  # fmt: skip


def mend_tables(store: PostgresStore, progress: Progress) -> None:
    """Rewrite read models that cannot be read, and make the indexes of every table anew.

    Raises:
        StorageUnavailable: A page cannot be read, and only a superuser may leave it out.
    """
    with translating_errors(store.location), store.connect() as connection:
        session = store.session(connection)
        session.execute("SET lock_timeout TO 0; SET statement_timeout TO 0")
        for table in _DERIVED_TABLES:
            if fault_of_table(session, table):
                _rewrite(session, table, store.location)
        restore_indexes(session)
        tables = (*_OTHER_TABLES, *_DERIVED_TABLES)
        for place, table in enumerate(tables):
            progress(place, len(tables), "rebuilding indexes")
            session.execute(SQL["reindex"].replace("{table}", table))


def _rewrite(session: PostgresSession, table: str, location: str) -> None:
    """Write a table anew without the pages that cannot be read; others wait for it meanwhile."""
    rewriting = f"VACUUM FULL {SCHEMA}.{table}"
    try:
        session.execute("SET zero_damaged_pages TO on")
    except faults.InsufficientPrivilege as error:
        raise StorageUnavailable(
            f"The server cannot read all of the table {table}, and only a superuser may skip "
            "the damaged pages.",
            hint="It holds nothing of the log. As a superuser of the server run: SET"
            f" zero_damaged_pages TO on; {rewriting}; then repeat the command.",
            path=location,
        ) from error
    try:
        session.execute(rewriting)
    finally:
        # No table of the log is ever read with it.
        session.execute("RESET zero_damaged_pages")


def forget_altered_results(session: PostgresSession) -> None:
    """Forget the results of requests that are not what was remembered."""
    for result in list(SqlRequests(make_queries(session)).all()):
        if not is_genuine(result):
            session.execute(SQL["forget_request"], (result.actor, result.request))


def mend_vector_index(store: PostgresStore) -> None:
    """Create the vector index of the workspace if it should have one and has none."""
    if store.reader().settings.number(VECTOR_INDEX) is not None:
        index_vectors(store, at_least=0, lost=True)
