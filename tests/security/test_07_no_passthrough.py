"""7. A caller's token is sent to nobody: no upstream sees it, by whatever way a call came."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.security.house import SURFACES, House, Surface, make_token, serving
from tests.surfaces.serving import Service

TOOL = {"description": "d", "inputSchema": {"type": "object"}}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture(scope="module")
def calling(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("calling") / "memory.db"
    secret = make_token(path, "alice", "*:admin", rate=100_000)
    with serving(path, allow_hosts=(urlsplit(service.url("/")).netloc,)) as house:
        house.tokens["alice"] = secret
        handler = {"type": "webhook", "url": service.url("/hook"), "method": "POST"}
        added = house.client("alice").post(
            "/api/mcp/tools", json={"name": "hook", "handler": handler, **TOOL}
        )
        assert added.status_code == 201, added.text
        yield house


@pytest.mark.parametrize("surface", SURFACES)
def test_no_upstream_sees_the_token(calling: House, service: Service, surface: Surface) -> None:
    secret = calling.tokens["alice"]
    service.received.clear()
    pipeline = {"steps": [{"id": "a", "tool": "hook", "arguments": {"x": 1}}]}

    calling.call(surface, "alice", "tool_execute", {"toolName": "hook", "arguments": {"x": 1}})
    calling.call(surface, "alice", "hook", {"x": 1})
    calling.call(surface, "alice", "tools_pipeline", pipeline)
    calling.call(surface, "alice", "api_caller", {"url": service.url("/api")})
    calling.call(surface, "alice", "openapi_add", {"url": service.url("/document")})

    assert service.received
    for said in service.received:
        assert secret not in str(said)
        assert "authorization" not in said["headers"]
        assert "x-stratagem-workspace" not in said["headers"]
        assert "cookie" not in said["headers"]
