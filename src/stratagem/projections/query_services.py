"""External read models as services that answer queries and track their own health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from stratagem.deferred_modules import np
from stratagem.errors import ServiceUnavailable
from stratagem.projections.chroma import ChromaModel
from stratagem.projections.contract import ReadModel
from stratagem.projections.health import Health
from stratagem.projections.neo4j import Neo4jModel
from stratagem.search.external_services import Neighbour, PathNode
from stratagem.search.vectors import Nearest
from stratagem.storage.outbox import OutboxReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ChromaVectorService", "Neo4jGraphService"]

M = TypeVar("M", bound=ReadModel)
T = TypeVar("T")


class _ReadModelService(Generic[M]):
    """See `stratagem.search.external_services.Service`."""

    def __init__(self, model: M, health: Health) -> None:
        self.name = model.name
        self._model = model
        self._health = health

    def trouble(self) -> str | None:
        """Return why it cannot be used, or None."""
        return self._health.trouble()

    def ready(self, outbox: OutboxReader) -> bool:
        """Return whether it was made, and nothing waits for it."""
        return any(
            each.built == self._model.fingerprint
            for each in outbox.projections()
            if each.name == self.name
        ) and not outbox.is_behind(self.name)

    def _report_health(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except ServiceUnavailable as error:
            self._health.learn(error)
            raise


class Neo4jGraphService(_ReadModelService[Neo4jModel]):
    """See `stratagem.search.external_services.GraphService`."""

    def neighbours(
        self, key: str, *, outgoing: bool | None, label: str | None, limit: int
    ) -> list[Neighbour]:
        """Return the records next to one."""
        return self._report_health(
            lambda: self._model.neighbours(key, outgoing=outgoing, label=label, limit=limit)
        )

    def sources(self, keys: Sequence[str], label: str, *, limit: int) -> list[str]:
        """Return the records that links lead from to some others."""
        return self._report_health(lambda: self._model.sources(keys, label, limit=limit))

    def path(self, start: str, end: str) -> list[PathNode] | None:
        """Return a shortest path."""
        return self._report_health(lambda: self._model.path(start, end))


class ChromaVectorService(_ReadModelService[ChromaModel]):
    """See `stratagem.search.external_services.VectorService`."""

    def nearest(self, vector: NDArray[np.float32], *, facets: Sequence[str], limit: int) -> Nearest:
        """Return the versions whose vectors are nearest."""
        return self._report_health(lambda: self._model.nearest(vector, facets=facets, limit=limit))
