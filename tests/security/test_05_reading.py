"""5. Who may only read leaves nothing behind, and reads only what the token names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from stratagem.operation import Caller
from stratagem.operations import TABLE
from tests.security.house import EVERY_TOOLSET, House, make_token, opened, serving

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
    "provider_tools": [{"provider": "openai", "tools": ["press"]}],
    "credentials_list": [{}],
    "guardrails_list": [{}],
    "review_list": [{}],
    "get_graph": [{}, {"concept": "{one}"}],
    "strata_activity": [{}],
    "strata_branch_graph": [{}],
    "strata_compare": [{"compare": "other"}],
    "strata_explain_search": [{"query": "known"}],
    "strata_facets": [{}],
    "strata_sessions": [{}],
    "strata_branch_current": [{}],
    "strata_branch_diff": [{"compare": "other"}],
    "strata_branch_exists": [{"name": "other"}],
    "strata_branch_get": [{"name": "other"}],
    "strata_branch_list": [{}],
    "strata_branch_use": [{"name": "default"}],
    "strata_bundle_validate": [{"name": "kept"}],
    "strata_db_info": [{}],
    "strata_db_ping": [{}],
    "strata_db_time_range": [{}],
    "strata_durability_counters": [{}],
    "strata_embed": [{"text": "a red fox"}],
    "strata_embed_batch": [{"texts": ["a red fox", "a grey wolf"]}],
    "strata_embed_status": [{}],
    "strata_tokenize": [{"text": "a red fox"}],
    "strata_detokenize": [{"tokens": [2000]}],
    "strata_event_get": [{"sequence": 1}],
    "strata_event_len": [{}],
    "strata_event_list": [{}],
    "strata_generate_unload": [{}],
    "strata_json_get": [{"key": "profile", "path": "$.name"}],
    "strata_json_history": [{"key": "profile"}],
    "strata_json_list": [{}],
    "strata_kv_get": [{"key": "city"}],
    "strata_kv_get_many": [{"keys": ["city", "nothing"]}],
    "strata_kv_history": [{"key": "city"}],
    "strata_kv_list": [{"prefix": "c"}],
    "strata_models_list": [{}],
    "strata_models_local": [{}],
    "strata_models_pull": [{"name": "static"}],
    "strata_space_current": [{}],
    "strata_space_exists": [{"name": "default"}],
    "strata_space_list": [{}],
    "strata_space_use": [{"name": "default"}],
    "strata_state_get": [{"cell": "leader"}],
    "strata_state_history": [{"cell": "leader"}],
    "strata_state_list": [{}],
    "strata_txn_info": [{"transaction": "{transaction}"}],
    "strata_txn_is_active": [{"transaction": "{transaction}"}],
    "strata_vector_get": [{"collection": "docs", "key": "a"}],
    "strata_vector_history": [{"collection": "docs", "key": "a"}],
    "strata_vector_list_collections": [{}],
    "strata_vector_search": [{"collection": "docs", "query": [1, 0.1, 0]}],
    "strata_vector_stats": [{"name": "docs"}],
}
IDS: dict[str, str] = {}


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server whose database has something of everything."""
    path = tmp_path_factory.mktemp("stocked") / "memory.db"
    bundles = path.parent / "bundles"
    bundles.mkdir()
    with opened(path, bundles=str(bundles)) as runtime:

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
        for name in (
            "strata_kv_put",
            "strata_json_set",
            "strata_state_set",
            "strata_vector_create_collection",
            "strata_vector_upsert",
            "strata_event_append",
        ):
            call(name, dict(TABLE[name].example or {}))
        call("strata_bundle_export", {"name": "kept"})
        begun = runtime.call("strata_txn_begin", {}, Caller("token:readonly"))
        IDS["transaction"] = begun["transaction"]
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
    with serving(
        path, embedder="static", bundles=str(bundles), toolsets=(*EVERY_TOOLSET, "developer")
    ) as house:
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

    memory = {"default", "default/docs"}
    assert seen("readonly") == memory | {"knowledge", "debugging", "gateway"}
    assert seen("memory:read") == memory
    assert seen("knowledge:read") == memory | {"knowledge"}


@pytest.mark.parametrize("name", ["error_diagnose", "tools_recommend_on_error"])
def test_a_known_fix_is_for_those_who_may_read_it(stocked: House, name: str) -> None:
    (arguments,) = READS[name]

    hidden = stocked.call("mcp", "gateway:read", name, arguments)
    shown = stocked.call("mcp", "readonly", name, arguments)

    assert hidden.error is None, hidden.text
    assert "oil the valve" not in hidden.text
    assert "oil the valve" in shown.text
