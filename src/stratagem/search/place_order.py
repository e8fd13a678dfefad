"""One order of hits, however many of them are wanted.

Each page of a search is searched again, and pages only fit together if every search puts the hits
in the same order. But the more are wanted, the more candidates are weighed, and one that was not
looked at before may come up between others; looking at all of them would make the first page as
dear as the last. So the order is made of parts: the first places are those of the smallest search,
the next those of one four times as large, without what is in the part before, and so on. A
page searches as many parts as it needs, and all parts together cost a third more than the last.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from stratagem.search import ranking
from stratagem.search.index import Ranking

__all__ = ["find_in_parts", "rank_in_parts"]

T = TypeVar("T")

_DEEPER: Final = 4
# How many times the wanted hits are ranked, because not all matches are good.
_SPARE: Final = 2


def rank_in_parts(search: Callable[[int], Ranking], wanted: int) -> Iterator[Ranking]:
    """Yield rankings that follow each other, for as many hits as are wanted, and for more.

    `search` returns the best so many. The first part may be fewer than make a difference.
    """
    seen: set[int] = set()
    for limit in _limits(min(_SPARE * wanted, ranking.WEIGHED_MIN), ranking.WEIGHED_MIN):
        ranked = search(limit)
        fresh = [each for each in ranked.found if each.sequence not in seen] if seen else None
        yield ranked if fresh is None else replace(ranked, found=fresh)
        if len(ranked.found) < limit:
            return
        seen.update(each.sequence for each in ranked.found)


def find_in_parts(
    find: Callable[[int], Sequence[T]], identify: Callable[[T], Hashable], first: int
) -> Iterator[T]:
    """Yield what is found, best first; `find` returns the best so many."""
    seen: set[Hashable] = set()
    for limit in _limits(first, first):
        found = find(limit)
        yield from (each for each in found if identify(each) not in seen)
        if len(found) < limit:
            return
        seen.update(map(identify, found))


def _limits(fewer: int, first: int) -> Iterator[int]:
    if fewer < first:
        yield fewer
    while True:
        yield first
        first *= _DEEPER
