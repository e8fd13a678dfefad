"""What `doctor` checks.

The chain is recomputed from the events themselves. The read models are made again from
the log in a database of their own and compared with those in use, row by row: they are
functions of the log, so any difference is damage, and a rebuild mends it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import orjson

from stratagem.engine.events import GENESIS, Event, content_hash, event_hash
from stratagem.storage.contract import Finding, Progress
from stratagem.storage.sqlite import maintenance
from stratagem.storage.sqlite.connection import translated
from stratagem.storage.sqlite.projecting import CONTENT_PURGED
from stratagem.storage.sqlite.statements import SQL, script

if TYPE_CHECKING:
    from stratagem.storage.sqlite.store import SqliteStore

__all__ = ["examine"]

_COMPARED = ("branches", "versions", "tallies", "knows", "tags", "links", "numbers", "turns")
_FINDINGS_MAX = 100


def examine(
    store: SqliteStore, progress: Progress, expect: tuple[int, str] | None
) -> list[Finding]:
    """Check the file, the chain and the read models; say what is wrong."""
    with translated(store.location):
        connection = store.connect()
        connection.execute("BEGIN")
        findings = [*_file(connection), *_chain(connection, progress, expect)]
        connection.execute("COMMIT")
        if not findings:
            findings = _read_models(store, progress)
    return findings[:_FINDINGS_MAX]


def _file(connection: apsw.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield Finding(f"SQLite's own check says: {line}", "file", repairable=False)


def _chain(
    connection: apsw.Connection, progress: Progress, expect: tuple[int, str] | None
) -> Iterator[Finding]:
    head = connection.execute(SQL["head"]).fetchone()
    total = head[0] if head else 0
    previous, last = GENESIS, None
    empty: set[int] = set()
    purged: set[int] = set()
    anchored = expect is None
    for event in maintenance.log(connection, 0):
        broken = _broken(event, previous, last)
        yield from broken
        anchored = anchored or (event.sequence, event.hash.hex()) == expect
        if event.payload is None:
            empty.add(event.sequence)
        elif event.kind == CONTENT_PURGED and not broken:
            purged |= set(orjson.loads(event.payload)["sequences"])
        previous, last = event.hash, event
        if event.sequence % 10_000 == 0:
            progress(event.sequence, total, "checking the chain")
    for sequence in sorted(empty - purged):
        yield Finding(
            "An event lost its content without a purge.", f"event {sequence}", repairable=False
        )
    if not anchored and expect is not None:
        yield Finding(
            "The log does not hold the expected event: it was cut short or rewritten.",
            f"event {expect[0]}",
            repairable=False,
        )


def _broken(event: Event, previous: bytes, last: Event | None) -> list[Finding]:
    try:
        return list(_link(event, previous, last))
    except TypeError:
        # Damage can leave a value of another type where no constraint was asked again.
        return [Finding("An event cannot be read.", f"event {event.sequence}", repairable=False)]


def _link(event: Event, previous: bytes, last: Event | None) -> Iterator[Finding]:
    """Check one event against its own hashes and the event before it."""
    where = f"event {event.sequence}"
    if event.sequence != (last.sequence if last else 0) + 1:
        yield Finding("Events before this one are missing.", where, repairable=False)
    if last is not None and event.at < last.at:
        yield Finding("An event is older than the one before it.", where, repairable=False)
    if event.payload is not None:
        content = content_hash(event.salt or b"", event.space, event.key, event.payload)
        if content != event.content_hash:
            yield Finding("The content of an event was altered.", where, repairable=False)
    link = event_hash(
        previous,
        sequence=event.sequence,
        at=event.at,
        wall=event.wall,
        branch=event.branch,
        kind=event.kind,
        actor=event.actor,
        request=event.request,
        origin=event.origin,
        content=event.content_hash,
    )
    if link != event.hash:
        yield Finding("An event does not fit the one before it.", where, repairable=False)


def _read_models(store: SqliteStore, progress: Progress) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="stratagem-doctor-") as folder:
        # A database in memory can only be attached by its URI.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        fresh = apsw.Connection(str(Path(folder) / "fresh.db"), flags=flags)
        fresh.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        try:
            fresh.pragma("synchronous", "off")
            fresh.execute(script("read_models.sql"))
            fresh.execute("ATTACH ? AS source", (store.uri,))
            fresh.execute(SQL["text_vocabularies"])
            fresh.execute("BEGIN")
            maintenance.replay(fresh, store, progress)
            findings = list(_differences(fresh, progress))
            fresh.execute("ROLLBACK")
        finally:
            fresh.close()
    return findings


def _differences(fresh: apsw.Connection, progress: Progress) -> Iterator[Finding]:
    for place, table in enumerate(_COMPARED):
        progress(place, len(_COMPARED), "comparing the read models")
        difference = SQL["differences"].replace("{table}", table)
        if row := fresh.execute(difference).fetchone():
            words = f"The read model {table} differs from the log."
            yield Finding(words, _place(row), repairable=True)
    for name, words in (
        ("text_differences", "The search index differs from the log."),
        ("vector_differences", "A text has neither a vector nor a place in the queue for one."),
        ("vector_strays", "A vector belongs to no text."),
    ):
        if row := fresh.execute(SQL[name]).fetchone():
            yield Finding(words, _place(row), repairable=True)


def _place(row: Any) -> str:
    return "row " + ", ".join(str(value) for value in row[:6])
