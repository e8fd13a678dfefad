"""What an upstream MCP server answers reaches callers as it was sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import stratagem
from tests.surfaces.mcp.clients import MODES, Mode, connected, text_of
from tests.unit.gateway.handlers.upstream.odd_server import EVERY_KIND
from tests.unit.gateway.handlers.upstream.servers import ODD_SERVER, npm_server

pytestmark = pytest.mark.anyio

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"message": "hello"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-resource-links", {"count": 3}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-tiny-image", {}),
]


def sent(result: Any) -> dict[str, Any]:
    """Return a result as it goes over the wire, without what each hop says of itself."""
    dumped: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    dumped.pop("resultType", None)
    meta = dumped.pop("_meta", {})
    meta.pop("io.modelcontextprotocol/serverInfo", None)
    return {**dumped, "_meta": meta}


def without_time(result: dict[str, Any]) -> dict[str, Any]:
    """Leave out the one text in which a reference server says when it was asked."""
    for block in result["content"]:
        if "created at" in str(block.get("resource", {}).get("text")):
            block["resource"]["text"] = "created"
    return result


@pytest.fixture
def everything() -> tuple[str, str]:
    try:
        return npm_server("server-everything")
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def odd(path: Path) -> Path:
    """Give a database with an upstream that answers with every kind of content."""
    command = {"name": "odd", "command": sys.executable, "args": [*ODD_SERVER.split(), "plain"]}
    with stratagem.open(str(path), embedder="none") as db:
        db.call("server_add", command)
    return path


async def test_each_kind_of_answer_is_the_same_as_by_a_direct_call(
    path: Path, everything: tuple[str, str]
) -> None:
    node, script = everything
    with stratagem.open(str(path), embedder="none") as db:
        db.call("server_add", {"name": "up", "command": node, "args": [script, "stdio"]})
        plain = [db.call("tool_execute", {"toolName": n, "arguments": a}) for n, a in KINDS]

    server = StdioServerParameters(command=node, args=[script, "stdio"])
    async with Client(stdio_client(server)) as client:
        direct = [without_time(sent(await client.call_tool(*each))) for each in KINDS]
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    async with connected(path, toolsets=("gateway",), expose=("*",)) as client:
        exposed = [without_time(sent(await client.call_tool(*each))) for each in KINDS]
        executed = [
            without_time(
                sent(await client.call_tool("tool_execute", {"toolName": n, "arguments": a}))
            )
            for n, a in KINDS
        ]
        ours = {tool.name: tool for tool in (await client.list_tools()).tools}

    for (name, _), there, here, through, as_json in zip(
        KINDS, direct, exposed, executed, plain, strict=True
    ):
        assert here == there, name
        assert through["content"] == there["content"], name
        content = as_json["mcp"].get("content") or as_json["result"]["content"]
        assert without_time({"content": content})["content"] == there["content"], name
        for field in ("title", "annotations", "icons", "output_schema"):
            assert getattr(ours[name], field) == getattr(listed[name], field), (name, field)


@pytest.mark.parametrize("mode", MODES)
async def test_every_kind_of_block_comes_through(odd: Path, mode: Mode) -> None:
    async with connected(odd, mode, toolsets=("gateway",), expose=("good",)) as client:
        answer = sent(await client.call_tool("good", {"answer": "every_kind"}))
        failed = sent(await client.call_tool("good", {"answer": "failed"}))
        given = {"toolName": "good", "arguments": {"answer": "every_kind"}}
        executed = sent(await client.call_tool("tool_execute", given))
        given = {"toolName": "good", "arguments": {"answer": "failed"}}
        broken = sent(await client.call_tool("tool_execute", given))

    assert answer["content"] == EVERY_KIND
    assert answer["structuredContent"] == {"city": "Oslo"}
    assert answer["_meta"]["example.org/cost"] == 3
    assert failed["isError"]
    assert failed["content"] == EVERY_KIND
    assert failed["_meta"]["example.org/cost"] == 4
    assert executed["content"] == EVERY_KIND
    assert executed["structuredContent"]["result"] == {"city": "Oslo"}
    assert "iVBORw0KGgo=" not in str(executed["structuredContent"])
    assert broken["isError"]
    assert broken["content"] == EVERY_KIND
    assert broken["structuredContent"]["error"] == "execution_error"


async def test_an_answer_that_was_kept_is_as_faithful_as_the_first(odd: Path) -> None:
    with stratagem.open(str(odd), embedder="none") as db:
        db.call("tool_update", {"toolId": "good", "configuration": {"cache": True}})
    async with connected(odd, toolsets=("gateway",), expose=("good",)) as client:
        given = {"toolName": "good", "arguments": {"answer": "every_kind"}}
        first = sent(await client.call_tool("tool_execute", given))
        again = sent(await client.call_tool("tool_execute", given))

    assert again["structuredContent"]["metadata"]["cached"]
    assert again["content"] == first["content"] == EVERY_KIND


async def test_a_corrected_call_says_so_behind_what_the_server_answered(odd: Path) -> None:
    async with connected(odd, toolsets=("gateway",), expose=("good",)) as client:
        answer = await client.call_tool("tool_execute", {"toolName": "good", "arguments": "{}"})

    assert not answer.is_error, text_of(answer)


async def test_calling_any_tool_may_destroy_and_reaches_the_open_world(odd: Path) -> None:
    async with connected(odd, toolsets=("gateway",)) as client:
        listed = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    for name in ("tool_execute", "tools_batch", "tools_pipeline"):
        annotations = listed[name]
        assert annotations is not None
        assert annotations.destructive_hint
        assert annotations.open_world_hint
