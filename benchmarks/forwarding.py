"""Answers of an upstream MCP server through the gateway, beside those of a direct call.

`python -m benchmarks.forwarding` calls one tool of the reference server for each kind of content,
directly and on every surface, and prints how many characters of the content differ, and how many
tokens a model is given (a token is counted as four characters of JSON).
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

import httpx2
import socketio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import stratagem
from tests.surfaces.mcp.clients import http_server
from tests.unit.gateway.handlers.upstream.servers import npm_server

__all__ = ["main"]

_KINDS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("text", "echo", {"message": "hello"}),
    ("annotated", "get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("links to resources", "get-resource-links", {"count": 3}),
    ("embedded resource", "get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("structured content", "get-structured-content", {"location": "Chicago"}),
    ("picture", "get-tiny-image", {}),
)
_SURFACES: Final = ("direct", "MCP, exposed", "MCP, tool_execute", "REST", "Socket.IO")
# The server says in one text when it was asked.
_TIME: Final = re.compile("[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M")
_TOKEN_CHARS: Final = 4

Call = Callable[[str, dict[str, Any]], Awaitable[tuple[str, int]]]


def _dump(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    # The typed client reads 1 as 1.0, which is the same number.
    return _TIME.sub("then", re.sub(r"(:[0-9]+)\.0(?=[,}])", r"\1", text))


def _by_client(client: Client, *, execute: bool = False) -> Call:
    async def call(tool: str, arguments: dict[str, Any]) -> tuple[str, int]:
        given = {"toolName": tool, "arguments": arguments}
        result = await client.call_tool(
            *(("tool_execute", given) if execute else (tool, arguments))
        )
        sent = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        # Models are shown the blocks.
        return _dump(sent["content"]), len(_dump(sent["content"]))

    return call


def _by_answer(ask: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> Call:
    async def call(tool: str, arguments: dict[str, Any]) -> tuple[str, int]:
        answer = await ask(tool, arguments)
        content = answer["mcp"].get("content") or answer["result"]["content"]
        shown = {"result": answer["result"], "mcp": answer["mcp"]}
        return _dump(content), len(_dump(shown))

    return call


async def _measure(address: str, node: str, script: str) -> list[list[Any]]:
    server = StdioServerParameters(command=node, args=[script, "stdio"])
    sockets = socketio.AsyncClient()
    await sockets.connect(address, transports=["polling"])
    async with (
        Client(stdio_client(server)) as direct,
        Client(f"{address}/mcp") as ours,
        httpx2.AsyncClient(base_url=address, trust_env=False) as http,
    ):

        async def rest(tool: str, arguments: dict[str, Any]) -> Any:
            path = f"/api/mcp/tools/{tool}/execute"
            return (await http.post(path, json={"arguments": arguments})).json()["data"]

        async def socket(tool: str, arguments: dict[str, Any]) -> Any:
            given = {"toolName": tool, "arguments": arguments}
            return (await sockets.call("mcp:tool:execute", given))["data"]

        ways: list[Call] = [
            _by_client(direct),
            _by_client(ours),
            _by_client(ours, execute=True),
            _by_answer(rest),
            _by_answer(socket),
        ]
        rows = []
        for kind, tool, arguments in _KINDS:
            answers = [await way(tool, arguments) for way in ways]
            wanted = answers[0][0]
            differences = sum(_differing(wanted, content) for content, _chars in answers[1:])
            tokens = [-(-chars // _TOKEN_CHARS) for _content, chars in answers]
            rows.append([kind, differences, *tokens])
    await sockets.disconnect()
    return rows


def _differing(wanted: str, content: str) -> int:
    if wanted == content:
        return 0
    matches = SequenceMatcher(None, wanted, content, autojunk=False).get_matching_blocks()
    return max(len(wanted), len(content)) - sum(each.size for each in matches)


def main() -> int:
    """Print the table; 0 where nothing differs."""
    node, script = npm_server("server-everything")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.db")
        with stratagem.open(str(path), embedder="none") as db:
            db.call("server_add", {"name": "up", "command": node, "args": [script, "stdio"]})
        with http_server(path, toolsets=("gateway",), expose=("*",)) as address:
            rows = asyncio.run(_measure(address, node, script))
    heads = ["kind", "differs", *_SURFACES]
    widths = [max(len(str(row[at])) for row in (heads, *rows)) for at in range(len(heads))]
    for row in (heads, *rows):
        sys.stdout.write(
            "  ".join(str(each).ljust(width) for each, width in zip(row, widths, strict=True))
            + "\n"
        )
    return int(any(row[1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
