"""How the records of other systems are found by the one search.

Each searchable system provides a finder for its kind of record. A finder scores by itself how well
a record answers, from 0 to 1, so that the hits of several finders can be merged into one list. No
system has to know another: the finders are registered in the foundation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stratagem.deferred_dataclasses import dataclass
from stratagem.operation import Caller

if TYPE_CHECKING:
    from stratagem.search.foundation import Foundation
    from stratagem.search.snippets import Excerpt

__all__ = ["FinderQuery", "FoundByName", "RecordFinder"]


@dataclass(frozen=True, slots=True)
class FinderQuery:
    """What is asked for, where, and how many are wanted.

    `min_score` is the least score that a caller asked for; None: what the finder thinks enough.
    """

    text: str
    branch: str
    as_of: str | int | None
    limit: int
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class FoundByName:
    """A record that was found: what it is called, what it says, and how well it answers.

    `shown` is the part of `value` that matches best. `passage_at` is where that begins, for what
    reads the record and takes it as its cursor.
    """

    key: str
    name: str
    value: str
    shown: Excerpt
    score: float
    version: int
    at: int
    passage_at: int | None = None
    contested_by: tuple[str, ...] = ()


Finder = Callable[["Foundation", Caller, FinderQuery], list[FoundByName]]


@dataclass(frozen=True, slots=True)
class RecordFinder:
    """What finds one kind of record, and the toolset whose right to read it takes."""

    toolset: str
    find: Finder
