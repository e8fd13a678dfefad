"""The full-text index, as far as it is alike in every database that speaks SQL."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.engine.events import Space
from stratagem.engine.lineage import Lineage, View
from stratagem.engine.records import FACET_MARK
from stratagem.storage.contract import ScoredPassage, ScoredPassages, TextTraits
from stratagem.storage.relational.session import NUMBER, Parameter, Queries, Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PASSAGE_ROW", "TRAITS_ROW", "SqlSearch", "query_terms"]

PASSAGE_ROW = Shape[ScoredPassage]()
TRAITS_ROW = Shape[tuple[int, int | None, int]]()

_QUOTED: Final = re.compile(r'"([^"]*)"')


def query_terms(expression: str) -> list[str]:
    """Return the terms of a match expression: quoted, with OR between them."""
    return list(dict.fromkeys(filter(None, _QUOTED.findall(expression))))


class SqlSearch(ABC):
    """See `stratagem.storage.contract.SearchReader`."""

    __slots__ = ("_queries",)

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    @abstractmethod
    def matches(
        self,
        view: View,
        expression: str,
        *,
        weights: tuple[float, float, float],
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int | None,
    ) -> list[ScoredPassage]: ...

    @abstractmethod
    def passages(
        self,
        expression: str,
        *,
        weights: tuple[float, float, float],
        limit: int | None,
        expected: int = 0,
    ) -> ScoredPassages: ...

    @abstractmethod
    def shown_traits(
        self,
        view: View,
        sequences: Sequence[int],
        facet: str,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
    ) -> dict[int, TextTraits]: ...

    def versions_with_facet(self, facet: str, limit: int) -> list[int]:
        return self._numbers("versions_with_tag", FACET_MARK + facet, limit)

    def turns(
        self,
        lineage: Lineage,
        space: Space,
        session: str,
        sequence: int,
        *,
        before: int,
        after: int,
    ) -> list[int]:
        earlier: list[int] = []
        later: list[int] = []
        for branch, limit in lineage:
            of = (*space, session, branch)
            earlier += self._numbers("turns_before", *of, min(limit, sequence - 1), before)
            later += self._numbers("turns_after", *of, sequence, limit, after)
        return sorted(earlier)[max(len(earlier) - before, 0) :] + sorted(later)[:after]

    def _numbers(self, name: str, *parameters: Parameter) -> list[int]:
        return [row[0] for row in self._queries.rows(NUMBER, name, *parameters)]

    def tagged_versions(self, tags: Sequence[str]) -> NDArray[np.int64]:
        wanted = sorted(set(tags))
        rows = self._queries.rows(NUMBER, "tagged", self._queries.array(wanted), len(wanted))
        return np.fromiter((row[0] for row in rows), np.int64)

    def numbered_versions(
        self, space: int, name: str, least: float, most: float
    ) -> NDArray[np.int64]:
        rows = self._queries.rows(NUMBER, "numbered", space, name, least, most)
        return np.fromiter((row[0] for row in rows), np.int64)

    @abstractmethod
    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]: ...

    @abstractmethod
    def text_count(self) -> int: ...

    def unindexed_count(self) -> int:
        return 0
