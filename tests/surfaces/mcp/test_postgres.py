"""Agents on a PostgreSQL server: `stratagem mcp` and `stratagem serve`, each a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from mcp import Client

from tests import forkserver
from tests.postgres import a_workspace
from tests.surfaces.mcp.clients import INITIALIZE, Stdio


def stratagem(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stratagem", *arguments]


@contextmanager
def served(place: str) -> Iterator[str]:
    """Give the address of a server process."""
    command = stratagem("serve", "--db", place, "--port", "0")
    with forkserver.Process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(rb"http://\S+/mcp", line):
            return found[0].decode()
    raise AssertionError("the server said no address")


def test_what_one_process_stores_another_recalls(postgres_address: str) -> None:
    place = f"{postgres_address}#{a_workspace()}"

    with served(place) as one, served(place) as other:

        async def talk() -> tuple[Any, Any]:
            async with Client(one) as client:
                await client.call_tool("strata_store", {"key": "city", "value": "Oslo"})
            async with Client(other) as client:
                recalled = await client.call_tool("strata_recall", {"key": "city"})
                found = await client.call_tool("strata_search", {"query": "Oslo"})
            return recalled.structured_content, found.structured_content

        recalled, found = anyio.run(talk)

    assert recalled["value"] == "Oslo"
    assert [hit["key"] for hit in found["results"]] == ["city"]


def test_stdio_serves_a_workspace(postgres_address: str) -> None:
    place = f"{postgres_address}#{a_workspace()}"
    command = stratagem("mcp", "--db", place, "--embedder", "none")

    with Stdio(None, command) as server:  # type: ignore[arg-type]
        server.request("initialize", **INITIALIZE)
        assert server.process.stdout is not None
        json.loads(server.process.stdout.readline())
        server.notify("notifications/initialized")
        server.request("tools/call", name="strata_store", arguments={"key": "k", "value": 1})
        answer = json.loads(server.process.stdout.readline())

    assert answer["result"]["structuredContent"]["key"] == "k"
