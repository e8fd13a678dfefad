"""Maintenance of the database file: rebuilding, compacting and erasing."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import apsw

from stratagem.storage.contract import Erased, Progress, WriteRequest
from stratagem.storage.relational import replay as log_replay
from stratagem.storage.relational.eraser import Erasure, erase
from stratagem.storage.relational.projector import Projector
from stratagem.storage.relational.transaction import SqlTransaction
from stratagem.storage.sqlite.statements import SQL, script
from stratagem.storage.sqlite.writer import setting_writer

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["checkpoint", "compact", "flush", "purge", "rebuild", "replay", "replay_all"]

# How long readers are waited for, while every writer waits. A search reads for less than that, a
# backup for minutes.
_READERS_WAIT_MS: Final = 2_000


def rebuild(connection: apsw.Connection, store: SqliteStore, progress: Progress) -> None:
    """Make every read model anew, in one transaction: readers keep the old ones until then."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        replay_all(connection, store, progress)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def replay_all(connection: apsw.Connection, store: SqliteStore, progress: Progress) -> None:
    """Drop the read models and replay the log into new ones.

    Vectors are kept where they are: they depend on a text alone, and cost the most.
    """
    connection.execute(script("drop_read_models.sql"))
    connection.execute(script("read_models.sql"))
    replay(connection, store, progress)
    checked = connection.execute(SQL["kept_checksums"]).fetchone()
    connection.execute(SQL["adopt_vectors" if checked else "adopt_unchecked_vectors"])
    connection.execute(SQL["drop_kept_vectors"])
    connection.execute(SQL["settle_unembedded"])
    bump_generation(connection)


def replay(
    connection: apsw.Connection,
    store: SqliteStore,
    progress: Progress,
    *,
    unindexed: Collection[int] = (),
) -> None:
    """Write what every event of the log means into empty read models.

    Texts that are `unindexed` are left for a later commit.
    """
    writer = store.writer(connection)
    projector = Projector(writer, embed=False, unindexed=unindexed)
    log_replay.replay(writer.log, projector, progress)


def bump_generation(connection: apsw.Connection) -> None:
    """Tell every process that its copy of the vectors is out of date."""
    settings = setting_writer(connection)
    settings.set("vector_generation", (settings.number("vector_generation") or 0) + 1)


def checkpoint(connection: apsw.Connection) -> bool:
    """Bring what the write-ahead log holds into the file; say whether that was all of it."""
    patience = connection.pragma("busy_timeout")
    connection.set_busy_timeout(_READERS_WAIT_MS)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        # A reader still sees an older state.
        return False
    finally:
        connection.set_busy_timeout(patience)
    return True


def flush(connection: apsw.Connection) -> None:
    """Have everything that was committed on the disk, in the file if nobody reads an older state.

    A commit may be in the write-ahead log alone, and in no memory but that of the operating system.
    """
    if checkpoint(connection):
        return
    durability = connection.pragma("synchronous")
    connection.pragma("synchronous", "full")
    try:
        # A commit that waits for the disk, behind all others, and changes nothing.
        connection.pragma("user_version", connection.pragma("user_version"))
    finally:
        connection.pragma("synchronous", durability)


def compact(connection: apsw.Connection) -> bool:
    """Give pages that are not used any more back to the file system; say whether all of them."""
    _write_anew(connection)
    return checkpoint(connection)


def _write_anew(connection: apsw.Connection) -> None:
    """Write the file anew without the pages that are not used any more.

    Raises:
        apsw.Error: There is no room for that; the file stays as it is.
    """
    try:
        # In memory the copy that is made meanwhile takes as much of it as the file is large.
        connection.pragma("temp_store", "file")
        connection.execute("VACUUM")
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError):
        # There may be no folder for it.
        connection.pragma("temp_store", "memory")
        connection.execute("VACUUM")
    finally:
        connection.pragma("temp_store", "memory")


def purge(store: SqliteStore, request: WriteRequest, wanted: Erasure) -> Erased:
    """Erase content from the log and from everything made of it."""

    def work(connection: apsw.Connection) -> Erased:
        connection.execute("BEGIN IMMEDIATE")
        try:
            writer = store.writer(connection)
            erased = erase(
                SqlTransaction(writer).begin(request, writer.log.head()), writer.queries, wanted
            )
            if erased.events:
                replay_all(connection, store, lambda _done, _total, _what: None)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        # Freed pages and the write-ahead log still hold the bytes. Where a reader still sees an
        # older state, or there is no room, the content is erased but not overwritten yet.
        is_overwritten = False
        with suppress(apsw.Error):
            is_overwritten = compact(connection)
        return erased if is_overwritten else replace(erased, pending=True)

    return store.exclusive(work)
