"""Corrections over REST, MCP's table, and the events of Socket.IO, on a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import socketio

from tests.manifest import proves
from tests.surfaces.serving import Served, serving
from tests.surfaces.socket.clients import Client, javascript_client

Heard = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("corrections") / "corrections.db") as running:
        yield running


class Listening:
    """A python-socketio client, and what it heard."""

    def __init__(self, client: socketio.AsyncClient) -> None:
        self._client = client
        self.heard: Heard = []
        client.on("*", self._hear)

    async def _hear(self, event: str, data: Any = None) -> None:
        self.heard.append((event, data))

    async def send(self, event: str, data: Any) -> Any:
        return await self._client.call(event, data, timeout=60)

    async def ask(self, event: str, data: Any) -> Any:
        answer = await self.send(event, data)
        assert answer["success"], answer
        return answer["data"]

    async def event(self, name: str, fits: Callable[[Any], bool] = lambda _data: True) -> Any:
        for _time in range(2_400):
            for event, data in self.heard:
                if event == name and fits(data):
                    return data
            await asyncio.sleep(0.025)
        raise AssertionError(f"{name} was not heard; only {[event for event, _data in self.heard]}")

    def named(self, name: str) -> list[Any]:
        return [data for event, data in self.heard if event == name]


@asynccontextmanager
async def listening(server: Served) -> AsyncIterator[Listening]:
    client = socketio.AsyncClient(reconnection=False)
    await client.connect(server.url, transports=["websocket"], wait_timeout=60)
    try:
        yield Listening(client)
    finally:
        await client.disconnect()


def call(agent: str, expression: str = "1 + 1", name: str = "Expression") -> dict[str, Any]:
    return {
        "toolName": "calculator",
        "arguments": {name: expression},
        "context": {"agentId": agent, "requestId": f"r-{agent}"},
    }


@proves("correction:events")
def test_only_subscribers_hear_and_only_of_their_agent(server: Served) -> None:
    async def run() -> None:
        async with (
            listening(server) as mine,
            listening(server) as every,
            listening(server) as nobody,
        ):
            said = await mine.ask(
                "auto_correction:subscribe", {"agentId": "agent-1", "includeMetrics": True}
            )
            assert said == {"subscribed": True, "agentId": "agent-1", "includeMetrics": True}
            await every.ask("auto_correction:subscribe", {})
            await nobody.ask("mcp:tool:execute", call("agent-2"))
            await nobody.ask("mcp:tool:execute", call("agent-1"))

            success = await mine.event("auto_correction:attempt:success")
            await every.event(
                "auto_correction:attempt:success", lambda data: data["agentId"] == "agent-1"
            )

            assert success["toolName"] == "calculator"
            assert success["agentId"] == "agent-1"
            assert success["requestId"] == "r-agent-1"
            assert success["strategy"] == "unknownProperties"
            assert success["confidence"] > 0.9
            assert success["correctionResult"]["pattern"] == "key_style_variant"
            assert success["metrics"]["attempts"] >= 2
            assert [each["agentId"] for each in mine.named("auto_correction:attempt:started")] == [
                "agent-1"
            ]
            heard = every.named("auto_correction:attempt:success")
            assert [each["agentId"] for each in heard] == ["agent-2", "agent-1"]
            assert all("metrics" not in each for each in heard)
            assert [name for name, _data in nobody.heard if "auto_correction" in name] == []

    asyncio.run(run())


@proves("correction:events")
def test_the_success_rate_of_events_is_that_of_the_status(server: Served) -> None:
    async def run() -> None:
        async with listening(server) as mine:
            await mine.ask("auto_correction:subscribe", {"includeMetrics": True})
            await mine.ask("mcp:tool:execute", call("rates"))
            await mine.send("mcp:tool:execute", call("rates", name="zzz"))
            metrics = (await mine.event("auto_correction:attempt:failed"))["metrics"]

            status = await mine.ask("auto_correction:status", {})

            assert metrics["refusedCalls"] >= 1
            assert metrics["successRate"] == status["metrics"]["successRate"] == 1

    asyncio.run(run())


@proves("correction:events")
def test_subscribing_again_does_not_tell_twice_and_unsubscribing_ends_it(server: Served) -> None:
    async def run() -> None:
        async with listening(server) as mine, listening(server) as caller:
            for metrics in (True, False, True):
                await mine.ask(
                    "auto_correction:subscribe", {"agentId": "a", "includeMetrics": metrics}
                )
            await mine.ask("auto_correction:subscribe", {"includeMetrics": True})
            await caller.ask("mcp:tool:execute", call("a"))
            await mine.event("auto_correction:attempt:success")
            await mine.ask("auto_correction:unsubscribe", {"agentId": "a"})
            await mine.ask("auto_correction:unsubscribe", {})
            await caller.ask("mcp:tool:execute", call("a"))
            await mine.ask("auto_correction:status", {})

            assert len(mine.named("auto_correction:attempt:success")) == 1

    asyncio.run(run())


@proves("correction:events")
def test_whoever_hears_all_and_one_is_told_once(server: Served) -> None:
    async def run() -> None:
        async with listening(server) as mine, listening(server) as caller:
            await mine.ask("auto_correction:subscribe", {"agentId": "b"})
            await mine.ask("auto_correction:subscribe", {"includeMetrics": True})
            await caller.ask("mcp:tool:execute", call("b"))
            await mine.event("auto_correction:attempt:success")
            await mine.ask("auto_correction:status", {})

            (told,) = mine.named("auto_correction:attempt:success")
            assert told["metrics"]["attempts"] >= 1

    asyncio.run(run())


@proves("correction:events")
def test_whoever_has_unsubscribed_hears_nothing_more(server: Served) -> None:
    async def teach(caller: Listening, word: str) -> None:
        await caller.send("mcp:tool:execute", call("c", "20 + 22", word))
        await caller.ask("mcp:tool:execute", call("c", "20 + 22", "expression"))

    async def run() -> None:
        async with (
            listening(server) as one,
            listening(server) as every,
            listening(server) as caller,
        ):
            await one.ask("auto_correction:subscribe", {"agentId": "c"})
            for agent in ("c", "d", None):
                await every.ask("auto_correction:subscribe", {"agentId": agent})
            await one.ask("auto_correction:unsubscribe", {"agentId": "c"})
            await every.ask("auto_correction:unsubscribe", {"agentId": "d"})
            await teach(caller, "wordless")
            await every.event("auto_correction:pattern:learned")
            await every.ask("auto_correction:unsubscribe", {})
            every.heard.clear()
            await teach(caller, "nameless")
            await one.ask("auto_correction:status", {})
            await every.ask("auto_correction:status", {})

            about = ("auto_correction:attempt", "auto_correction:pattern")
            assert [name for name, _data in one.heard if name.startswith(about)] == []
            assert [name for name, _data in every.heard if name.startswith(about)] == []

    asyncio.run(run())


@proves("correction:events")
def test_failures_patterns_and_circuits_are_told(server: Served) -> None:
    async def run() -> None:
        async with listening(server) as mine:
            await mine.ask("auto_correction:subscribe", {"agentId": "agent-3"})
            for wrong in (
                {"OPERATION": "parse", "value": "never"},
                {"Operation": "parse", "value": "?"},
                {"operation": "Parse", "value": "x"},
            ):
                await mine.send(
                    "mcp:tool:execute",
                    {**call("agent-3"), "toolName": "date_time", "arguments": wrong},
                )
            failed = await mine.event("auto_correction:attempt:failed")
            opened = await mine.event("auto_correction:circuit:opened")
            assert failed["error"]
            assert failed["suggestedActions"]
            assert opened["toolName"] == "date_time"
            assert opened["reason"]

            reset = {"action": "reset", "toolName": "date_time", "force": True}
            execute = {"toolName": "auto_correction_circuits", "arguments": reset}
            await mine.ask("mcp:tool:execute", execute)
            closed = await mine.event("auto_correction:circuit:closed")
            assert closed["toolName"] == "date_time"

            wrong = {**call("agent-3", "19 + 23", "sum"), "toolName": "calculator"}
            await mine.send("mcp:tool:execute", wrong)
            await mine.ask("mcp:tool:execute", call("agent-3", "19 + 23", "expression"))
            learned = await mine.event("auto_correction:pattern:learned")
            assert learned["name"] == "calculator: a name means expression"
            assert learned["applicableTools"] == ["calculator"]

            await mine.send("mcp:tool:execute", wrong)
            await mine.ask("mcp:tool:execute", call("agent-3", "19 + 23", "expression"))
            evolved = await mine.event("auto_correction:pattern:evolved")
            assert evolved["patternId"] == learned["patternId"]
            assert evolved["changes"]["successes"] == [1, 2]

    asyncio.run(run())


@proves("correction:events", "policy:change")
def test_configuring_and_testing_are_answered_by_events(server: Served) -> None:
    async def run() -> None:
        async with listening(server) as mine:
            settings = {"confidenceThreshold": 0.8, "maxRetries": 3, "enableLearning": True}
            answer = await mine.ask("auto_correction:configure", {"settings": settings})
            configured = await mine.event("auto_correction:configured")
            assert configured == answer
            assert configured["newSettings"]["confidenceThreshold"] == 0.8

            await mine.ask(
                "auto_correction:test:run",
                {"testSuite": "validation_errors", "includePerformance": True},
            )
            results = await mine.event("auto_correction:test:results")
            assert results["passed"] == results["total"] > 10
            await mine.ask("auto_correction:configure", {"reset": True})

    asyncio.run(run())


@proves("correction:events")
@pytest.mark.parametrize(
    "data",
    [
        {"agentId": 5},
        {"agentId": ""},
        {"agentId": "x" * 300},
        {"includeMetrics": "no"},
        [1],
    ],
)
def test_a_subscription_to_nothing_is_refused(server: Served, data: Any) -> None:
    async def run() -> None:
        async with listening(server) as mine:
            answer = await mine.send("auto_correction:subscribe", data)
            assert answer["success"] is False
            assert answer["error"]["code"] == "VALIDATION_ERROR"

    asyncio.run(run())


@proves("correction:events")
def test_the_official_client_hears_too(server: Served) -> None:
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))
    with Client(server.url) as client:
        client.ask("auto_correction:subscribe", {"agentId": "js", "includeMetrics": True})
        client.ask("mcp:tool:execute", call("js"))

        assert client.event("auto_correction:attempt:started")["agentId"] == "js"
        assert client.event("auto_correction:attempt:success")["toolName"] == "calculator"


@proves("correction:status", "correction:insights")
def test_status_and_analytics_over_rest(server: Served) -> None:
    server.execute("calculator", {"Expression": "2 + 2"}, context={"agentId": "rest-agent"})

    status = server.call("GET", "/api/auto-correction/status")
    analytics = server.call("GET", "/api/auto-correction/analytics", timeRange="1h")
    brief = server.call("GET", "/api/auto-correction/status", includeMetrics="false")

    assert status["systemStatus"]["healthy"] is True
    assert status["metrics"]["totalCorrections"] >= 1
    assert analytics["overallMetrics"]["successRate"] > 0
    assert analytics["timeRange"]["duration"] == "1 hour"
    assert "rest-agent" in [each["agentId"] for each in analytics["agentBreakdown"]]
    assert "metrics" not in brief


@proves("diagnose:answer", "correction:status")
def test_the_documented_tools_are_called_by_their_routes(server: Served) -> None:
    diagnosed = server.execute(
        "error_diagnose",
        {"error": "bad", "toolName": "calculator", "parameters": {"Expression": "1"}},
        context={"agentId": "agent-123", "channelId": "file-ops", "requestId": "req-456"},
    )
    status = server.execute("auto_correction_status", {"includeMetrics": True, "timeRange": "24h"})
    tested = server.execute("auto_correction_test", {"testSuite": "type_conversion"})
    insights = server.execute("auto_correction_insights", {"timeRange": "7d"})
    configured = server.execute(
        "auto_correction_configure", {"settings": {"maxRetries": 3}, "applyImmediately": True}
    )

    assert diagnosed["diagnosis"]["errorType"] == "unknownProperties"
    assert status["systemStatus"]["enabled"] is True
    assert tested["overallResults"]["failed"] == 0
    assert insights["overallMetrics"]
    assert configured["configurationUpdated"] is True


@proves("correction:status")
def test_an_unknown_query_parameter_is_refused(server: Served) -> None:
    error = server.call("GET", "/api/auto-correction/analytics", expected=400, range="1h")

    assert error["code"] == "VALIDATION_ERROR"
