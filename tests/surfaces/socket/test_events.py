"""Every event of the gateway's document, spoken by the official client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.surfaces.serving import Served, Service, as_json, eventually
from tests.surfaces.socket.clients import Client


def webhook(service: Service, name: str, path: str = "/echo", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "A tool of the tests.",
        "inputSchema": {"type": "object"},
        "handler": {"type": "webhook", "url": service.url(path)},
        **more,
    }


def test_tools_are_listed_and_shown(client: Client) -> None:
    listed = client.ask("mcp:tools:list", {"category": "utility", "search": "calc"})
    tools = client.event("mcp:tools:list:response")
    shown = client.ask("mcp:tool:get", {"toolId": tools[0]["id"]})
    details = client.event("mcp:tool:details")

    assert listed == {"success": True, "data": tools}
    assert [tool["name"] for tool in tools] == ["calculator"]
    assert shown["data"] == details
    assert details["longDescription"]


def test_a_tool_is_called(client: Client) -> None:
    given = {
        "toolName": "calculator",
        "arguments": {"expression": "6 * 7"},
        "options": {"timeout": 60_000, "retries": 2},
        "context": {"requestId": "r-7"},
    }

    acknowledged = client.ask("mcp:tool:execute", given)
    result = client.event("mcp:tool:result")

    assert acknowledged["data"]["result"]["result"] == 42
    assert result["success"] is True
    assert result["output"]["result"] == 42
    assert result["requestId"] == "r-7"
    assert result["executionId"] == acknowledged["data"]["executionId"]
    assert result["toolName"] == "calculator"


def test_the_documents_sandbox_example_runs(socket: Client) -> None:
    answer = socket.ask(
        "mcp:tool:execute",
        {
            "toolName": "code_executor",
            "arguments": {
                "code": "const result = [1, 2, 3].map(x => x * 2);",
                "language": "javascript",
            },
            "sandbox": {
                "enabled": True,
                "permissions": {
                    "network": False,
                    "filesystem": "readonly",
                    "memory": "128MB",
                    "timeout": 5000,
                },
            },
        },
    )

    assert answer["data"]["result"]["result"] == [2, 4, 6]


def test_progress_is_told_to_whoever_called(connect: Callable[..., Client], socket: Client) -> None:
    other = connect()
    code = "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.05)"

    answer = socket.ask(
        "mcp:tool:execute",
        {"toolName": "code_executor", "arguments": {"language": "python", "code": code}},
    )

    progress = socket.event("mcp:tool:progress")
    assert progress["executionId"] == answer["data"]["executionId"]
    assert set(progress) == {"executionId", "requestId", "toolName", "percentage", "message"}
    assert other.none("mcp:tool:progress")
    assert other.none("mcp:tool:result", 0)


def test_a_call_that_takes_too_long_is_stopped_and_told(socket: Client, service: Service) -> None:
    service.answers["/hang"] = lambda _said: None
    service.hung_up.clear()
    socket.ask("mcp:tool:register", webhook(service, "hanging", "/hang"))

    answer: dict[str, Any] = {}
    # On a busy machine a call may be stopped before it reaches the service.
    for milliseconds in (1_000, 5_000, 20_000):
        options = {"timeout": milliseconds}
        answer = socket.ask(
            "mcp:tool:execute", {"toolName": "hanging", "arguments": {}, "options": options}
        )
        if service.count("/hang"):
            break

    assert answer["error"]["code"] == "TIMEOUT"
    assert socket.event("mcp:tool:timeout")["toolName"] == "hanging"
    assert socket.event("mcp:tool:result")["success"] is False
    assert socket.event("mcp:error")["code"] == "TIMEOUT"
    assert service.hung_up.wait(20)


def test_a_call_can_be_cancelled(
    connect: Callable[..., Client], socket: Client, service: Service
) -> None:
    service.answers["/endless"] = lambda _said: None
    service.hung_up.clear()
    socket.ask("mcp:tool:register", webhook(service, "endless", "/endless"))
    code = "import time\nprint('begun', flush=True)\ntime.sleep(30)"
    number = socket.send(
        "mcp:tool:execute",
        {"toolName": "code_executor", "arguments": {"language": "python", "code": code}},
    )
    execution = socket.event("mcp:work:started")["executionId"]
    assert socket.event("mcp:tool:progress")["executionId"] == execution

    cancelled = connect().ask("mcp:tool:cancel", {"executionId": execution})
    again = socket.ask("mcp:tool:cancel", {"executionId": execution})

    assert cancelled["data"] == {"executionId": execution, "cancelled": True}
    acknowledged = socket.hear(lambda each: each.get("ack") == number)["data"]
    assert acknowledged["success"] is False
    assert "cancelled" in acknowledged["error"]["message"]
    assert socket.event("mcp:tool:result")["success"] is False
    assert again["data"]["cancelled"] is False


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("mcp:tool:execute", {"toolName": "left", "arguments": {}}),
        ("mcp:tools:batch", {"executions": [{"toolName": "left", "arguments": {}}]}),
        ("mcp:tools:pipeline", {"name": "p", "steps": [{"tool": "left", "arguments": {}}]}),
    ],
)
def test_a_client_that_goes_away_ends_what_it_called_unless_it_was_detached(
    connect: Callable[..., Client],
    socket: Client,
    service: Service,
    event: str,
    data: dict[str, Any],
) -> None:
    service.answers["/left"] = lambda _said: None
    socket.ask("mcp:tool:register", webhook(service, "left", "/left"))

    def call_and_leave(data: dict[str, Any]) -> None:
        called = service.count("/left")
        service.hung_up.clear()
        leaving = connect()
        leaving.send(event, data)
        assert eventually(lambda: service.count("/left") > called)
        leaving.process.kill()

    call_and_leave(data)
    assert service.hung_up.wait(20)
    call_and_leave({**data, "async": True})
    assert not service.hung_up.wait(1)

    detached = [each for each in socket.ask("mcp:work:list")["data"]["work"] if each["detached"]]
    assert len(detached) == 1
    socket.ask("mcp:tool:cancel", {"executionId": detached[0]["executionId"]})
    assert service.hung_up.wait(20)
    socket.ask("mcp:tool:remove", {"toolId": "left"})


def test_registering_updating_and_removing_is_told_to_everybody(
    connect: Callable[..., Client], client: Client, service: Service
) -> None:
    name = f"told_{client.first['transport']}"
    other = connect()

    registered = client.ask("mcp:tool:register", webhook(service, name))
    updated = client.ask(
        "mcp:tool:update", {"toolId": name, "description": "Other", "status": "deprecated"}
    )
    removed = client.ask("mcp:tool:remove", {"toolId": name})

    assert client.event("mcp:tool:registered") == registered["data"]
    assert registered["data"]["toolId"].startswith("tool_")
    assert updated["data"]["changes"] == {"description": "Other", "status": "deprecated"}
    assert removed["data"]["removed"] is True
    for each in (client, other):
        assert each.event("mcp:tool:available", lambda data: data["name"] == name)
        change = each.event("mcp:tool:updated", lambda data: data["name"] == name)
        assert change["toolId"] == registered["data"]["toolId"]
        assert change["changes"]["status"] == "deprecated"
        assert each.event("mcp:tool:unavailable", lambda data: data["name"] == name)


def test_a_batch_is_answered_by_one_list(client: Client) -> None:
    answer = client.ask(
        "mcp:tools:batch",
        {
            "executions": [
                {"toolName": "calculator", "arguments": {"expression": "1 + 1"}},
                {"toolName": "no_such_tool", "arguments": {"text": "Great product!"}},
            ],
            "parallel": True,
            "context": {"requestId": "batch-7"},
        },
    )

    results = client.event("mcp:tools:batch:results")
    assert answer["data"] == results
    assert [(each["toolName"], each["success"]) for each in results] == [
        ("calculator", True),
        ("no_such_tool", False),
    ]
    assert {each["requestId"] for each in results} == {"batch-7"}
    half = client.event("mcp:tool:progress", lambda data: data["percentage"] == 50)
    assert half["requestId"] == "batch-7"
    assert client.event("mcp:tool:progress", lambda data: data["percentage"] == 100)


def test_a_pipeline_passes_fields_on(client: Client) -> None:
    client.ask(
        "mcp:tools:pipeline",
        {
            "name": "analysis",
            "steps": [
                {"tool": "calculator", "arguments": {"expression": "2 + 3", "format": "fraction"}},
                {"tool": "calculator", "arguments": {"expression": "${{ previous.text }} * 2"}},
            ],
        },
    )

    report = client.event("mcp:tools:pipeline:complete")
    assert report["success"] is True
    assert report["output"]["result"] == 10
    assert report["runId"].startswith("run_")


def test_the_cache_is_configured_and_cleared(client: Client) -> None:
    client.ask(
        "mcp:cache:configure", {"enabled": True, "ttl": 3600, "maxSize": "100MB", "strategy": "lru"}
    )
    client.ask("mcp:cache:clear", {"toolId": "tool_calculator"})

    assert client.event("mcp:cache:configured")["maxSize"] == 100 * 2**20
    assert client.event("mcp:cache:cleared")["cleared"] >= 0
    again = client.ask("mcp:cache:clear", {"toolId": "tool_calculator"})
    assert again["data"] == {"cleared": 0}


def test_an_agent_learns_which_of_its_tools_are_there(client: Client) -> None:
    given = {"agentId": "research-agent", "requiredTools": ["calculator", "web_search", "psi"]}

    client.ask("mcp:tools:init", given)

    answer = client.event("mcp:tools:init:response")
    assert answer["agentId"] == "research-agent"
    assert answer["ready"] is False
    assert [tool["name"] for tool in answer["available"]] == ["calculator"]
    assert answer["missing"] == ["psi"]
    [lacking] = answer["unavailable"]
    assert lacking["name"] == "web_search"
    assert "stratagem tools connect" in lacking["nextStep"]


def test_a_provider_is_configured(client: Client) -> None:
    config = {"apiKey": "${OPENAI_API_KEY}", "model": "gpt-4-turbo", "functions": "auto"}

    answer = client.ask(
        "mcp:provider:configure",
        {"provider": "openai", "config": {**config, "temperature": 0.7}},
    )

    assert answer["success"] is True, answer
    assert client.event("mcp:provider:configured")["config"]["model"] == "gpt-4-turbo"


def test_resources_are_events_too(client: Client) -> None:
    name = f"greeting_{client.first['transport']}"

    client.ask("mcp:resource:create", {"type": "template", "name": name, "content": "Hi {{who}}"})
    made = client.event("mcp:resource:created")["resource"]
    got = client.ask("mcp:resource:get", {"resourceId": made["id"], "variables": {"who": "Ada"}})
    client.ask("mcp:resource:update", {"resourceId": name, "content": "Hello {{who}}"})
    client.ask("mcp:resources:list", {"type": "template", "search": name})

    assert got["data"]["rendered"] == "Hi Ada"
    assert client.event("mcp:resource:updated")["resource"]["content"] == "Hello {{who}}"
    assert len(client.event("mcp:resources:list:response")["resources"]) == 1


def test_the_history_is_an_event_too(socket: Client) -> None:
    socket.ask("mcp:tool:execute", {"toolName": "calculator", "arguments": {"expression": "9"}})

    answer = socket.ask("mcp:tool:executions", {"toolId": "calculator", "limit": 1})

    assert answer["data"]["executions"][0]["caller"] == "socket"


def _limited(socket: Client, service: Service) -> None:
    limit = {"rateLimit": 1}
    socket.ask("mcp:tool:register", webhook(service, "limited", configuration=limit))
    socket.ask("mcp:tool:execute", {"toolName": "limited"})


def _failing(socket: Client, service: Service) -> None:
    service.answers["/broken"] = lambda _said: as_json({}, 500)
    socket.ask("mcp:tool:register", webhook(service, "broken", "/broken"))


def _disabled(socket: Client, service: Service) -> None:
    socket.ask("mcp:tool:register", webhook(service, "off", status="disabled"))


def _hanging(socket: Client, service: Service) -> None:
    service.answers["/slow"] = lambda _said: None
    socket.ask(
        "mcp:tool:register", webhook(service, "slow", "/slow", configuration={"timeout": 200})
    )


@pytest.mark.parametrize(
    ("code", "tool", "prepare"),
    [
        ("TOOL_NOT_FOUND", "nothing", None),
        ("VALIDATION_ERROR", "calculator", None),
        ("EXECUTION_ERROR", "broken", _failing),
        ("PERMISSION_DENIED", "off", _disabled),
        ("RATE_LIMITED", "limited", _limited),
        ("TIMEOUT", "slow", _hanging),
    ],
)
def test_each_error_code_is_reached(
    socket: Client, service: Service, code: str, tool: str, prepare: Any
) -> None:
    if prepare is not None:
        prepare(socket, service)

    answer = socket.ask(
        "mcp:tool:execute", {"toolName": tool, "arguments": {}, "context": {"requestId": "r"}}
    )

    error = socket.event("mcp:error")
    assert answer["success"] is False
    assert answer["error"]["code"] == error["code"] == code
    assert error["event"] == "mcp:tool:execute"
    assert error["requestId"] == "r"
    assert error["message"]
    assert error["hint"]


@pytest.mark.parametrize("data", [[], "text", 5, {"toolName": 5}, {"nonsense": 1}])
def test_data_that_is_no_call_is_refused(socket: Client, data: Any) -> None:
    answer = socket.ask("mcp:tool:execute", data)

    assert answer["error"]["code"] == "VALIDATION_ERROR"
    assert socket.event("mcp:error")["event"] == "mcp:tool:execute"


@pytest.mark.parametrize("data", [{"requestId": "r"}, {"context": {"requestId": "r"}}])
def test_an_event_that_there_is_not_is_answered(socket: Client, data: Any) -> None:
    answer = socket.ask("mcp:tool:exekute", data)

    error = socket.event("mcp:error")
    assert answer["success"] is False
    assert answer["error"]["message"] == error["message"] == "There is no event 'mcp:tool:exekute'."
    assert "mcp:tool:execute" in error["hint"]
    assert (error["event"], error["requestId"]) == ("mcp:tool:exekute", "r")


@pytest.mark.parametrize("transport", ["websocket", "polling"])
def test_a_foreign_page_is_refused(connect: Callable[..., Client], transport: str) -> None:
    client = connect(transport, "https://evil.example")

    assert "refused" in client.first


def test_what_is_no_packet_hurts_nobody_else(
    connect: Callable[..., Client], socket: Client, server: Served
) -> None:
    hostile = connect()

    for raw in ("2" + "[" * 100_000, '2["mcp:tool:execute",' + '{"a":' * 5_000, "2[", "9", "x"):
        hostile.write_raw(raw)

    answer = socket.ask(
        "mcp:tool:execute", {"toolName": "calculator", "arguments": {"expression": "1"}}
    )
    assert answer["success"] is True
    assert server.process.poll() is None


@pytest.mark.parametrize("name", ["connect", "disconnect", "*"])
def test_an_event_cannot_be_named_like_a_handler_of_the_library(
    connect: Callable[..., Client], name: str
) -> None:
    hostile = connect()

    hostile.write_raw(f'2["{name}",{{"asgi.scope":{{"client":["192.0.2.1",1]}}}},{{"token":"x"}}]')

    assert hostile.event("mcp:error")["message"].startswith("The message is not an event")
