"""The numbers of spaces and subjects.

Events refer to what they are about by number. A name gets its number with the first event about it
and keeps it for the life of the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from stratagem.engine.events import Space
from stratagem.storage.relational.cache import WriterCache
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.session import NUMBER, Queries, Shape

__all__ = ["Interner", "NumberedName"]

# The numbers of an event's space and subject, and whether it is the subject's first event.
NumberedName = tuple[int | None, int | None, bool]

_NUMBER_AND_KEY = Shape[tuple[int, str]]()


class Interner:
    """Looks up the numbers of names, and gives new names theirs."""

    __slots__ = ("_cache", "_queries", "_records")

    def __init__(self, queries: Queries, cache: WriterCache, records: SqlRecords) -> None:
        self._queries = queries
        self._cache = cache
        self._records = records

    def number(
        self,
        names: Sequence[tuple[Space | None, str | None]],
        looked_up: Sequence[int | None] = (),
    ) -> list[NumberedName]:
        """Return the numbers of what some events are about, each given by its space and key.

        Names that were not known are all inserted here, in one statement: one by one they would
        cost as much as their events. `looked_up`, where given, are the numbers of the subjects that
        are known already.
        """
        if len(names) == 1:
            return [self.number_one(*names[0])]
        known = self._cache.spaces
        spaces = [space and (known.get(space) or self._space(space)) for space, _key in names]
        # A dict and no set: new subjects are numbered in the order of their events, so that
        # replaying a log and taking it over give the same numbers as appending did.
        wanted = {
            (space, key): number
            for space, (_, key), number in zip_longest(spaces, names, looked_up)
            if space is not None and key is not None
        }
        subjects = {name: number for name, number in wanted.items() if number is not None}
        if len(subjects) < len(wanted):
            subjects |= self._look_up([name for name in wanted if name not in subjects])
        new: dict[tuple[int, str], int] = {}
        if len(subjects) < len(wanted):
            new = self._insert([name for name in wanted if name not in subjects])
        numbered: list[NumberedName] = []
        for space, (_, key) in zip(spaces, names, strict=True):
            if space is None or key is None:
                numbered.append((space, None, False))
                continue
            name = (space, key)
            # Only the first of several events about a new subject finds it new.
            first = new.pop(name, None)
            if first is not None:
                subjects[name] = first
            numbered.append((space, subjects[name], first is not None))
        return numbered

    def number_one(self, space: Space | None, key: str | None) -> NumberedName:
        """Return the same for one event, as most writes have: its look-up takes no array."""
        number = space and (self._cache.spaces.get(space) or self._space(space))
        if number is None or key is None:
            return number, None, False
        ahead = self._cache.subjects
        subject = (
            ahead[number, key]
            if (number, key) in ahead
            else self._queries.value(int, "subject_id", number, key)
        )
        if subject is not None:
            return number, subject, False
        return number, self._insert([(number, key)])[number, key], True

    def _space(self, space: Space) -> int:
        number = self._records.space_id(space)
        if number is None:
            row = self._queries.row(NUMBER, "insert_space", *space)
            assert row is not None, "RETURNING gives the number"
            number = self._cache.spaces[space] = row[0]
        return number

    def _look_up(self, names: list[tuple[int, str]]) -> dict[tuple[int, str], int]:
        return {
            (space, key): number
            for space in {space for space, _ in names}
            for number, key in self._queries.rows(
                _NUMBER_AND_KEY,
                "subject_ids",
                space,
                self._queries.array([key for of, key in names if of == space]),
            )
        }

    def _insert(self, names: list[tuple[int, str]]) -> dict[tuple[int, str], int]:
        # The write lock is held, so no other writer can take the numbers that follow the last one.
        last = self._cache.subject_last
        if last is None:
            last = self._queries.number("subject_last")
        self._cache.subject_last = last + len(names)
        numbered = {name: number for number, name in enumerate(names, last + 1)}
        if ahead := self._cache.subjects:
            ahead.update(numbered)
        self._queries.run_many(
            "insert_subject", [(number, *name) for name, number in numbered.items()]
        )
        return numbered
