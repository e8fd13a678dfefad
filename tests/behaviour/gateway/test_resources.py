"""Prompts, templates and data, with variables."""

from __future__ import annotations

from typing import Any

from tests.behaviour.conftest import Call
from tests.manifest import proves

REVIEWER: dict[str, Any] = {
    "type": "prompt",
    "name": "reviewer",
    "description": "Review assistant",
    "content": "Review this {{language}} code: {{code}}",
    "variables": ["language", "code"],
    "tags": ["code", "review"],
    "metadata": {"author": "somebody"},
}


@proves("resource:create")
def test_a_resource_has_every_field_it_was_given(call: Call) -> None:
    made = call("resource_create", **REVIEWER)["resource"]

    assert {field: made[field] for field in REVIEWER} == REVIEWER
    assert call("resource_get", resourceId=made["id"])["resource"]["name"] == "reviewer"
    assert call.refusal("resource_create", **REVIEWER)["error"] == "validation_error"


@proves("resource:render")
def test_a_resource_is_rendered_once_every_variable_is_there(call: Call) -> None:
    call("resource_create", **REVIEWER)

    whole = call(
        "resource_get", resourceId="reviewer", variables={"language": "Python", "code": "{{code}}"}
    )
    missing = call.refusal("resource_get", resourceId="reviewer", variables={"language": "C"})

    # What a variable brings is no variable.
    assert whole["rendered"] == "Review this Python code: {{code}}"
    assert "code" in str(missing["details"])


@proves("resource:versions")
def test_the_versions_of_a_resource_stay(call: Call) -> None:
    call("resource_create", **REVIEWER)
    call("resource_update", resourceId="reviewer", content="Short: {{code}}", variables=["code"])

    versions = call("resource_versions", resourceId="reviewer")["versions"]
    first = versions[-1]["revision"]
    call("resource_remove", resourceId="reviewer")

    assert len(versions) == 2
    then = call("resource_get", resourceId="reviewer", asOf=f"@{first}")["resource"]
    assert then["content"] == REVIEWER["content"]
    assert call.refusal("resource_get", resourceId="reviewer")["error"] == "resource_not_found"


@proves("resource:list")
def test_resources_are_listed_by_type_tags_and_words(call: Call) -> None:
    call("resource_create", **REVIEWER)
    call("resource_create", type="data", name="figures", content="[1]", tags=["code"])

    def names(**filters: Any) -> list[str]:
        return sorted(each["name"] for each in call("resources_list", **filters)["resources"])

    assert names(type="data") == ["figures"]
    assert names(tags=["code"]) == ["figures", "reviewer"]
    assert names(tags=["code", "review"]) == ["reviewer"]
    assert names(search="assistant") == ["reviewer"]
    assert len(names(limit=1)) == 1
