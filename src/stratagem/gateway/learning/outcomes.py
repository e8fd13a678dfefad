"""What was recorded of corrections in a span of time: read once, counted in many ways."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.engine.events import Space
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.learning.lessons import Lessons
from stratagem.storage.contract import Reader

__all__ = ["Outcomes", "new_lessons", "read_outcomes"]

_PAGE: Final = 1_000
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Corrections whose calls worked, those whose calls failed, and calls not corrected at all."""

    start: int
    end: int
    held: list[Row]
    fell: list[Row]
    refused: list[Row]
    truncated: bool = False

    @property
    def applied(self) -> list[Row]:
        """All corrections that a call ran with."""
        return [*self.held, *self.fell]

    def between(self, start: int, end: int) -> Outcomes:
        """Return the outcomes of a part of the time."""
        held, fell, refused = (
            [row for row in rows if start <= row["at"] <= end]
            for rows in (self.held, self.fell, self.refused)
        )
        return Outcomes(start, end, held, fell, refused)


def read_outcomes(reader: Reader, view: View, start: int) -> Outcomes:
    """Read what a view shows of the corrections since a time."""
    after = reader.sequence_at(start)
    spaces = (names.CORRECTIONS_OK, names.CORRECTIONS_FAILED, names.CORRECTIONS_REFUSED)
    # Only those that are kept are read as JSON, which takes longest.
    found = [
        deque(_payloads(reader, view, space, after), maxlen=limits.CORRECTIONS_READ_MAX)
        for space in spaces
    ]
    # What a merge brought over is written later than it happened.
    held, fell, refused = (
        [row for row in map(orjson.loads, each) if row["at"] >= start] for each in found
    )
    truncated = any(len(each) == limits.CORRECTIONS_READ_MAX for each in found)
    return Outcomes(start, view.time, held, fell, refused, truncated)


def new_lessons(reader: Reader, view: View, start: int) -> int:
    """Return how many lessons were first taught since a time."""
    since: Counter[tuple[str, str, str, str, str]] = Counter()
    for row in map(
        orjson.loads, _payloads(reader, view, names.LESSONS_FOR, reader.sequence_at(start))
    ):
        since[row["tool"], row["kind"], row["path"], row["form"], row["meaning"]] += 1
    if not since:
        return 0
    return sum(
        since[tool, lesson.kind.value, lesson.path, lesson.form, lesson.meaning] == count.held > 0
        for tool, lesson, count in Lessons.read(reader, view).every()
    )


def _payloads(reader: Reader, view: View, space: Space, after: int) -> Iterator[bytes]:
    while True:
        page = reader.stream(view.lineage, space, after=after, limit=_PAGE)
        for version in page:
            if version.payload is not None:
                yield version.payload
        if len(page) < _PAGE:
            return
        after = page[-1].sequence
