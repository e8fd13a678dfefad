"""The routes of the registry, as the gateway's document has them."""

from __future__ import annotations

from typing import Any

import pytest

import stratagem
from tests.surfaces.rest.conftest import Register
from tests.surfaces.serving import Served, Service, as_json

SENTIMENT = {
    "name": "sentiment_analyzer",
    "description": "Analyze sentiment of text",
    "category": "analysis",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Text to analyze", "maxLength": 5000},
            "language": {"type": "string", "enum": ["en", "es", "fr", "de"], "default": "en"},
        },
        "required": ["text"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "sentiment": {"type": "string", "enum": ["positive", "negative", "neutral"]},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
    },
}


def test_the_documents_example_is_registered_granted_its_secret_and_called(
    rest: Served, service: Service
) -> None:
    handler = {
        "type": "webhook",
        "url": service.url("/sentiment"),
        "method": "POST",
        "headers": {"Authorization": "Bearer ${API_KEY}"},
    }
    service.answers["/sentiment"] = lambda said: as_json(
        {"sentiment": "positive", "confidence": 0.9, "sent": said["headers"]["authorization"]}
    )

    registered = rest.call("POST", "/api/mcp/tools", {**SENTIMENT, "handler": handler}, 201)
    denied = rest.execute("sentiment_analyzer", {"text": "Great!"}, 403)
    grant = {"tool": "sentiment_analyzer", "name": "API_KEY", "origin": service.host}
    # Somebody on the network without a token may not; the owner of the machine may.
    rest.call("POST", "/api/mcp/secrets", grant, 403)
    with stratagem.open(str(rest.log.with_name("rest.db"))) as owner:
        owner.call("secret_grant", grant)
    done = rest.execute("sentiment_analyzer", {"text": "Great!", "language": "en"})

    assert set(registered) >= {"toolId", "status", "validation"}
    assert registered["status"] == "active"
    assert registered["validation"]["passed"] is True
    assert denied["code"] == "PERMISSION_DENIED"
    assert done["result"]["sentiment"] == "positive"
    # The service got the key, and what it echoed of it is taken out again.
    assert service.received[-1]["headers"]["authorization"] == "Bearer swordfish-1234567890"
    assert "swordfish" not in str(done)
    shown = rest.call("GET", f"/api/mcp/tools/{registered['toolId']}")["tool"]
    assert shown["handler"]["headers"]["Authorization"] == "Bearer ${API_KEY}"
    (granted,) = rest.call("GET", "/api/mcp/secrets")["grants"]
    assert granted["origin"] == f"http://{service.host}"
    assert granted["state"] == "active"
    rest.call("DELETE", "/api/mcp/secrets/sentiment_analyzer/API_KEY")
    assert rest.execute("sentiment_analyzer", {"text": "x"}, 403)["code"] == "PERMISSION_DENIED"


def test_a_list_has_the_documented_fields_and_takes_every_filter(
    rest: Served, register: Register
) -> None:
    one = register(
        category="search",
        provider="acme",
        tags=["striped"],
        capabilities=["real-time", "paged"],
        pricing={"model": "per_call", "cost": 0.001},
        description="Finds zebras",
    )
    two = register(category="search", provider="other", capabilities=["real-time"])

    def names(**query: Any) -> list[str]:
        found = rest.call("GET", "/api/mcp/tools", **query)
        return [tool["name"] for tool in found["tools"]]

    page = rest.call("GET", "/api/mcp/tools", provider="acme")
    (shown,) = page["tools"]
    assert page["total"] == 1
    assert "search" in page["categories"]
    assert "utility" in page["categories"]
    assert shown["id"] == one["toolId"]
    assert shown["pricing"]["cost"] == 0.001
    assert shown["performance"] == {"avgLatency": None, "successRate": None}
    searching = set(names(category="search"))
    assert {one["name"], two["name"]} < searching
    assert "web_search" in searching
    assert "calculator" not in searching
    assert names(category="search", provider="other") == [two["name"]]
    assert names(capabilities="real-time,paged") == [one["name"]]
    assert names(search="ZEBRAS") == [one["name"]]
    assert names(tags="striped") == [one["name"]]
    assert names(status="deprecated") == []
    assert names(category="search", limit=1) != names(category="search", limit=1, offset=1)
    assert rest.call("GET", "/api/mcp/tools", limit=1)["total"] > 1


