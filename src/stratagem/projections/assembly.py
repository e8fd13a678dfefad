"""From settings to the read models that they choose."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.projections.service import Projections
from stratagem.projections.settings import ExternalSettings
from stratagem.search.external_services import ExternalServices
from stratagem.search.index import Index
from stratagem.storage.contract import Store

if TYPE_CHECKING:
    from stratagem.projections.contract import ReadModel
    from stratagem.projections.health import Health
    from stratagem.projections.query_services import ChromaVectorService, Neo4jGraphService

__all__ = ["Subscribed", "assemble"]

_IDENTITY_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The kinds of record that read models elsewhere hold: nodes, edges, and types of edges.

    Records of `companion` add to the nodes of the same key.
    """

    node: str
    edge: str
    companion: str
    types: Sequence[str]


def assemble(
    settings: ExternalSettings, store: Store, index: Index, subscribed: Subscribed, *, beside: str
) -> tuple[Projections, ExternalServices]:
    """Return the chosen read models, and the services that they offer.

    `beside` is where a folder of Chroma goes when no place is named for it. Nothing is asked of
    any service here: they are connected to when they are needed.
    """
    # The first event tells a log from every other.
    first = store.reader().log.hash_of(1) or b""
    identity = first.hex()[:_IDENTITY_CHARS]
    models: list[tuple[ReadModel, Health]] = []
    graph: Neo4jGraphService | None = None
    vectors: ChromaVectorService | None = None
    if settings.graph == "neo4j":
        from stratagem.projections.bolt import Bolt
        from stratagem.projections.health import Health
        from stratagem.projections.neo4j import Neo4jModel
        from stratagem.projections.query_services import Neo4jGraphService

        bolt = Bolt(
            settings.neo4j_uri,
            settings.neo4j_user,
            settings.neo4j_password,
            settings.neo4j_database,
        )
        nodes = Neo4jModel(
            bolt,
            identity=identity,
            kinds=(subscribed.node, subscribed.edge),
            companion=subscribed.companion,
            types=subscribed.types,
        )
        health = Health(nodes.probe, time.monotonic)
        models.append((nodes, health))
        graph = Neo4jGraphService(nodes, health)
    if settings.vectors == "chroma":
        from stratagem.projections.chroma import ChromaModel
        from stratagem.projections.health import Health
        from stratagem.projections.query_services import ChromaVectorService

        texts = ChromaModel(
            settings.chroma or beside,
            identity=identity,
            kind=subscribed.node,
            companion=subscribed.companion,
            embed=index.embed,
            embedder=lambda: index.embedder_name,
        )
        health = Health(texts.probe, time.monotonic)
        models.append((texts, health))
        vectors = ChromaVectorService(texts, health)
    owner = f"{platform.node()}:{os.getpid()}:{os.urandom(4).hex()}"
    projections = Projections(store, models, owner=owner, draw=_draw)
    return projections, ExternalServices(graph, vectors, projections.wake)


def _draw() -> float:
    import random

    return random.random()  # noqa: S311 -- when something is tried again
