"""Lists of records, in any database that speaks SQL.

There are two ways to read a page. One scans an index in the requested order and stops when the page
is full; it reads far if few records match. The other collects all matching records and sorts them;
it is better if they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stratagem import limits
from stratagem.engine.events import Space
from stratagem.engine.lineage import OPEN_END, View
from stratagem.engine.records import FACET_MARK
from stratagem.storage.listing import ListedKey, SpaceCount, TagCount
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.session import NUMBER, Queries, Shape

__all__ = ["SqlListing"]

_KEY_ROW = Shape[tuple[str, int]]()
_COUNT_ROW = Shape[tuple[int, int, int]]()
_NAMESPACE_ROW = Shape[tuple[str]]()

# Up to as many it is quicker to gather and sort them than to look for them in order.
_FEW: Final = 5_000
# What follows every key that begins with a text, as keys are ordered: by code points.
_END: Final = "\U0010ffff" * (limits.KEY_CHARS_MAX + 1)
# No key has a control character, so nothing lies between a key and itself with this behind it.
_NEXT: Final = "\x01"
# Facets are kept among the tags, before all of them.
_FIRST_TAG: Final = chr(ord(FACET_MARK) + 1)


class SqlListing:
    """See `stratagem.storage.listing.ListingReader`."""

    __slots__ = ("_queries", "_records")

    def __init__(self, queries: Queries, records: SqlRecords) -> None:
        self._queries = queries
        self._records = records

    def by_key(
        self,
        view: View,
        space: Space,
        *,
        prefix: str = "",
        names: Sequence[str] = (),
        after: str = "",
        limit: int,
    ) -> list[ListedKey]:
        begin = max(prefix, after + _NEXT) if after else prefix
        bounds = (self._records.space_id(space), begin, prefix + _END)
        wanted = self._queries.array(names)
        rarest, count = self._rarest(names)
        if names and count < _FEW:
            rows = self._queries.rows_through(
                _KEY_ROW, "tagged_by_key", view.lineage, view.time, *bounds, wanted, limit, rarest
            )
        else:
            rows = self._queries.rows_through(
                _KEY_ROW, "listed_by_key", view.lineage,
                view.time, *bounds, wanted, limit, subject="s.id",
            )  # fmt: skip
        return [ListedKey(*row) for row in rows]

    def newest(
        self,
        view: View,
        space: Space,
        *,
        prefix: str = "",
        names: Sequence[str] = (),
        before: int = OPEN_END,
        limit: int,
    ) -> list[int]:
        number = self._records.space_id(space)
        bounds = (prefix, prefix + _END)
        if number is None:
            return []
        if not names and self._queries.number("key_count", number, *bounds, _FEW) < _FEW:
            rows = self._queries.rows_through(
                NUMBER, "gathered_newest", view.lineage,
                view.time, number, *bounds, before, limit, subject="s.id",
            )  # fmt: skip
            return [row[0] for row in rows]
        return self._in_order(
            view, number, "down", names=names, between=(0, before), keys=bounds, limit=limit
        )

    def stream(
        self,
        view: View,
        space: Space,
        *,
        names: Sequence[str] = (),
        after: int = 0,
        before: int = OPEN_END,
        newest_first: bool = False,
        limit: int,
    ) -> list[int]:
        number = self._records.space_id(space)
        if number is None:
            return []
        order = "down" if newest_first else "up"
        return self._in_order(
            view, number, order, names=names, between=(after, before), limit=limit
        )

    def _in_order(
        self,
        view: View,
        space: int,
        order: str,
        *,
        names: Sequence[str],
        between: tuple[int, int],
        keys: tuple[str, str] = ("", ""),
        limit: int,
    ) -> list[int]:
        """Go through versions in the order of their sequences, up or down."""
        after, before = between
        if names:
            rarest, _count = self._rarest(names)
            rows = self._queries.rows_through(
                NUMBER, f"tagged_{order}", view.lineage,
                view.time, rarest, after, min(before, _after(view.limit)), space,
                self._queries.array(names), *keys, limit,
            )  # fmt: skip
            return [row[0] for row in rows]
        found: list[int] = []
        # A branch begins where its ancestors are cut off, so all of its events are newer.
        for cut in view.lineage if order == "down" else reversed(view.lineage):
            if len(found) < limit:
                rows = self._queries.rows_through(
                    NUMBER, f"walked_{order}", view.lineage,
                    view.time, cut.branch, after, min(before, _after(cut.limit)), space, *keys,
                    limit - len(found),
                )  # fmt: skip
                found += [row[0] for row in rows]
        return found

    def space_counts(self, view: View, kinds: Sequence[str]) -> list[SpaceCount]:
        spaces = [number for kind in kinds for number in self._records.spaces(kind)]
        rows = self._queries.rows_through(
            _COUNT_ROW, "space_counts", view.lineage, view.time, self._queries.array(spaces)
        )
        return [SpaceCount(*row) for row in rows]

    def tag_counts(self, view: View, spaces: Sequence[int], *, limit: int) -> list[TagCount]:
        rows = self._queries.rows_through(
            _KEY_ROW, "tag_counts", view.lineage,
            view.time, self._queries.array(spaces), _FIRST_TAG, limit,
        )  # fmt: skip
        return [TagCount(*row) for row in rows]

    def namespaces_with(self, view: View, kind: str, key: str, *, limit: int) -> list[str]:
        rows = self._queries.rows_through(
            _NAMESPACE_ROW, "namespaces_with", view.lineage,
            view.time, kind, key, limit, subject="s.id",
        )  # fmt: skip
        return [row[0] for row in rows]

    def _rarest(self, names: Sequence[str]) -> tuple[str, int]:
        """Return the rarest of some names, and how many versions have it, counted up to a limit."""
        counts = [(self._queries.number("tag_count", name, _FEW), name) for name in names]
        count, name = min(counts, default=(0, ""))
        return name, count


def _after(limit: int) -> int:
    """Return the first sequence that a view does not show."""
    return min(limit, OPEN_END - 1) + 1
