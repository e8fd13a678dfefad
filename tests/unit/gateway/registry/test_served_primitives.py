"""What servers have besides tools is found without keeping other calls waiting."""

from __future__ import annotations

import asyncio
import sys

import pytest
from mcp.shared.uri_template import UriTemplate

import stratagem
from stratagem.gateway.handlers.upstream import connection
from stratagem.gateway.handlers.upstream.primitives import read_primitives
from tests.surfaces.mcp import plain_server


def in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_lists_and_templates_are_read_beside_the_event_loop_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places: list[tuple[str, bool]] = []
    parse = UriTemplate.parse

    def parse_noted(template: str) -> UriTemplate:
        places.append((template, in_event_loop()))
        return parse(template)

    def read_noted(listed: dict[str, list[object]]) -> object:
        places.append(("lists", in_event_loop()))
        return read_primitives(listed)

    monkeypatch.setattr(UriTemplate, "parse", parse_noted)
    monkeypatch.setattr(connection, "read_primitives", read_noted)
    with stratagem.open(":memory:", embedder="none") as db:
        command = {"command": sys.executable, "args": [str(plain_server.__file__), "legacy"]}
        db.call("server_add", {"name": "plain", **command})
        for city in ("oslo", "rome"):
            found = db.call("upstream_resource", {"uri": f"demo://{city}/weather"})
            assert found["result"]["contents"][0]["uri"] == f"demo://{city}/weather"

    # Another test may have had the template parsed before.
    assert places in ([lists := ("lists", False)], [lists, ("demo://{place}/weather", False)])
