"""Knowledge with read models elsewhere: real servers, and deliveries that a test drives itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.operation import Caller
from stratagem.projections.consistency import Comparison
from stratagem.projections.settings import ExternalSettings
from tests.projections.servers import ChromaServer, Neo4jServer

Opener = Callable[..., "Fed"]


class Fed(Stratagem):
    """A database that feeds read models elsewhere."""

    def concept(self, name: str, explanation: str = "What it means.", **fields: Any) -> str:
        return self.knowledge.create_concept(name, explanation, **fields).concept_id

    def relate(self, source: str, target: str, label: str = "relates_to", **more: Any) -> str:
        return self.knowledge.create_relationship(source, target, label, **more).relationship_id

    def deliver(self, name: str) -> None:
        """Deliver whatever is due; make the read model first where it never was."""
        self.runtime.projections.deliver(name, silent)

    def rebuild(self, name: str) -> int:
        return self.runtime.projections.rebuild(name, silent)

    def verify(self, name: str) -> Comparison:
        return self.runtime.projections.verify(name, silent)

    def outbox(self) -> dict[str, int]:
        return self.knowledge.get_server_stats().outbox


def silent(_done: int, _total: int, _what: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    pytest.importorskip("chromadb")
    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    yield server
    server.kill()


@pytest.fixture(scope="session")
def neo4j(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    pytest.importorskip("neo4j")
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    yield server
    server.kill()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    with ExitStack() as stack:

        def open_database(path: str = "log.db", **given: Any) -> Fed:
            known = Settings.__dataclass_fields__
            external = ExternalSettings(
                **{name: value for name, value in given.items() if name not in known}
            )
            settings: dict[str, Any] = {
                "durability": "fast",
                "embedder": "static",
                "deliver": False,
                **{name: value for name, value in given.items() if name in known},
            }
            place = path if "://" in path else str(tmp_path / path)
            runtime = start(Settings(place, external=external, **settings))
            return stack.enter_context(closing(Fed(runtime, Caller())))

        yield open_database


@pytest.fixture
def graph(opened: Opener, neo4j: Neo4jServer) -> Fed:
    return opened(graph="neo4j", neo4j_uri=neo4j.uri)


@pytest.fixture
def vectors(opened: Opener, chroma: ChromaServer) -> Fed:
    return opened(vectors="chroma", chroma=chroma.url)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give Neo4j's tests time: the first of them fetches its parts, once on a machine."""
    for item in items:
        if "neo4j" in getattr(item, "fixturenames", ()) or "[neo4j" in item.name:
            item.add_marker(pytest.mark.timeout(600))
