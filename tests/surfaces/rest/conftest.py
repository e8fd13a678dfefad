"""One server and one service for all tests of REST."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.surfaces.serving import Served, Service, serving

SECRET = "swordfish-1234567890"


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture(scope="session")
def rest(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = tmp_path_factory.mktemp("rest") / "rest.db"
    environment = {"STRATAGEM_SECRET_API_KEY": SECRET}
    with serving(
        database, "--allow-host", service.host, "--toolsets", "memory,gateway", env=environment
    ) as running:
        yield running


Register = Callable[..., dict[str, Any]]
_NUMBERS = itertools.count(1)


@pytest.fixture
def register(rest: Served, service: Service) -> Register:
    """Register a webhook under a name of its own; return the answer, with the name."""

    def add(path: str = "/echo", **more: Any) -> dict[str, Any]:
        definition = {
            "name": f"tool_of_test_{next(_NUMBERS)}",
            "description": "A tool of the tests.",
            "inputSchema": {"type": "object"},
            "handler": {"type": "webhook", "url": service.url(path)},
            **more,
        }
        answer: dict[str, Any] = rest.call("POST", "/api/mcp/tools", definition, 201)
        return answer

    return add
