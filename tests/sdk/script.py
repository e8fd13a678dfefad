"""Every method of the SDK, called in an order in which each has something to say.

A step is a name, and what it is called with; `Earlier` stands for a part of an earlier result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from stratagem import StratagemError

ENV = {"os": "linux", "python": "3.12"}


@dataclass(frozen=True)
class Earlier:
    step: str
    field: str


@dataclass(frozen=True)
class Step:
    name: str
    system: str
    method: str
    given: tuple[Any, ...]
    named: Mapping[str, Any]


def step(name: str, path: str, /, *given: Any, **named: Any) -> Step:
    system, _, method = path.partition(".")
    return Step(name, system, method, given, named)


MEMORY = (
    step("store", "memory.store", "city", "Oslo", tags=["place"]),
    step("store again", "memory.store", "city", {"name": "Bergen", "found": False}),
    step("store null", "memory.store", "nothing", None),
    step("store many", "memory.store", items=[{"key": f"k{n}", "value": n} for n in range(300)]),
    step("store large", "memory.store", "large", "x" * 1_500_000),
    step("store ttl", "memory.store", "short", 1, ttl="1h", namespace="other"),
    step("conflict", "memory.store", "city", 1, expected_version=1),
    step("no key", "memory.store"),
    step("not json", "memory.store", "k", {"a": {1, 2}}),
    step("nan", "memory.store", "k", float("nan")),
    step("recall", "memory.recall", "city"),
    step("recall null", "memory.recall", "nothing"),
    step("recall large", "memory.recall", "large"),
    step("recall path", "memory.recall", "city", path="$.name"),
    step("recall miss", "memory.recall", "nowhere"),
    step("recall past", "memory.recall", "city", as_of=Earlier("store", "timestamp")),
    step("recall nonsense", "memory.recall", "city", as_of="the day after never"),
    step("recall many", "memory.recall_many", ("city", "nowhere", "k7", "large")),
    step("recall none", "memory.recall_many", ["nowhere"]),
    step("search", "memory.search", "Bergen"),
    step("search tags", "memory.search", "Oslo", tags=["place"], k=3),
    step("search nothing", "memory.search", "zebra"),
    step("search empty", "memory.search", ""),
    step("log", "memory.log", "decision", {"why": ["because", 1.5]}, session="s", tags=["t"]),
    step("search log", "memory.search", "because"),
    step("history", "memory.history", "city"),
    step("history page", "memory.history", "city", limit=1),
    step("history none", "memory.history"),
    step("time range", "memory.time_range"),
    step("instructions", "memory.instructions"),
    step("time range past", "memory.time_range", as_of=Earlier("store", "timestamp")),
    step("list entries", "memory.list", "k1", order="key", limit=20),
    step("list newest", "memory.list", limit=2),
    step("list on", "memory.list", limit=2, cursor=Earlier("list newest", "next")),
    step("list elsewhere", "memory.list", cursor=Earlier("list newest", "next")),
    step("list tags", "memory.list", tags=["place"]),
    step("events", "memory.events", "decision", session="s", tags=["t"]),
    step("events none", "memory.events", since="now"),
    step("namespaces", "memory.namespaces"),
    step("tags", "memory.tags"),
    step("facets", "memory.facets", namespace="default"),
    step("sessions", "memory.sessions"),
    step("explain search", "memory.explain_search", "Bergen"),
    step("explain miss", "memory.explain_miss", "cyti"),
    step("explain path", "memory.explain_miss", "city", path="$.country"),
    step("delete namespace", "memory.delete_namespace", "other"),
    step("restore namespace", "memory.restore_namespace", "other",
         Earlier("delete namespace", "before")),
    step("forget", "memory.forget", "k1"),
    step("forget many", "memory.forget", keys=["k2", "nowhere"]),
    step("history gone", "memory.history", "k1"),
    step("fork", "memory.fork", "trial"),
    step("fork twice", "memory.fork", "trial"),
    step("create", "memory.create", "empty"),
    step("on branch", "memory.store", "city", "Tromsø", branch="trial"),
    step("diff", "memory.diff", "trial"),
    step("diff by action", "memory.branch", "diff", compare="trial"),
    step("compare", "memory.compare", "trial"),
    step("preview", "memory.merge", "trial", preview=True),
    step("merge", "memory.merge", "trial"),
    step("branches", "memory.branches"),
    step("branch graph", "memory.branch_graph"),
    step("list", "memory.branch", "list"),
    step("wrong action", "memory.branch", "burn"),
    step("here", "memory.store", "both", "ours"),
    step("there", "memory.store", "both", "theirs", branch="trial"),
    step("merge conflict", "memory.merge", "trial"),
    step("decide", "memory.merge", "trial", strategy="source_wins"),
    step("switch", "memory.switch", "trial"),
    step("switched", "memory.recall", "city"),
    step("list switched", "memory.branches"),
    step("status switched", "memory.status"),
    step("delete current", "memory.delete", "trial"),
    step("status deleted", "memory.status"),
    step("on deleted", "memory.recall", "city", branch="trial"),
    step("restore", "memory.restore", "trial"),
    step("switch nowhere", "memory.switch", "nowhere"),
    step("delete default", "memory.delete", "default"),
    step("purge", "memory.purge", "city"),
    step("erase", "memory.erase", "shelf"),
    step("purged", "memory.recall", "city"),
    step("repeat", "memory.store", "once", 1, request_id="r1"),
    step("repeated", "memory.store", "once", 1, request_id="r1"),
    step("reused", "memory.store", "once", 2, request_id="r1"),
    step("status", "memory.status"),
    step("activity", "memory.activity", buckets=1),
)  # fmt: skip
DEBUGGING = (
    step("add", "debugging.add_incident", "Import fails", ["install it"], ENV, True,
         error_signature="ModuleNotFoundError: No module named 'yaml'", tags=("import",)),
    step("twin", "debugging.add_incident", "Import fails", ["install it"], ENV, True,
         error_signature="ModuleNotFoundError: No module named 'yaml'"),
    step("ranked", "debugging.ranked_solutions", "No module named 'yaml'", ENV),
    step("solution", "debugging.add_solution", Earlier("add", "incident_id"), "pin it", ENV),
    step("outcome", "debugging.record_outcome", Earlier("solution", "solution_id"), False, ENV),
    step("ranked again", "debugging.ranked_solutions", "No module named 'yaml'", ENV, limit=1),
    step("no such", "debugging.record_outcome", "sol_0", True, ENV),
    step("here", "debugging.ranked_solutions", "segmentation fault", "auto"),
    step("no env", "debugging.ranked_solutions", "text", 7),
    step("other", "debugging.add_incident", "Import fails again", ["install it"], ENV, False),
    step("incidents", "debugging.list_incidents", "import", tag=None, limit=1),
    step("solutions", "debugging.list_solutions", standing="failing"),
    step("outcomes", "debugging.list_outcomes", worked=False),
    step("retitle", "debugging.edit_incident", Earlier("other", "incident_id"), title="yaml", tags=["a"]),
    step("restep", "debugging.edit_solution", Earlier("solution", "solution_id"), ["pin it well"]),
    step("retire", "debugging.retire_record", Earlier("solution", "solution_id"), "It is pinned"),
    step("retired", "debugging.add_solution", Earlier("add", "incident_id"), "Pin it well", ENV),
    step("restore", "debugging.restore_record", Earlier("solution", "solution_id")),
    step("merge", "debugging.merge_records", Earlier("other", "incident_id"), Earlier("add", "incident_id")),
    step("show", "debugging.show_record", Earlier("other", "incident_id")),
    step("split", "debugging.split_incident", Earlier("add", "incident_id"), "Pinning",
         error_signature="KeyError: 'pin'"),
    step("figures", "debugging.statistics"),
    step("plan", "debugging.purge_record", Earlier("add", "incident_id")),
    step("purge", "debugging.purge_record", Earlier("add", "incident_id"), confirm=True),
    step("purged", "debugging.show_record", Earlier("add", "incident_id")),
)  # fmt: skip
KNOWLEDGE = (
    step("ping", "knowledge.ping"),
    step("a", "knowledge.create_concept", "Lists", "Ordered values.", area="Python", topic="Types"),
    step("b", "knowledge.create_concept", "Loops", "Repeating.", area="Python", certainty_score=80),
    step("again", "knowledge.create_concept", "Lists", "Ordered values.", area="Python", topic="Types"),
    step("get", "knowledge.get_concept", Earlier("a", "concept_id")),
    step("update", "knowledge.update_concept", Earlier("a", "concept_id"), explanation="Kept in order."),
    step("history", "knowledge.get_concept", Earlier("a", "concept_id"), include_history=True),
    step("exact", "knowledge.search_concepts_exact", name="Lo"),
    step("semantic", "knowledge.search_concepts_semantic", "repeating"),
    step("recent", "knowledge.get_recent_concepts", limit=1),
    step("relate", "knowledge.create_relationship", Earlier("a", "concept_id"), Earlier("b", "concept_id"), "prerequisite"),
    step("related", "knowledge.get_related_concepts", Earlier("a", "concept_id")),
    step("first", "knowledge.get_prerequisites", Earlier("b", "concept_id")),
    step("path", "knowledge.get_learning_path", Earlier("b", "concept_id"), known=["Lists"], learner="Mia"),
    step("declare", "knowledge.declare_relationship_type", "taught_by", description="Who teaches it."),
    step("batch", "knowledge.create_concepts", [{"name": "Sets", "explanation": "Unordered."}],
         relationships=[{"source": "Sets", "target": "Loops", "type": "taught_by"}]),
    step("confirm", "knowledge.confirm_concept", "Sets", source="Ada", note="It held."),
    step("refute", "knowledge.refute_concept", "Sets", source="Bob"),
    step("review", "knowledge.review_knowledge"),
    step("twins", "knowledge.merge_concepts", "Loops", "Sets"),
    step("context", "knowledge.get_context", "repeating"),
    step("mark", "knowledge.mark_known", ["Loops"], learner="Mia"),
    step("known", "knowledge.list_known", learner="Mia"),
    step("chain", "knowledge.get_concept_chain", Earlier("a", "concept_id"), Earlier("b", "concept_id")),
    step("hierarchy", "knowledge.list_hierarchy"),
    step("graph", "knowledge.get_graph"),
    step("certain", "knowledge.get_concepts_by_certainty", min_certainty=50),
    step("stats", "knowledge.get_server_stats"),
    step("available", "knowledge.get_tool_availability"),
    step("unrelate", "knowledge.delete_relationship", Earlier("a", "concept_id"), Earlier("b", "concept_id"), "prerequisite"),
    step("delete", "knowledge.delete_concept", Earlier("b", "concept_id")),
    step("restore", "knowledge.restore_concept", Earlier("b", "concept_id")),
    step("plan", "knowledge.purge_knowledge", Earlier("b", "concept_id")),
    step("purge", "knowledge.purge_knowledge", Earlier("b", "concept_id"), confirm=True),
    step("missing", "knowledge.get_concept", "nowhere"),
)  # fmt: skip
TOOL = {
    "name": "shout",
    "description": "Says it loudly.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "handler": {"type": "webhook", "url": "https://example.com/shout"},
}
GATEWAY = (
    step("register", "gateway.register", **TOOL),
    step("twice", "gateway.register", **TOOL),
    step("wrong", "gateway.register", **{**TOOL, "name": "9 lives"}),
    step("update", "gateway.update", "shout", description="Says it more loudly."),
    step("list", "gateway.list", search="loudly"),
    step("get", "gateway.get", "shout"),
    step("missing", "gateway.get", "whisper"),
    step("help", "gateway.help", "shout"),
    step("execute", "gateway.execute", "calculator", {"expression": "6 * 7"}),
    step("bad", "gateway.execute", "calculator", {"expression": "6 *"}),
    step("batch", "gateway.batch", [{"toolName": "calculator", "arguments": {"expression": "1+1"}}]),
    step("pipeline", "gateway.pipeline", steps=[{"tool": "calculator", "arguments": {"expression": "2+2"}}]),
    step("executions", "gateway.executions", tool_id="calculator"),
    step("create", "gateway.create_resource", type="prompt", name="greet", content="Hello {{name}}", variables=["name"]),
    step("render", "gateway.resource", "greet", {"name": "Ada"}),
    step("resources", "gateway.resources", type="prompt"),
    step("corrected", "gateway.execute", "calculator", {"Expression": "1 + 1"}),
    step("offered", "gateway.execute", "calculator", {"formula": "1 + 1"}),
    step("diagnose", "gateway.error_diagnose", tool_name="calculator", parameters={"formula": "1 + 1"}),
    step("configure", "gateway.auto_correction_configure", {"maxRetries": 2}, tool_name="shout"),
    step("configure wrong", "gateway.auto_correction_configure", {"maxRetries": "many"}),
    step("correction status", "gateway.auto_correction_status"),
    step("test", "gateway.auto_correction_test", test_suite="type_conversion"),
    step("insights", "gateway.auto_correction_insights", include_failures=True),
    step("patterns", "gateway.auto_correction_patterns"),
    step("circuits", "gateway.auto_correction_circuits"),
    step("recommend", "gateway.recommend", "says something loudly", max_recommendations=1),
    step("on error", "gateway.recommend_on_error", "shout", "timed out"),
    step("validate", "gateway.validate", ["shout", "whisper"]),
    step("discover", "gateway.discover", "sho*"),
    step("compare", "gateway.compare", ["shout", "calculator"]),
    step("compare nothing", "gateway.compare", ["shout", "whisper"]),
    step("plan", "gateway.workflow_plan", "says something loudly", tools=["shout"]),
    step("versions", "gateway.resource_versions", "greet"),
    step("change", "gateway.update_resource", "greet", content="Good day {{name}}"),
    step("discard", "gateway.remove_resource", "greet"),
    step("grant", "gateway.grant_secret", "shout", "API_KEY", "api.example"),
    step("secrets", "gateway.secrets"),
    step("withdraw", "gateway.withdraw_secret", "shout", "API_KEY"),
    step("set secret", "gateway.set_secret", "API_KEY", "swordfish"),
    step("remove secret", "gateway.remove_secret", "API_KEY"),
    step("sign in nowhere", "gateway.sign_in", "nowhere"),
    step("finish nothing", "gateway.finish_sign_in", "no-state", "no-code"),
    step("credential nowhere", "gateway.set_credential", "nowhere", "TOKEN", "x"),
    step("sign out", "gateway.sign_out", "nowhere"),
    step("credentials", "gateway.credentials"),
    step("guardrail", "gateway.define_guardrail", "careful", "before", {"type": "mask"}),
    step("guardrails", "gateway.guardrails"),
    step("unguard", "gateway.remove_guardrail", "careful"),
    step("cache", "gateway.configure_cache", ttl=60),
    step("clear", "gateway.clear_cache", "calculator"),
    step("work", "gateway.work"),
    step("no work", "gateway.work", "exec_nowhere"),
    step("cancel", "gateway.cancel", "exec_nowhere"),
    step("toolset", "gateway.define_toolset", "sums", ["calc*"], read_only=True),
    step("toolsets", "gateway.toolsets"),
    step("no toolset", "gateway.remove_toolset", "nowhere"),
    step("approvals", "gateway.approvals"),
    step("nothing to decide", "gateway.decide", "call_nowhere", "approve"),
    step("remove toolset", "gateway.remove_toolset", "sums"),
    step("breakers", "gateway.breakers"),
    step("reset", "gateway.reset_breaker", "calculator"),
    step("erase", "gateway.erase_executions", preview=True),
    step("servers", "gateway.servers"),
    step("no server", "gateway.add_server", "nowhere", url="http://127.0.0.1:9/mcp"),
    step("no refresh", "gateway.refresh_server", "nowhere"),
    step("no upstream", "gateway.upstream"),
    step("no upstream of a name", "gateway.upstream", servers=["nowhere"]),
    step("no upstream prompt", "gateway.upstream_prompt", "nothing"),
    step("no upstream resource", "gateway.upstream_resource", "demo://nothing"),
    step("no completion", "gateway.upstream_complete", prompt="nothing", argument="a"),
    step("no removal", "gateway.remove_server", "nowhere"),
    step("no document", "gateway.add_openapi", document={"openapi": "3.1.0"}),
    step("providers", "gateway.providers"),
    step("provider", "gateway.configure_provider", "openai", {"model": "m"}),
    step("provider tools", "gateway.provider_tools", "openai", tools=["calculator"]),
    step("provider call", "gateway.call_provider", "openai", []),
    step("connection", "gateway.set_connection", "notes", "database", {"url": "sqlite:///notes.db"}),
    step("connection wrong", "gateway.set_connection", "notes", "database", {}),
    step("connections", "gateway.connections"),
    step("disconnect", "gateway.remove_connection", "notes"),
    step("remove", "gateway.remove", "shout"),
    step("restore", "gateway.restore", "shout"),
    step("purge plan", "gateway.purge", "shout"),
    step("purge", "gateway.purge", "shout", confirm=True),
)  # fmt: skip
SCRIPTS = {"memory": MEMORY, "debugging": DEBUGGING, "knowledge": KNOWLEDGE, "gateway": GATEWAY}


def arguments_of(each: Step, done: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what a step is called with, once earlier ones are done."""

    def filled(value: Any) -> Any:
        if not isinstance(value, Earlier):
            return value
        result = done[value.step]
        return result[value.field] if isinstance(result, Mapping) else getattr(result, value.field)

    return [filled(value) for value in each.given], {
        name: filled(value) for name, value in each.named.items()
    }