def test_details_have_every_field_that_was_registered(rest: Served, register: Register) -> None:
    given = {
        "longDescription": "A tool with everything.",
        "version": "2.1.0",
        "author": "MXF Team",
        "category": "search",
        "tags": ["web", "search"],
        "outputSchema": {"type": "object"},
        "examples": [{"input": {"query": "AI news"}, "output": {"results": []}}],
        "configuration": {"timeout": 30000, "retries": 3, "cache": True},
        "requirements": {"permissions": ["internet_access"], "resources": []},
        "metadata": {"team": "search"},
    }
    answer = register(**given)
    rest.execute(answer["name"], {"query": "x"})

    tool = rest.call("GET", f"/api/mcp/tools/{answer['toolId']}")["tool"]

    assert {name: tool[name] for name in given} == given
    assert tool["statistics"]["totalCalls"] == 1
    assert tool["statistics"]["successRate"] == 1
    assert tool["statistics"]["avgLatency"] > 0
    assert tool["statistics"]["lastUsed"].endswith("Z")


def test_a_registration_answers_with_warnings(register: Register) -> None:
    answer = register(
        inputSchema={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        examples=[{"input": {"q": 5}}],
    )

    said = " ".join(answer["validation"]["warnings"])
    assert "description: q" in said
    assert "examples[0]" in said
    assert "outputSchema" in said


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"name": "calculator"}, 409, "name"),
        ({"name": "1st"}, 400, "name"),
        ({"name": "a b"}, 400, "name"),
        ({"name": "x" * 65}, 400, "name"),
        ({"inputSchema": {"type": "nonsense"}}, 400, "inputSchema"),
        ({"inputSchema": {"$ref": "https://example.org/x.json"}}, 400, "inputSchema"),
        ({"outputSchema": {"minimum": "x"}}, 400, "outputSchema"),
        ({"handler": {"type": "teleport"}}, 400, "handler.type"),
        ({"handler": {"type": "webhook"}}, 400, "handler.url"),
        ({"permissions": {"network": "perhaps"}}, 400, "permissions.network"),
        ({"configuration": {"timeout": 0}}, 400, "configuration"),
        ({"unheard": 1}, 400, "unheard"),
        ({"description": ""}, 400, "description"),
    ],
)
def test_a_registration_that_cannot_work_is_refused(
    rest: Served, change: dict[str, Any], status: int, field: str
) -> None:
    definition = {
        "name": "refused",
        "description": "x",
        "inputSchema": {"type": "object"},
        "handler": {"type": "webhook", "url": "https://example.org/"},
        **change,
    }

    error = rest.call("POST", "/api/mcp/tools", definition, status)

    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["field"] == field
    assert error["hint"]


def test_a_secret_in_a_handler_is_refused_and_stands_nowhere(rest: Served) -> None:
    definition = {
        "name": "leaky",
        "description": "x",
        "inputSchema": {"type": "object"},
        "handler": {
            "type": "webhook",
            "url": "https://example.org/",
            "headers": {"X-API-Key": "hunter2-hunter2-hunter2"},
        },
    }

    error = rest.call("POST", "/api/mcp/tools", definition, 400)

    assert "${NAME}" in error["hint"]
    assert "hunter2" not in str(error)
    rest.call("GET", "/api/mcp/tools/leaky", expected=404)


def test_a_tool_is_updated_deprecated_and_removed_and_its_past_stays(
    rest: Served, register: Register
) -> None:
    first = register(configuration={"timeout": 9000, "retries": 1})
    name = first["name"]

    updated = rest.call(
        "PUT",
        f"/api/mcp/tools/{first['toolId']}",
        {
            "description": "Updated description",
            "configuration": {"timeout": 20000, "cache": False},
            "status": "deprecated",
        },
    )
    warned = rest.execute(name, {})
    stale = rest.call(
        "PUT", f"/api/mcp/tools/{name}", {"tags": ["x"], "expectedVersion": first["version"]}, 409
    )
    rest.call("DELETE", f"/api/mcp/tools/{name}")

    assert updated["changes"]["status"] == "deprecated"
    assert updated["changes"]["configuration"] == {"timeout": 20000, "retries": 1, "cache": False}
    assert warned["metadata"]["warnings"] == [f"{name} is deprecated."]
    assert stale["details"]["version"] == updated["version"]
    rest.call("GET", f"/api/mcp/tools/{name}", expected=404)
    then = rest.call("GET", f"/api/mcp/tools/{name}", asOf=f"@{first['version']}")["tool"]
    assert then["description"] == "A tool of the tests."
    later = rest.call("GET", f"/api/mcp/tools/{name}", asOf=f"@{updated['version']}")["tool"]
    assert later["description"] == "Updated description"
    # What was removed can be registered anew.
    register(name=name)


