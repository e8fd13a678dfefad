"""Going through a whole log: reading it, and making the read models anew from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from stratagem.engine.events import Event, Space
from stratagem.storage.contract import Progress
from stratagem.storage.relational.projecting import Fact, Projector
from stratagem.storage.relational.reading import SqlReader
from stratagem.storage.relational.verification import verify

__all__ = ["PAGE", "events", "fact", "replay"]

PAGE = 1_000


def events(reader: SqlReader, after: int) -> Iterator[Event]:
    """Return every event after a sequence, in pages: none of them keeps a reader open."""
    while rows := reader.log_page(after, PAGE):
        for row in rows:
            yield _event(row)
        after = rows[-1][0]


def replay(reader: SqlReader, projector: Projector, progress: Progress) -> None:
    """Write what every event of the log means into empty read models."""
    total, after, ended = reader.head().sequence, 0, 0
    while rows := reader.log_page(after, PAGE):
        for group in _transactions(rows):
            if group[0][1] != ended and after:
                projector.end_transaction(after)
            projector.apply([fact(row) for row in group], wall=group[0][2])
            after, ended = group[-1][0], group[0][1]
        progress(after, total, "replaying the log")
    projector.end_transaction(after)


def fact(row: Any) -> Fact:
    """Return a row of the log as the read models need it, once it was found to be genuine."""
    space = Space(row[5], row[6]) if row[5] is not None else None
    verify((row[0], row[1], row[4], row[11], row[8], row[12], row[13]), space, row[7])
    content = orjson.loads(row[11]) if row[11] is not None else None
    return Fact(
        row[0], row[3], row[4], row[15], space, row[16], row[7], fresh=False, content=content
    )


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
