"""Rewriting a damaged database from its events.

Read models are never repaired in place: to drop a damaged table SQLite walks its pages, and a page
number that a flipped bit has changed may be one of the log's. So a database
is made beside the old one, event by event, and examined; then its pages are put in the place of the
old ones, in one transaction. Who reads meanwhile keeps seeing the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from stratagem.engine.events import Event
from stratagem.errors import DatabaseCorrupt, ImportRefused
from stratagem.storage.contract import Progress, Transaction, WriteRequest
from stratagem.storage.log_copy import add_results, add_vectors
from stratagem.storage.relational.requests import SqlRequests, is_genuine
from stratagem.storage.rescue import Rescue, fill
from stratagem.storage.scratch import scratch_folder
from stratagem.storage.sqlite.connection import DAMAGE
from stratagem.storage.sqlite.reader import make_reader
from stratagem.storage.sqlite.salvage import salvage
from stratagem.storage.sqlite.statements import SQL

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["replace_contents"]

_WRITER: Final = WriteRequest("stratagem")
_PAGE: Final = 1_000
_PAGES_AT_ONCE: Final = 1_000
_UNREADABLE: Final = (apsw.Error, *DAMAGE)
# What a new database has of its own.
_OWN_SETTINGS: Final = ("read_models_version", "embedder")
# More than there ever are; damage can make any number of one.
_GENERATIONS: Final = 2**31


def replace_contents(connection: apsw.Connection, store: SqliteStore, progress: Progress) -> None:
    """Build a database from the same log, and put its pages in place of those in use.

    Raises:
        DatabaseCorrupt: Not every event is there, or what was made is not healthy.
    """
    folder = Path(store.location).parent
    with scratch_folder(".stratagem-repair-", folder) as beside:
        made = beside / "repaired.db"
        with closing(store.beside(str(made))) as target:
            _copy(connection, store, target, progress)
            if findings := target.examine(progress, None):
                raise DatabaseCorrupt(
                    f"The database rebuilt from the log is not healthy: {findings[0].what}",
                    where=findings[0].where,
                )
        _put_in_place(connection, made, progress)


def _copy(
    connection: apsw.Connection, store: SqliteStore, target: SqliteStore, progress: Progress
) -> None:
    reader = make_reader(connection, store.kinds)
    try:
        fill(target, _with_progress(reader.log.events(0), reader.log.head().sequence, progress))
    except (*_UNREADABLE, DatabaseCorrupt, ImportRefused):
        _copy_pages(store, target, progress)
    # An error in these must not stop the rest.
    with suppress(*_UNREADABLE):
        _copy_settings(connection, target)
    with suppress(*_UNREADABLE):
        _copy_vectors(connection, target)
    with suppress(*_UNREADABLE):
        _copy_requests(reader.requests, target)


def _with_progress(events: Iterator[Event], total: int, progress: Progress) -> Iterator[Event]:
    for event in events:
        yield event
        if event.sequence % _PAGE == 0:
            progress(event.sequence, total, "copying events")


def _copy_pages(store: SqliteStore, target: SqliteStore, progress: Progress) -> None:
    """Copy the events that the tables do not give in order, from the pages themselves."""
    with salvage(store.location, progress) as found:
        rescue = Rescue(found)
        after = target.reader().log.head().sequence
        after = 0 if after <= 1 else after
        fill(target, (event for event in rescue.events(progress) if event.sequence > after))
        if not rescue.is_whole:
            raise DatabaseCorrupt("Some events are lost, so the log cannot be rebuilt.")


def _copy_settings(connection: apsw.Connection, target: SqliteStore) -> None:
    rows: list[Any] = connection.execute(SQL["settings"]).fetchall()
    settings: dict[str, Any] = dict(rows)
    generation = settings.pop("vector_generation", 0)
    if connection.execute(SQL["broken_seal"]).fetchone():
        # Which of them is wrong is not known; each has a default.
        settings = {}

    def work(transaction: Transaction) -> None:
        if "embedder" in settings:
            transaction.vectors.change_embedder(settings["embedder"])
        for name, value in settings.items():
            if name not in _OWN_SETTINGS:
                transaction.settings.set(name, value)
        # Every process has vectors of the old one in its memory, and where words occurred there.
        before = generation if isinstance(generation, int) else 0
        transaction.settings.set("vector_generation", before % _GENERATIONS + 1)

    target.write(work, _WRITER)


def _copy_vectors(connection: apsw.Connection, target: SqliteStore) -> None:
    """Copy the vectors that are as they were made; the others are made again."""
    if target.reader().settings.text("embedder") is None:
        return
    after = 0
    while rows := _vectors(connection, after):
        vectors = {sequence: vector for _, sequence, vector in rows if vector is not None}
        add_vectors(target, vectors)
        after = rows[-1][0]


def _vectors(connection: apsw.Connection, after: int) -> list[Any]:
    return connection.execute(SQL["sound_vectors"], (after, _PAGE)).fetchall()


def _copy_requests(requests: SqlRequests, target: SqliteStore) -> None:
    after = ("", "")
    while page := requests.after(after, _PAGE):
        add_results(target, list(filter(is_genuine, page)))
        after = (page[-1].actor, page[-1].request)


def _put_in_place(connection: apsw.Connection, made: Path, progress: Progress) -> None:
    with (
        closing(apsw.Connection(str(made), flags=apsw.SQLITE_OPEN_READWRITE)) as source,
        connection.backup("main", source, "main") as backup,
    ):
        while not backup.done:
            backup.step(_PAGES_AT_ONCE)
            done = backup.page_count - backup.remaining
            progress(done, backup.page_count, "rewriting the file")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
