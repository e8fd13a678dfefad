"""The full-text index, as far as it is alike in every database that speaks SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratagem.deferred_modules import np
from stratagem.engine.lineage import View
from stratagem.storage.contract import ScoredVersion
from stratagem.storage.relational.session import NUMBER, Queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SqlSearch"]


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
        limit: int,
    ) -> list[ScoredVersion]: ...

    def tagged_versions(self, tags: Sequence[str]) -> NDArray[np.int64]:
        wanted = sorted(set(tags))
        rows = self._queries.rows(NUMBER, "tagged", self._queries.array(wanted), len(wanted))
        return np.fromiter((row[0] for row in rows), np.int64)

    @abstractmethod
    def document_frequency(self, term: str) -> int: ...

    @abstractmethod
    def text_count(self) -> int: ...
