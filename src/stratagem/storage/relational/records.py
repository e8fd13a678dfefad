"""Records by space and key, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence

from stratagem.engine.events import Space
from stratagem.engine.lineage import OPEN_END, Lineage, View
from stratagem.engine.records import Kinds
from stratagem.storage.contract import Record, Version
from stratagem.storage.relational.cache import NameCache, WriterCache
from stratagem.storage.relational.session import NUMBER, Queries, Shape
from stratagem.storage.relational.verification import CONTENT_ROW, verified_version

__all__ = ["SqlRecords", "SqlWriterRecords"]

_SPACE_ROW = Shape[tuple[int, str, str]]()
_NUMBER_AND_KEY = Shape[tuple[int, str]]()
_SUBJECT_NAME_ROW = Shape[tuple[int, str, str, str]]()

# A content row, after the key of its record.
_KEYED_ROW = Shape[tuple[str, int, int, str, bytes | None, str, bytes | None, bytes]]()
# A content row, after the number of its subject and the names of that.
_SUBJECT_ROW = Shape[tuple[
    int, str, str, str, int, int, str, bytes | None, str, bytes | None, bytes
]]()  # fmt: skip


class SqlRecords:
    """See `stratagem.storage.contract.RecordReader`."""

    __slots__ = ("_cache", "_kinds", "_queries")

    def __init__(self, queries: Queries, kinds: Kinds, cache: NameCache) -> None:
        self._queries = queries
        self._kinds = kinds
        self._cache = cache

    def current(self, lineage: Lineage, space: Space, key: str) -> Version | None:
        number = self._cache.spaces.get(space) or self.space_id(space)
        if number is None:
            return None
        row = self._queries.row_through(CONTENT_ROW, "recall", lineage, number, key, subject="s.id")
        if row is None:
            return None
        version = verified_version(row, space, key)
        return version if self._is_live(version) else None

    def current_many(self, lineage: Lineage, subjects: Sequence[int]) -> dict[int, Record]:
        array = self._queries.array(subjects)
        found: dict[int, Record] = {}
        for row in self._queries.rows_through(
            _SUBJECT_ROW, "current_many", lineage, array, subject="s.id"
        ):
            space, key = Space(row[1], row[2]), row[3]
            version = verified_version(row[4:], space, key)
            if self._is_live(version):
                found[row[0]] = Record(row[0], space, key, version)
        return found

    def history(
        self, lineage: Lineage, space: Space, key: str, *, before: int, limit: int
    ) -> list[Version]:
        number = self.space_id(space)
        found: list[Version] = []
        # The nearest branch has the newest versions: an ancestor is cut off where it begins.
        for branch, end in lineage:
            if number is not None and len(found) < limit:
                rows = self._queries.rows(
                    CONTENT_ROW, "history",
                    number, key, branch, min(end, before - 1), limit - len(found),
                )  # fmt: skip
                found += [verified_version(row, space, key) for row in rows]
        return found

    def versions_in(
        self, lineage: Lineage, space: Space, *, before: int, limit: int
    ) -> list[tuple[str, Version]]:
        number = self.space_id(space)
        found: list[tuple[str, Version]] = []
        for branch, end in lineage:
            if number is not None and len(found) < limit:
                rows = self._queries.rows(
                    _KEYED_ROW, "versions_in",
                    number, branch, min(end, before - 1), limit - len(found),
                )  # fmt: skip
                found += [(row[0], verified_version(row[1:], space, row[0])) for row in rows]
        return found

    def page(
        self, lineage: Lineage, space: Space, *, after: str = "", limit: int = 1000
    ) -> tuple[list[tuple[str, Version]], str | None]:
        rows = self._queries.rows_through(
            _KEYED_ROW, "records", lineage, self.space_id(space), after, limit, subject="s.id"
        )
        found = [(row[0], verified_version(row[1:], space, row[0])) for row in rows]
        live = [(key, version) for key, version in found if self._is_live(version)]
        return live, rows[-1][0] if len(rows) == limit else None

    def stream(
        self, lineage: Lineage, space: Space, *, after: int = 0, limit: int = 1000
    ) -> list[Version]:
        number = self.space_id(space)
        found: list[Version] = []
        # The farthest ancestor has the oldest events: each branch begins after its fork.
        for branch, end in reversed(lineage):
            if number is not None and len(found) < limit and end > after:
                rows = self._queries.rows(
                    CONTENT_ROW, "stream", branch, after, end, number, limit - len(found)
                )
                found += [verified_version(row, space, None) for row in rows]
        return [version for version in found if version.payload is not None]

    def count(self, view: View, kind: str) -> int:
        # Expiry is no event, so the tallies count what has expired meanwhile.
        expired = self._queries.row_through(NUMBER, "expired", view.lineage, view.time, kind)
        return self.tally(view.lineage, kind) - (expired[0] if expired else 0)

    def tally(self, lineage: Lineage, kind: str) -> int:
        """Return how many records of a kind a lineage shows, expired ones included."""
        # The tally of a branch includes what it borrows, so the nearest one that has any is right.
        for cut in lineage:
            live = self._queries.value(int, "tally", cut.branch, kind, cut.limit)
            if live is not None:
                return live
        return 0

    def visible_among(self, view: View, sequences: Sequence[int]) -> set[int]:
        array = self._queries.array(sequences)
        rows = self._queries.rows_through(NUMBER, "visible_among", view.lineage, view.time, array)
        return {row[0] for row in rows}

    def any_expires(self) -> bool:
        return bool(self._queries.number("any_expires"))

    def spaces(self, kind: str | None = None) -> dict[int, Space]:
        return {
            number: Space(of, namespace)
            for number, of, namespace in self._queries.rows(_SPACE_ROW, "spaces")
            if kind is None or of == kind
        }

    def space_id(self, space: Space) -> int | None:
        """Return the number of a space."""
        known = self._cache.spaces.get(space)
        if known is None:
            known = self._queries.value(int, "event_space", *space)
            if known is not None:
                self._cache.spaces[space] = known
        return known

    def subjects(self, space: Space, keys: Sequence[str]) -> dict[str, int]:
        rows = self._queries.rows(
            _NUMBER_AND_KEY, "subject_ids", self.space_id(space), self._queries.array(keys)
        )
        return {key: number for number, key in rows}

    def names(self, subjects: Sequence[int]) -> dict[int, tuple[Space, str]]:
        rows = self._queries.rows(_SUBJECT_NAME_ROW, "subject_names", self._queries.array(subjects))
        return {row[0]: (Space(row[1], row[2]), row[3]) for row in rows}

    def keys(self, subjects: Sequence[int]) -> dict[int, str]:
        array = self._queries.array(subjects)
        return dict(self._queries.rows(_NUMBER_AND_KEY, "subject_keys", array))

    def _is_live(self, version: Version) -> bool:
        """Whether a version is neither a deletion nor purged."""
        return version.payload is not None and not self._kinds.is_deletion(version.kind)


class SqlWriterRecords(SqlRecords):
    """The records of a transaction: it remembers the tallies that it has read and written."""

    __slots__ = ("_writer_cache",)

    def __init__(self, queries: Queries, kinds: Kinds, cache: WriterCache) -> None:
        super().__init__(queries, kinds, cache)
        self._writer_cache = cache

    def tally(self, lineage: Lineage, kind: str) -> int:
        # Only the present of a branch is remembered, and no past moment of it.
        if lineage[0].limit == OPEN_END:
            known = self._writer_cache.tallies.get((lineage[0].branch, kind))
            if known is not None:
                return known
        return super().tally(lineage, kind)
