"""Which services the tools depend on, and whether they are available.

This is the only place that knows. The names are those of the documented interface; the database
itself answers under them, unless another implementation was chosen. That one holds the present
state of `default`: every other view is answered by the database, and so is the present as long as
the service has not received everything. So no answer lacks a write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, View
from stratagem.engine.records import FACET_MARK
from stratagem.errors import ServiceUnavailable
from stratagem.knowledge.external import ExternalGraph
from stratagem.knowledge.graph import BuiltInGraph, Graph
from stratagem.search import external_services
from stratagem.search.foundation import Foundation
from stratagem.search.vectors import Nearest
from stratagem.storage.contract import Reader
from stratagem.storage.outbox import OutboxReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SERVICE_GROUPS", "TOOLS", "WRITERS", "Service", "Services"]

_GRAPH: Final = "neo4j_service"
_VECTORS: Final = "chromadb_service"
_EMBEDDING: Final = "embedding_service"
_WRITING: Final = ("event_store", "outbox")

# Each tool with the services it cannot do without. Lists, look-ups and all writing stand on the
# log alone, whichever service was chosen: a service that is down never stops them.
TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "ping": (),
    "get_server_stats": (),
    "get_tool_availability": (),
    "create_concept": ("repository",),
    "get_concept": ("repository",),
    "update_concept": ("repository",),
    "delete_concept": ("repository",),
    "search_concepts_semantic": (_EMBEDDING, _VECTORS),
    "search_concepts_exact": ("repository",),
    "get_recent_concepts": ("repository",),
    "create_relationship": _WRITING,
    "delete_relationship": _WRITING,
    "get_related_concepts": (_GRAPH,),
    "get_prerequisites": (_GRAPH,),
    "get_concept_chain": (_GRAPH,),
    "list_hierarchy": ("repository",),
    "get_concepts_by_certainty": ("repository",),
}

# What a server that only reads does not have.
WRITERS: Final = frozenset(
    {
        "create_concept",
        "update_concept",
        "delete_concept",
        "create_relationship",
        "delete_relationship",
    }
)

SERVICE_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "concept_tools": ("repository", "confidence_service"),
    "search_tools": (_GRAPH, _VECTORS, _EMBEDDING),
    "relationship_tools": (_GRAPH, *_WRITING),
    "analytics_tools": (_GRAPH,),
}
_BUILT_IN: Final = "built-in"


class Service(NamedTuple):
    """Whether a service is available, which implementation answers, and why it is not available."""

    available: bool
    implementation: str
    trouble: str | None = None


class Services:
    """The services of one database."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self._chosen: dict[str, external_services.ReadModelService | None] = {
            _GRAPH: foundation.external.graph,
            _VECTORS: foundation.external.vectors,
        }

    def status(self) -> dict[str, Service]:
        """Return every service by its name."""
        names = {name for group in SERVICE_GROUPS.values() for name in group}
        return {name: self._state(name) for name in sorted(names)}

    def status_by_group(self) -> dict[str, dict[str, bool]]:
        """Return which services are there, by the tools that use them."""
        status = self.status()
        return {
            group: {name: status[name].available for name in names}
            for group, names in SERVICE_GROUPS.items()
        }

    def troubles(self) -> dict[str, str]:
        """Return what is wrong with the services that were chosen, by the name of each."""
        return {
            service.name: trouble
            for service in self._chosen.values()
            if service is not None and (trouble := service.trouble()) is not None
        }

    def missing_services(self, tool: str) -> list[str]:
        """Return the services that a tool needs and that are not there."""
        return [name for name in TOOLS[tool] if not self._state(name).available]

    def require(self, tool: str) -> None:
        """Refuse a tool whose services are not all there.

        Those that may be chosen are asked for when it is known which view they should answer for.

        Raises:
            ServiceUnavailable: One is not; the message names it.
        """
        for name in TOOLS[tool]:
            if self._chosen.get(name) is None and not self._state(name).available:
                raise _unavailable(name, "not initialized", tool=tool)

    def graph(self, reader: Reader, view: View, at: int | None = None) -> Graph:
        """Return what answers questions about relationships in a view, as they held at a moment.

        Only the database knows when something held.

        Raises:
            ServiceUnavailable: It was chosen for this view, and is not there.
        """
        service = self._foundation.external.graph
        if (
            at is None
            and service is not None
            and self._answers(_GRAPH, service, reader.outbox, view)
        ):
            return ExternalGraph(service, reader, view)
        return BuiltInGraph(reader, view, at)

    def nearest(
        self, reader: Reader, view: View, tags: Sequence[str]
    ) -> Callable[[NDArray[np.float32], int], Nearest] | None:
        """Return what finds concepts near to a vector in a view; None for the database itself.

        Raises:
            ServiceUnavailable: It was chosen for this view, and is not there.
        """
        service = self._foundation.external.vectors
        if service is None or not self._answers(_VECTORS, service, reader.outbox, view):
            return None
        facets = [tag.removeprefix(FACET_MARK) for tag in tags]

        def ask(vector: NDArray[np.float32], depth: int) -> Nearest:
            found = service.nearest(vector, facets=facets, limit=depth)
            shown = reader.records.visible_among(view, found.sequences.tolist())
            seen = np.isin(found.sequences, sorted(shown))
            return Nearest(found.sequences[seen], found.cosines[seen])

        return ask

    def outbox(self) -> dict[str, int]:
        """Return how many events wait for external read models, were taken, or failed."""
        with self._foundation.store.snapshot() as reader:
            known = reader.outbox.projections()
            tallies = [reader.outbox.count(each.name) for each in known]
        return {
            "pending": sum(each.pending for each in tallies),
            "processed": sum(each.processed for each in known),
            "failed": sum(each.failed for each in tallies),
        }

    def _state(self, name: str) -> Service:
        chosen = self._chosen.get(name)
        if chosen is not None:
            trouble = chosen.trouble()
            return Service(trouble is None, chosen.name, trouble)
        if name == "event_store":
            remote = self._foundation.store.location.startswith("postgres")
            return Service(available=True, implementation="postgresql" if remote else "sqlite")
        if name == _EMBEDDING:
            embedder = self._foundation.index.embedder_name
            return Service(embedder is not None, embedder or "none")
        return Service(available=True, implementation=_BUILT_IN)

    @staticmethod
    def _answers(
        name: str, service: external_services.ReadModelService, outbox: OutboxReader, view: View
    ) -> bool:
        """Whether a chosen service answers for a view."""
        if view.branch.name != DEFAULT_BRANCH or view.limit != OPEN_END:
            return False
        trouble = service.trouble()
        if trouble is not None:
            raise _unavailable(name, trouble)
        return service.ready(outbox)


def _unavailable(name: str, trouble: str, tool: str | None = None) -> ServiceUnavailable:
    details = {"service": name, **({"tool": tool} if tool else {})}
    return ServiceUnavailable(
        f"Required service not initialized. ({name} {trouble})"
        if tool
        else f"Required service not available. ({name}: {trouble})",
        hint="get_tool_availability says which tools can be used.",
        **details,
    )
