"""What an upstream MCP server asks reaches the client of the call, and no other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, RequestParamsMeta, TextContent

import stratagem
from tests.surfaces.mcp import plain_server
from tests.surfaces.mcp.clients import CLIENT, MODES, Mode, http_server

pytestmark = pytest.mark.anyio

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE_ID = TRACE.split("-")[1]
# Before the tools of an upstream of the handshake era, and of one of 2026.
UPSTREAMS = ("", "new_")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a server that has two upstream servers, one of each era."""
    path = tmp_path_factory.mktemp("questions") / "memory.db"
    script = str(plain_server.__file__)
    with stratagem.open(str(path), embedder="none") as db:
        for name, era in (("old", "legacy"), ("new", "modern")):
            command = {"command": sys.executable, "args": [script, era]}
            db.call("server_add", {"name": name, **command})
        for prefix in UPSTREAMS:
            kept = {"toolId": f"{prefix}ask", "configuration": {"cache": True}}
            db.call("tool_update", kept)
    with http_server(path, toolsets=("gateway",), expose=("*",)) as address:
        yield f"{address}/mcp"


def said(result: Any) -> Any:
    return json.loads(result.content[0].text)


async def answer_oslo(_context: Any, params: Any) -> ElicitResult:
    """Answer as a person would who is asked for a city."""
    content = {"city": "Oslo", "asked": params.message}
    return ElicitResult(action="accept", content=content)


async def answer_rome(_context: Any, params: Any) -> CreateMessageResult:
    """Answer as a model would that is asked for a city."""
    text = TextContent(text=f"{params.messages[0].content.text} Rome")
    return CreateMessageResult(role="assistant", content=text, model="m")


@pytest.mark.filterwarnings("ignore:The sampling capability is deprecated")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_can_be_asked_is(gateway: str, mode: Mode) -> None:
    callbacks: dict[str, Any] = {
        "elicitation_callback": answer_oslo,
        "sampling_callback": answer_rome,
    }
    async with Client(gateway, mode=mode, client_info=CLIENT, **callbacks) as client:
        for prefix, server in zip(UPSTREAMS, ("old", "new"), strict=True):
            answer = said(await client.call_tool(f"{prefix}ask", {}))
            sampled = said(await client.call_tool(f"{prefix}sample", {}))
            given = {"toolName": f"{prefix}ask", "arguments": {}}
            executed = said(await client.call_tool("tool_execute", given))

            assert answer["content"] == {"city": "Oslo", "asked": f"{server}: Which city?"}
            assert executed["action"] == "accept"
            assert sampled["content"]["text"] == "A city? Rome"


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_be_asked_is_not(gateway: str, mode: Mode) -> None:
    async with Client(gateway, mode=mode, client_info=CLIENT) as client:
        told = said(await client.call_tool("ask", {}))
        refused = await client.call_tool("new_ask", {})

    # A server of the handshake era is told so; one of 2026 sees it before it asks.
    assert told["code"] == -32601
    assert refused.is_error


@pytest.mark.parametrize("mode", MODES)
async def test_a_refusal_reaches_the_server(gateway: str, mode: Mode) -> None:
    async def decline(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    callbacks: dict[str, Any] = {"elicitation_callback": decline}
    async with Client(gateway, mode=mode, client_info=CLIENT, **callbacks) as client:
        answers = [said(await client.call_tool(f"{each}ask", {})) for each in UPSTREAMS]

    assert [answer["action"] for answer in answers] == ["decline", "decline"]


@pytest.mark.parametrize("mode", MODES)
async def test_no_answer_of_a_client_is_kept_for_another(gateway: str, mode: Mode) -> None:
    async def answer_bergen(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"city": "Bergen"})

    options: list[dict[str, Any]] = [
        {"mode": mode, "client_info": CLIENT, "elicitation_callback": each}
        for each in (answer_oslo, answer_bergen)
    ]
    async with Client(gateway, **options[0]) as alice, Client(gateway, **options[1]) as bob:
        for prefix in UPSTREAMS:
            answers = [
                said(await client.call_tool(f"{prefix}ask", {}))["content"]["city"]
                for client in (alice, bob)
            ]

            assert answers == ["Oslo", "Bergen"]


async def test_while_two_clients_call_neither_is_asked(gateway: str) -> None:
    answers: list[Any] = []

    async def call(client: Client, tool: str) -> None:
        answers.append(said(await client.call_tool(tool, {})))

    options: dict[str, Any] = {"mode": "legacy", "elicitation_callback": answer_oslo}
    async with (
        Client(gateway, **options) as first,
        Client(gateway, **options) as second,
        anyio.create_task_group() as tasks,
    ):
        # It asks when a call of the other client has come.
        tasks.start_soon(call, first, "wait_and_ask")
        while not answers:
            await second.call_tool("meta", {})

    assert answers[0]["code"] == -32600


@pytest.mark.parametrize("mode", MODES)
async def test_a_trace_goes_on_to_the_server(gateway: str, mode: Mode) -> None:
    meta: RequestParamsMeta = {"traceparent": TRACE, "tracestate": "vendor=1"}  # type: ignore[typeddict-unknown-key]  # any key may stand there
    async with Client(gateway, mode=mode, client_info=CLIENT) as client:
        got = [said(await client.call_tool(f"{each}meta", {}, meta=meta)) for each in UPSTREAMS]

    for each in got:
        assert each["traceparent"].split("-")[1] == TRACE_ID
        assert each["tracestate"] == "vendor=1"


async def test_a_trace_of_a_rest_request_goes_on_too(gateway: str) -> None:
    address = gateway.removesuffix("/mcp")
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(
            f"{address}/api/mcp/tools/meta/execute",
            json={"arguments": {}},
            headers={"traceparent": TRACE},
        )

    assert TRACE_ID in answer.text