def test_a_branch_has_tools_of_its_own(rest: Served, register: Register) -> None:
    both = register()["name"]
    made = rest.client.post(
        "/api/memory/strata_branch", json={"action": "fork", "name": "trial-tools"}
    )
    assert made.status_code == 200, made.text

    only = register(branch="trial-tools")["name"]
    rest.call("PUT", f"/api/mcp/tools/{both}", {"description": "Other", "branch": "trial-tools"})

    rest.call("GET", f"/api/mcp/tools/{only}", expected=404)
    assert rest.call("GET", f"/api/mcp/tools/{only}", branch="trial-tools")["tool"]["name"] == only
    here = rest.call("GET", f"/api/mcp/tools/{both}")["tool"]["description"]
    there = rest.call("GET", f"/api/mcp/tools/{both}", branch="trial-tools")["tool"]["description"]
    assert (here, there) == ("A tool of the tests.", "Other")
    rest.execute(only, {}, 404)
    assert rest.execute(only, {}, branch="trial-tools")["result"]
    merged = rest.client.post(
        "/api/memory/strata_branch", json={"action": "merge", "source": "trial-tools"}
    )
    assert merged.status_code == 200, merged.text
    assert rest.call("GET", f"/api/mcp/tools/{only}")["tool"]["name"] == only


def test_a_retried_registration_is_one_registration(rest: Served, register: Register) -> None:
    first = register(name="once_only", requestId="r-1")
    again = register(name="once_only", requestId="r-1")

    assert again == first
    rest.call(
        "POST",
        "/api/mcp/tools",
        {
            "name": "once_more",
            "description": "x",
            "inputSchema": {"type": "object"},
            "handler": {"type": "webhook", "url": "https://example.org/"},
            "requestId": "r-1",
        },
        409,
    )


def test_help_says_how_to_call_a_tool(rest: Served) -> None:
    answer = rest.call("GET", "/api/mcp/tools/calculator/help")

    assert answer["toolName"] == "calculator"
    assert answer["required"] == ["expression"]
    assert answer["examples"]


def test_what_does_not_exist_is_said_in_the_envelope(rest: Served) -> None:
    error = rest.call("GET", "/api/mcp/nothing", expected=404)
    assert error["hint"]

    wrong = rest.client.patch("/api/mcp/tools")
    assert wrong.status_code == 405
    assert set(wrong.headers["allow"].split(", ")) >= {"GET", "POST"}
    assert wrong.json()["success"] is False
    assert set(wrong.json()["error"]) == {"code", "message", "details", "hint"}
    for name in ("code", "message", "hint"):
        assert wrong.json()[name] == wrong.json()["error"][name]


def test_a_wrong_path_is_not_found_and_near_routes_are_named(rest: Served) -> None:
    of_gateway = rest.client.get("/api/mcp/toolz")
    of_memory = rest.client.post("/api/memory/strata_recal", json={"key": "a"})

    assert (of_gateway.status_code, of_memory.status_code) == (404, 404)
    assert of_gateway.json()["error"]["code"] == "NOT_FOUND"
    assert "/api/mcp/tools" in of_gateway.json()["error"]["details"]["similar"]
    assert of_memory.json()["error"] == "not_found"
    assert "/api/memory/strata_recall" in of_memory.json()["hint"]


def test_the_other_systems_answer_under_api(rest: Served) -> None:
    stored = rest.client.post("/api/memory/strata_store", json={"key": "a", "value": 1})
    wrong = rest.client.post("/api/memory/strata_store", json={"key": "a"})
    concept = rest.client.post(
        "/api/knowledge/create_concept", json={"name": "N", "explanation": "E"}
    )

    assert stored.json()["status"] == "created"
    assert wrong.status_code == 400
    assert wrong.json()["error"] == "missing_required"
    assert concept.status_code == 200, concept.text
