"""Settings of providers, and which tools they enable."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.providers import PROVIDERS, enabled_tools


@pytest.mark.parametrize(
    ("provider", "config"),
    [
        (
            "anthropic",
            {
                "apiKey": "${ANTHROPIC_API_KEY}",
                "model": "claude-3-opus",
                "enabledTools": ["web_search", "calculator"],
                "maxTokens": 4096,
            },
        ),
        (
            "openai",
            {
                "apiKey": "${OPENAI_API_KEY}",
                "model": "gpt-4-turbo",
                "functions": "auto",
                "temperature": 0.7,
            },
        ),
        ("openai_responses", {"functions": "required"}),
        ("xai", {"temperature": 2.0}),
        ("gemini", {}),
    ],
)
def test_settings_are_given_back_as_they_were(provider: str, config: dict[str, Any]) -> None:
    assert PROVIDERS[provider].configure(config) == config


@pytest.mark.parametrize(
    ("provider", "config", "field"),
    [
        ("anthropic", {"apiKey": "sk-ant-1234"}, "config.apiKey"),
        ("anthropic", {"apiKey": "${A} ${B}"}, "config.apiKey"),
        ("anthropic", {"temperature": 1.5}, "config.temperature"),
        ("anthropic", {"functions": "auto"}, "config.functions"),
        ("openai", {"functions": "sometimes"}, "config.functions"),
        ("openai", {"temperature": 2.5}, "config.temperature"),
        ("openai", {"temperature": "0.5"}, "config.temperature"),
        ("openai", {"maxTokens": 0}, "config.maxTokens"),
        ("xai", {"model": ""}, "config.model"),
        ("gemini", {"enabledTools": "all"}, "config.enabledTools"),
        ("gemini", {"other": 1}, "config.other"),
        ("gemini", [], "config"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(
    provider: str, config: Any, field: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        PROVIDERS[provider].configure(config)

    assert refused.value.details["field"] == field
    assert "sk-ant" not in str(refused.value.envelope())


def test_enabled_tools_are_those_that_were_named_and_exist() -> None:
    tools = [{"name": "a"}, {"name": "b"}, {"name": "c"}]

    assert enabled_tools({}, tools) == tools
    assert enabled_tools({"enabledTools": ["c", "x", "a", "c"]}, tools) == [
        {"name": "c"},
        {"name": "a"},
    ]
    assert enabled_tools({"functions": "none"}, tools) == []
