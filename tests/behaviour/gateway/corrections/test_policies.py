"""Policies: changes are events, effective at once, for all tools or one, on a branch, at a time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import PermissionDenied, ToolNotFound, ValidationFailed
from stratagem.operation import Caller
from tests import forkserver
from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves

WRONG = {"recipient": "bob", "amount": "12"}


def configure(shop: Workshop, **given: Any) -> dict[str, Any]:
    return shop.ask("auto_correction_configure", **given)


@proves("policy:change")
def test_the_documents_request_is_answered_field_by_field(shop: Workshop) -> None:
    configure(shop, settings={"maxRetries": 2, "confidenceThreshold": 0.6, "enableLearning": False})

    answer = configure(
        shop,
        settings={
            "enabled": True,
            "maxRetries": 3,
            "confidenceThreshold": 0.7,
            "enableLearning": True,
            "strategies": {"typeConversion": {"enabled": True, "confidence": 0.9}},
        },
        applyImmediately=True,
    )

    assert answer["configurationUpdated"] is True
    assert answer["previousSettings"]["maxRetries"] == 2
    assert answer["newSettings"]["confidenceThreshold"] == 0.7
    assert answer["changesApplied"] == [
        "Increased max retries from 2 to 3",
        "Increased confidence threshold from 0.6 to 0.7",
        "Enabled learning pipeline",
        "Changed the threshold of typeConversion from 0.85 to 0.9",
    ]
    assert answer["restartRequired"] is False
    assert answer["effectiveImmediately"] is True
    assert answer["timestamp"]


@proves("policy:change")
def test_a_preview_changes_nothing(shop: Workshop) -> None:
    answer = configure(shop, settings={"enabled": False}, applyImmediately=False)

    assert answer["changesApplied"] == ["Disabled auto-correction"]
    assert answer["configurationUpdated"] is False
    assert answer["effectiveImmediately"] is False
    assert shop.run("send", WRONG)["result"]["amount"] == 12


@proves("policy:change")
def test_presets_and_their_return(shop: Workshop) -> None:
    production = configure(shop, preset="production")["newSettings"]
    restyled = shop.fails("search", {"Query": "tea"})
    configure(shop, reset=True)

    assert production["confidenceThreshold"] == 0.8
    assert production["requireAuditLog"] is True
    assert "corrections" not in restyled.details
    assert shop.run("search", {"Query": "tea"})["result"]["query"] == "tea"


@proves("policy:tool")
def test_a_tool_has_its_own_and_the_rest_from_all(shop: Workshop) -> None:
    configure(shop, settings={"enabled": False}, toolName="send")
    shop.fails("send", WRONG)
    assert shop.run("search", {"query": "a", "limit": "3"})["result"]["limit"] == 3

    configure(shop, settings={"debugMode": True})
    status = shop.ask("auto_correction_status")
    assert status["toolSettings"] == {"send": {"enabled": False}}
    assert status["settings"]["debugMode"] is True
    assert "debug" in shop.fails("send", WRONG).details

    configure(shop, toolName="send", reset=True)
    assert shop.run("send", WRONG)["result"]["amount"] == 12


@proves("policy:log")
def test_a_branch_has_its_own_policy_and_the_past_its_old_one(shop: Workshop) -> None:
    shop.ask("strata_branch", action="fork", name="strict")
    before = shop.head()
    configure(shop, settings={"enabled": False}, branch="strict")

    assert shop.run("send", WRONG)["result"]["amount"] == 12
    shop.fails("send", WRONG, branch="strict")
    now = shop.ask("auto_correction_status", branch="strict")
    then = shop.ask("auto_correction_status", branch="strict", asOf=f"@{before}")
    assert now["settings"]["enabled"] is False
    assert then["settings"]["enabled"] is True

    shop.ask("strata_branch", action="merge", source="strict")
    shop.fails("send", WRONG)


@proves("policy:log")
def test_a_policy_outlives_the_process(tmp_path: Path) -> None:
    with workshop(tmp_path / "kept.db") as first:
        configure(first, settings={"restrictedTools": ["send"]})
    with workshop(tmp_path / "kept.db") as second:
        assert second.fails("send", WRONG).details["withheld"]


@proves("policy:change")
def test_a_retry_of_a_change_is_one_change(shop: Workshop) -> None:
    first = configure(shop, settings={"maxRetries": 4}, requestId="r-1")
    again = configure(shop, settings={"maxRetries": 4}, requestId="r-1")

    assert again["version"] == first["version"]


@proves("policy:bad-input")
@pytest.mark.parametrize(
    "settings",
    [
        {"confidence": 0.5},
        {"maxRetries": 11},
        {"confidenceThreshold": "high"},
        {"strategies": {"magic": True}},
        {"confirmationRequired": {"riskLevel": "extreme"}},
    ],
)
def test_a_setting_that_cannot_be_is_refused(shop: Workshop, settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        configure(shop, settings=settings)

    assert shop.run("send", WRONG)["result"]["amount"] == 12


@proves("policy:rights")
def test_only_an_administrator_changes_the_policy(shop: Workshop) -> None:
    writer = Caller("writer", scopes=frozenset({"gateway:write", "gateway:execute"}))

    with pytest.raises(PermissionDenied):
        shop.database.runtime.call(
            "auto_correction_configure", {"settings": {"enabled": False}}, writer
        )


@proves("policy:bad-input")
def test_a_tool_that_is_not_there_has_no_policy(shop: Workshop) -> None:
    with pytest.raises(ToolNotFound):
        configure(shop, settings={"enabled": False}, toolName="nothing")


@proves("policy:bad-input")
def test_a_policy_is_bounded(shop: Workshop) -> None:
    with pytest.raises(ValidationFailed) as caught:
        shop.ask("auto_correction_configure", settings={"restrictedTools": ["x" * 500] * 200})

    assert caught.value.details["limit"] == limits.CORRECTION_SETTINGS_BYTES_MAX


@proves("policy:log")
def test_a_change_in_one_process_holds_in_another_at_once(shop: Workshop, tmp_path: Path) -> None:
    place = str(tmp_path / "shop.db")
    command = [sys.executable, "-m", "stratagem", "--db", place, "tools", "call"]
    shop.run("send", {"recipient": "bob", "amount": "12"})

    forkserver.run(
        [*command, "auto_correction_configure", '{"settings": {"restrictedTools": ["send"]}}'],
        check=True,
        capture_output=True,
        timeout=60,
    )

    refused = shop.fails("send", {"recipient": "bob", "amount": "13"})
    assert "not corrected unasked" in refused.details["withheld"]
