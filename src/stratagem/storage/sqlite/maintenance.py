"""Keeping the database honest: reading the whole log, rebuilding, examining, erasing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw
import orjson

from stratagem.engine.events import Draft, Event, Space
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import ValidationFailed
from stratagem.storage.contract import Progress, Request
from stratagem.storage.sqlite.projecting import CONTENT_PURGED, Fact, Projector
from stratagem.storage.sqlite.reading import Names, SqliteReader
from stratagem.storage.sqlite.statements import SQL, script

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["log", "purge", "rebuild", "replay", "replay_all"]

_PAGE = 1_000


def log(connection: apsw.Connection, after: int) -> Iterator[Event]:
    """Return every event after a sequence, in pages: an open reader keeps the WAL growing."""
    while rows := _page(connection, after):
        for row in rows:
            yield _event(row)
        after = rows[-1][0]


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
    connection.execute(SQL["adopt_vectors"])
    connection.execute(SQL["drop_kept_vectors"])
    connection.execute(SQL["settle_unembedded"])
    bump_generation(connection)


def replay(connection: apsw.Connection, store: SqliteStore, progress: Progress) -> None:
    """Write what every event of the log means into empty read models."""
    reader = SqliteReader(connection, store.kinds, Names())
    projector = Projector(connection, reader, store.indexer, embed=False)
    total, after, ended = reader.head().sequence, 0, 0
    while rows := _page(connection, after):
        for group in _transactions(rows):
            if group[0][1] != ended and after:
                projector.end_transaction(after)
            projector.apply([_fact(row) for row in group], group[0][1])
            after, ended = group[-1][0], group[0][1]
        progress(after, total, "replaying the log")
    projector.end_transaction(after)


def bump_generation(connection: apsw.Connection) -> None:
    """Tell every process that its copy of the vectors is out of date."""
    row = connection.execute(SQL["setting"], ("vector_generation",)).fetchone()
    connection.execute(SQL["set_setting"], ("vector_generation", (row[0] if row else 0) + 1))


def purge(
    store: SqliteStore, request: Request, *, space: Space, key: str | None, sequence: int | None
) -> int:
    """Erase content from the log and from everything made of it."""

    def work(connection: apsw.Connection) -> int:
        connection.execute("BEGIN IMMEDIATE")
        try:
            erased = _erase(connection, store, request, space=space, key=key, sequence=sequence)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        # Freed pages and the write-ahead log still hold the bytes until these two ran.
        connection.execute("VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return erased

    return store.exclusive(work)


def _erase(
    connection: apsw.Connection,
    store: SqliteStore,
    request: Request,
    *,
    space: Space,
    key: str | None,
    sequence: int | None,
) -> int:
    reader = SqliteReader(connection, store.kinds, Names())
    subject = _subject(reader, connection, space, key) if key is not None else None
    doomed = _doomed(connection, subject, sequence)
    if not doomed:
        return 0
    transaction = store.transaction(connection, request, reader.head(), Names())
    default = transaction.branch(DEFAULT_BRANCH)
    assert default is not None
    transaction.append(default, [Draft(CONTENT_PURGED, {"sequences": doomed})])
    transaction.finish(None)
    sequences = orjson.dumps(doomed).decode()
    for statement in ("erase_events", "erase_results", "erase_vectors"):
        connection.execute(SQL[statement], (sequences,))
    if subject is not None:
        # No caller's key can hold a control character, so this name is never anyone's.
        connection.execute(SQL["erase_subject"], (subject, f"\0{subject}"))
    replay_all(connection, store, lambda _done, _total, _what: None)
    return len(doomed)


def _subject(
    reader: SqliteReader, connection: apsw.Connection, space: Space, key: str
) -> int | None:
    row = connection.execute(SQL["subject_id"], (reader.space_id(space), key)).fetchone()
    return row[0] if row else None


def _doomed(connection: apsw.Connection, subject: int | None, sequence: int | None) -> list[int]:
    """Return the events to erase: a subject's, or one event with its merged copies."""
    if subject is not None:
        found = {row[0] for row in connection.execute(SQL["subject_events"], (subject,))}
    elif sequence is not None:
        row = connection.execute(SQL["origin_of"], (sequence,)).fetchone()
        if row is None:
            raise ValidationFailed(
                f"No logged event has sequence {sequence}.", field="sequence", sequence=sequence
            )
        found = {row[0] or sequence}
    else:
        return []
    copies = connection.execute(SQL["copies"], (orjson.dumps(sorted(found)).decode(),))
    return sorted(found | {row[0] for row in copies})


def _page(connection: apsw.Connection, after: int) -> list[Any]:
    return connection.execute(SQL["log_page"], (after, _PAGE)).fetchall()


def _transactions(rows: list[Any]) -> Iterator[list[Any]]:
    """Part a page of the log where one transaction ends and another begins."""
    begin = 0
    for place in range(1, len(rows)):
        if rows[place][1] != rows[begin][1]:
            yield rows[begin:place]
            begin = place
    yield rows[begin:]


def _event(row: Any) -> Event:
    space = Space(row[5], row[6]) if row[5] is not None else None
    sequence, at, wall, branch, kind = row[:5]
    key, actor, request, origin, payload, salt, content, link = row[7:15]
    return Event(
        sequence, at, wall, branch, kind, space, key, actor, request, origin, payload, salt,
        content, link,
    )  # fmt: skip


def _fact(row: Any) -> Fact:
    space = Space(row[5], row[6]) if row[5] is not None else None
    content = orjson.loads(row[11]) if row[11] is not None else None
    return Fact(
        row[0], row[3], row[4], row[15], space, row[16], row[7], fresh=False, content=content
    )
