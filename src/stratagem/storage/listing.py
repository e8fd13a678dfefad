"""Going through the records of a space, a page at a time, in any view.

A page costs as much as it returns, whatever there is: it begins where the last one ended, by key or
by sequence, and nothing before it is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.lineage import View

__all__ = ["ListedKey", "ListingReader", "SpaceCount", "TagCount"]


class ListedKey(NamedTuple):
    """A record by its key, and the version that a view shows of it."""

    key: str
    sequence: int


class SpaceCount(NamedTuple):
    """How many records and logged events of a space a view shows, and the newest of them."""

    space: int
    live: int
    newest: int


class TagCount(NamedTuple):
    """How many records and logged events a view shows with a tag."""

    tag: str
    live: int


class ListingReader(Protocol):
    """The part of a reader that lists. `names` are tags and facets: all of them are wanted."""

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
        """Return live records whose keys begin with a text, in the order of their keys."""
        ...

    def newest(
        self,
        view: View,
        space: Space,
        *,
        prefix: str = "",
        names: Sequence[str] = (),
        before: int = ...,
        limit: int,
    ) -> list[int]:
        """Return the versions of live records whose keys begin with a text, newest first."""
        ...

    def stream(
        self,
        view: View,
        space: Space,
        *,
        names: Sequence[str] = (),
        after: int = 0,
        before: int = ...,
        newest_first: bool = False,
        limit: int,
    ) -> list[int]:
        """Return the logged events of a space between two sequences, both left out."""
        ...

    def space_counts(self, view: View, kinds: Sequence[str]) -> list[SpaceCount]:
        """Return how much each space of some kinds holds, leaving out those that show nothing."""
        ...

    def tag_counts(self, view: View, spaces: Sequence[int], *, limit: int) -> list[TagCount]:
        """Return the tags in some spaces, the most frequent first; facets are no tags."""
        ...

    def namespaces_with(self, view: View, kind: str, key: str, *, limit: int) -> list[str]:
        """Return the namespaces in which a live record has a key."""
        ...
