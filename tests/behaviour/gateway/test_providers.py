"""Tools and calls in the formats of model providers; each format is tried in `unit`."""

from __future__ import annotations

import json

import pytest

import stratagem
from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("provider:tools")
def test_a_provider_is_given_the_tools_that_are_enabled_for_it(call: Call) -> None:
    call(
        "provider_configure",
        provider="anthropic",
        config={"apiKey": "${KEY}", "enabledTools": ["calculator", "date_time"]},
    )

    tools = call("provider_tools", provider="anthropic")["tools"]

    assert [each["name"] for each in tools] == ["calculator", "date_time"]
    assert set(tools[0]) >= {"name", "description", "input_schema"}


@proves("provider:tools")
@pytest.mark.parametrize("provider", ["openai", "openai_responses", "xai", "gemini", "anthropic"])
def test_every_provider_takes_what_it_is_given_unasked(
    db: stratagem.Stratagem, provider: str
) -> None:
    unasked = str(db.call("provider_tools", {"provider": provider})["tools"])
    asked = str(db.call("provider_tools", {"provider": provider, "tools": ["strata_store"]}))

    assert "'calculator'" in unasked
    assert "'strata_store'" not in unasked
    assert "'strata_store'" in asked


@proves("provider:calls")
def test_the_calls_of_a_model_are_run_and_answered_in_its_format(call: Call) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "calculator"}
    content = [
        {"type": "text", "text": "Let me see."},
        {**use, "input": {"expression": "6 * 7"}},
        {**use, "id": "toolu_2", "input": {"expression": "1 / 0"}},
        {**use, "id": "toolu_3", "name": "date_time", "input": {"operation": "nwo"}},
    ]

    answer = call("provider_call", provider="anthropic", payload={"content": content})

    assert (answer["calls"], answer["failed"]) == (3, 2)
    first, second, third = answer["results"][0]["content"]
    assert first["tool_use_id"] == "toolu_1"
    assert "42" in first["content"]
    assert second["is_error"] is True
    # A model is shown what it may have meant, and can send it: it has no place for an id.
    offered = json.loads(third["content"])
    assert offered["corrections"][0]["arguments"]["operation"] == "now"
    assert "correctionId" not in offered["hint"]


@proves("secret:never-stored")
def test_the_key_of_a_provider_is_named_and_never_given(call: Call) -> None:
    error = call.refusal(
        "provider_configure", provider="openai", config={"apiKey": "sk-1234567890abcdef"}
    )

    assert error["details"]["field"] == "config.apiKey"
    assert "sk-1234567890abcdef" not in str(error)
