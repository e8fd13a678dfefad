"""Prompts, resources and changes of upstream MCP servers reach the clients of ours."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

import stratagem
from tests.surfaces.mcp import plain_server
from tests.surfaces.mcp.clients import CLIENT, MODES, Mode, connected, http_server
from tests.unit.gateway.handlers.upstream.servers import npm_server

pytestmark = pytest.mark.anyio

LEGACY = {"command": sys.executable, "args": [str(Path(plain_server.__file__))]}
PROMPTS: list[tuple[str, dict[str, str]]] = [
    ("simple-prompt", {}),
    ("args-prompt", {"city": "Oslo", "state": "Norway"}),
    ("completable-prompt", {"department": "Sales", "name": "David"}),
    ("resource-prompt", {"resourceType": "Text", "resourceId": "1"}),
]


# In one text, and in one blob, the reference server says when it was asked.
TIME = "[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M"
BLOB = base64.b64encode(b"Resource 2: This is a base64 blob created at").decode()[:-4]


def dump(model: Any) -> Any:
    """Return an answer as it goes over the wire, without times and what each hop says of itself."""
    sent = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    for own in ("resultType", "ttlMs", "cacheScope"):
        sent.pop(own, None)
    sent.get("_meta", {}).pop("io.modelcontextprotocol/serverInfo", None)
    if not sent.get("_meta", True):
        del sent["_meta"]
    return json.loads(re.sub(f'{TIME}|(?<={BLOB})[^"]+', "then", json.dumps(sent)))


async def everything_of(client: Client) -> dict[str, Any]:
    """Return all that a client can see of the reference server besides tools."""
    listed = {
        "prompts": dump(await client.list_prompts()),
        "resources": dump(await client.list_resources()),
        "templates": dump(await client.list_resource_templates()),
    }
    uris = [each["uri"] for each in listed["resources"]["resources"]]
    asked = {"name": "department", "value": "E"}
    return {
        **listed,
        "messages": [dump(await client.get_prompt(*each)) for each in PROMPTS],
        "contents": [
            dump(await client.read_resource(uri))
            for uri in (*uris, "demo://resource/dynamic/text/5", "demo://resource/dynamic/blob/2")
        ],
        "completion": dump(
            await client.complete(PromptReference(name="completable-prompt"), asked)
        ),
        "template": dump(
            await client.complete(
                ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}"),
                {"name": "resourceId", "value": "1"},
            )
        ),
    }


@pytest.fixture(scope="module")
def everything() -> tuple[str, str]:
    try:
        return npm_server("server-everything")
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, everything: tuple[str, str]) -> Iterator[str]:
    """Give the address of one server, with the reference server behind it, to all tests."""
    node, script = everything
    path = tmp_path_factory.mktemp("forward") / "memory.db"
    with stratagem.open(str(path), embedder="none") as db:
        db.call("server_add", {"name": "up", "command": node, "args": [script, "stdio"]})
    with http_server(path, toolsets=("gateway",), expose=("echo",)) as address:
        yield address


@pytest.fixture
def legacy(path: Path) -> Path:
    """Give a database with an upstream server of the handshake era."""
    with stratagem.open(str(path), embedder="none") as db:
        db.call("server_add", {"name": "old", **LEGACY})
    return path


async def test_prompts_and_resources_are_the_same_as_by_a_direct_connection(
    gateway: str, everything: tuple[str, str]
) -> None:
    node, script = everything
    server = StdioServerParameters(command=node, args=[script, "stdio"])

    async with Client(stdio_client(server)) as client:
        direct = await everything_of(client)
    through = {}
    for mode in MODES:
        async with Client(f"{gateway}/mcp", mode=mode, client_info=CLIENT) as client:
            through[mode] = await everything_of(client)

    for mode in MODES:
        for kind, answer in direct.items():
            assert through[mode][kind] == answer, (mode, kind)


async def test_an_error_of_the_upstream_keeps_its_code(gateway: str) -> None:
    async with Client(f"{gateway}/mcp", client_info=CLIENT) as client:
        with pytest.raises(MCPError) as wrong:
            await client.get_prompt("args-prompt", {})
        with pytest.raises(MCPError) as unknown:
            await client.get_prompt("no-such-prompt", {})

    assert wrong.value.error.code == -32602
    assert "city" in wrong.value.error.message
    assert unknown.value.error.code == -32602
    assert "simple-prompt" in str(unknown.value.error.data)


# Clients of the handshake era have no other way.
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize("mode", MODES)
async def test_changes_reach_the_clients_that_follow_them(legacy: Path, mode: Mode) -> None:
    heard: set[str] = set()
    done = anyio.Event()

    def note(method: str) -> None:
        heard.add(method)
        if len(heard) == 3:
            done.set()

    async def on_message(message: Any) -> None:
        note(message.method.removeprefix("notifications/"))

    options: dict[str, Any] = {"toolsets": ("gateway",), "expose": ("*",)}
    async with connected(
        legacy, mode, callbacks={"message_handler": on_message}, **options
    ) as client:
        before = [each.name for each in (await client.list_prompts()).prompts]
        with anyio.fail_after(60):
            if mode == "legacy":
                await client.subscribe_resource("demo://one")
                await client.call_tool("change", {})
                await done.wait()
            else:
                async with client.listen(
                    prompts_list_changed=True,
                    resources_list_changed=True,
                    resource_subscriptions=["demo://one", "demo://nothing-like/it"],
                ) as events:
                    await client.call_tool("change", {})
                    async for event in events:
                        note(type(event).__name__)
                        if done.is_set():
                            break
        after = [each.name for each in (await client.list_prompts()).prompts]

    assert before == ["greet"]
    assert after == ["greet", "part"]


async def test_a_registered_tool_changes_the_list_of_tools(path: Path) -> None:
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        if message.method == "notifications/tools/list_changed":
            heard.set()

    options: dict[str, Any] = {"toolsets": ("gateway", "registry"), "expose": ("*",)}
    async with connected(
        path, "legacy", callbacks={"message_handler": on_message}, **options
    ) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed
        tool = {
            "name": "nine",
            "description": "Nine.",
            "inputSchema": {"type": "object"},
            "handler": {"type": "code", "language": "python", "code": "9"},
        }
        with anyio.fail_after(60):
            await client.list_tools()
            await client.call_tool("tool_register", tool)
            await heard.wait()


NINE = {
    "name": "nine",
    "description": "Nine.",
    "inputSchema": {"type": "object"},
    "handler": {"type": "code", "language": "python", "code": "9"},
}


@pytest.mark.parametrize("mode", MODES)
async def test_what_another_process_registers_is_told_once(path: Path, mode: Mode) -> None:
    heard: list[str] = []
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        heard.append(message.method)
        if message.method == "notifications/tools/list_changed":
            told.set()

    def register() -> None:
        with stratagem.open(str(path), embedder="none") as other:
            other.call("tool_register", NINE)

    options: dict[str, Any] = {"toolsets": ("gateway", "registry"), "expose": ("*",)}
    # Of a client that listens the handler would hear the same notice.
    callbacks = {"message_handler": on_message} if mode == "legacy" else {}
    async with connected(path, mode, callbacks=callbacks, **options) as client:
        with anyio.fail_after(60):
            await client.list_tools()
            if mode == "legacy":
                await anyio.to_thread.run_sync(register)
                await told.wait()
            else:
                async with client.listen(tools_list_changed=True) as events:
                    await anyio.to_thread.run_sync(register)
                    async for event in events:
                        heard.append(type(event).__name__)
                        break
        listed = [each.name for each in (await client.list_tools()).tools]

    assert len(heard) == 1
    assert "nine" in listed


async def test_what_two_servers_have_is_served_with_the_server_before_it(legacy: Path) -> None:
    with stratagem.open(str(legacy), embedder="none") as db:
        db.call("server_add", {"name": "new", **LEGACY})
        listed = db.call("upstream_list", {})
        alone = db.call("upstream_list", {"servers": ["old"]})
        read = db.call("upstream_resource", {"uri": "stratagem://servers/old/demo://one"})
        said = db.call("upstream_prompt", {"name": "new_greet", "arguments": {"who": "Ada"}})
        with pytest.raises(stratagem.ValidationFailed, match="Several servers") as ambiguous:
            db.call("upstream_resource", {"uri": "demo://one"})

    assert [each["name"] for each in listed["prompts"]] == ["new_greet", "old_greet"]
    assert [each["uri"] for each in listed["resources"]] == [
        "stratagem://servers/new/demo://one",
        "stratagem://servers/old/demo://one",
    ]
    assert [each["name"] for each in alone["prompts"]] == ["greet"]
    assert read["server"] == "old"
    assert "'name': 'greet'" in said["result"]["messages"][0]["content"]["text"]
    assert "stratagem://servers/new/demo://one" in ambiguous.value.hint


async def test_only_exposed_and_approved_servers_are_served_and_none_holds_up_a_list(
    legacy: Path,
) -> None:
    async with connected(legacy, expose=("other_*",), toolsets=("gateway",)) as client:
        hidden = (await client.list_prompts()).prompts
        with pytest.raises(MCPError):
            await client.read_resource("demo://one")
    with stratagem.open(str(legacy), embedder="none") as db:
        db.call("tool_update", {"toolId": "meta", "status": "quarantined"})
        withheld = db.call("upstream_list", {})
    async with connected(legacy, expose=("*",), toolsets=("gateway",)) as client:
        quarantined = (await client.list_prompts()).prompts

    assert hidden == quarantined == []
    assert withheld["resources"] == []
    assert "quarantined" in withheld["servers"][0]["reason"]
