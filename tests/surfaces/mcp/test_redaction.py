"""How much a server masks of what debugging is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.mcp.clients import connected

INCIDENT = {
    "title": "Cannot reach 10.1.2.3",
    "steps": "Start it",
    "env": {"os": "linux"},
    "worked": True,
}


@pytest.mark.anyio
@pytest.mark.parametrize(("level", "place"), [("basic", "10.1.2.3"), ("strict", "[ip]")])
async def test_a_server_masks_as_it_was_told(path: Path, level: str, place: str) -> None:
    async with connected(path, redaction=level) as client:
        added = await client.call_tool("add_incident", INCIDENT)

    assert added.structured_content["title"] == f"Cannot reach {place}"
