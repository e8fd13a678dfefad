"""A policy can only withhold."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.correction import PRESETS, Policy, Risk, Strategy, correct, preset

TOOL: dict[str, Any] = {
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TYPES_ONLY = {"city": "Oslo", "days": "3"}
RENAMED = {"City": "Oslo"}
MISSPELT = {"ciity": "Oslo"}


def test_the_default_policy_applies_what_is_certain() -> None:
    assert correct(TOOL, TYPES_ONLY).applied == {"city": "Oslo", "days": 3}
    assert correct(TOOL, MISSPELT).applied == {"city": "Oslo"}


def test_a_policy_that_is_off_corrects_nothing() -> None:
    outcome = correct(TOOL, TYPES_ONLY, policy=Policy(enabled=False))

    assert outcome.applied is None
    assert outcome.withheld == "Corrections are switched off."
    assert correct(TOOL, {"city": "Oslo"}, policy=Policy(enabled=False)).valid


def test_a_strategy_that_is_off_is_not_tried() -> None:
    policy = Policy().with_settings({"strategies": {"unknownProperties": {"enabled": False}}})

    assert correct(TOOL, RENAMED, policy=policy).candidates == ()
    assert correct(TOOL, TYPES_ONLY, policy=policy).applied is not None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"confidenceThreshold": 0.995}, "is below"),
        ({"strategies": {"typeConversion": {"confidence": 1}}}, "requires a confidence"),
        ({"restrictedTools": ["weather"]}, "not corrected unasked"),
        ({"restrictedCategories": ["network"]}, "not corrected unasked"),
        ({"confirmationRequired": {"toolCategories": ["network"]}}, "confirmed first"),
        ({"confirmationRequired": {"riskLevel": "low"}}, "confirmed first"),
    ],
)
def test_what_is_withheld_is_offered_with_the_reason(settings: Any, reason: str) -> None:
    policy = Policy().with_settings(settings)

    outcome = correct(TOOL, TYPES_ONLY, policy=policy, tool="weather", categories=["network"])

    assert outcome.applied is None
    assert reason in str(outcome.withheld)
    assert outcome.candidates[0].arguments == {"city": "Oslo", "days": 3}


def test_no_threshold_lets_a_guess_through() -> None:
    policy = preset("development").with_settings({"confidenceThreshold": 0})

    assert correct(TOOL, {"city": "Oslo", "days": "five"}, policy=policy).applied is None


def test_confirmation_is_asked_by_risk() -> None:
    policy = Policy().with_settings({"requireConfirmation": True})

    assert policy.confirm_risk is Risk.MEDIUM
    assert correct(TOOL, RENAMED, policy=policy).applied is not None
    assert correct(TOOL, MISSPELT, policy=policy).applied is None


def test_the_presets_are_the_stricter_of_the_two_in_the_document() -> None:
    production, development = PRESETS["production"], PRESETS["development"]

    assert (production.confidence_threshold, production.max_retries) == (0.8, 3)
    assert [one for one in Strategy if production.uses(one)] == [Strategy.TYPE_CONVERSION]
    assert production.confirm_risk is Risk.MEDIUM
    assert production.require_audit_log
    assert production.enable_circuit_breaker
    assert (development.confidence_threshold, development.max_retries) == (0.6, 5)
    assert all(development.uses(one) for one in Strategy)
    assert not development.enable_circuit_breaker
    assert PRESETS["staging"].confidence_threshold == 0.7
    assert PRESETS["staging"].experimental_features


@pytest.mark.parametrize("name", PRESETS)
def test_settings_can_be_written_and_read_back(name: str) -> None:
    assert Policy().with_settings(PRESETS[name].settings()) == PRESETS[name]


def test_settings_that_are_not_named_stay() -> None:
    policy = preset("production").with_settings({"maxRetries": 1})

    assert policy.max_retries == 1
    assert policy.confidence_threshold == 0.8


@pytest.mark.parametrize(
    "settings",
    [
        {"confidenceThreshold": 2},
        {"confidenceThreshold": True},
        {"maxRetries": -1},
        {"maxRetries": 1.5},
        {"enabled": "yes"},
        {"strategies": {"magic": True}},
        {"strategies": {"typeConversion": {"level": 1}}},
        {"strategies": []},
        {"enabledStrategies": ["magic"]},
        {"enabledStrategies": "typeConversion"},
        {"confirmationRequired": {"riskLevel": "extreme"}},
        {"requireConfirmation": "yes"},
        {"unheardOf": 1},
        [],
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(settings: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        Policy().with_settings(settings)

    assert refused.value.details["field"]


def test_a_preset_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="no preset"):
        preset("qa")
