"""Resources, providers, upstream servers and OpenAPI documents over REST."""

from __future__ import annotations

from typing import Any

import pytest

from tests import forkserver
from tests.surfaces.rest.conftest import Register
from tests.surfaces.serving import Served, Service
from tests.unit.gateway.handlers.upstream.servers import SERVER

REVIEWER = {
    "type": "prompt",
    "name": "code_reviewer",
    "description": "Code review assistant prompt",
    "content": "You are a code reviewer. Review the following {{language}} code:\n\n{{code}}\n\n"
    "Focus on: {{focus_areas}}",
    "variables": ["language", "code", "focus_areas"],
    "tags": ["code", "review"],
    "metadata": {"author": "DevTeam", "bestPractices": True},
}


@pytest.fixture(scope="session")
def reviewer(rest: Served) -> dict[str, Any]:
    made: dict[str, Any] = rest.call("POST", "/api/mcp/resources", REVIEWER, 201)["resource"]
    return made


def test_the_documents_prompt_is_created_and_listed_by_every_filter(
    rest: Served, reviewer: dict[str, Any]
) -> None:
    rest.call(
        "POST",
        "/api/mcp/resources",
        {"type": "data", "name": "figures", "content": "[1]", "tags": ["code"]},
        201,
    )

    def names(**query: Any) -> list[str]:
        found = rest.call("GET", "/api/mcp/resources", **query)["resources"]
        return [each["name"] for each in found]

    assert reviewer["id"].startswith("res_")
    assert {field: reviewer[field] for field in REVIEWER} == REVIEWER
    assert names(type="prompt") == ["code_reviewer"]
    assert sorted(names(tags="code")) == ["code_reviewer", "figures"]
    assert names(tags="code,review") == ["code_reviewer"]
    assert names(search="assistant") == ["code_reviewer"]
    assert len(names(limit=1)) == 1
    rest.call("POST", "/api/mcp/resources", REVIEWER, 400)
    rest.call("GET", "/api/mcp/resources", expected=400, type="poem")


def test_a_resource_is_rendered_and_missing_variables_are_named(
    rest: Served, reviewer: dict[str, Any]
) -> None:
    path = f"/api/mcp/resources/{reviewer['id']}"

    whole = rest.call(
        "GET", path, variables='{"language": "Python", "code": "x = {{code}}", "focus_areas": 3}'
    )
    missing = rest.call("GET", path, expected=400, variables='{"language": "Python"}')
    rest.call("GET", path, expected=400, variables="{")

    assert "the following Python code:\n\nx = {{code}}\n\nFocus on: 3" in whole["rendered"]
    assert "code" in str(missing["details"])
    assert "focus_areas" in str(missing["details"])
    assert "rendered" not in rest.call("GET", path)


def test_versions_of_a_resource_stay(rest: Served, reviewer: dict[str, Any]) -> None:
    path = f"/api/mcp/resources/{reviewer['name']}"

    rest.call("PUT", path, {"content": "Shorter: {{code}}", "variables": ["code"]})
    versions = rest.call("GET", f"{path}/versions")["versions"]
    then = rest.call("GET", path, asOf=f"@{versions[-1]['revision']}")["resource"]
    rest.call("DELETE", path)

    assert len(versions) == 2
    assert then["content"] == REVIEWER["content"]
    rest.call("GET", path, expected=404)
    rest.call("POST", "/api/mcp/resources", REVIEWER, 201)


def test_a_provider_gets_its_enabled_tools_and_its_calls_are_answered(rest: Served) -> None:
    configured = rest.call(
        "PUT",
        "/api/mcp/providers/anthropic",
        {
            "config": {
                "apiKey": "${ANTHROPIC_API_KEY}",
                "model": "claude-3-opus",
                "enabledTools": ["calculator", "date_time"],
                "maxTokens": 4096,
            }
        },
    )
    tools = rest.call("GET", "/api/mcp/providers/anthropic/tools")["tools"]
    answer = rest.call(
        "POST",
        "/api/mcp/providers/anthropic/calls",
        {
            "payload": {
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "calculator",
                        "input": {"expression": "6 * 7"},
                    },
                    {"type": "tool_use", "id": "toolu_2", "name": "api_caller", "input": {}},
                ]
            }
        },
    )

    assert configured["config"]["model"] == "claude-3-opus"
    assert [each["name"] for each in tools] == ["calculator", "date_time"]
    assert set(tools[0]) >= {"name", "description", "input_schema"}
    assert answer["calls"] == 2
    assert answer["failed"] == 1
    assert "42" in str(answer["results"])
    providers = rest.call("GET", "/api/mcp/providers")["providers"]
    assert {each["provider"] for each in providers} >= {"anthropic", "openai", "xai", "gemini"}
    leaked = rest.call(
        "PUT", "/api/mcp/providers/openai", {"config": {"apiKey": "sk-1234567890abcdef"}}, 400
    )
    assert "sk-1234567890abcdef" not in str(leaked)
    rest.call("GET", "/api/mcp/providers/nobody/tools", expected=400)


def test_an_upstream_server_is_added_called_refreshed_and_removed(rest: Served) -> None:
    server = {"name": "up", "command": forkserver.program(), "args": [SERVER]}
    refused = rest.call("POST", "/api/mcp/servers", server, 403)
    added = rest.as_administrator("server_add", server)
    called = rest.execute("add", {"a": 2, "b": 3})
    refreshed = rest.call("POST", "/api/mcp/servers/up/refresh", {})
    (listed,) = rest.call("GET", "/api/mcp/servers")["servers"]
    removed = rest.call("DELETE", "/api/mcp/servers/up")

    assert refused["code"] == "PERMISSION_DENIED"
    assert "add" in added["registered"]
    assert "5" in str(called["result"])
    assert refreshed["registered"] == []
    assert {"name": "add", "status": "active"} in listed["tools"]
    assert set(removed["removed"]) == set(added["registered"])
    rest.execute("add", {"a": 2, "b": 3}, 404)
    rest.call("DELETE", "/api/mcp/servers/up", expected=404)


def test_an_openapi_document_becomes_tools(
    rest: Served, service: Service, register: Register
) -> None:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": f"http://{service.host}"}],
        "paths": {
            "/pets/{id}": {
                "get": {
                    "operationId": "getPet",
                    "summary": "One pet",
                    "parameters": [
                        {
                            "name": "id",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "integer"},
                        }
                    ],
                    "responses": {"200": {"description": "ok"}},
                }
            }
        },
    }

    added = rest.call("POST", "/api/mcp/openapi", {"document": document}, 201)
    (name,) = added["registered"]
    called = rest.execute(name, {"id": 7})

    assert "/pets/7" in str(called["result"])
    assert register()["status"] == "active"
    rest.call("POST", "/api/mcp/openapi", {}, 400)
