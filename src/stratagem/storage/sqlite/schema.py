"""Creating, opening and upgrading the database file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from stratagem.engine.events import GENESIS, Head
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import DatabaseCorrupt, StorageUnavailable
from stratagem.storage.contract import WriteRequest
from stratagem.storage.copy_mark import SETTING, refuse_unfinished
from stratagem.storage.sqlite.connection import APPLICATION_ID, MEMORY
from stratagem.storage.sqlite.format import READ_MODELS_VERSION, VERSION, check_format
from stratagem.storage.sqlite.statements import SQL, migrations, script

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["open_writer"]


def open_writer(store: SqliteStore) -> apsw.Connection:
    """Open the first connection, and bring the file up to this version of the schema.

    Raises:
        DatabaseTooNew: A newer Stratagem wrote the file.
        DatabaseCorrupt: It is some other program's file.
    """
    if store.location != MEMORY:
        _refuse_other_than_files(store.location, read_only=store.read_only)
    connection = store.connect()
    _refuse_foreign(connection, store.location)
    _refuse_copy(connection, store)
    if store.read_only:
        _refuse_outdated(connection, store.location)
        return connection
    _use_wal(connection, store)
    if not _is_altered(connection) and not _is_current(connection):
        with store.lock_file():
            _upgrade(connection, store)
    return connection


def _refuse_other_than_files(path: str, *, read_only: bool) -> None:
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        if read_only:
            raise StorageUnavailable("There is no database at this path.", path=path) from None
        return
    except ValueError as error:
        raise StorageUnavailable("This is not a valid file name.", path=ascii(path)) from error
    if not stat.S_ISREG(mode):
        raise StorageUnavailable("The path is not a file.", path=path)


def _use_wal(connection: apsw.Connection, store: SqliteStore) -> None:
    try:
        connection.pragma("journal_mode", "wal")
    except apsw.BusyError:
        # Another process is just creating the file.
        with store.lock_file():
            connection.pragma("journal_mode", "wal")


def _refuse_outdated(connection: apsw.Connection, path: str) -> None:
    if not _is_altered(connection) and not _is_current(connection):
        is_empty = not connection.pragma("schema_version")
        raise StorageUnavailable(
            "The database is empty." if is_empty else "The database is of an older version.",
            path=path,
            hint="Open it once for writing, as `stratagem status` does: that "
            f"{'sets it up' if is_empty else 'upgrades it, and keeps all that is in it'}.",
        )


def _refuse_foreign(connection: apsw.Connection, path: str) -> None:
    version = int(connection.pragma("user_version"))
    identity = int(connection.pragma("application_id"))
    empty = not connection.pragma("schema_version")
    if not empty and identity != APPLICATION_ID:
        raise DatabaseCorrupt(
            "The file is an SQLite database, but not one of Stratagem's.",
            path=path,
            hint="Name another file with --db.",
        )
    # A number that was altered says nothing; `doctor` then finds what is wrong with it.
    believed = not empty and not _is_altered(connection)
    check_format(version, _read_models_version(connection) if believed else None, path)


def _refuse_copy(connection: apsw.Connection, store: SqliteStore) -> None:
    """Refuse a file that a copy has not finished, unless it is the copy that goes on."""
    if store.copying or not connection.pragma("schema_version") or _is_altered(connection):
        return
    row = connection.execute(SQL["setting"], (SETTING,)).fetchone()
    refuse_unfinished(row[0] if row else None, store.location)


def _is_current(connection: apsw.Connection) -> bool:
    if connection.pragma("user_version") != VERSION:
        return False
    return _read_models_version(connection) == READ_MODELS_VERSION


def _read_models_version(connection: apsw.Connection) -> int | None:
    row = connection.execute(SQL["setting"], ("read_models_version",)).fetchone()
    return None if row is None else int(row[0])


def _is_altered(connection: apsw.Connection) -> bool:
    """Whether the settings, which say the version, are not those that were written."""
    if connection.pragma("user_version") != VERSION:
        return False
    try:
        return connection.execute(SQL["broken_seal"]).fetchone() is not None
    except (apsw.CorruptError, UnicodeDecodeError):
        # What is kept in them is found out by those who ask for it.
        return True


def _upgrade(connection: apsw.Connection, store: SqliteStore) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have upgraded it meanwhile, and may be a newer Stratagem.
        _refuse_foreign(connection, store.location)
        if not _is_current(connection):
            _migrate(connection, store)
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, apsw.CorruptError):
            # `doctor` cannot help: it reads only files that were upgraded.
            raise DatabaseCorrupt(
                f"The database has an older format and is too damaged to be upgraded: {error}",
                path=store.location,
                hint="Save what can be read with `stratagem backup --rescue FILE`, and restore "
                "that into a new database.",
            ) from error
        raise


def _migrate(connection: apsw.Connection, store: SqliteStore) -> None:
    from stratagem.storage.sqlite import maintenance
    from stratagem.storage.sqlite.writer import setting_writer

    before = int(connection.pragma("user_version"))
    for number, statements in migrations():
        if number > before:
            connection.execute(statements)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", VERSION)
    if before == 0:
        connection.execute(script("read_models.sql"))
        _begin_log(connection, store)
    elif _read_models_version(connection) != READ_MODELS_VERSION:
        connection.execute(SQL["drop_message_vectors"])
        maintenance.replay_all(connection, store, lambda _done, _total, _what: None)
    setting_writer(connection).set("read_models_version", READ_MODELS_VERSION)


def _begin_log(connection: apsw.Connection, store: SqliteStore) -> None:
    from stratagem.storage.relational.transaction import SqlTransaction

    request = WriteRequest(actor="stratagem")
    transaction = SqlTransaction(store.writer(connection)).begin(request, Head(0, 0, GENESIS))
    transaction.branches.create(DEFAULT_BRANCH, parent=None, fork_sequence=0)
    transaction.finish(None)
