"""Finding records by links, numbers, groups and facets, rather than by key or by text.

A system tells the store, with each event, which other records its record links, which numbers
it is listed by and which group it belongs to (`engine.records.Projection`). These lookups read that
for any view. The cost of each depends on the size of its answer, not of the database: a record with
many links, or a long list, is read only as far as requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.lineage import Lineage, View

__all__ = ["CatalogueReader", "LinkEnd", "ListedVersion"]


class LinkEnd(NamedTuple):
    """A link seen from one of its ends: `node` and `other` are numbers of subjects."""

    node: int
    outgoing: bool
    label: str
    weight: float
    sequence: int
    other: int


class ListedVersion(NamedTuple):
    """A version, and the number it is listed by."""

    value: float
    sequence: int


class CatalogueReader(Protocol):
    """The part of a reader that finds records by what they are."""

    def links(
        self,
        view: View,
        nodes: Sequence[int],
        *,
        limit: int = -1,
        by: tuple[bool, str] | None = None,
    ) -> list[LinkEnd]:
        """Return the links of some records in a view; `by` says outgoing or not, and the label.

        They come in the order of these records; of one record by direction and label, the strongest
        first. The records at the other end may be deleted.
        """
        ...

    def strongest_links(
        self, view: View, node: int, *, outgoing: bool, label: str, limit: int
    ) -> list[LinkEnd]:
        """Return a record's links of one kind to live ones: the strongest, of equals the oldest."""
        ...

    def link_count(self, nodes: Sequence[int], limit: int) -> int:
        """Return about how many links some records have on all branches; at most `limit`."""
        ...

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
        """Return a page of a space's versions in a view, in the order of a number."""
        ...

    def group_counts(self, lineage: Lineage, kind: str) -> dict[str, int]:
        """Return how many live records of a kind each of its groups has; none are left out."""
        ...

    def with_facet(
        self, view: View, facet: str, *, limit: int = -1, before: int = ...
    ) -> list[int]:
        """Return the versions with a facet that a view shows, oldest first; the newest `limit`.

        Only those older than the sequence `before`, where it is given.
        """
        ...

    def with_facet_containing(self, view: View, prefix: str, part: str, *, limit: int) -> list[int]:
        """Return versions with a facet that begins with one text and has another in the rest."""
        ...

    def version_count(self, kind: str) -> int:
        """Return how many events changed records of a kind, on all branches together."""
        ...
