"""Tools are records: registered, changed, removed, on a branch and in the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.errors import ToolNotFound
from tests.behaviour.conftest import Call
from tests.manifest import proves

WEBHOOK = {"type": "webhook", "url": "https://example.org/"}


def definition(name: str = "weather", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Tell the weather.",
        "inputSchema": {"type": "object"},
        "handler": WEBHOOK,
        **more,
    }


@proves("tool:register")
def test_a_registered_tool_has_every_field_it_was_given(call: Call) -> None:
    given = definition(
        longDescription="A tool with everything.",
        version="2.1.0",
        author="Somebody",
        category="forecast",
        tags=["weather"],
        capabilities=["real-time"],
        outputSchema={"type": "object"},
        examples=[{"input": {}, "output": {}}],
        configuration={"timeout": 9000, "retries": 1},
        metadata={"team": "search"},
    )

    answer = call("tool_register", **given)

    assert answer["validation"]["passed"] is True
    shown = call("tool_get", toolId=answer["toolId"])["tool"]
    assert {field: shown[field] for field in given} == given
    assert shown["status"] == "active"


@proves("tool:register")
def test_a_registration_says_what_would_make_it_better(call: Call) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}

    answer = call("tool_register", **definition(inputSchema=schema, examples=[{"input": {"q": 5}}]))

    warnings = " ".join(answer["validation"]["warnings"])
    assert "outputSchema" in warnings
    assert "examples[0]" in warnings


@proves("tool:register")
def test_a_tool_of_a_server_that_was_not_added_is_registered_with_a_warning(call: Call) -> None:
    handler = {"type": "mcp", "server": "nowhere", "tool": "add"}

    registered = call("tool_register", **definition(handler=handler))
    updated = call("tool_update", toolId=registered["toolId"], description="Another one.")

    for answer in (registered, updated):
        warnings = " ".join(answer["validation"]["warnings"])
        assert "no upstream server 'nowhere'" in warnings
        assert "stratagem tools add nowhere --mcp COMMAND" in warnings


@proves("tool:bad-input")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "1st"}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"inputSchema": {"type": "nonsense"}}, "inputSchema"),
        ({"inputSchema": {"$ref": "https://example.org/x.json"}}, "inputSchema"),
        ({"outputSchema": {"minimum": "x"}}, "outputSchema"),
        ({"handler": {"type": "teleport"}}, "handler.type"),
        ({"handler": {"type": "webhook"}}, "handler.url"),
        ({"handler": {"type": "mcp", "tool": "add"}}, "handler.server"),
        ({"handler": {"type": "mcp", "server": "up", "tool": 5}}, "handler.tool"),
        ({"permissions": {"network": "perhaps"}}, "permissions.network"),
        ({"configuration": {"timeout": 0}}, "configuration"),
        ({"unheard": 1}, "unheard"),
        ({"description": ""}, "description"),
    ],
)
def test_a_tool_that_cannot_work_is_refused(call: Call, change: dict[str, Any], field: str) -> None:
    error = call.refusal("tool_register", **definition(**change))

    assert error["details"]["field"] == field


@proves("tool:names")
@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("calculator", []),
        ("strata_store", []),
        ("Calculator", ["calculator"]),
        ("calcu1ator", ["calculator"]),
        ("strata_recaII", ["strata_recall"]),
    ],
)
def test_a_name_that_is_taken_or_looks_it_is_refused(
    call: Call, name: str, similar: list[str]
) -> None:
    error = call.refusal("tool_register", **definition(name))

    assert error["details"].get("similar", []) == similar


@proves("tool:update")
def test_an_update_changes_what_is_given_and_says_so(call: Call) -> None:
    first = call("tool_register", **definition(configuration={"timeout": 9000, "retries": 1}))

    answer = call(
        "tool_update",
        toolId="weather",
        description="Tell it better.",
        configuration={"timeout": 20000},
    )

    assert answer["changes"]["configuration"] == {"timeout": 20000, "retries": 1}
    assert answer["version"] > first["version"]
    assert call("tool_get", toolId="weather")["tool"]["description"] == "Tell it better."


@proves("tool:update")
def test_an_update_of_something_that_changed_since_is_refused(call: Call) -> None:
    first = call("tool_register", **definition())["version"]
    second = call("tool_update", toolId="weather", tags=["one"])["version"]

    error = call.refusal("tool_update", toolId="weather", tags=["two"], expectedVersion=first)

    assert error["details"]["version"] == second


@proves("tool:remove")
def test_a_removed_tool_is_gone_its_past_stays_and_its_name_is_free(call: Call) -> None:
    version = call("tool_register", **definition())["version"]

    call("tool_remove", toolId="weather")

    assert call.refusal("tool_get", toolId="weather")["error"] == "tool_not_found"
    then = call("tool_get", toolId="weather", asOf=f"@{version}")["tool"]
    assert then["description"] == "Tell the weather."
    assert call("tool_register", **definition())["name"] == "weather"


@proves("tool:remove")
def test_a_removed_tool_comes_back_as_it_was(call: Call) -> None:
    before = call("tool_register", **definition(tags=["sky"]))
    call("tool_update", toolId="weather", tags=["sky", "rain"])
    call("tool_remove", toolId="weather")

    restored = call("tool_restore", toolId="weather")

    assert restored["toolId"] == before["toolId"]
    assert call("tool_get", toolId="weather")["tool"]["tags"] == ["sky", "rain"]
    assert call.refusal("tool_restore", toolId="weather")["error"] == "tool_exists"
    assert call.refusal("tool_restore", toolId="nothing")["error"] == "tool_not_found"


@proves("tool:purge")
def test_a_purged_tool_and_a_purged_execution_are_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "tools.db"
    with stratagem.open(str(path)) as db:
        db.call("tool_register", definition(description="Tells what Xyzzy said."))
        db.call("tool_remove", {"toolId": "weather"})
        db.call(
            "tool_execute", {"toolName": "calculator", "arguments": {"expression": "7 * 77341"}}
        )
        made = db.call("tool_executions", {})["executions"][0]["executionId"]

        planned = db.call("tool_purge", {"recordId": made})
        erased = db.call("tool_purge", {"recordId": made, "confirm": True})
        tool = db.call("tool_purge", {"recordId": "weather", "confirm": True})

        assert (planned["purged"], planned["records"]) == (False, {"execution": 1})
        assert (erased["kind"], erased["erased"]) == ("execution", 1)
        assert (tool["kind"], tool["erased"]) == ("tool", 2)
        assert db.call("tool_executions", {})["executions"] == []
        with pytest.raises(ToolNotFound):
            db.call("tool_restore", {"toolId": "weather"})
        with pytest.raises(ToolNotFound):
            db.call("tool_purge", {"recordId": "weather"})
    written = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"Xyzzy" not in written
    assert b"77341" not in written
    assert b"541387" not in written


@proves("tool:status")
def test_a_disabled_tool_is_not_called_and_a_deprecated_one_is_with_a_warning(call: Call) -> None:
    steps = [{"id": "sum", "tool": "calculator", "arguments": {"expression": "1 + 1"}}]
    handler = {"type": "pipeline", "definition": {"name": "sum", "steps": steps}}
    call("tool_register", **definition(handler=handler, status="disabled"))

    refused = call.failure("tool_execute", toolName="weather")
    call("tool_update", toolId="weather", status="deprecated")
    warned = call("tool_execute", toolName="weather")

    assert refused["error"] == "permission_denied"
    assert warned["metadata"]["warnings"] == ["weather is deprecated."]


@proves("tool:status")
def test_an_argument_that_no_schema_knows_is_passed_on_with_a_warning(call: Call) -> None:
    steps = [{"id": "sum", "tool": "calculator", "arguments": {"expression": "1 + 1"}}]
    handler = {"type": "pipeline", "definition": {"name": "sum", "steps": steps}}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    call("tool_register", **definition(handler=handler, inputSchema=schema))

    plain = call("tool_execute", toolName="weather", arguments={"city": "Oslo"})
    odd = call("tool_execute", toolName="weather", arguments={"city": "Oslo", "zebra": 1})

    assert "warnings" not in plain["metadata"]
    assert odd["metadata"]["warnings"] == [
        "$.zebra is not a parameter and was passed on unchanged."
    ]


@proves("tool:list")
def test_a_list_takes_every_filter_and_goes_on_in_pages(call: Call) -> None:
    call(
        "tool_register",
        **definition(
            "zebras", description="Find zebras.", category="animals", provider="acme",
            tags=["striped"], capabilities=["real-time", "paged"],
        ),
    )  # fmt: skip
    call("tool_register", **definition("horses", category="animals", capabilities=["real-time"]))

    def names(**filters: Any) -> list[str]:
        return [each["name"] for each in call("tools_list", **filters)["tools"]]

    assert sorted(names(category="animals")) == ["horses", "zebras"]
    assert names(provider="acme") == ["zebras"]
    assert names(tags=["striped"]) == ["zebras"]
    assert names(capabilities=["real-time", "paged"]) == ["zebras"]
    assert names(search="ZEBRAS") == ["zebras"]
    assert names(status="deprecated") == []
    first, second = names(category="animals", limit=1), names(category="animals", limit=1, offset=1)
    assert sorted(first + second) == ["horses", "zebras"]
    assert call("tools_list", category="animals", limit=1)["total"] == 2


@proves("tool:branch")
def test_a_branch_has_tools_of_its_own_until_it_is_merged(call: Call) -> None:
    call("tool_register", **definition("both"))
    call("strata_branch", action="fork", name="trial")

    call("tool_register", **definition("only"), branch="trial")
    call("tool_update", toolId="both", description="Changed.", branch="trial")

    assert call.refusal("tool_get", toolId="only")["error"] == "tool_not_found"
    assert call("tool_get", toolId="only", branch="trial")["tool"]["name"] == "only"
    assert call("tool_get", toolId="both")["tool"]["description"] == "Tell the weather."
    call("strata_branch", action="merge", source="trial")
    assert call("tool_get", toolId="only")["tool"]["name"] == "only"
    assert call("tool_get", toolId="both")["tool"]["description"] == "Changed."


@proves("tool:on-branch")
def test_an_operation_that_is_called_as_a_tool_works_on_the_branch_of_the_call(call: Call) -> None:
    def store(key: str, **more: Any) -> dict[str, Any]:
        return {"tool": "strata_store", "arguments": {"key": key, "value": 1, **more}}

    def branches_with(key: str) -> list[str]:
        every = ("default", "trial", "other")
        return [each for each in every if call("strata_recall", key=key, branch=each)["found"]]

    for name in ("trial", "other"):
        call("strata_branch", action="fork", name=name)
    steps = [{"id": "a", **store("step")}, {"id": "b", **store("own", branch="other")}]
    single = store("single")["arguments"]

    call("tool_execute", toolName="strata_store", arguments=single, branch="trial")
    call("tools_pipeline", name="p", steps=steps, branch="trial")

    assert branches_with("single") == branches_with("step") == ["trial"]
    assert branches_with("own") == ["other"]


@proves("tool:retry")
def test_a_registration_that_is_sent_again_is_made_once(call: Call) -> None:
    first = call("tool_register", **definition(), requestId="r-1")

    again = call("tool_register", **definition(), requestId="r-1")
    other = call.refusal("tool_register", **definition("other"), requestId="r-1")

    assert again == first
    assert other["error"] == "request_id_reused"


@proves("tool:help")
def test_help_says_what_a_model_needs_to_call_a_tool(call: Call) -> None:
    answer = call("tool_help", toolName="calculator")

    assert answer["required"] == ["expression"]
    assert answer["inputSchema"]["properties"]["expression"]["type"] == "string"
    assert answer["examples"]
    assert "tool_execute" in answer["usage"]


@proves("tool:schema-bounds")
def test_a_schema_that_makes_more_work_than_it_looks_like_is_refused(call: Call) -> None:
    # Each definition refers to the one before it ten times.
    levels: dict[str, Any] = {"l0": {"type": "string"}}
    for level in range(1, 6):
        levels[f"l{level}"] = {"allOf": [{"$ref": f"#/$defs/l{level - 1}"}] * 10}
    schema = {"type": "object", "$defs": levels, "properties": {"x": {"$ref": "#/$defs/l5"}}}

    error = call.refusal("tool_register", **definition(inputSchema=schema))

    assert error["details"]["limit"] == 5_000
    assert error["details"]["pointer"]


@proves("secret:grant")
def test_a_secret_is_granted_to_a_tool_for_one_host_and_withdrawn(call: Call) -> None:
    call("tool_register", **definition())
    grant = {"tool": "weather", "name": "API_KEY", "origin": "example.org"}

    call("secret_grant", **grant)
    granted = call("secrets_list")["grants"]
    call("secret_withdraw", tool="weather", name="API_KEY")

    assert [(each["origin"], each["state"]) for each in granted] == [
        ("https://example.org:443", "active")
    ]
    assert call("secrets_list")["grants"] == []
