"""5. Who may only read leaves nothing behind, and reads only what the token names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from stratagem.operation import Caller
from stratagem.operations import TABLE
from tests.security.house import House, make_token, opened, serving

ERROR = "PressError: cannot open the valve 3"
HOOK = {
    "name": "press",
    "description": "Presses juice out of fruit.",
    "inputSchema": {"type": "object", "properties": {"fruit": {"type": "string"}}},
    "handler": {"type": "webhook", "url": "https://example.com/press"},
}
# For each operation that can be called for reading, arguments with which it answers.
READS: dict[str, list[dict[str, Any]]] = {
    "strata_recall": [{"key": "known"}],
    "strata_search": [{"query": "known"}],
    "strata_branch": [
        {"action": "list"},
        {"action": "diff", "compare": "other"},
        {"action": "switch", "name": "default"},
    ],
    "strata_history": [{"key": "known"}],
    "strata_status": [{}],
    "ranked_solutions": [{"query_text": ERROR, "env": {"os": "linux"}}],
    "list_incidents": [{}],
    "list_solutions": [{}],
    "list_outcomes": [{}],
    "show_record": [{"record_id": "{incident}"}],
    "debugging_statistics": [{}],
    "ping": [{}],
    "get_server_stats": [{}],
    "get_tool_availability": [{}],
    "get_concept": [{"concept_id": "{one}"}],
    "search_concepts_semantic": [{"query": "pressure"}],
    "search_concepts_exact": [{}],
    "get_recent_concepts": [{}],
    "get_related_concepts": [{"concept_id": "{one}"}],
    "get_prerequisites": [{"concept_id": "{one}"}],
    "get_learning_path": [{"target": "{one}"}],
    "list_known": [{}],
    "review_knowledge": [{}],
    "get_context": [{"query": "pressure"}],
    "get_concept_chain": [{"start_concept_id": "{one}", "end_concept_id": "{two}"}],
    "list_hierarchy": [{}],
    "get_concepts_by_certainty": [{}],
    "tool_help": [{"toolName": "press"}],
    "error_diagnose": [{"error": ERROR, "toolName": "press"}],
    "auto_correction_status": [{}],
    "auto_correction_test": [{"testSuite": "validation_errors"}],
    "auto_correction_insights": [{}],
    "auto_correction_patterns": [{"action": "list"}, {"action": "backup"}],
    "auto_correction_circuits": [{"action": "list"}],
    "tools_recommend": [{"intent": "press an orange"}],
    "tools_recommend_on_error": [{"failedTool": "press", "errorMessage": ERROR}],
    "strata_list": [{}],
    "strata_events": [{}],
    "strata_namespaces": [{}],
    "strata_tags": [{}],
    "strata_explain_miss": [{"key": "nothing"}],
    "breakers_list": [{}],
    "toolsets_list": [{}],
    "approvals_list": [{}],
    "work_list": [{}],
    "tools_validate": [{"toolNames": ["press"]}],
    "tools_discover": [{}],
    "tools_compare": [{"toolNames": ["press", "calculator"]}],
    "workflow_plan": [{"goal": "press an orange"}],
    "tools_list": [{}],
    "tool_get": [{"toolId": "press"}],
    "tool_executions": [{}],
    "resources_list": [{}],
    "resource_get": [{"resourceId": "prompt"}],
    "resource_versions": [{"resourceId": "prompt"}],
    "servers_list": [{}],
    "providers_list": [{}],
    "provider_tools": [{"provider": "openai"}],
}
IDS: dict[str, str] = {}


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server whose database has something of everything."""
    path = tmp_path_factory.mktemp("stocked") / "memory.db"
    with opened(path) as runtime:

        def call(name: str, arguments: dict[str, Any]) -> Any:
            return runtime.call(name, arguments, Caller("test"))

        call("strata_store", {"key": "known", "value": "a known thing"})
        call("strata_branch", {"action": "fork", "name": "other"})
        call("strata_store", {"key": "mine", "value": "an entry"})
        for each in ("one", "two"):
            made = call("create_concept", {"name": each, "explanation": f"the pressure {each}"})
            IDS[each] = made["concept_id"]
        relation = {"source_id": IDS["one"], "target_id": IDS["two"]}
        call("create_relationship", {**relation, "relationship_type": "relates_to"})
        incident = {
            "title": "The valve is stuck",
            "error_signature": ERROR,
            "steps": "oil the valve",
            "env": {"os": "linux"},
            "worked": True,
        }
        IDS["incident"] = call("add_incident", incident)["incident_id"]
        call("tool_register", HOOK)
        call("resource_create", {"type": "prompt", "name": "prompt", "content": "hello"})
    tokens = {
        name: make_token(path, name.replace(":", "."), *scopes, rate=1_000_000)
        for name, scopes in {
            "readonly": ("*:read",),
            "memory:read": ("memory:read",),
            "gateway:read": ("gateway:read",),
            "knowledge:read": ("knowledge:read", "memory:read"),
        }.items()
    }
    with serving(path, embedder="static") as house:
        house.tokens = tokens
        yield house


def log(house: House) -> list[tuple[str, str]]:
    """Return what the log has, once everything that was to be written is."""
    runtime = house.database.runtime()
    time.sleep(0.2)
    runtime.gateway.recorder.settle()
    return [
        (each.kind, each.actor)
        for each in runtime.foundation.store.log()
        if each.space is None or each.space.namespace != "access"
    ]


def filled(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: each.format(**IDS) if isinstance(each, str) else each
        for name, each in arguments.items()
    }


def test_the_list_of_what_reads_is_whole() -> None:
    reading = {
        name for name, row in TABLE.items() if row.right_for({}) == "read" or row.reading_actions
    }

    assert set(READS) == reading
    for name, given in READS.items():
        assert {each.get("action", "") for each in given} == set(
            TABLE[name].reading_actions or ("",)
        ) or name == "auto_correction_patterns", name


@pytest.mark.parametrize("surface", ["mcp", "rest"])
def test_whatever_a_read_only_token_may_call_writes_nothing(stocked: House, surface: str) -> None:
    before = log(stocked)

    for name, several in READS.items():
        for arguments in map(filled, several):
            if surface == "mcp":
                outcome = stocked.call("mcp", "readonly", name, arguments)
                assert outcome.error is None, (name, outcome.text)
            else:
                path = f"/api/{TABLE[name].toolset}/{name}"
                response = stocked.client("readonly").post(path, json=arguments)
                assert response.status_code == 200, (name, response.text)

    assert log(stocked)[len(before) :] == []


def test_a_branch_is_compared_as_far_as_the_token_reads(stocked: House) -> None:
    """Branches carry the records of every system; a token reads those that it names."""
    diff = {"action": "diff", "compare": "other"}

    def seen(token: str) -> set[str]:
        answer = stocked.call("rest", token, "strata_branch", diff).answer
        assert answer["ours"] == len(answer["results"])
        return {each["namespace"] for each in answer["results"]}

    assert seen("readonly") == {"default", "knowledge", "debugging", "gateway"}
    assert seen("memory:read") == {"default"}
    assert seen("knowledge:read") == {"default", "knowledge"}


@pytest.mark.parametrize("name", ["error_diagnose", "tools_recommend_on_error"])
def test_a_known_fix_is_for_those_who_may_read_it(stocked: House, name: str) -> None:
    (arguments,) = READS[name]

    hidden = stocked.call("mcp", "gateway:read", name, arguments)
    shown = stocked.call("mcp", "readonly", name, arguments)

    assert hidden.error is None, hidden.text
    assert "oil the valve" not in hidden.text
    assert "oil the valve" in shown.text
