"""The yardstick of the protocol: two tools over plain SQLite, on the same SDK, on stdio.

Run as `python -m benchmarks.fts_server PATH`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import anyio
import orjson
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from benchmarks.plain import PlainSqlite

_TOOLS: Final = [
    Tool(
        name="store",
        description="Store a text under a key",
        input_schema={
            "type": "object",
            "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
            "required": ["key", "value"],
        },
    ),
    Tool(
        name="search",
        description="Find texts by their words",
        input_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    ),
]


class _Handlers:
    def __init__(self, path: Path) -> None:
        self._plain = PlainSqlite(path)

    async def list_tools(self, _context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=_TOOLS)

    async def call_tool(self, _context: Any, params: CallToolRequestParams) -> CallToolResult:
        arguments = params.arguments or {}
        if params.name == "store":
            self._plain.put((arguments["key"], arguments["value"]))
            answer: Any = {"stored": arguments["key"]}
        else:
            answer = self._plain.match_values(arguments["query"])
        text = orjson.dumps(answer).decode()
        return CallToolResult(content=[TextContent(type="text", text=text)])


async def _serve(path: Path) -> None:
    handlers = _Handlers(path)
    server: Server[Any] = Server(
        "fts5", on_list_tools=handlers.list_tools, on_call_tool=handlers.call_tool
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve, Path(sys.argv[1]))
