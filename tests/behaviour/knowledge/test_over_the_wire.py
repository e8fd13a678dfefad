"""Every error of the documented interface, from server processes: REST, and MCP on HTTP and stdio."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import errors
from tests.manifest import proves
from tests.surfaces.mcp.clients import ENVELOPE, MODERN, Stdio
from tests.surfaces.serving import Served, serving

Answer = dict[str, Any]
Ask = Callable[[str, Answer], Answer]

UNKNOWN = "00000000-0000-4000-8000-000000000000"
TOOLSETS = ("memory", "knowledge", "knowledge_plus")
MODERN_HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
}
SEVENTEEN = {
    "ping", "get_server_stats", "get_tool_availability",
    "create_concept", "get_concept", "update_concept", "delete_concept",
    "search_concepts_semantic", "search_concepts_exact", "get_recent_concepts",
    "create_relationship", "delete_relationship", "get_related_concepts", "get_prerequisites",
    "get_concept_chain", "list_hierarchy", "get_concepts_by_certainty",
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = tmp_path_factory.mktemp("wire") / "wire.db"
    with serving(database, "--toolsets", ",".join(TOOLSETS)) as running:
        yield running


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stdio]:
    database: Path = tmp_path_factory.mktemp("stdio") / "stdio.db"
    with Stdio(database, toolsets=list(TOOLSETS)) as server:
        server.shake_hands()
        yield server


def over_rest(served: Served) -> Ask:
    def ask(name: str, arguments: Answer) -> Answer:
        toolset = "knowledge_plus" if name == "restore_concept" else "knowledge"
        response = served.client.post(f"/api/{toolset}/{name}", json=arguments)
        answer: Answer = response.json()
        refused = answer.get("success") is False
        assert response.status_code == (
            errors.TABLE[answer["error"]].http_status if refused else 200
        )
        return answer

    return ask


def over_http(served: Served) -> Ask:
    def ask(name: str, arguments: Answer) -> Answer:
        params = {"name": name, "arguments": arguments, "_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = MODERN_HEADERS | {"mcp-name": name}
        response = served.client.post("/mcp", json=message, headers=headers)
        assert response.status_code == 200, response.text
        data = [line[5:] for line in response.text.splitlines() if line.startswith("data:")]
        return _content(json.loads(data[-1] if data else response.text))

    return ask


def over_stdio(stdio: Stdio) -> Ask:
    return lambda name, arguments: _content(stdio.ask("tools/call", name=name, arguments=arguments))


def _content(message: Answer) -> Answer:
    result = message["result"]
    answer: Answer = result["structuredContent"]
    assert result.get("isError", False) == (answer.get("success") is False)
    return answer


@pytest.fixture(params=["rest", "http", "stdio"])
def ask(request: pytest.FixtureRequest) -> Ask:
    if request.param == "stdio":
        return over_stdio(request.getfixturevalue("stdio"))
    served = request.getfixturevalue("served")
    return over_rest(served) if request.param == "rest" else over_http(served)


@pytest.fixture
def two(ask: Ask) -> tuple[str, str]:
    made = [ask("create_concept", {"name": name, "explanation": "e"}) for name in "AB"]
    return made[0]["concept_id"], made[1]["concept_id"]


@proves("knowledge:documented")
def test_all_tools_answer(ask: Ask) -> None:
    found = ask("get_tool_availability", {})

    assert set(found["available"] + found["unavailable"]) == SEVENTEEN
    assert found["total_tools"] == 17
    assert ask("ping", {})["status"] == "ok"
    assert ask("get_server_stats", {})["status"] == "healthy"


@proves("knowledge:availability")
def test_ping_and_availability_answer_though_the_database_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all, but long enough to be looked at" * 100)

    with Stdio(broken, toolsets=list(TOOLSETS)) as server:
        server.shake_hands()
        ask = over_stdio(server)
        pong = ask("ping", {})
        found = ask("get_tool_availability", {})
        refused = ask("get_server_stats", {})

    assert pong["status"] == "ok"
    assert found["available"] == ["get_tool_availability", "ping"]
    assert set(found["available"] + found["unavailable"]) == SEVENTEEN
    assert "not a Stratagem database" in found["note"]
    assert not any(each for group in found["service_status"].values() for each in group.values())
    assert refused["error"] == "database_corrupt"


@proves("knowledge:availability")
def test_a_server_that_only_reads_lists_what_it_has(tmp_path: Path) -> None:
    path = str(tmp_path / "read.db")
    with stratagem.open(path) as db:
        db.knowledge.create_concept("A", "e")

    with stratagem.open(path, read_only=True) as db:
        found = db.knowledge.get_tool_availability()

    writers = {each for each in SEVENTEEN if each.startswith(("create", "update", "delete"))}
    assert set(found.unavailable) == writers
    assert set(found.available) == SEVENTEEN - writers
    assert "reading only" in (found.note or "")


@proves("knowledge:bad-input")
def test_a_wrong_value_is_a_bad_request(served: Served) -> None:
    concept = {"name": "x" * 201, "explanation": "e"}

    answer = served.client.post("/api/knowledge/create_concept", json=concept)

    assert answer.status_code == 400
    assert answer.json()["error"] == "validation_error"


@proves("knowledge:bad-input", "knowledge:not-found")
def test_every_refusal_has_its_type_and_field(ask: Ask, two: tuple[str, str]) -> None:
    a, b = two
    ends = {"source_id": a, "target_id": b, "relationship_type": "prerequisite"}
    assert ask("create_relationship", ends)["success"]
    gone = ask("create_concept", {"name": "Gone", "explanation": "e"})["concept_id"]
    ask("delete_concept", {"concept_id": gone})
    concept = {"name": "N", "explanation": "e"}
    chain = {"start_concept_id": a, "end_concept_id": b}
    alone = ask("create_concept", concept)["concept_id"]
    before = ask("get_server_stats", {})["event_store"]

    for name, arguments, error, field in (
        ("create_concept", {"explanation": "e"}, "missing_required", "name"),
        ("create_concept", concept | {"name": "x" * 201}, "validation_error", "name"),
        ("create_concept", concept | {"name": ""}, "validation_error", "name"),
        ("create_concept", concept | {"name": None}, "validation_error", "name"),
        ("create_concept", concept | {"explanation": " "}, "validation_error", "explanation"),
        ("create_concept", concept | {"area": "x" * 101}, "validation_error", "area"),
        (
            "create_concept",
            concept | {"certainty_score": 101},
            "validation_error",
            "certainty_score",
        ),
        (
            "create_concept",
            concept | {"certainty_score": -1},
            "validation_error",
            "certainty_score",
        ),
        ("get_concept", {"concept_id": UNKNOWN}, "concept_not_found", "concept_id"),
        ("get_concept", {"concept_id": gone}, "concept_not_found", "concept_id"),
        ("update_concept", {"concept_id": UNKNOWN, "name": "n"}, "concept_not_found", "concept_id"),
        ("update_concept", {"concept_id": gone, "name": "n"}, "concept_not_found", "concept_id"),
        ("update_concept", {"concept_id": a}, "validation_error", "explanation"),
        (
            "update_concept",
            {"concept_id": a, "name": "n", "expected_version": 10**6},
            "version_conflict",
            "expected_version",
        ),
        ("delete_concept", {"concept_id": UNKNOWN}, "concept_not_found", "concept_id"),
        ("delete_concept", {"concept_id": gone}, "concept_not_found", "concept_id"),
        ("restore_concept", {"concept_id": a}, "validation_error", "concept_id"),
        ("create_relationship", ends, "validation_error", "relationship_type"),
        ("create_relationship", ends | {"target_id": a}, "validation_error", "target_id"),
        ("create_relationship", ends | {"target_id": gone}, "concept_not_found", "target_id"),
        ("create_relationship", ends | {"source_id": UNKNOWN}, "concept_not_found", "source_id"),
        ("create_relationship", ends | {"strength": 1.1}, "validation_error", "strength"),
        (
            "create_relationship",
            ends | {"relationship_type": "friend"},
            "validation_error",
            "relationship_type",
        ),
        (
            "create_relationship",
            {"source_id": b, "target_id": a, "relationship_type": "prerequisite"},
            "validation_error",
            "target_id",
        ),
        (
            "delete_relationship",
            ends | {"relationship_type": "includes"},
            "relationship_not_found",
            "relationship_type",
        ),
        ("get_related_concepts", {"concept_id": a, "limit": 51}, "validation_error", "limit"),
        (
            "get_related_concepts",
            {"concept_id": a, "direction": "up"},
            "validation_error",
            "direction",
        ),
        ("get_prerequisites", {"concept_id": a, "depth": 6}, "validation_error", "depth"),
        ("get_concept_chain", chain | {"max_depth": 11}, "validation_error", "max_depth"),
        ("get_concept_chain", chain | {"end_concept_id": alone}, "path_not_found", None),
        ("search_concepts_semantic", {"query": "q", "limit": 51}, "validation_error", "limit"),
        ("search_concepts_exact", {"limit": 101}, "validation_error", "limit"),
        ("get_recent_concepts", {"limit": 0}, "validation_error", "limit"),
        ("get_recent_concepts", {"cursor": "x"}, "validation_error", "cursor"),
        ("get_concepts_by_certainty", {"min_certainty": 101}, "validation_error", "min_certainty"),
        ("list_hierarchy", {"branch": "nowhere"}, "branch_not_found", "branch"),
        ("ping", {"loud": True}, "validation_error", "loud"),
    ):
        refused = ask(name, arguments)
        assert refused.get("error") == error, (name, arguments, refused)
        assert refused["details"].get("field") == field, (name, arguments, refused)
        assert refused["message"]
        assert refused["hint"]
    assert ask("get_server_stats", {})["event_store"] == before


@proves("knowledge:bad-input")
@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b'{"name": ',
        b"\xff\xfe",
        b'{"name": "\\ud800", "explanation": "e"}',
        b'{"name": "N", "explanation": "e", "certainty_score": NaN}',
        b'{"name": "N", "explanation": "e", "certainty_score": 1e999}',
    ],
)
def test_what_is_no_json_object_is_invalid_input(served: Served, body: bytes) -> None:
    response = served.client.post(
        "/api/knowledge/create_concept", content=body, headers={"content-type": "application/json"}
    )

    assert response.status_code == 400
    assert response.json()["error"] == "invalid_input"
