"""8. No tool reaches a private address, by any surface; how is tested in tests/unit/gateway/outbound."""

from __future__ import annotations

import pytest

from tests.security.house import SURFACES, House, Surface
from tests.surfaces.serving import Service
from tests.unit.gateway.outbound.test_guard import FORBIDDEN_HOSTS

ODD = ("http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/")
METADATA = ("http://169.254.169.254/latest/meta-data", "http://100.100.100.200/")
SCHEMES = ("file:///etc/passwd", "unix:///var/run/docker.sock", "gopher://127.0.0.1/", "ftp://x/")
EVERY = [f"http://{host}:{{port}}/" for host in FORBIDDEN_HOSTS] + [*ODD, *METADATA, *SCHEMES]


@pytest.mark.parametrize("surface", SURFACES)
def test_no_private_address_is_called(house: House, surface: Surface) -> None:
    reached = []
    with Service() as service:
        port = service.host.rpartition(":")[2]
        for pattern in EVERY if surface == "rest" else EVERY[:: len(EVERY) // 8]:
            url = pattern.replace("{port}", port)
            outcome = house.call(surface, "member", "api_caller", {"url": url})
            if outcome.error is None:
                reached.append(url)
        received = list(service.received)

    assert reached == []
    assert received == []


@pytest.mark.parametrize("surface", SURFACES)
def test_no_source_of_tools_is_read_from_there(house: House, surface: Surface) -> None:
    with Service() as service:
        url = service.url("/openapi.json")
        document = house.call(surface, "member", "openapi_add", {"url": url})
        server = house.call(surface, "admin", "server_add", {"name": "up", "url": url})
        received = list(service.received)

    assert document.error is not None
    assert server.error is not None
    assert received == []
