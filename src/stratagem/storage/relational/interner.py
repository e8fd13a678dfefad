"""The numbers of spaces and subjects.

Events refer to what they are about by number. A name gets its number with the first event about it
and keeps it for the life of the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stratagem.engine.events import Space
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.session import NUMBER, Queries, Shape

__all__ = ["Interner", "Subject", "Subjects"]

_NUMBER_AND_KEY = Shape[tuple[int, str]]()


class Subject(NamedTuple):
    """The number of a subject, and whether it has no event yet."""

    number: int
    is_new: bool


class Subjects:
    """The subjects of some events that are about to be appended, by space number and key."""

    __slots__ = ("_subjects",)

    def __init__(self, subjects: dict[tuple[int, str], Subject]) -> None:
        self._subjects = subjects

    def take(self, space: int, key: str) -> Subject:
        """Return the subject of the next event about a key.

        Events are taken in their order: only the first of several about a new subject finds it new.
        """
        subject = self._subjects[space, key]
        if subject.is_new:
            self._subjects[space, key] = Subject(subject.number, is_new=False)
        return subject


class Interner:
    """Looks up the numbers of names, and gives new names theirs."""

    __slots__ = ("_cache", "_queries", "_records")

    def __init__(self, queries: Queries, cache: WriterCache, records: SqlRecords) -> None:
        self._queries = queries
        self._cache = cache
        self._records = records

    def space(self, space: Space) -> int:
        """Return the number of a space."""
        number = self._records.space_id(space)
        if number is None:
            row = self._queries.row(NUMBER, "insert_space", *space)
            assert row is not None, "RETURNING gives the number"
            number = self._cache.spaces[space] = row[0]
        return number

    def subjects(self, names: Iterable[tuple[Space | None, str | None]]) -> Subjects:
        """Return the subjects of some events, each given by its space and key.

        Names that were not known are all inserted here, in one statement: one by one they would
        cost as much as their events.
        """
        # A dict and no set: new subjects are numbered in the order of their events, so that
        # replaying a log and taking it over give the same numbers as appending did.
        wanted = dict.fromkeys(
            (self.space(space), key)
            for space, key in names
            if space is not None and key is not None
        )
        found = self._look_up(list(wanted))
        missing = [name for name in wanted if name not in found]
        if missing:
            found |= self._insert(missing)
        return Subjects(found)

    def _look_up(self, names: list[tuple[int, str]]) -> dict[tuple[int, str], Subject]:
        # Most writes are about one record; a look-up by two scalars is then twice as fast as one
        # by an array.
        if len(names) == 1:
            number = self._queries.value(int, "subject_id", *names[0])
            return {} if number is None else {names[0]: Subject(number, is_new=False)}
        return {
            (space, key): Subject(number, is_new=False)
            for space in {space for space, _ in names}
            for number, key in self._queries.rows(
                _NUMBER_AND_KEY,
                "subject_ids",
                space,
                self._queries.array([key for of, key in names if of == space]),
            )
        }

    def _insert(self, names: list[tuple[int, str]]) -> dict[tuple[int, str], Subject]:
        # The write lock is held, so no other writer can take the numbers that follow the last one.
        last = self._cache.subject_last
        if last is None:
            last = self._queries.number("subject_last")
        self._cache.subject_last = last + len(names)
        numbered = [(number, *name) for number, name in enumerate(names, last + 1)]
        self._queries.run_many("insert_subject", numbered)
        return {(space, key): Subject(number, is_new=True) for number, space, key in numbered}
