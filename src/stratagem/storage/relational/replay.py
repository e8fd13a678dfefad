"""Rebuilding the read models from the log, with the code that appending uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stratagem.storage.contract import Progress
from stratagem.storage.relational.log import PAGE, LogRow, SqlLog
from stratagem.storage.relational.projector import Projector, fact_of

__all__ = ["replay"]


def replay(log: SqlLog, projector: Projector, progress: Progress) -> None:
    """Project every event of the log into empty read models."""
    total, after, ended = log.head().sequence, 0, 0
    while rows := log.page(after, PAGE):
        for group in _transactions(rows):
            # Tallies are written at the end of a transaction, and one may span two pages.
            if group[0].at != ended and after:
                projector.end_transaction(after)
            projector.apply([fact_of(row) for row in group], wall=group[0].wall)
            after, ended = group[-1].sequence, group[0].at
        progress(after, total, "replaying the log")
    projector.end_transaction(after)


def _transactions(rows: Sequence[LogRow]) -> Iterator[Sequence[LogRow]]:
    """Part a page of the log where one transaction ends and another begins."""
    begin = 0
    for place in range(1, len(rows)):
        if rows[place].at != rows[begin].at:
            yield rows[begin:place]
            begin = place
    yield rows[begin:]