@dataclass(frozen=True)
class Refusal:
    """An error as a caller meets it."""

    kind: type
    field: Any
    hint: bool


def refusal(error: StratagemError) -> Refusal:
    return Refusal(type(error), error.details.get("field"), bool(error.hint))


# What no two databases have in common: ids, times, chains of hashes, and where they are.
_OWN = {
    "merged_into", "merged_from", "split_from", "stand_again", "copies",
    "concept_id", "merged_id", "context", "relationship_id", "incident_id", "solution_id", "outcome_id", "lookup_id",
    "database", "head", "id", "owner", "caller", "toolId", "executionId", "runId", "revision",
    "pipelineRunId", "actor", "actors", "authors", "user", "anchor", "next", "links", "x", "y",
}  # fmt: skip
_TIMES = {"duration", "executionTime", "timestamp", "startedAt", "completedAt", "createdAt",
          "updatedAt", "registeredAt", "executedAt", "averageDuration", "averageExecutionTime",
          "durationMs", "time", "processingTime", "uptime", "lastRestart",
          "averageCorrectionTime", "averageLatency", "avgLatency", "p50Latency"}  # fmt: skip


def shape(value: Any, name: str = "", *, timed: bool = False) -> Any:
    """Return a result with its types, and without what no two databases have in common."""
    if name in _OWN or (timed and name in _TIMES):
        return type(value).__name__
    if is_dataclass(value) and not isinstance(value, type):
        inner = {each.name: shape(getattr(value, each.name), each.name, timed=timed)
                 for each in fields(value)}  # fmt: skip
        return (type(value).__name__, inner)
    if isinstance(value, dict):
        return {key: shape(each, key, timed=timed) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each, timed=timed) for each in value]
    return value
