"""The gateway over the protocol: its toolset, exposed tools, prompts and resources, upstreams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

import stratagem
from stratagem.gateway.definitions.contract import ProgressReport
from tests.surfaces.mcp.clients import MODES, Mode, connected, http_server, text_of
from tests.unit.gateway.handlers.upstream.servers import npm_server

pytestmark = pytest.mark.anyio

GATEWAY: dict[str, Any] = {"toolsets": ("gateway",)}


@pytest.fixture
def registered(path: Path) -> Path:
    """Give a database with a few registered things."""
    webhook = {"type": "webhook", "url": "http://127.0.0.1:9/"}
    with stratagem.open(str(path)) as db:
        db.gateway.register(
            name="double",
            description="Twice a number.",
            input_schema={
                "type": "object",
                "properties": {"n": {"type": "number", "description": "A number"}},
                "required": ["n"],
            },
            handler={
                "type": "pipeline",
                "definition": {
                    "steps": [
                        {"tool": "calculator", "arguments": {"expression": "2 * ${{ input.n }}"}}
                    ]
                },
            },
        )
        for name, more in (
            ("off", {"status": "disabled"}),
            (
                "once",
                {
                    "handler": {"type": "code", "language": "python", "code": "result = 1"},
                    "configuration": {"rateLimit": 1},
                },
            ),
            (
                "slow",
                {
                    "handler": {
                        "type": "code",
                        "language": "python",
                        "code": "import time; time.sleep(300)",
                    },
                    "configuration": {"timeout": 300},
                },
            ),
            ("broken", {"handler": {"type": "code", "language": "python", "code": "1 / 0"}}),
        ):
            db.call(
                "tool_register",
                {
                    "name": name,
                    "description": f"The tool {name}.",
                    "input_schema": {"type": "object"},
                    "handler": webhook,
                    **more,
                },
            )
        db.gateway.create_resource(
            type="prompt",
            name="code_reviewer",
            description="Code review assistant prompt",
            content="Review the following {{language}} code:\n{{code}}",
        )
        db.gateway.create_resource(type="data", name="house rules", content="Be kind.")
    return path


@pytest.mark.parametrize("mode", MODES)
async def test_the_toolset_calls_helps_batches_and_pipes(registered: Path, mode: Mode) -> None:
    heard: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total == 1.0, message
        heard.append(progress)

    async with connected(registered, mode, **GATEWAY) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        helped = await client.call_tool("tool_help", {"toolName": "double"})
        values = await client.call_tool("tool_help", {"toolName": "date_time"})
        called = await client.call_tool(
            "tool_execute", {"toolName": "double", "arguments": {"n": 4}}
        )
        batch = await client.call_tool(
            "tools_batch",
            {
                "executions": [
                    {"toolName": "double", "arguments": {"n": 1}},
                    {"toolName": "nothing", "arguments": {}},
                ]
            },
        )
        piped = await client.call_tool(
            "tools_pipeline",
            {
                "steps": [
                    {"tool": "double", "arguments": {"n": 5}},
                    {"tool": "double", "arguments": {"n": "${{ previous.result }}"}},
                ]
            },
            progress_callback=note,
        )

    assert heard == [0.0, 0.5]
    assert 'One of: "now"' in text_of(values)
    assert {"tool_help", "tool_execute", "tools_batch", "tools_pipeline"} <= names
    assert "n (number, required) A number" in text_of(helped)
    assert called.structured_content is not None
    assert called.structured_content["result"]["result"] == 8
    assert text_of(batch).startswith('1 of 2 worked.\ndouble: {"result":2')
    assert piped.structured_content is not None
    assert piped.structured_content["output"]["result"] == 20
    assert 'finished\nOutput: {"result":20' in text_of(piped)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("tool_not_found", {"toolName": "nothing"}),
        ("validation_error", {"toolName": "double", "arguments": {"n": "many"}}),
        ("execution_error", {"toolName": "broken"}),
        ("permission_denied", {"toolName": "off"}),
        ("rate_limited", {"toolName": "once"}),
        ("timeout", {"toolName": "slow"}),
    ],
)
async def test_each_error_is_a_result_that_a_model_can_read(
    registered: Path, code: str, given: dict[str, Any]
) -> None:
    async with connected(registered, **GATEWAY) as client:
        if code == "rate_limited":
            await client.call_tool("tool_execute", given)
        begun = time.monotonic()
        answer = await client.call_tool("tool_execute", given)

    assert answer.is_error
    told = answer.structured_content or json.loads(text_of(answer))
    assert told["error"] == code
    assert told["hint"]
    assert told["details"]["executionId"].startswith("exec_")
    assert time.monotonic() - begun < 60


async def test_exposed_tools_are_tools_in_their_own_right(registered: Path) -> None:
    async with connected(registered, expose=("dou*", "off", "calculator")) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        called = await client.call_tool("double", {"n": 21})
        corrected = await client.call_tool("double", {"n": "21"})
        refused = await client.call_tool("double", {})
        with pytest.raises(MCPError):
            await client.call_tool("slow", {})

    assert {"double", "calculator", "strata_store"} <= set(tools)
    # What cannot be called is not shown.
    assert "off" not in tools
    assert tools["double"].input_schema["required"] == ["n"]
    assert called.structured_content is not None
    assert called.structured_content["result"] == 42
    assert corrected.structured_content == called.structured_content
    assert refused.is_error


@pytest.mark.parametrize(("more", "longest"), [({}, 60_000), ({"expose": ("dou*",)}, 2_000)])
async def test_a_list_that_may_change_is_not_kept_for_long(
    registered: Path, more: dict[str, Any], longest: int
) -> None:
    async with connected(registered, **more) as client:
        listed = await client.list_tools()

    assert listed.ttl_ms == longest


async def test_prompts_and_resources_are_the_registrys(registered: Path) -> None:
    async with connected(registered, **GATEWAY) as client:
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        filled = await client.get_prompt("code_reviewer", {"language": "Python", "code": "x = 1"})
        with pytest.raises(MCPError, match="code"):
            await client.get_prompt("code_reviewer", {"language": "Python"})
        resources = {each.name: each for each in (await client.list_resources()).resources}
        read = await client.read_resource(str(resources["house rules"].uri))

    arguments = prompts["code_reviewer"].arguments or []
    assert [each.name for each in arguments] == ["language", "code"]
    message = filled.messages[0].content
    assert message.type == "text"
    assert message.text == "Review the following Python code:\nx = 1"
    assert getattr(read.contents[0], "text", None) == "Be kind."


@pytest.fixture(scope="session")
def reference() -> Callable[[str], tuple[str, str]]:
    def find(name: str) -> tuple[str, str]:
        try:
            return npm_server(name)
        except LookupError as reason:
            pytest.skip(str(reason))

    return find


async def test_reference_servers_are_upstreams(
    path: Path, tmp_path: Path, reference: Callable[[str], tuple[str, str]]
) -> None:
    node, everything = reference("server-everything")
    _node, memory = reference("server-memory")
    kept = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entity = {"name": "Oslo", "entityType": "city", "observations": ["by the sea"]}

    with stratagem.open(str(path), embedder="none") as db:
        for name, script, env in (("everything", everything, {}), ("memory", memory, kept)):
            args = [script, "stdio"] if name == "everything" else [script]
            db.call("server_add", {"name": name, "command": node, "args": args, "env": env})
    async with connected(path, toolsets=("gateway", "registry"), expose=("ech*",)) as client:
        echoed = await client.call_tool(
            "tool_execute", {"toolName": "echo", "arguments": {"message": "hello"}}
        )
        exposed = await client.call_tool("echo", {"message": "again"})
        await client.call_tool(
            "tool_execute", {"toolName": "create_entities", "arguments": {"entities": [entity]}}
        )
        graph = await client.call_tool("tool_execute", {"toolName": "read_graph", "arguments": {}})
        wrong = await client.call_tool(
            "tool_execute", {"toolName": "create_entities", "arguments": {"entities": "no"}}
        )
        long = await client.call_tool(
            "tool_execute",
            {
                "toolName": "trigger-long-running-operation",
                "arguments": {"duration": 0.3, "steps": 3},
            },
        )

    assert "hello" in text_of(echoed)
    assert "again" in text_of(exposed)
    assert "Oslo" in text_of(graph)
    assert wrong.is_error
    assert not long.is_error


async def counts(progress: ProgressReport) -> str:
    """Count to three."""
    for step in (1, 2, 3):
        progress(step / 3, f"{step} of 3")
        await asyncio.sleep(0.01)
    return "done"


async def hums(progress: ProgressReport) -> str:
    """Be busy for nobody knows how long."""
    for _ in range(3):
        progress(None, "hm")
        await asyncio.sleep(0.01)
    return "done"


@pytest.fixture
def busy(path: Path) -> Path:
    with stratagem.open(str(path)) as db:
        for name in ("counts", "hums"):
            db.gateway.register(
                name=name,
                description="Takes a while.",
                input_schema={"type": "object"},
                handler={"type": "python", "callable": f"tests.surfaces.mcp.test_gateway:{name}"},
            )
    return path


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_hears_how_far_a_tool_has_come(busy: Path, mode: Mode) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    allowed = ("tests.surfaces.mcp.test_gateway:*",)
    async with connected(
        busy, mode, toolsets=("gateway",), expose=("hums",), allow_callables=allowed
    ) as client:
        given = {"toolName": "counts", "arguments": {}}
        quiet = await client.call_tool("tool_execute", given)
        told = await client.call_tool("tool_execute", given, progress_callback=hear)
        counted, heard = heard, []
        await client.call_tool("hums", {}, progress_callback=hear)

    assert not quiet.is_error
    assert not told.is_error
    assert counted == [(step / 3, 1.0, f"{step} of 3") for step in (1, 2, 3)]
    assert heard == [(step, None, "hm") for step in (1, 2, 3)]


async def test_progress_is_heard_over_http(busy: Path) -> None:
    heard: list[float] = []

    async def hear(
        progress: float,
        total: float | None,
        message: str | None,
    ) -> None:
        heard.append(progress)

    allowed = ("tests.surfaces.mcp.test_gateway:counts",)
    with http_server(busy, toolsets=("gateway",), allow_callables=allowed) as address:
        async with Client(f"{address}/mcp") as client:
            await client.call_tool(
                "tool_execute", {"toolName": "counts", "arguments": {}}, progress_callback=hear
            )

    assert heard == [1 / 3, 2 / 3, 1.0]
