"""19. Nobody calls a tool beyond their rights, whichever way they go; tools stay their owner's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from stratagem.bootstrap import Runtime
from stratagem.engine.events import Draft
from stratagem.errors import BudgetExceeded, PermissionDenied, StratagemError
from stratagem.gateway import names
from stratagem.operation import Caller
from stratagem.storage.contract import Transaction
from stratagem.storage.views import find_branch
from tests.security.house import (
    ENVELOPE,
    MODERN,
    SURFACES,
    House,
    Surface,
    make_token,
    opened,
    read_message,
    serving,
)
from tests.surfaces.serving import Service, as_json, eventually

MEMBER = frozenset({f"{each}:{right}" for each in ("gateway", "memory") for right in ("write", "execute")})  # fmt: skip
ROOT = Caller("root", authority="operator")
ANN = Caller("token:ann", authority="token", scopes=MEMBER)
BOB = Caller("token:bob", authority="token", scopes=MEMBER)
# Limited to calculator.
LIMITED = replace(BOB, tool_sets=frozenset({"sums"}))
SUM = {"expression": "6 * 7"}


def pipeline_tool(name: str, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    steps = [{"id": "a", "tool": tool, "arguments": arguments}]
    return {
        "name": name,
        "description": "A tool of the tests.",
        "inputSchema": {"type": "object"},
        "handler": {"type": "pipeline", "definition": {"name": name, "steps": steps}},
        **more,
    }


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with opened(tmp_path_factory.mktemp("rights") / "memory.db") as running:
        running.call("toolset_define", {"name": "sums", "allow": ["calc*", "peek"]}, ROOT)
        looking = {"name": "looking", "allow": ["*"], "deny": ["date_time"], "readOnly": True}
        running.call("toolset_define", looking, ROOT)
        yield running


def refused(runtime: Runtime, operation: str, arguments: Any, caller: Caller) -> StratagemError:
    with pytest.raises(StratagemError) as caught:
        runtime.call(operation, arguments, caller)
    return caught.value


def execute(runtime: Runtime, tool: str, arguments: Any, caller: Caller, **more: Any) -> Any:
    given = {"toolName": tool, "arguments": arguments, **more}
    return runtime.call("tool_execute", given, caller)


def test_a_member_changes_and_removes_only_its_own_tools(runtime: Runtime) -> None:
    runtime.call("tool_register", pipeline_tool("anns", "calculator", SUM), ANN)
    stolen = pipeline_tool("anns", "api_caller", {})["handler"]

    changed = refused(runtime, "tool_update", {"toolId": "anns", "handler": stolen}, BOB)
    removed = refused(runtime, "tool_remove", {"toolId": "anns"}, BOB)
    again = refused(runtime, "tool_register", pipeline_tool("anns", "calculator", SUM), BOB)
    own = runtime.call("tool_update", {"toolId": "anns", "description": "Mine."}, ANN)
    runtime.call("tool_update", {"toolId": "anns", "tags": ["x"]}, ROOT)

    assert (changed.code, removed.code) == ("permission_denied", "permission_denied")
    assert again.code == "tool_exists"
    assert own["changes"] == {"description": "Mine."}
    assert runtime.call("tool_remove", {"toolId": "anns"}, ANN)["removed"]


def test_a_merge_puts_nobodys_tool_in_the_place_of_anothers(runtime: Runtime) -> None:
    everywhere = frozenset({"*:write", "*:execute"})
    ann, bob = replace(ANN, scopes=everywhere), replace(BOB, scopes=everywhere)
    runtime.call("strata_branch", {"action": "fork", "name": "before"}, bob)
    runtime.call("tool_register", pipeline_tool("quote", "calculator", SUM), ann)
    stolen = pipeline_tool("quote", "api_caller", {}, branch="before")
    runtime.call("tool_register", stolen, bob)
    merge = {"action": "merge", "source": "before", "strategy": "source_wins"}

    error = refused(runtime, "strata_branch", merge, bob)

    assert error.code == "permission_denied"
    assert runtime.call("tool_get", {"toolId": "quote"}, bob)["tool"]["owner"] == "token:ann"
    assert runtime.call("strata_branch", merge, replace(ROOT, branch="default"))["merged"]


def test_a_limited_token_reaches_no_other_tool_whichever_way_it_goes(runtime: Runtime) -> None:
    text = {"input": "a", "from": "csv", "to": "json"}
    step = {"id": "a", "tool": "file_converter", "arguments": text}
    call = {"toolName": "file_converter", "arguments": text}
    # Somebody else's answer is kept; a pipeline of another's is in the set, its step is not.
    tool = pipeline_tool("peek", "strata_status", {}, configuration={"cache": True})
    runtime.call("tool_register", tool, ANN)
    execute(runtime, "peek", {}, ANN)

    allowed = execute(runtime, "calculator", SUM, LIMITED)
    direct = refused(runtime, "tool_execute", call, LIMITED)
    repeated = refused(runtime, "tool_execute", {**call, "requestId": "r"}, LIMITED)
    detached = runtime.call("tool_execute", {**call, "async": True}, LIMITED)
    batch = runtime.call("tools_batch", {"executions": [call]}, LIMITED)
    run = runtime.call("tools_pipeline", {"name": "p", "steps": [step]}, LIMITED)
    kept = refused(runtime, "tool_execute", {"toolName": "peek", "arguments": {}}, LIMITED)
    by_id = refused(runtime, "tool_execute", {**call, "toolName": "tool_file_converter"}, LIMITED)
    listed = runtime.call("tools_list", {"limit": 500}, LIMITED)["tools"]

    assert allowed["result"]["result"] == 42
    assert direct.details["reason"] == "toolset"
    assert "tools_list" in direct.hint
    assert (repeated.code, by_id.code) == ("permission_denied", "permission_denied")
    assert batch["results"][0]["error"]["code"] == "PERMISSION_DENIED"
    assert run["error"]["code"] == "permission_denied"
    assert kept.code == "execution_error"
    assert {each["name"] for each in listed} == {"calculator", "peek"}
    outcome = eventually(
        lambda: runtime.call("work_list", {"executionId": detached["executionId"]}, LIMITED).get(
            "outcome"
        )
    )
    assert outcome["error"]["code"] == "permission_denied"


def test_a_limited_token_is_told_of_no_other_tool(runtime: Runtime) -> None:
    wanted = {"intent": "convert a table from csv to json", "maxRecommendations": 10}
    failed = {"failedTool": "file_converter", "errorMessage": "no such format", "parameters": {}}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tools_recommend", wanted),
        ("tools_recommend_on_error", failed),
        ("tools_validate", {"toolNames": ["file_converter", "calculator"]}),
        ("tools_discover", {}),
        ("workflow_plan", {"goal": "convert a table from csv to json"}),
        ("error_diagnose", {"error": "timeout", "toolName": "file_converter", "parameters": {}}),
    ]
    own = {each.name for each in runtime.gateway.registry.builtin.values() if not each.is_own}
    others = own - {"calculator"}

    told = {}
    for operation, given in asked:
        try:
            told[operation] = runtime.call(operation, given, LIMITED)
        except StratagemError as error:
            told[operation] = error.envelope()
    near = refused(runtime, "tool_execute", {"toolName": "file_convertr", "arguments": {}}, LIMITED)
    step = {"id": "a", "tool": "file_converter", "arguments": {}}
    asked_before = {"name": "p", "steps": [step], "dryRun": True}
    (preview,) = runtime.call("tools_pipeline", asked_before, LIMITED)["steps"]
    help_ = refused(runtime, "tool_help", {"toolName": "file_converter"}, LIMITED)
    one = refused(runtime, "tool_get", {"toolId": "file_converter"}, LIMITED)
    compared = refused(
        runtime, "tools_compare", {"toolNames": ["calculator", "file_converter"]}, LIMITED
    )

    assert "file_converter" in str(runtime.call("tools_recommend", wanted, BOB))
    for operation, answer in told.items():
        named = {name for name in others if f"'{name}'" in str(answer)}
        # What it has named itself is repeated to it.
        assert named <= {"file_converter"}, operation
    assert "file_converter" not in str(told["tools_recommend"])
    assert told["tools_discover"]["totalAvailable"] <= 2
    assert near.details["similar"] == []
    assert (preview["toolExists"], "`from`" in str(preview)) == (False, False)
    assert [each.code for each in (help_, one, compared)] == ["tool_not_found"] * 3


def test_a_limited_token_sees_nothing_of_what_others_do_with_other_tools(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"Sum": {"type": "string"}},
        "additionalProperties": False,
    }
    hidden = pipeline_tool("payroll", "calculator", {}, inputSchema=schema)
    listings = (
        "tool_executions",
        "breakers_list",
        "auto_correction_patterns",
        "auto_correction_insights",
        "auto_correction_circuits",
    )
    with opened(tmp_path / "memory.db") as runtime:
        runtime.call("toolset_define", {"name": "sums", "allow": ["calc*"]}, ROOT)
        runtime.call("tool_register", hidden, ANN)
        # Corrected to `Sum`, and then the tool fails.
        call = {"toolName": "payroll", "arguments": {"sum": "1"}}
        errors = [refused(runtime, "tool_execute", call, ANN) for _ in range(5)]
        refused(runtime, "tool_execute", {**call, "arguments": {}}, LIMITED)
        one = {"executionId": errors[-1].details["executionId"]}

        told = {name: str(runtime.call(name, {}, LIMITED)) for name in listings}
        shown = {name: str(runtime.call(name, {}, BOB)) for name in listings}
        calls = runtime.call("tool_executions", {}, LIMITED)["executions"]
        unknown = refused(runtime, "tool_executions", one, LIMITED)
        facts = runtime.call("tool_executions", one, BOB)["executions"]

    named = {name for name, answer in shown.items() if "payroll" in answer}
    assert named >= {"tool_executions", "auto_correction_patterns", "auto_correction_circuits"}
    # Its own attempt, which was refused, is its own.
    assert {name for name, answer in told.items() if "payroll" in answer} == {"tool_executions"}
    assert {each["caller"] for each in calls if each["tool"] == "payroll"} == {"token:bob"}
    assert (unknown.code, len(facts)) == ("execution_not_found", 1)


def test_no_other_name_of_a_tool_gets_round_a_set(runtime: Runtime) -> None:
    def named(name: str, builtin: str) -> dict[str, Any]:
        handler = {"type": "builtin", "name": builtin}
        return {**pipeline_tool(name, builtin, {}), "handler": handler}

    given = {"allow": ["*"], "deny": ["date_time"], "approve": ["calculator"]}
    runtime.call("toolset_define", {"name": "most", **given}, ROOT)
    most = replace(BOB, actor="token:most", tool_sets=frozenset({"most"}))
    runtime.call("tool_register", named("calc_code", "code_executor"), ANN)
    runtime.call("tool_register", named("clock", "date_time"), ANN)
    runtime.call("tool_register", named("adder", "calculator"), ANN)
    document = {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {}}

    def call(tool: str, caller: Caller, **arguments: Any) -> StratagemError:
        return refused(runtime, "tool_execute", {"toolName": tool, "arguments": arguments}, caller)

    registered = refused(runtime, "tool_register", named("calc_x", "code_executor"), LIMITED)
    updated = refused(runtime, "tool_update", {"toolId": "adder", "tags": ["x"]}, most)
    added = refused(runtime, "openapi_add", {"document": document}, most)
    listed = runtime.call("tools_list", {"limit": 500}, LIMITED)["tools"]

    assert {each.details["reason"] for each in (registered, updated, added)} == {"toolset"}
    assert "not limited" in registered.hint
    assert call("calc_code", LIMITED, code="1", language="python").details["reason"] == "toolset"
    assert call("clock", most, operation="now").details["reason"] == "toolset"
    assert call("adder", most, **SUM).details["reason"] == "approval_needed"
    assert "calc_code" not in {each["name"] for each in listed}


def test_a_set_that_is_gone_allows_nothing(runtime: Runtime) -> None:
    nowhere = replace(BOB, tool_sets=frozenset({"nowhere"}))

    error = refused(runtime, "tool_execute", {"toolName": "calculator", "arguments": SUM}, nowhere)

    assert isinstance(error, PermissionDenied)


def test_a_set_of_tools_that_change_nothing_changes_nothing(runtime: Runtime) -> None:
    looker = replace(BOB, tool_sets=frozenset({"looking"}))
    store = {"key": "k", "value": "v"}
    step = {"id": "a", "tool": "strata_store", "arguments": store}

    seen = execute(runtime, "strata_status", {}, looker)
    stored = refused(
        runtime, "tool_execute", {"toolName": "strata_store", "arguments": store}, looker
    )
    run = runtime.call("tools_pipeline", {"name": "p", "steps": [step]}, looker)
    outside = refused(runtime, "tool_execute", {"toolName": "api_caller", "arguments": {}}, looker)
    denied = refused(runtime, "tool_execute", {"toolName": "date_time", "arguments": {}}, looker)

    assert seen["result"]["head"]
    assert stored.code == "read_only"
    assert not run["success"]
    assert (outside.details["reason"], denied.details["reason"]) == ("toolset", "toolset")


def test_a_call_that_needs_it_is_run_once_for_each_approval_of_a_person(runtime: Runtime) -> None:
    given = {"name": "careful", "allow": ["calculator"], "approve": ["calculator"]}
    runtime.call("toolset_define", given, ROOT)
    asker = replace(BOB, tool_sets=frozenset({"careful"}))
    other = replace(ANN, tool_sets=frozenset({"careful"}))
    call = {"toolName": "calculator", "arguments": SUM}

    first = refused(runtime, "tool_execute", call, asker)
    id_ = first.details["approvalId"]
    decision = {"id": id_, "decision": "approve"}
    by_itself = refused(runtime, "approval_decide", decision, asker)
    (waiting,) = runtime.call("approvals_list", {}, asker)["approvals"]
    hidden = runtime.call("approvals_list", {}, other)["approvals"]
    runtime.call("approval_decide", decision, ROOT)
    others = refused(runtime, "tool_execute", call, other)
    changed = refused(
        runtime, "tool_execute", {**call, "arguments": {"expression": "1 / 3"}}, asker
    )
    worked = runtime.call("tool_execute", call, asker)
    again = refused(runtime, "tool_execute", call, asker)

    assert first.details["reason"] == "approval_needed"
    assert id_ in first.hint
    assert by_itself.code == "permission_denied"
    assert (waiting["arguments"], waiting["caller"]) == (SUM, "token:bob")
    assert hidden == []
    assert others.details["approvalId"] != id_
    assert changed.details["approvalId"] != id_
    assert worked["result"]["result"] == 42
    assert again.details["reason"] == "approval_needed"
    runtime.call("approval_decide", {"id": id_, "decision": "reject", "reason": "no"}, ROOT)
    assert refused(runtime, "tool_execute", call, asker).details["reason"] == "rejected"


def test_an_approval_is_for_the_branch_and_the_namespace_that_it_was_asked_for(
    tmp_path: Path,
) -> None:
    given = {"name": "careful", "allow": ["strata_*"], "approve": ["strata_store"]}
    asker = replace(BOB, tool_sets=frozenset({"careful"}))
    store = {"toolName": "strata_store", "arguments": {"key": "k", "value": "v"}}
    with opened(tmp_path / "memory.db") as runtime:
        runtime.call("toolset_define", given, ROOT)
        runtime.call("strata_branch", {"action": "fork", "name": "trial"}, ROOT)
        on_trial = {**store, "branch": "trial"}
        id_ = refused(runtime, "tool_execute", on_trial, asker).details["approvalId"]
        [waiting] = runtime.call("approvals_list", {}, ROOT)["approvals"]
        runtime.call("approval_decide", {"id": id_, "decision": "approve"}, ROOT)

        elsewhere = refused(runtime, "tool_execute", store, asker)
        other = refused(runtime, "tool_execute", on_trial, replace(asker, namespace="other"))
        worked = runtime.call("tool_execute", on_trial, asker)

    assert (waiting["branch"], waiting["namespace"]) == ("trial", "default")
    assert {each.details["reason"] for each in (elsewhere, other)} == {"approval_needed"}
    assert worked["result"]["status"] == "created"


def test_a_call_that_is_refused_all_the_same_keeps_its_approval(tmp_path: Path) -> None:
    given = {"name": "careful", "allow": ["calculator"], "approve": ["calculator"]}
    asker = replace(BOB, tool_sets=frozenset({"careful"}))
    poor = replace(asker, budget={"calls": 0, "per": "day"})
    call = {"toolName": "calculator", "arguments": SUM}
    with opened(tmp_path / "memory.db") as runtime:
        runtime.call("toolset_define", given, ROOT)
        id_ = refused(runtime, "tool_execute", call, poor).details["approvalId"]
        runtime.call("approval_decide", {"id": id_, "decision": "approve"}, ROOT)

        exceeded = refused(runtime, "tool_execute", call, poor)
        worked = runtime.call("tool_execute", call, asker)
        again = refused(runtime, "tool_execute", call, asker)

    assert isinstance(exceeded, BudgetExceeded)
    assert worked["result"]["result"] == 42
    assert again.details["reason"] == "approval_needed"


def test_what_waits_for_a_person_is_found_among_any_number_of_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"name": "careful", "allow": ["calculator"], "approve": ["calculator"]}
    careful = replace(BOB, tool_sets=frozenset({"careful"}))
    with opened(tmp_path / "memory.db") as runtime:
        runtime.call("toolset_define", given, ROOT)

        def ask(number: int) -> str:
            error = refused(
                runtime,
                "tool_execute",
                {"toolName": "calculator", "arguments": {"expression": f"{number} + 1"}},
                careful,
            )
            return str(error.details["approvalId"])

        def listed() -> list[str]:
            found = runtime.call("approvals_list", {}, ROOT)["approvals"]
            return [each["id"] for each in found]

        def decide_many(transaction: Transaction) -> None:
            now = runtime.foundation.store.now()
            decided: dict[str, Any] = {"tool": "calculator", "caller": "token:bob", "arguments": {}}
            decided |= {"state": "rejected", "askedAt": now, "decidedAt": now}
            branch = find_branch(transaction.branches, "default")
            ids = [f"call_{number:024x}" for number in range(1_100)]
            drafts = [
                Draft(names.APPROVAL_ASKED, {**decided, "id": each}, names.APPROVALS, each)
                for each in ids
            ]
            transaction.append(branch, drafts)

        runtime.foundation.write(ROOT, decide_many)
        waiting = [ask(number) for number in range(3)]
        among_many = listed()
        monkeypatch.setattr(limits, "APPROVAL_SECONDS", 0.0)
        later = [*waiting, ask(3)]

        assert among_many[-3:] == waiting
        assert len(among_many) == 1_103
        assert listed() == later


def test_budgets_of_tool_and_token_hold_in_every_process(runtime: Runtime) -> None:
    tool = pipeline_tool(
        "paid",
        "calculator",
        SUM,
        pricing={"model": "per_call", "cost": 0.4},
        rights={"budget": {"cost": 1, "per": "month"}},
    )
    runtime.call("tool_register", tool, ANN)
    spender = replace(BOB, actor="token:spender", budget={"calls": 3, "per": "day"})
    path = Path(runtime.foundation.store.location)

    execute(runtime, "paid", {}, ANN)
    execute(runtime, "paid", {}, ANN)
    with opened(path) as elsewhere:
        with pytest.raises(BudgetExceeded) as cost:
            execute(elsewhere, "paid", {}, BOB)
        execute(elsewhere, "calculator", SUM, spender)
    sums = [{"toolName": "calculator", "arguments": {"expression": f"{n} + 1"}} for n in range(3)]
    batch = {"executions": sums}
    results = runtime.call("tools_batch", {**batch, "parallel": False}, spender)["results"]

    assert cost.value.details | {"resets": "", "retry_after": 0, "executionId": ""} == {
        "reason": "budget",
        "unit": "cost",
        "limit": 1,
        "used": 0.8,
        "resets": "",
        "retry_after": 0,
        "executionId": "",
    }
    assert cost.value.details["resets"] in cost.value.hint
    assert [each["success"] for each in results] == [True, True, False]
    assert results[2]["error"]["code"] == "RATE_LIMITED"
    assert results[2]["error"]["details"]["unit"] == "calls"


def test_nobody_gets_round_a_budget_by_making_a_tool_cheaper(runtime: Runtime) -> None:
    pricing = {"model": "per_call", "cost": 0.6}
    tool = pipeline_tool("dear", "calculator", SUM, pricing=pricing)
    runtime.call("tool_register", tool, ANN)
    runtime.call("strata_branch", {"action": "fork", "name": "cheap"}, ROOT)
    cheaper = {"toolId": "dear", "pricing": {"model": "per_call", "cost": 0}}
    runtime.call("tool_update", {**cheaper, "branch": "cheap"}, ROOT)
    spender = replace(ANN, actor="token:saver", budget={"cost": 1, "per": "day"})

    lowered = refused(runtime, "tool_update", cheaper, ANN)
    dropped = refused(runtime, "tool_update", {**cheaper, "pricing": {"model": "free"}}, ANN)
    removed = refused(runtime, "tool_remove", {"toolId": "dear"}, ANN)
    merged = refused(
        runtime,
        "strata_branch",
        {"action": "merge", "source": "cheap"},
        Caller("mcp", authority="agent"),
    )
    runtime.call("tool_update", {"toolId": "dear", "description": "Other."}, ANN)
    runtime.call("tool_update", {"toolId": "dear", "pricing": {**pricing, "cost": 0.7}}, ANN)
    execute(runtime, "dear", {}, spender, branch="cheap")
    over = refused(
        runtime, "tool_execute", {"toolName": "dear", "arguments": {}, "branch": "cheap"}, spender
    )

    for each in (lowered, dropped, removed, merged):
        assert (each.code, each.details["required"]) == ("permission_denied", "gateway:admin")
    assert over.details["used"] == 0.7
    assert runtime.call("tool_update", cheaper, ROOT)["changes"]


def test_a_tool_says_who_may_call_it(runtime: Runtime) -> None:
    tool = pipeline_tool("few", "calculator", SUM, rights={"callers": ["carol"]})
    runtime.call("tool_register", tool, ANN)

    error = refused(runtime, "tool_execute", {"toolName": "few", "arguments": {}}, BOB)

    assert error.details["reason"] == "callers"
    assert execute(runtime, "few", {}, replace(BOB, actor="token:carol"))["result"]
    assert execute(runtime, "few", {}, ANN)["result"]
    refused(runtime, "tool_update", {"toolId": "few", "rights": {}}, BOB)


def test_no_old_branch_gets_round_what_was_decided_about_a_tool(runtime: Runtime) -> None:
    def forked(name: str) -> dict[str, Any]:
        """Register a tool, and call it where nothing was decided about it yet."""
        runtime.call("tool_register", pipeline_tool(name, "calculator", SUM), ANN)
        branch = f"before_{name}"
        runtime.call("strata_branch", {"action": "fork", "name": branch}, BOB)
        return {"toolName": name, "arguments": {}, "branch": branch}

    off, gone, tagged = (forked(each) for each in ("switched_off", "removed_later", "tagged_later"))
    runtime.call("tool_update", {"toolId": "switched_off", "status": "disabled"}, ROOT)
    rights = {"callers": ["ann"]}
    runtime.call("tool_update", {"toolId": "removed_later", "rights": rights}, ROOT)
    runtime.call("tool_remove", {"toolId": "removed_later"}, ROOT)
    runtime.call("tool_update", {"toolId": "tagged_later", "tags": ["risky"]}, ROOT)
    guardrail = {"when": "before", "check": {"type": "block"}, "match": {"tags": ["risky"]}}
    runtime.call("guardrail_define", {"name": "no-risk", **guardrail}, ROOT)

    switched_off = refused(runtime, "tool_execute", off, BOB)
    removed = refused(runtime, "tool_execute", gone, BOB)
    risky = refused(runtime, "tool_execute", tagged, BOB)
    again = {"toolId": "switched_off", "status": "deprecated", "branch": off["branch"]}
    runtime.call("tool_update", again, ROOT)
    chosen = runtime.call("tool_execute", off, BOB)

    reasons = [each.details["reason"] for each in (switched_off, removed, risky)]
    assert reasons == ["disabled", "callers", "guardrail"]
    assert chosen["result"]
    assert runtime.call("tool_execute", gone, ANN)["result"]


def test_rights_are_changed_and_dropped_by_a_person_only(runtime: Runtime) -> None:
    agent = Caller("mcp", authority="agent")
    tool = pipeline_tool("meta", "calculator", SUM)
    runtime.call("tool_register", tool, agent)
    runtime.call("strata_branch", {"action": "fork", "name": "earlier"}, agent)
    runtime.call("tool_update", {"toolId": "meta", "rights": {"approval": True}}, ROOT)
    runtime.call("tool_update", {"toolId": "meta", "tags": ["x"], "branch": "earlier"}, agent)
    call = {"toolName": "meta", "arguments": {}}
    lift = {"toolId": "meta", "rights": {"approval": False}}
    runtime.call("strata_branch", {"action": "fork", "name": "later"}, agent)
    runtime.call("tool_update", {**lift, "branch": "later"}, ROOT)
    merge = {"action": "merge", "source": "later"}

    lifted = refused(runtime, "tool_update", lift, agent)
    nested = refused(runtime, "tool_execute", {"toolName": "tool_update", "arguments": lift}, agent)
    removed = refused(runtime, "tool_remove", {"toolId": "meta"}, agent)
    merged = refused(runtime, "strata_branch", merge, agent)
    runs = [
        refused(runtime, "tool_execute", {**call, **where}, agent)
        for where in ({}, {"branch": "earlier"}, {"branch": "later"})
    ]

    assert [each.code for each in (lifted, nested, removed, merged)] == ["permission_denied"] * 4
    assert "tool_update" in lifted.details["command"]
    assert merged.details["command"] == "stratagem branch merge later --branch default"
    assert [each.details["reason"] for each in runs] == ["approval_needed"] * 3
    runtime.call("tool_update", {"toolId": "meta", "description": "Other."}, agent)
    assert runtime.call("strata_branch", merge, replace(ROOT, branch="default"))["merged"]
    assert execute(runtime, "meta", {}, agent)["result"]


def test_an_agent_widens_no_set(runtime: Runtime) -> None:
    agent = Caller("mcp", authority="agent")

    error = refused(runtime, "toolset_define", {"name": "sums", "allow": ["*"]}, agent)
    nested = refused(
        runtime,
        "tool_execute",
        {"toolName": "toolset_define", "arguments": {"name": "sums", "allow": ["*"]}},
        agent,
    )

    assert (error.code, nested.code) == ("permission_denied", "permission_denied")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("served") / "memory.db"
    tokens = {
        "root": make_token(path, "root", "*:admin"),
        "bob": make_token(path, "bob", "*:write", "*:execute", tool_sets=["sums"]),
    }
    with serving(path, expose=("sums",)) as house:
        house.tokens = tokens
        for name, allow in (("sums", "calc*"), ("texts", "file_*")):
            given = {"name": name, "allow": [allow]}
            assert house.call("rest", "root", "toolset_define", given).error is None
        yield house


@pytest.mark.parametrize("surface", SURFACES)
def test_a_limited_token_is_limited_on_every_surface(served: House, surface: Surface) -> None:
    worked = served.call(surface, "bob", "calculator", SUM)
    denied = served.call(surface, "bob", "file_converter", {})

    assert worked.error is None
    assert denied.error == "permission_denied"


def test_a_limited_token_hears_of_no_other_tool(served: House) -> None:
    heard: dict[str, list[str]] = {"root": [], "bob": []}
    for name, told in heard.items():
        client = served.open_socket(name)
        for event in ("available", "updated", "unavailable"):
            client.on(f"mcp:tool:{event}", lambda data, told=told: told.append(data["name"]))
        client.call("mcp:tools:list", {}, timeout=60)
    handler = {"type": "webhook", "url": "https://example.com/x"}
    tool = {"description": "x", "inputSchema": {"type": "object"}, "handler": handler}
    moved = {"handler": {**handler, "url": "https://example.org/x"}}

    for name in ("hidden", "calculation"):
        for operation, given in (
            ("tool_register", {"name": name, **tool}),
            ("tool_update", {"toolId": name, **moved}),
            ("tool_remove", {"toolId": name}),
        ):
            assert served.call("rest", "root", operation, given).error is None

    eventually(lambda: len(heard["root"]) == 6 and len(heard["bob"]) >= 3)
    assert heard["bob"] == ["calculation"] * 3


def test_a_limited_token_follows_no_other_tool(served: House) -> None:
    metrics = [served.client(name).get("/metrics").status_code for name in ("root", "bob")]
    followed = served.open_socket("bob").call("auto_correction:subscribe", {}, timeout=60)

    assert metrics == [200, 403]
    assert followed["error"]["code"] == "PERMISSION_DENIED"


def test_a_virtual_server_has_the_tools_of_its_set_and_no_others(served: House) -> None:
    def ask(token: str, tool_set: str, method: str, **params: Any) -> Any:
        path = f"/mcp/{tool_set}"
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            **({"mcp-name": params["name"]} if "name" in params else {}),
        }
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {**params, "_meta": ENVELOPE},
        }
        return read_message(served.client(token, **headers).post(path, json=body))

    def names(token: str, tool_set: str) -> list[str]:
        return [each["name"] for each in ask(token, tool_set, "tools/list")["result"]["tools"]]

    call = {"name": "calculator", "arguments": SUM}
    worked = ask("bob", "sums", "tools/call", **call)["result"]
    denied = ask("root", "texts", "tools/call", **call)["result"]

    assert names("root", "texts") == ["file_converter"]
    assert names("bob", "sums") == ["calculator"]
    assert names("bob", "texts") == []
    assert names("bob", "nothing") == []
    assert (
        "There is no set of tools 'nothing'"
        in ask("root", "nothing", "tools/list")["error"]["message"]
    )
    assert worked["structuredContent"]["result"] == 42
    assert denied["isError"]
    assert "error" in ask("root", "texts", "resources/list")
    assert "calculator" in served.tools("root")
    assert "file_converter" not in served.tools("root")


def test_requirements_are_enforced_or_refused(runtime: Runtime) -> None:
    def needing(name: str, **required: Any) -> dict[str, Any]:
        return pipeline_tool(name, "calculator", SUM, requirements=required)

    unknown = refused(runtime, "tool_register", needing("vague", permissions=["everything"]), ANN)
    runtime.call("tool_register", needing("scoped", permissions=["knowledge:read"]), ANN)
    runtime.call("tool_register", needing("keyed", resources=["search_api_key"]), ANN)
    runtime.call("tool_register", needing("worded", resources=["a prompt"]), ANN)

    scope = refused(runtime, "tool_execute", {"toolName": "scoped", "arguments": {}}, BOB)
    key = refused(runtime, "tool_execute", {"toolName": "keyed", "arguments": {}}, BOB)
    refused(runtime, "tool_execute", {"toolName": "worded", "arguments": {}}, BOB)
    grant = {"tool": "keyed", "name": "SEARCH_API_KEY", "origin": "x.example"}
    runtime.call("secret_grant", grant, ROOT)
    prompt = {"type": "prompt", "name": "a prompt", "content": "x"}
    runtime.call("resource_create", prompt, ANN)

    assert unknown.details["field"] == "requirements.permissions[0]"
    assert scope.details["required"] == "knowledge:read"
    assert key.details["missing"] == ["search_api_key"]
    assert execute(runtime, "keyed", {}, BOB)["result"]
    assert execute(runtime, "worded", {}, BOB)["result"]


def test_a_budget_counts_the_most_that_a_generation_can_cost(tmp_path: Path) -> None:
    prices = {"inputPerMillion": 0.0, "outputPerMillion": 10.0, "perImage": 0.5}
    whole = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}
    image = {"data": [{"b64_json": "iVBORw0KGgo="}] * 4}
    with (
        Service() as service,
        opened(tmp_path / "memory.db", allow_hosts=(service.host,)) as runtime,
    ):
        service.answers["/v1/chat/completions"] = lambda _said: as_json(whole)
        service.answers["/v1/images/generations"] = lambda _said: as_json(image)
        config = {
            "model": "tiny-1",
            "imageModel": "paint-1",
            "baseUrl": service.url("/v1"),
            "maxTokens": 10_000,
            "pricing": prices,
        }
        runtime.call("provider_configure", {"provider": "openai", "config": config}, ROOT)

        def spend(actor: str, cost: float, tool: str, **arguments: Any) -> None:
            caller = replace(BOB, actor=actor, budget={"cost": cost, "per": "day"})
            execute(runtime, tool, arguments, caller)

        spend("token:a", 0.15, "text_generation", prompt="x")
        with pytest.raises(BudgetExceeded) as second:
            spend("token:a", 0.15, "text_generation", prompt="x")
        with pytest.raises(BudgetExceeded):
            spend("token:b", 0.15, "text_generation", prompt="x", maxTokens=20_000)
        spend("token:c", 0.15, "summarization", text="x", method="model", provider="openai")
        with pytest.raises(BudgetExceeded):
            spend("token:c", 0.15, "summarization", text="y", method="model", provider="openai")
        spend("token:c", 0.15, "summarization", text="A text. Another one.")
        with pytest.raises(BudgetExceeded):
            spend("token:d", 1.5, "image_generation", prompt="x", count=4)
        spend("token:d", 2.0, "image_generation", prompt="x", count=4)

        assert second.value.details["unit"] == "cost"
        assert second.value.details["used"] == 0.1
        # What is refused was never asked for.
        assert service.count("/v1/chat/completions") == 2
        assert service.count("/v1/images/generations") == 1
