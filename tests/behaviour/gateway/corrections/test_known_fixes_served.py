"""The loop closed over the wire: a service that fails, called by REST and MCP, and what is learned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.manifest import proves
from tests.surfaces.serving import Served, Service, as_json, eventually, serving

ENVIRONMENT = {"runtime": "gateway", "tool": "forecast"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture(scope="module")
def server(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    options = ("--allow-host", service.host, "--toolsets", "gateway,debugging")
    with serving(tmp_path_factory.mktemp("loop") / "loop.db", *options) as running:
        yield running


def answering(error: str) -> Any:
    """Return what fails for one town only."""

    def answer(said: dict[str, Any]) -> tuple[int, str, bytes]:
        wrong = b"Atlantis" in said["body"]
        return as_json({"error": error} if wrong else {"sky": "blue"}, 422 if wrong else 200)

    return answer


def register(server: Served, service: Service, name: str, error: str) -> None:
    service.answers[f"/{name}"] = answering(error)
    definition = {
        "name": name,
        "description": "Say what the weather will be.",
        "inputSchema": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["town"],
            "additionalProperties": False,
        },
        "handler": {"type": "webhook", "url": service.url(f"/{name}")},
    }
    server.call("POST", "/api/mcp/tools", definition, 201)


def signature(error: dict[str, Any]) -> str:
    return f"forecast: {error['message']} {error['details']['body']}"


def know_a_fix(server: Served, error: dict[str, Any]) -> str:
    added = server.execute(
        "add_incident",
        {
            "title": "No station",
            "error_signature": signature(error),
            "steps": ["Ask for the next town."],
            "env": ENVIRONMENT,
            "worked": True,
        },
    )
    solution: str = added["result"]["solution_id"]
    for _time in range(4):
        outcome = {"solution_id": solution, "worked": True, "env": ENVIRONMENT}
        server.execute("record_outcome", outcome)
    return solution


def outcomes(server: Served, error: dict[str, Any]) -> float:
    found = server.execute("ranked_solutions", {"query_text": signature(error), "env": ENVIRONMENT})
    size: float = found["result"]["recommended_solution"]["effective_sample_size"]
    return size


def tell_and_credit(server: Served, service: Service) -> None:
    """Have a fix told, and credited by the call that works after it."""
    register(server, service, "forecast", "no station in reach")
    error = server.execute("forecast", {"town": "Atlantis"}, 502)
    solution = know_a_fix(server, error)
    before = outcomes(server, error)

    again = server.execute("forecast", {"town": "Atlantis", "days": "3"}, 502)
    assert again["details"]["knownFix"]["solutionId"] == solution
    worked = server.execute("forecast", {"town": "Oslo", "days": "3"})

    assert worked["result"] == {"sky": "blue"}
    assert worked["metadata"]["correction"]["appliedPattern"] == "string_to_number_conversion"
    eventually(lambda: outcomes(server, error) > before + 0.5)


@proves("fix:told", "fix:credit")
def test_a_fix_is_told_and_credited_over_rest(server: Served, service: Service) -> None:
    tell_and_credit(server, service)


@proves("fix:credit")
@pytest.mark.slow
def test_whichever_process_answers_a_fix_is_credited(service: Service, tmp_path: Path) -> None:
    options = ("--allow-host", service.host, "--workers", "2")
    with serving(tmp_path / "loop.db", *options) as server:
        tell_and_credit(server, service)


@proves("fix:draft")
def test_a_failure_that_comes_back_is_noted_over_mcp(server: Served, service: Service) -> None:
    register(server, service, "tides", "the gauge of Atlantis is under water")

    async def talk() -> list[Any]:
        async with Client(f"{server.url}/mcp") as client:
            call = {"toolName": "tides", "arguments": {"town": "Atlantis"}}
            return [await client.call_tool("tool_execute", call) for _time in range(4)]

    told = asyncio.run(talk())
    asked = {"query_text": "tides: The service answered 422", "env": ENVIRONMENT}
    drafts = eventually(
        lambda: [
            each
            for each in server.execute("ranked_solutions", asked)["result"]["incidents"]
            if each["title"].startswith("tides")
        ]
    )

    assert all(each.is_error for each in told)
    assert "the gauge of Atlantis" in str(told[0].content)
    (draft,) = drafts
    assert "the gauge of … is under water" in draft["title"]
    assert "Atlantis" not in str(draft)
