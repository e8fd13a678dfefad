"""17. Nobody is told by the gateway what they could not have asked for, or what others have said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stratagem.errors import PermissionDenied
from stratagem.operation import Caller
from tests.security.house import SURFACES, House, Surface, make_token, opened, serving

SECRET = "the plan is to leave on Sunday"
_TOKENS = {
    "admin": ("*:admin",),
    "alice": ("*:write", "*:execute"),
    "bob": ("*:write", "*:execute"),
    "runner": ("gateway:execute",),
    "looker": ("gateway:read",),
    "differ": ("gateway:read", "memory:read"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server where Alice has recalled a secret, by a tool whose results are kept."""
    path = tmp_path_factory.mktemp("shared") / "memory.db"
    tokens = {name: make_token(path, name, *scopes) for name, scopes in _TOKENS.items()}
    with serving(path) as house:
        house.tokens = tokens
        house.call("rest", "alice", "strata_store", {"key": "plan", "value": SECRET})
        steps = [{"id": "a", "tool": "strata_recall", "arguments": {"key": "plan"}}]
        definition = {
            "name": "peek",
            "description": "Recalls the plan.",
            "inputSchema": {"type": "object"},
            "handler": {"type": "pipeline", "definition": {"name": "peek", "steps": steps}},
            "configuration": {"cache": True, "cacheTtl": 600},
        }
        assert house.call("rest", "alice", "tool_register", definition).error is None
        yield house


@pytest.mark.parametrize("surface", SURFACES)
def test_a_kept_result_is_given_to_nobody_who_could_not_have_made_the_call(
    shared: House, surface: Surface
) -> None:
    first = shared.call(surface, "alice", "peek", {})
    again = shared.call(surface, "alice", "peek", {})

    stranger = shared.call(surface, "runner", "peek", {})

    assert SECRET in first.text
    assert SECRET in again.text
    assert stranger.error is not None
    assert SECRET not in stranger.text


def test_the_same_caller_is_given_the_kept_result(shared: House) -> None:
    shared.call("rest", "alice", "peek", {})

    again = shared.call("rest", "alice", "peek", {})

    assert again.answer["metadata"]["cached"] is True


def test_a_request_id_of_another_gives_nothing(shared: House) -> None:
    given = {"toolName": "peek", "arguments": {}, "requestId": "r1"}
    mine = shared.call("rest", "alice", "tool_execute", given)

    theirs = shared.call("rest", "runner", "tool_execute", given)

    assert SECRET in mine.text
    assert theirs.error is not None
    assert SECRET not in theirs.text


def test_a_request_id_gives_no_more_than_the_rights_it_is_repeated_with(shared: House) -> None:
    """One subject may hold tokens of several scopes, as with OAuth."""
    given = {"toolName": "strata_recall", "arguments": {"key": "plan"}, "requestId": "r2"}
    wide = Caller("oauth:eve", authority="token", scopes=frozenset({"*:read", "gateway:execute"}))
    narrow = Caller("oauth:eve", authority="token", scopes=frozenset({"gateway:execute"}))
    with opened(shared.path) as runtime:
        assert SECRET in str(runtime.call("tool_execute", given, wide))
        assert SECRET in str(runtime.call("tool_execute", given, wide))

        with pytest.raises(PermissionDenied, match="other rights"):
            runtime.call("tool_execute", given, narrow)


def _executions(house: House, surface: Surface, token: str) -> list[dict[str, Any]]:
    if surface == "rest":
        response = house.client(token).get("/api/mcp/executions", params={"limit": 200})
        answer = response.json()["data"]
    elif surface == "socket":
        client = house.open_socket(token)
        answer = client.call("mcp:tool:executions", {"limit": 200}, timeout=60)["data"]
        client.disconnect()
    else:
        answer = house.call(surface, token, "tool_executions", {"limit": 200}).answer
    found: list[dict[str, Any]] = answer["executions"]
    return found


@pytest.mark.parametrize("surface", SURFACES)
def test_what_others_called_is_shown_without_what_they_said(
    shared: House, surface: Surface
) -> None:
    shared.call("rest", "alice", "strata_recall", {"key": "plan"})
    shared.call("rest", "alice", "peek", {})
    shared.call("socket", "alice", "strata_recall", {"key": "plan"})

    whole = _executions(shared, surface, "alice")
    every = _executions(shared, surface, "admin")
    seen = _executions(shared, surface, "looker")
    bobs = _executions(shared, surface, "bob")

    assert SECRET in json.dumps(whole)
    assert SECRET in json.dumps(every)
    for others in (seen, bobs):
        assert SECRET not in json.dumps(others)
        theirs = [each for each in others if each["caller"] == "token:alice"]
        assert theirs
        for each in theirs:
            assert {"tool", "status", "startedAt", "duration", "withheld"} <= set(each)
            assert not {"arguments", "result", "context", "correction"} & set(each)


def test_one_execution_of_another_is_shown_without_what_was_said(shared: House) -> None:
    execution = shared.call("rest", "alice", "peek", {}).answer["executionId"]
    place = f"/api/mcp/executions/{execution}"

    mine = shared.client("alice").get(place)
    theirs = shared.client("looker").get(place)

    assert mine.json()["data"]["executions"][0]["executionId"] == execution
    assert theirs.json()["data"]["executions"][0]["executionId"] == execution
    assert "arguments" not in theirs.text.replace('"withheld"', "")


def test_the_error_of_another_is_shown_as_its_code(shared: House) -> None:
    shared.call("rest", "alice", "calculator", {"expression": "hush(1"})

    errors = [each["error"] for each in _executions(shared, "rest", "looker") if "error" in each]

    assert errors
    assert all(set(each) == {"code"} for each in errors)


def test_a_diff_shows_no_records_of_calls(shared: House) -> None:
    steps = [{"id": "a", "tool": "strata_recall", "arguments": {"key": "plan"}}]
    shared.call("rest", "alice", "strata_branch", {"action": "fork", "name": "trial"})
    given = {"steps": steps, "branch": "trial", "input": {"hint": SECRET}}
    shared.call("rest", "alice", "tools_pipeline", given)
    asked = {"action": "diff", "branch": "trial", "compare": "default"}

    seen = shared.call("rest", "differ", "strata_branch", asked)
    whole = shared.call("rest", "admin", "strata_branch", asked)

    assert seen.error is None, seen
    assert whole.error is None, whole
    assert SECRET not in seen.text
    assert SECRET in whole.text
