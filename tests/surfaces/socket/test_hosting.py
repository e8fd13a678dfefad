"""Tools and providers that clients host: the server calls them back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.surfaces.serving import Served, eventually
from tests.surfaces.socket.clients import Client


def hosted(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Hosted by a client.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        **more,
    }


def test_a_tool_of_a_client_is_called_back_from_every_surface(
    client: Client, connect: Callable[..., Client], server: Served
) -> None:
    registered = client.ask("mcp:tool:register", hosted("shout"))
    other = connect()

    by_socket = other.ask("mcp:tool:execute", {"toolName": "shout", "arguments": {"text": "hi"}})
    by_rest = server.execute("shout", {"text": "you"})

    assert registered["success"] is True, registered
    assert by_socket["data"]["result"] == {"said": "HI"}
    assert by_rest["result"] == {"said": "YOU"}
    call = client.event("mcp:tool:call")
    assert set(call) == {"toolName", "arguments", "executionId", "timeout"}
    client.ask("mcp:tool:remove", {"toolId": "shout"})


def test_a_client_that_fails_or_hangs_hurts_only_the_call(socket: Client, server: Served) -> None:
    for name in ("fail", "hang", "late"):
        socket.ask("mcp:tool:register", hosted(name))

    failed = server.execute("fail", {}, 502)
    hung: dict[str, Any] = {}
    took = 0.0
    # On a busy machine a call may be stopped before it reaches the client.
    for milliseconds in (300, 3_000, 15_000):
        begun = time.monotonic()
        hung = server.execute("hang", {}, 504, options={"timeout": milliseconds})
        took = time.monotonic() - begun
        if not socket.none("mcp:tool:cancel", 0.1):
            break

    assert "it broke" in failed["message"]
    assert hung["code"] == "TIMEOUT"
    assert took < 20
    # The client is told that nobody waits any more.
    execution = hung["details"]["executionId"]
    socket.event("mcp:tool:cancel", lambda data: data["executionId"] == execution)
    late = socket.ask("mcp:tool:execute", {"toolName": "late", "arguments": {"ms": 50}})
    assert late["data"]["result"] == {"after": 50}
    # Sent by the client that runs it, to the one that called it.
    assert socket.event("mcp:tool:progress")["percentage"] == 40
    wrong = {"executionId": "exec_1", "percentage": "most"}
    assert socket.ask("mcp:tool:progress", wrong)["error"]["details"]["field"] == "percentage"
    nobody = {"executionId": "exec_1", "percentage": 5}
    assert socket.ask("mcp:tool:progress", nobody)["data"] == {"known": False}


def test_the_tools_of_a_client_go_with_it(
    socket: Client, connect: Callable[..., Client], server: Served
) -> None:
    leaving = connect()
    leaving.ask("mcp:tool:register", hosted("gone_soon"))
    socket.event("mcp:tool:available", lambda data: data["name"] == "gone_soon")

    leaving.process.kill()

    assert socket.event("mcp:tool:unavailable", lambda data: data["name"] == "gone_soon")
    server.execute("gone_soon", {}, 404)


def test_a_call_ends_when_its_client_leaves(socket: Client, connect: Callable[..., Client]) -> None:
    leaving = connect()
    leaving.ask("mcp:tool:register", hosted("hang"))
    number = socket.send("mcp:tool:execute", {"toolName": "hang", "arguments": {}})
    leaving.event("mcp:tool:call")

    begun = time.monotonic()
    leaving.process.kill()
    answer = socket.hear(lambda each: each.get("ack") == number)["data"]

    assert answer["error"]["code"] == "EXECUTION_ERROR"
    assert time.monotonic() - begun < 20


def test_a_provider_by_callbacks_lists_and_executes_its_tools(
    socket: Client, server: Served
) -> None:
    answer = socket.ask(
        "mcp:provider:register",
        {"name": "acme", "description": "Custom tool provider", "config": {"level": 3}},
    )
    listed = server.call("GET", "/api/mcp/tools", provider="acme")
    called = server.execute("acme_shout", {"text": "hi"})

    assert answer["data"] == {"name": "acme", "tools": ["acme_shout"], "status": "active"}
    assert socket.event("mcp:provider:registered") == answer["data"]
    assert socket.event("mcp:provider:initialize")["config"] == {"level": 3}
    assert [tool["name"] for tool in listed["tools"]] == ["acme_shout"]
    assert called["result"] == {"said": "HI"}
    broken = {"name": "broken", "config": {"broken": "no licence"}}
    refused = socket.ask("mcp:provider:register", broken)
    assert "no licence" in refused["error"]["message"]
    asked = socket.event("mcp:provider:execute")
    assert (asked["name"], asked["toolName"]) == ("acme", "acme_shout")


def test_a_name_that_is_taken_is_refused(socket: Client) -> None:
    shadow = socket.ask("mcp:tool:register", hosted("calculator"))
    socket.ask("mcp:tool:register", hosted("mine"))
    twice = socket.ask("mcp:tool:register", hosted("mine"))

    assert shadow["error"]["code"] == "VALIDATION_ERROR"
    assert twice["error"]["code"] == "VALIDATION_ERROR"


def test_a_tool_left_behind_by_a_client_can_be_hosted_anew(
    connect: Callable[..., Client], server: Served
) -> None:
    first = connect()
    first.ask("mcp:tool:register", hosted("shout"))
    first.process.kill()
    eventually(lambda: server.client.get("/api/mcp/tools/shout").status_code == 404)

    second = connect()
    second.ask("mcp:tool:register", hosted("shout"))

    assert server.execute("shout", {"text": "again"})["result"] == {"said": "AGAIN"}
