"""Reading links, lists and groups, in any database that speaks SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from stratagem.engine.events import Space
from stratagem.engine.lineage import OPEN_END, Lineage, View
from stratagem.engine.records import FACET_MARK
from stratagem.storage.catalogue import Linked, Listed
from stratagem.storage.relational.statements import Statements

__all__ = ["SqlCatalogue", "group_tally"]

# Groups are counted like kinds, under the kind's name and this.
_PART = "\x1f"
_PARTS_END = "\x20"
_LAST = "\U0010ffff"


def group_tally(kind: str, group: str) -> str:
    """Return the name that a group's tally is kept under."""
    return f"{kind}{_PART}{group}"


class SqlCatalogue(ABC):
    """See `stratagem.storage.catalogue.Catalogue`."""

    statements: ClassVar[Statements]
    _execute: Any
    _sql: dict[str, str]
    _fit: Any
    _array: Any

    @abstractmethod
    def space_id(self, space: Space) -> int | None: ...

    def subjects(self, space: Space, keys: Sequence[str]) -> dict[str, int]:
        rows = self._execute(self._sql["subject_ids"], (self.space_id(space), self._array(keys)))
        return {key: number for number, key in rows}

    def linked(
        self,
        view: View,
        nodes: Sequence[int],
        *,
        limit: int = -1,
        by: tuple[bool, str] | None = None,
    ) -> list[Linked]:
        found = (view.time, self._array(nodes), limit)
        if by is None:
            rows = self._execute(self._through("linked", view, 4), (*found, *view.lineage.numbers))
        else:
            rows = self._execute(
                self._through("linked_by", view, 6), (*found, *by, *view.lineage.numbers)
            )
        return [Linked(*row) for row in rows]

    def strongest_links(
        self, view: View, node: int, *, outgoing: bool, label: str, limit: int
    ) -> list[Linked]:
        sql = self._fit("strongest_links", len(view.lineage), 6, subject="l.other")
        rows = self._execute(sql, (view.time, node, outgoing, label, limit, *view.lineage.numbers))
        return [Linked(*row) for row in rows]

    def link_count(self, nodes: Sequence[int], limit: int) -> int:
        return int(
            self._execute(self._sql["link_count"], (self._array(nodes), limit)).fetchone()[0]
        )

    def ordered(
        self,
        view: View,
        space: Space,
        name: str,
        *,
        between: tuple[float, float],
        after: Listed | None = None,
        descending: bool = False,
        limit: int,
    ) -> list[Listed]:
        low, high = between
        begin, end = (high, low) if descending else (low, high)
        edge = after or Listed(begin, OPEN_END if descending else -1)
        sql = self._through("ordered_down" if descending else "ordered_up", view, 8)
        number = self.space_id(space)
        rows = self._execute(
            sql, (view.time, number, name, *edge, end, limit, *view.lineage.numbers)
        )
        return [Listed(*row) for row in rows]

    def group_tallies(self, lineage: Lineage, kind: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for cut in lineage:
            rows = self._execute(
                self._sql["group_tallies"],
                (*cut, kind + _PART, kind + _PARTS_END),
            )
            for name, live in rows:
                if live is not None:
                    # A nearer branch has the newer count, and it includes what it borrowed.
                    found.setdefault(name.split(_PART, 1)[1], live)
        return {group: live for group, live in found.items() if live}

    def facets_containing(self, view: View, prefix: str, part: str, *, limit: int) -> list[int]:
        begin = FACET_MARK + prefix
        rows = self._execute(
            self._through("facets_containing", view, 6),
            (view.time, begin, begin + _LAST, part, limit, *view.lineage.numbers),
        )
        return [row[0] for row in rows]

    def version_count(self, kind: str) -> int:
        return int(self._execute(self._sql["version_count"], (kind,)).fetchone()[0])

    def _through(self, name: str, view: View, first: int) -> str:
        sql: str = self._fit(name, len(view.lineage), first)
        return sql
