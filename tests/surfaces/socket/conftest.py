"""One server for all tests of sockets, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.surfaces.serving import Served, Service, serving
from tests.surfaces.socket.clients import Client, javascript_client


@pytest.fixture(scope="session", autouse=True)
def _client_is_there() -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture(scope="session")
def server(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = tmp_path_factory.mktemp("socket") / "socket.db"
    with serving(database, "--allow-host", service.host) as running:
        yield running


@pytest.fixture
def connect(server: Served) -> Iterator[Callable[..., Client]]:
    with ExitStack() as stack:
        yield lambda *given: stack.enter_context(Client(server.url, *given))


@pytest.fixture(params=["websocket", "polling"])
def client(connect: Callable[..., Client], request: pytest.FixtureRequest) -> Client:
    connected = connect(request.param)
    assert connected.first["transport"] == request.param
    return connected


@pytest.fixture
def socket(connect: Callable[..., Client]) -> Client:
    return connect("websocket")
