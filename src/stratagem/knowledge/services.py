"""Which services stand behind the tools, and whether they are there.

This is the one place that knows. The names are those of the documented interface; what answers
under them is the database itself, unless another implementation was chosen for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stratagem.engine.lineage import View
from stratagem.errors import ServiceUnavailable
from stratagem.knowledge.graph import BuiltInGraph, Graph
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["TOOLS", "Service", "Services"]

_GRAPH: Final = "neo4j_service"
_VECTORS: Final = "chromadb_service"
_EMBEDDING: Final = "embedding_service"
_WRITING: Final = (_GRAPH, "event_store", "outbox")

# Each tool with the services it cannot do without.
TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "ping": (),
    "get_server_stats": (),
    "get_tool_availability": (),
    "create_concept": ("repository",),
    "get_concept": ("repository",),
    "update_concept": ("repository",),
    "delete_concept": ("repository",),
    "search_concepts_semantic": (_EMBEDDING, _VECTORS),
    "search_concepts_exact": (_GRAPH,),
    "get_recent_concepts": (_GRAPH,),
    "create_relationship": _WRITING,
    "delete_relationship": _WRITING,
    "get_related_concepts": (_GRAPH,),
    "get_prerequisites": (_GRAPH,),
    "get_concept_chain": (_GRAPH,),
    "list_hierarchy": (_GRAPH,),
    "get_concepts_by_certainty": (_GRAPH,),
}

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "concept_tools": ("repository", "confidence_service"),
    "search_tools": (_GRAPH, _VECTORS, _EMBEDDING),
    "relationship_tools": _WRITING,
    "analytics_tools": (_GRAPH,),
}
_BUILT_IN: Final = "built-in"


class Service(NamedTuple):
    """Whether a service is there, and what answers for it."""

    available: bool
    implementation: str


class Services:
    """The services of one database."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    def status(self) -> dict[str, Service]:
        """Return every service by its name."""
        embedder = self._foundation.index.embedder_name
        built_in = Service(available=True, implementation=_BUILT_IN)
        services = {name: built_in for names in _GROUPS.values() for name in names}
        services["event_store"] = Service(available=True, implementation="sqlite")
        services[_EMBEDDING] = Service(embedder is not None, embedder or "none")
        return services

    def grouped(self) -> dict[str, dict[str, bool]]:
        """Return which services are there, by the tools that use them."""
        status = self.status()
        return {
            group: {name: status[name].available for name in names}
            for group, names in _GROUPS.items()
        }

    def missing(self, tool: str) -> list[str]:
        """Return the services that a tool needs and that are not there."""
        status = self.status()
        return [name for name in TOOLS[tool] if not status[name].available]

    def require(self, tool: str) -> None:
        """Refuse a tool whose services are not all there.

        Raises:
            ServiceUnavailable: One is not; the message names it.
        """
        for name in self.missing(tool):
            raise ServiceUnavailable(
                f"Required service not initialized. ({name} not initialized)",
                service=name,
                tool=tool,
                hint="get_tool_availability says which tools can be used.",
            )

    def graph(self, reader: Reader, view: View) -> Graph:
        """Return what answers questions about relationships in a view."""
        return BuiltInGraph(reader, view)

    def outbox(self) -> dict[str, int]:
        """Return how many events wait for external read models, were taken, or failed."""
        return {"pending": 0, "processed": 0, "failed": 0}
