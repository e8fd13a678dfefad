"""Pages of lists: each begins where the one before it ended, however long the list is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.deferred_dataclasses import dataclass
from stratagem.knowledge.models import Results

__all__ = ["ListPosition"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A page of a list: where it begins, and the most it holds."""

    begin: int
    limit: int

    @classmethod
    def at(cls, cursor: str | None, limit: int) -> ListPosition:
        """Return the page that a cursor stands for; the first without one."""
        return cls(read_cursor(cursor, most=limits.CONCEPTS_OFFSET_MAX), limit)

    @property
    def read(self) -> int:
        """How much of the list has to be read: one more than is shown, to know of it."""
        return self.begin + self.limit + 1

    def cut(self, found: Sequence[T]) -> list[T]:
        """Return what is on the page, of a list that was read from its beginning."""
        return list(found[self.begin : self.begin + self.limit])

    def results(
        self, found: Sequence[object], kept: list[T], message: str, note: str | None = None
    ) -> Results[T]:
        """Return what is on the page, and where the next one begins, if there is one."""
        more = len(found) >= self.read
        return Results(
            kept,
            message,
            truncated=more or None,
            next=str(self.begin + self.limit) if more else None,
            note=note,
        )
