"""The breaker of corrections: a tool whose corrections keep failing is left uncorrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from stratagem import limits
from stratagem.errors import ValidationFailed
from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves


def break_it(shop: Workshop) -> None:
    """Have three corrections of three kinds fail, one after the other."""
    for wrong in (
        {"query": "unlucky", "limit": "3"},
        {"QUERY": "unlucky"},
        {"query": "unlucky", "order": "Oldest"},
    ):
        shop.fails("search", wrong, str(wrong))
    shop.run("search", {"query": "the tool itself is well"})


@proves("correction:breaker")
def test_it_opens_and_corrections_are_only_offered(shop: Workshop) -> None:
    break_it(shop)

    refused = shop.fails("search", {"Query": "tea"}, "bob")

    assert "paused" in refused.details["withheld"]
    assert refused.details["corrections"][0]["correctedParameters"] == {"query": "tea"}
    (opened,) = shop.told("circuit:opened")
    assert opened["toolName"] == "search"
    assert opened["reason"]
    assert shop.run("switch", {"lamp": "hall", "state": "ON"})["result"]["state"] == "on"
    (listed,) = shop.ask("auto_correction_circuits")["circuitBreakers"]
    assert listed["status"] == "open"
    assert listed["lastFailure"] > 1_700_000_000_000
    assert listed["coolDownSeconds"] == 300


@proves("correction:breaker")
def test_it_is_tried_again_after_a_while_and_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The while is over at once.
    monkeypatch.setattr(limits, "CORRECTION_BREAKER_SECONDS", 0.0)
    with workshop(tmp_path / "brief.db") as brief:
        break_it(brief)

        assert brief.run("search", {"Query": "tea"}, "bob")["result"]["query"] == "tea"

        assert [data["toolName"] for data in brief.told("circuit:half_open")] == ["search"]
        assert brief.told("circuit:closed")[0]["toolName"] == "search"


@proves("correction:breaker")
def test_it_is_reset_by_hand_once_it_has_cooled_down(shop: Workshop) -> None:
    break_it(shop)

    with pytest.raises(ValidationFailed) as early:
        shop.ask("auto_correction_circuits", action="reset", toolName="search")
    forced = shop.ask(
        "auto_correction_circuits", action="reset", toolName="search", force=True, reason="mended"
    )

    assert 0 < early.value.details["retry_after"] <= 300
    assert forced == {"toolName": "search", "reset": True, "reason": "mended"}
    assert shop.told("circuit:closed")[0]["reason"] == "mended"
    assert shop.run("search", {"Query": "tea"}, "bob")["result"]["query"] == "tea"


@proves("correction:breaker")
def test_resetting_what_is_closed_does_nothing(shop: Workshop) -> None:
    answer = shop.ask("auto_correction_circuits", action="reset", toolName="search")

    assert answer["reset"] is False


@proves("correction:breaker")
def test_it_can_be_switched_off(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enableCircuitBreaker": False})
    break_it(shop)

    assert shop.run("search", {"Query": "tea"}, "bob")["result"]["query"] == "tea"


@proves("correction:breaker")
def test_where_it_is_off_it_neither_opens_nor_tells(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enableCircuitBreaker": False})
    for number in range(4):
        shop.fails("search", {"query": f"unlucky {number}", "limit": "3"}, f"caller {number}")

    assert shop.told("circuit:opened") == []
    assert shop.ask("auto_correction_circuits")["circuitBreakers"] == []
