"""5. Scopes: the whole matrix of operations and rights, over every surface."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from stratagem import operations
from stratagem.access import scopes as scoping
from stratagem.engine.events import Draft
from stratagem.errors import ExecutionNotFound, ValidationFailed
from stratagem.gateway import names
from stratagem.operation import Caller, Right
from stratagem.operations import TABLE
from stratagem.storage.views import find_branch
from stratagem.surfaces.rest.routes import ROUTES
from stratagem.surfaces.socket.events import EVENTS
from tests.security.house import SURFACES, House, Surface, make_token, opened, serving
from tests.security.test_03_every_way_in import events

RIGHTS = get_args(Right)
MATRIX = [f"{toolset}:{right}" for toolset in scoping.TOOLSETS for right in RIGHTS]
# Arguments with which an operation would write, were it allowed to.
WRITES: dict[str, dict[str, Any]] = {
    "strata_store": {"key": "k", "value": 1},
    "strata_forget": {"key": "known"},
    "strata_log": {"event": "e", "content": "c"},
    "strata_purge": {"key": "known"},
    "record_outcome": {"solution_id": "sol_x", "worked": True},
    "add_solution": {"incident_id": "inc_x", "steps": "do"},
    "add_incident": {"title": "t", "error_signature": "E: x", "steps": "do"},
    "ranked_solutions": {"query_text": "E: x", "env": {"os": "linux"}},
    "create_concept": {"name": "c", "explanation": "e"},
    "tool_execute": {"toolName": "strata_store", "arguments": {"key": "k", "value": 1}},
    "tools_batch": {
        "executions": [{"toolName": "strata_store", "arguments": {"key": "k", "value": 1}}]
    },
    "tools_pipeline": {
        "steps": [{"id": "a", "tool": "strata_store", "arguments": {"key": "k", "value": 1}}]
    },
}
BRANCHES: list[dict[str, Any]] = [
    {"action": "create", "name": "n"},
    {"action": "fork", "name": "n"},
    {"action": "merge", "source": "other"},
    {"action": "delete", "name": "other"},
    {"action": "restore", "name": "gone"},
    {"action": "rename", "name": "other"},
]


@pytest.fixture(scope="module")
def scoped(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("scoped") / "memory.db"
    with opened(path) as runtime:
        caller = Caller("test")
        runtime.call("strata_store", {"key": "known", "value": 1}, caller)
        runtime.call("strata_branch", {"action": "fork", "name": "other"}, caller)
        runtime.call("strata_store", {"key": "x", "value": 1, "branch": "other"}, caller)
        runtime.call("strata_branch", {"action": "fork", "name": "gone"}, caller)
        runtime.call("strata_branch", {"action": "delete", "name": "gone"}, caller)
    tokens = {
        scope: make_token(path, scope.replace(":", "."), scope, rate=1_000_000) for scope in MATRIX
    }
    tokens["readonly"] = make_token(path, "readonly", "*:read", rate=1_000_000)
    tokens["runner"] = make_token(path, "runner", "*:read", "gateway:execute", rate=1_000_000)
    tokens["reader-role"] = make_token(
        path, "role", "*:admin", roles={"default": "reader"}, rate=1_000_000
    )
    with serving(path) as house:
        house.tokens = tokens
        yield house


def head(house: House) -> int:
    """Return how long the log is, but for what the server itself notes."""
    with opened(house.path, read_only=True) as runtime:
        return len(
            [
                each
                for each in runtime.foundation.store.log()
                if each.space is None or each.space.namespace != "access"
            ]
        )


def test_scopes_name_every_toolset_of_the_table() -> None:
    named = {operations._SCOPES.get(each, each) for each in operations.TOOLSETS}  # noqa: SLF001

    assert set(scoping.TOOLSETS) == named


@pytest.mark.parametrize(
    "wrong", ["", "memory", "memory:", "memory:reed", "memry:read", "*", "*:*", "memory:read:x"]
)
def test_what_is_no_scope_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationFailed):
        scoping.check_scopes([wrong])


def test_a_role_is_the_most_that_a_token_may_do() -> None:
    assert scoping.intersect_with_role(["*:admin"], "reader") == {
        f"{toolset}:read" for toolset in scoping.TOOLSETS
    }
    assert scoping.intersect_with_role(["memory:read"], "admin") == {"memory:read"}
    assert "memory:admin" not in scoping.intersect_with_role(["*:admin"], "member")


def is_telling(scope: str, toolset: str) -> bool:
    """Whether it shows something to try a scope on a toolset: all of its own, and the highest of others.

    What the highest of another toolset does not open, no lower one does.
    """
    own, _, right = scope.partition(":")
    return toolset == own or right == RIGHTS[-1]


@pytest.mark.parametrize("scope", MATRIX)
def test_a_scope_opens_its_own_operations_and_no_others(scoped: House, scope: str) -> None:
    caller = Caller(scopes=frozenset({scope}))
    client = scoped.client(scope)
    wrong = []

    for name, row in TABLE.items():
        toolset = operations._scope(row)  # noqa: SLF001 -- what is to be compared with
        if row.part != "foundation" or not is_telling(scope, toolset):
            continue
        actions = [{"action": "switch"}, {"action": "fork"}] if row.reading_actions else [{}]
        for arguments in actions:
            also = operations._ALSO_WRITTEN.get((name, arguments.get("action")), ())  # noqa: SLF001
            allowed = caller.may(toolset, row.right_for(arguments)) and all(
                caller.may(each, "write") for each in also
            )
            given = {**arguments, "no such parameter": 1}
            status = client.post(f"/api/{row.toolset}/{name}", json=given).status_code
            if (status == 403) is allowed:
                wrong.append((name, arguments, status))

    assert wrong == []


@pytest.mark.parametrize("scope", MATRIX)
def test_a_scope_opens_its_own_routes_and_no_others(scoped: House, scope: str) -> None:
    caller = Caller(scopes=frozenset({scope}))
    client = scoped.client(scope)
    wrong = []

    for route in ROUTES:
        row = TABLE[route.operation]
        toolset = operations._scope(row)  # noqa: SLF001
        if not is_telling(scope, toolset):
            continue
        allowed = caller.may(toolset, row.right_for({}))
        path = re.sub(r"\{.*?\}", "x", route.path)
        # What is allowed is refused for its arguments, so that nothing happens.
        body = {"no such parameter": 1} if route.body else None
        status = client.request(route.method, path, json=body).status_code
        if (status == 403) is allowed:
            wrong.append((route.method, route.path, status))

    assert wrong == []


@pytest.mark.parametrize(
    "token", ["readonly", "memory:read", "knowledge:write", "gateway:execute", "admin:admin"]
)
def test_the_list_of_tools_is_what_may_be_called(scoped: House, token: str) -> None:
    given = ["*:read"] if token == "readonly" else [token]
    caller = Caller(scopes=scoping.intersect_with_role(given, "admin"))

    listed = set(scoped.tools(token))

    # The tools for developers stand in place of others: no server has both.
    offered = [row for row in TABLE.values() if not row.confidential and row.toolset != "developer"]
    assert listed == {row.name for row in offered if operations.may_call(row, caller)}
    hidden = [row for row in offered if row.name not in listed]
    if token != "readonly":
        # One of each kind: over the wire each operation was refused to a scope above.
        hidden = list({(operations._scope(row), row.right_for({})): row for row in hidden}.values())  # noqa: SLF001
    for row in hidden:
        assert scoped.call("mcp", token, row.name, {}).error == "permission_denied", row.name


def test_every_event_asks_for_its_scope(scoped: House) -> None:
    client = scoped.open_socket("memory:write")

    answers = {
        name: client.call(name, {"name": "x", "toolId": "x", "requiredTools": ["x"]}, timeout=60)
        for name in events()
    }

    assert set(EVENTS) < set(answers)
    told = {name: each for name, each in answers.items() if each["success"]}
    # It says of each tool only whether it is there for the caller: to this one none is. Whoever
    # hears nothing may say that it wants to hear nothing.
    assert set(told) == {"mcp:tools:init", "auto_correction:unsubscribe"}
    assert told["mcp:tools:init"]["data"]["missing"] == ["x"]
    codes = {each["error"]["code"] for name, each in answers.items() if name not in told}
    assert codes == {"PERMISSION_DENIED"}


@pytest.mark.parametrize("token", ["readonly", "reader-role"])
@pytest.mark.parametrize("surface", SURFACES)
def test_who_only_reads_writes_by_no_route(scoped: House, token: str, surface: Surface) -> None:
    before = head(scoped)

    for name, arguments in WRITES.items():
        outcome = scoped.call(surface, token, name, arguments)
        # Looking for solutions is reading: it works, and leaves nothing behind.
        reads = name == "ranked_solutions" and surface != "socket"
        if not (reads and outcome.error is None):
            assert outcome.error in {"permission_denied", "read_only"}, (name, outcome)
    for arguments in BRANCHES:
        outcome = scoped.call(surface, token, "strata_branch", arguments)
        assert outcome.error in {"permission_denied", "validation_error"}, (arguments, outcome)

    assert head(scoped) == before


@pytest.mark.parametrize("surface", SURFACES)
def test_a_step_runs_as_whoever_called(scoped: House, surface: Surface) -> None:
    """May run tools and read: no tool, batch or pipeline writes in its name."""
    store = {"toolName": "strata_store", "arguments": {"key": "k", "value": 1}}
    pipeline = {"steps": [{"id": "a", "tool": "strata_store", "arguments": store["arguments"]}]}

    direct = scoped.call(surface, "runner", "strata_store", store["arguments"])
    saved = scoped.call(surface, "runner", "tools_pipeline", {**pipeline, "saveAs": "mine"})
    ran = scoped.call(surface, "runner", "tools_pipeline", pipeline)

    assert direct.error == "permission_denied"
    assert saved.error is not None
    assert ran.error is not None or not ran.answer["success"]
    with opened(scoped.path, read_only=True) as runtime:
        found = runtime.call("strata_recall", {"key": "k"}, Caller("test"))
    assert not found["found"]


def test_a_run_that_was_cut_off_is_gone_on_with_by_its_own_caller(tmp_path: Path) -> None:
    """Its steps gave what its caller may read: nobody else has a part in it."""
    owner = Caller("token:a", scopes=frozenset({"*:write", "*:execute"}))
    stranger = Caller("token:b", scopes=frozenset({"*:read", "gateway:execute"}))
    begun = {
        "runId": "run_1",
        "name": "p",
        "definition": {"steps": [{"id": "a", "tool": "strata_recall", "arguments": {"key": "k"}}]},
        "input": None,
        "caller": owner.actor,
    }
    draft = Draft(names.PIPELINE_STARTED, begun, names.PIPELINE_RUNS, "run_1")
    with opened(tmp_path / "memory.db") as runtime:
        runtime.call("strata_store", {"key": "k", "value": "mine"}, owner)
        runtime.foundation.write(
            owner,
            lambda transaction: transaction.append(
                find_branch(transaction.branches, "default"), [draft]
            ),
        )

        with pytest.raises(ExecutionNotFound):
            runtime.call("tools_pipeline", {"resume": "run_1"}, stranger)
        ended = runtime.call("tools_pipeline", {"resume": "run_1"}, owner)

    assert ended["output"]["value"] == "mine"


def test_a_merge_takes_the_right_to_write_to_every_system(scoped: House) -> None:
    merge = {"action": "merge", "source": "other", "preview": True}

    refused = scoped.call("rest", "memory:write", "strata_branch", merge)

    assert refused.error == "permission_denied"
    assert "debugging:write" in refused.text


def test_a_branch_that_a_token_switched_to_holds_for_the_token(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    one, other = make_token(path, "one", "memory:write"), make_token(path, "other", "memory:write")
    with serving(path) as house:
        house.tokens = {"one": one, "other": other}
        house.call("rest", "one", "strata_branch", {"action": "fork", "name": "mine"})
        house.call("rest", "one", "strata_branch", {"action": "switch", "name": "mine"})

        assert house.call("rest", "one", "strata_status", {}).answer["branch"] == "mine"
        assert house.call("mcp", "one", "strata_status", {}).answer["branch"] == "mine"
        assert house.call("rest", "other", "strata_status", {}).answer["branch"] == "default"


def test_a_refused_scope_is_named_in_the_challenge(scoped: House) -> None:
    response = scoped.client("memory:read").post(
        "/api/memory/strata_store", json={"key": "k", "value": 1}
    )

    assert response.status_code == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert 'scope="memory:write"' in response.headers["www-authenticate"]
