"""Links, lists, groups and facets, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stratagem.engine.events import Space
from stratagem.engine.lineage import OPEN_END, Lineage, View
from stratagem.engine.records import FACET_MARK
from stratagem.storage.catalogue import LinkEnd, ListedVersion
from stratagem.storage.relational.records import SqlRecords
from stratagem.storage.relational.session import NUMBER, Queries, Shape

__all__ = ["SqlCatalogue", "group_tally"]

_LINK_ROW = Shape[tuple[int, bool, str, float, int, int]]()
_LISTED_ROW = Shape[tuple[float, int]]()
_TALLY_ROW = Shape[tuple[str, int | None]]()

# Groups are counted in the table of tallies, under "<kind><unit separator><group>". No kind has a
# control character in its name, so these names lie between the kind's own and the next kind's.
_SEPARATOR: Final = "\x1f"
_AFTER_SEPARATOR: Final = "\x20"
# Sorts after every text that a facet can hold.
_LAST: Final = "\U0010ffff"


def group_tally(kind: str, group: str) -> str:
    """Return the name that a group is counted under."""
    return f"{kind}{_SEPARATOR}{group}"


class SqlCatalogue:
    """See `stratagem.storage.catalogue.CatalogueReader`."""

    __slots__ = ("_queries", "_records")

    def __init__(self, queries: Queries, records: SqlRecords) -> None:
        self._queries = queries
        self._records = records

    def links(
        self,
        view: View,
        nodes: Sequence[int],
        *,
        limit: int = -1,
        by: tuple[bool, str] | None = None,
    ) -> list[LinkEnd]:
        array = self._queries.array(nodes)
        name, kind = ("linked", ()) if by is None else ("linked_by", by)
        rows = self._queries.rows_through(
            _LINK_ROW, name, view.lineage,
            view.time, array, limit, *kind,
        )  # fmt: skip
        return [LinkEnd(*row) for row in rows]

    def strongest_links(
        self, view: View, node: int, *, outgoing: bool, label: str, limit: int
    ) -> list[LinkEnd]:
        rows = self._queries.rows_through(
            _LINK_ROW, "strongest_links", view.lineage,
            view.time, node, outgoing, label, limit, subject="l.other",
        )  # fmt: skip
        return [LinkEnd(*row) for row in rows]

    def link_count(self, nodes: Sequence[int], limit: int) -> int:
        return self._queries.number("link_count", self._queries.array(nodes), limit)

    def sorted_by(
        self,
        view: View,
        space: Space,
        name: str,
        *,
        between: tuple[float, float],
        after: ListedVersion | None = None,
        descending: bool = False,
        limit: int,
    ) -> list[ListedVersion]:
        low, high = between
        begin, end = (high, low) if descending else (low, high)
        # Both ends are part of the range: the page begins before any version of its first number.
        edge = after or ListedVersion(begin, OPEN_END if descending else -1)
        rows = self._queries.rows_through(
            _LISTED_ROW, "ordered_down" if descending else "ordered_up", view.lineage,
            view.time, self._records.space_id(space), name, *edge, end, limit,
        )  # fmt: skip
        return [ListedVersion(*row) for row in rows]

    def group_counts(self, lineage: Lineage, kind: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for cut in lineage:
            rows = self._queries.rows(
                _TALLY_ROW, "group_tallies",
                *cut, kind + _SEPARATOR, kind + _AFTER_SEPARATOR,
            )  # fmt: skip
            for name, live in rows:
                if live is not None:
                    # A nearer branch has the newer count, and it includes what it borrowed.
                    found.setdefault(name.split(_SEPARATOR, 1)[1], live)
        return {group: live for group, live in found.items() if live}

    def with_facet(
        self, view: View, facet: str, *, limit: int = -1, before: int = OPEN_END
    ) -> list[int]:
        rows = self._queries.rows_through(
            NUMBER, "faceted", view.lineage, view.time, FACET_MARK + facet, limit, before
        )
        return [row[0] for row in rows][::-1]

    def with_facet_containing(self, view: View, prefix: str, part: str, *, limit: int) -> list[int]:
        begin = FACET_MARK + prefix
        rows = self._queries.rows_through(
            NUMBER, "facets_containing", view.lineage,
            view.time, begin, begin + _LAST, part, limit,
        )  # fmt: skip
        return [row[0] for row in rows]

    def version_count(self, kind: str) -> int:
        return self._queries.number("version_count", kind)
