"""A server that keeps to the letter of JSON-RPC and to nothing else, on stdio.

It speaks the older protocol. The first argument names what is odd about it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

EVERY_KIND: list[dict[str, object]] = [
    {"type": "text", "text": "Where it is", "annotations": {"audience": ["user"], "priority": 0.9}},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "_meta": {"a/b": 1}},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {
        "type": "resource_link",
        "uri": "file:///oslo.md",
        "name": "oslo",
        "mimeType": "text/markdown",
    },
    {"type": "resource", "resource": {"uri": "demo://1", "mimeType": "text/plain", "text": "1"}},
    {"type": "resource", "resource": {"uri": "demo://2", "blob": "AAEC"}},
]
ODDITY = sys.argv[-1]
lists_read = 0
GOOD = {"name": "good", "description": "A good one", "inputSchema": {"type": "object"}}

ODD: list[Any] = [
    GOOD,
    None,
    {"description": "no name"},
    {"name": "no_schema"},
    {"name": "text_schema", "inputSchema": "object"},
    {"name": "list_schema", "inputSchema": {"type": "array"}},
    {"name": "bad_output", "inputSchema": {}, "outputSchema": 5},
    {"name": "huge", "inputSchema": {"description": "x" * 300_000}},
    {**GOOD, "description": "An impostor"},
    {"name": "n" * 500, "inputSchema": {}},
    {
        "name": "hid\u200bden\u202e",
        "title": "T\u0007itle",
        "description": "Reads a file.\u202e\U000e0041\ufe01\u200b\x1b[2J" + "x" * 50_000,
        "inputSchema": {
            "properties": {"description": {"type": "string", "description": "pa\u2060th"}},
            "default": "\u200b",
        },
        "annotations": {"readOnlyHint": True, "destructiveHint": "no", "title": 5},
    },
    {"name": "天气", "description": 7, "inputSchema": {}},
]


def page(cursor: str | None) -> dict[str, Any]:
    if ODDITY == "odd":
        return {"tools": ODD}
    if ODDITY == "restless":
        return {"tools": [{**GOOD, "description": f"read {lists_read} times"}]}
    if ODDITY == "endless":
        return {"tools": [], "nextCursor": "again"}
    if ODDITY == "none":
        return {"tools": "none"}
    if ODDITY == "many":
        start = int(cursor or 0)
        names = [f"tool_{number}" for number in range(start, start + 500)]
        tools = [{**GOOD, "name": name, "description": "word " * 100} for name in names]
        return {"tools": tools, "nextCursor": str(start + 500) if start < 5500 else None}
    return {"tools": [GOOD]}


def answer(request: dict[str, Any]) -> Any:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "odd", "version": "0"},
        }
    if method == "tools/list":
        globals()["lists_read"] += 1
        return page(params.get("cursor"))
    if method == "tools/call":
        return called(params)
    return None


def called(params: dict[str, Any]) -> Any:
    kind = params["arguments"].get("answer")
    if kind == "flood":
        sys.stdout.write("x" * 40_000_000)
        sys.stdout.flush()
        time.sleep(5)
    if kind == "restless":
        change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        sys.stdout.write(f"{json.dumps(change)}\n" * 500)
    if kind == "noise":
        sys.stdout.write('not json\n\n{"jsonrpc": "2.0"}\n[]\n')
    return {
        "text": {"content": "text"},
        "blocks": {"content": [5, {"type": "text"}, {"type": "new", "of": [1]}]},
        "no_text": {"isError": True},
        "every_kind": {
            "content": EVERY_KIND,
            "structuredContent": {"city": "Oslo"},
            "_meta": {"example.org/cost": 3},
        },
        "failed": {"isError": True, "content": EVERY_KIND, "_meta": {"example.org/cost": 4}},
        "asks": {"resultType": "input_required", "inputRequests": {}},
    }.get(kind, {"content": [{"type": "text", "text": "[1, 2]"}]})


def main() -> None:
    if ODDITY == "silent":
        time.sleep(600)
    if ODDITY == "dead":
        sys.stderr.write("cannot find my settings\x1b[31m\n")
        sys.exit(4)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request)
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        error = {"code": -32601, "message": "Method not found"}
        reply |= {"error": error} if result is None else {"result": result}
        sys.stdout.write(f"{json.dumps(reply)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
