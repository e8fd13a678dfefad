"""Creating and upgrading the tables, and giving a workspace its place in them.

Migrations are numbered and each is run once, by whichever server comes first; the others wait
for it. A migration may only make changes that older servers on the same database tolerate: add
tables, add columns with a default, add indexes. A migration that says so in its first line is run
statement by statement outside of any transaction, so that it can build an index while others write.

The format of the read models of a workspace has a version too. A workspace with an older version is
replayed when it is opened: only its own writers wait.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stratagem.engine.events import GENESIS, Head
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import DatabaseTooNew, StorageUnavailable
from stratagem.storage.contract import WriteRequest
from stratagem.storage.copy_mark import SETTING, refuse_unfinished
from stratagem.storage.postgres import maintenance
from stratagem.storage.postgres.connection import SCHEMA, Connection
from stratagem.storage.postgres.statements import SQL, migrations
from stratagem.storage.relational.transaction import SqlTransaction

if TYPE_CHECKING:
    from stratagem.storage.postgres.store import PostgresStore

__all__ = ["READ_MODELS_VERSION", "VERSION", "begin", "check_read_models", "enter"]

VERSION = max(number for number, _ in migrations())
# Raised with every change to what is written into the read models.
READ_MODELS_VERSION = 15
_ONLINE = "-- online"
# How often a process looks whether another has migrated.
_LOCK_SECONDS = 0.05
# The first whose index goes on until a filter has left enough.
PGVECTOR_MIN = (0, 8)
# Any number that other programs are unlikely to use for an advisory lock.
_MIGRATING = 0x53545241


def enter(connection: Connection, store: PostgresStore) -> int:
    """Bring the tables up to date, and return the number of the store's workspace.

    Raises:
        DatabaseTooNew: A newer Stratagem wrote the tables.
        StorageUnavailable: They are missing or old, and may only be read.
    """
    version = _version(connection)
    if version > VERSION:
        raise _too_new(store, version, VERSION)
    if version < VERSION:
        _refuse_reading(store)
        # A connection of its own, for a migration may take longer than anything else may.
        with store.connect() as patient:
            patient.execute("SET lock_timeout TO 0; SET statement_timeout TO 0")
            _migrate(patient, store)
    number = _number(connection, store.workspace)
    if number is None:
        _refuse_reading(store)
        number = _create_workspace(connection, store)
    return number


def begin(store: PostgresStore, connection: Connection) -> None:
    """Write a workspace's first event, or replay it where an older version wrote it."""
    session = store.session(connection)
    if not store.copying:
        mark = session.execute(SQL["setting"], (SETTING,)).fetchone()
        refuse_unfinished(mark[0] if mark else None, store.location)
    row = session.execute(SQL["setting"], ("read_models_version",)).fetchone()
    if row is not None and row[0] == READ_MODELS_VERSION:
        return
    if row is not None:
        check_read_models(store, row[0])
    _refuse_reading(store)
    with store.writing(connection):
        writer = store.writer(session)
        head = writer.log.head()
        transaction = SqlTransaction(writer).begin(WriteRequest(actor="stratagem"), head)
        # Checked again under the lock: another server may have done it meanwhile.
        if transaction.settings.number("read_models_version") == READ_MODELS_VERSION:
            return
        if head == Head(0, 0, GENESIS):
            transaction.branches.create(DEFAULT_BRANCH, parent=None, fork_sequence=0)
            transaction.finish(None)
        else:
            session.execute(SQL["drop_message_vectors"])
            maintenance.replay_all(session, store, lambda _done, _total, _what: None)
        transaction.settings.set("read_models_version", READ_MODELS_VERSION)


def check_read_models(store: PostgresStore, version: int) -> None:
    """Refuse to write into read models of a newer version.

    Servers of both versions may run for a while, and each would undo the work of the other.
    """
    if version > READ_MODELS_VERSION:
        raise _too_new(store, version, READ_MODELS_VERSION)


def _too_new(store: PostgresStore, found: int, supported: int) -> DatabaseTooNew:
    return DatabaseTooNew(
        f"The database has format {found}; this Stratagem reads up to {supported}.",
        path=store.location,
        format=found,
        supported=supported,
    )


def _refuse_reading(store: PostgresStore) -> None:
    if store.read_only:
        raise StorageUnavailable(
            "The workspace does not exist, or has an older format.",
            path=store.location,
            hint="Open it once for writing: that creates or upgrades it.",
        )


def _version(connection: Connection) -> int:
    row = connection.execute(_sql("tables_there"), (f"{SCHEMA}.migrations",)).fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute(_sql("newest_migration")).fetchone()
    return int(row[0]) if row else 0


def _migrate(connection: Connection, store: PostgresStore) -> None:
    while not _try_lock(connection):
        time.sleep(_LOCK_SECONDS)
    try:
        _prepare(connection, store)
        before = _version(connection)
        for number, script in migrations():
            if number > before:
                _apply(connection, number, script)
    finally:
        connection.execute(_sql("unlock_migrations"), (_MIGRATING,))


def _try_lock(connection: Connection) -> bool:
    row = connection.execute(_sql("try_lock_migrations"), (_MIGRATING,)).fetchone()
    return bool(row and row[0])


def _prepare(connection: Connection, store: PostgresStore) -> None:
    """Create what the migrations need, as far as it does not exist."""
    there, pgvector = _read_installation(connection)
    if not there:
        connection.execute(_sql("make_schema"))
    if pgvector is None:
        connection.execute(_sql("make_extension"))
        _, pgvector = _read_installation(connection)
    if tuple(map(int, pgvector.split(".")[:2])) < PGVECTOR_MIN:
        raise StorageUnavailable(
            f"The database has pgvector {pgvector}; at least 0.8 is needed.",
            hint="Install a newer version on the server's machine, and run: ALTER EXTENSION "
            "vector UPDATE.",
            path=store.location,
        )
    connection.execute(_sql("make_migrations"))


def _read_installation(connection: Connection) -> tuple[bool, Any]:
    there, pgvector = connection.execute(_sql("installation"), (SCHEMA,)).fetchone() or (
        False,
        None,
    )
    return there, pgvector


def _apply(connection: Connection, number: int, script: str) -> None:
    if script.startswith(_ONLINE):
        for statement in filter(str.strip, script.split(";\n")):
            connection.execute(statement.encode())
        connection.execute(_sql("note_migration"), (number,))
        return
    with connection.transaction():
        connection.execute(script.encode())
        connection.execute(_sql("note_migration"), (number,))


def _number(connection: Connection, name: str) -> int | None:
    row = connection.execute(_sql("workspace_number"), (name,)).fetchone()
    return int(row[0]) if row else None


def _create_workspace(connection: Connection, store: PostgresStore) -> int:
    """Give a new workspace its number and the row that its writers lock."""
    with connection.transaction():
        connection.execute(_sql("found_workspace"), (store.workspace,))
        number = _number(connection, store.workspace)
        assert number is not None
        connection.execute(_sql("found_head"), (number,))
    return number


def _sql(name: str) -> bytes:
    return SQL[name].replace("{schema}", SCHEMA).encode()
