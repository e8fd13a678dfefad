"""Corrections on the path: what is applied, what is offered, and what the policy holds back."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from stratagem.errors import ExecutionTimeout, StratagemError, ValidationFailed
from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves


def offer(shop: Workshop, arguments: dict[str, Any], tool: str = "search") -> str:
    error = shop.fails(tool, arguments)
    given: str = error.details["corrections"][0]["correctionId"]
    return given


@proves("correction:applied", "correction:events")
def test_a_certain_correction_is_applied_and_told(shop: Workshop) -> None:
    answer = shop.run("search", {"query": "tea", "limit": "3"}, context={"agentId": "a-1"})

    assert answer["result"] == {"query": "tea", "limit": 3, "order": "newest"}
    correction = answer["metadata"]["correction"]
    assert correction["type"] == "typeConversion"
    assert correction["appliedPattern"] == "string_to_number_conversion"
    assert correction["confirmed"] is False
    assert shop.told("attempt:started")[0]["agentId"] == "a-1"
    (success,) = shop.told("attempt:success")
    assert success["toolName"] == "search"
    assert success["strategy"] == "typeConversion"
    assert success["riskLevel"] == "low"
    assert success["correctionResult"]["executionId"] == answer["executionId"]


@proves("correction:bounded")
def test_a_correction_that_takes_a_while_is_made_in_a_thread(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CORRECTION_INLINE_SECONDS", -1.0)

    answer = shop.run("search", {"query": "tea", "limit": "3"})

    assert answer["result"]["limit"] == 3


@proves("correction:bounded")
def test_a_correction_that_is_not_made_in_time_leaves_the_plain_violations(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CORRECTION_INLINE_SECONDS", -1.0)
    monkeypatch.setattr(limits, "CORRECTION_SECONDS", -1.0)

    error = shop.fails("search", {"query": "tea", "limit": "3"})

    assert isinstance(error, ValidationFailed)
    assert error.details["violations"][0]["path"] == "$.limit"
    assert "time" in error.details["withheld"]
    assert "corrections" not in error.details
    monkeypatch.undo()
    assert shop.run("search", {"query": "tea", "limit": "3"})["result"]["limit"] == 3


@proves("correction:bounded")
def test_large_arguments_are_corrected_off_the_event_loop(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On the loop there is no time at all; whatever is corrected was corrected elsewhere.
    monkeypatch.setattr(limits, "CORRECTION_INLINE_SECONDS", -1.0)
    query = "tea " * limits.CORRECTION_KEPT_BYTES_MAX

    assert shop.run("search", {"query": query, "limit": "3"})["result"]["limit"] == 3


@proves("correction:privacy")
def test_no_event_carries_a_value_of_a_caller(shop: Workshop) -> None:
    shop.run("search", {"query": "my secret garden", "limit": "31337"})
    shop.fails("search", {"needle": "my secret garden"})
    shop.run("search", {"query": "my secret garden"})

    about = [each for name, each in shop.heard if name.startswith(("attempt", "pattern"))]
    shop.settle()

    assert about
    assert "secret garden" not in str(about)
    assert "31337" not in str(about)


@proves("offer:doubt", "offer:confirm")
def test_a_doubtful_correction_is_offered_and_applied_when_confirmed(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})

    answer = shop.run("search", {"needle": "tea"}, correctionId=made, confirm=True)

    assert answer["result"]["query"] == "tea"
    assert answer["metadata"]["correction"]["confirmed"] is True


@proves("offer:confirm")
def test_an_offer_is_not_applied_without_confirmation(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})

    error = shop.fails("search", {"needle": "tea"}, correctionId=made)

    assert error.details["field"] == "confirm"


@proves("offer:confirm")
def test_a_confirmed_offer_holds_even_where_the_given_arguments_would_do(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})

    answer = shop.run("search", {"query": "coffee"}, correctionId=made, confirm=True)

    assert answer["result"]["query"] == "tea"


@proves("offer:own")
def test_an_offer_for_one_tool_is_none_for_another(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})

    error = shop.fails("switch", {"lamp": "hall"}, correctionId=made, confirm=True)

    assert isinstance(error, ValidationFailed)
    assert error.details["field"] == "correctionId"


@proves("offer:own")
def test_an_offer_for_one_caller_is_none_for_another(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})

    error = shop.fails("search", {"query": "x"}, "bob", correctionId=made, confirm=True)

    assert error.details["field"] == "correctionId"


@proves("offer:confirm", "batch:results")
def test_a_batch_takes_corrections(shop: Workshop) -> None:
    first = offer(shop, {"needle": "tea"})
    second = offer(shop, {"lamp": "hall", "position": "on"}, "switch")

    answer = shop.ask(
        "tools_batch",
        executions=[
            {"toolName": "search", "arguments": {"needle": "tea"}, "correctionId": first,
             "confirm": True},
            {"toolName": "switch", "arguments": {"lamp": "hall", "position": "on"},
             "correctionId": second, "confirm": True},
            {"toolName": "search", "arguments": {"needle": "tea"}, "correctionId": first},
        ],
    )  # fmt: skip

    assert [each["success"] for each in answer["results"]] == [True, True, False]
    assert answer["results"][1]["result"] == {"lamp": "hall", "state": "on"}


@proves("policy:settings")
@pytest.mark.parametrize(
    ("settings", "tool"),
    [
        ({"restrictedTools": ["send"]}, "send"),
        ({"restrictedCategories": ["payments"]}, "send"),
        ({"confirmationRequired": {"toolCategories": ["payments"]}}, "send"),
        ({"confirmationRequired": {"riskLevel": "low"}}, "send"),
        ({"strategies": {"typeConversion": {"confidence": 1.0}}}, "send"),
        ({"enabledStrategies": ["enumVariants"]}, "send"),
    ],
)
def test_what_the_policy_holds_back_is_not_run(
    shop: Workshop, settings: dict[str, Any], tool: str
) -> None:
    wrong = {"recipient": "bob", "amount": "12"}
    assert shop.run(tool, wrong)["result"]["amount"] == 12

    shop.ask("auto_correction_configure", settings=settings)
    error = shop.fails(tool, wrong)

    assert isinstance(error, ValidationFailed)
    assert error.details.get("withheld") or "corrections" not in error.details


@proves("offer:confirm")
def test_what_is_held_back_can_be_confirmed(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"restrictedTools": ["send"]})
    wrong = {"recipient": "bob", "amount": "12"}
    made = offer(shop, wrong, "send")

    answer = shop.run("send", wrong, correctionId=made, confirm=True)

    assert answer["result"]["amount"] == 12


@proves("policy:settings")
def test_nothing_is_corrected_where_corrections_are_off(shop: Workshop) -> None:
    made = offer(shop, {"needle": "tea"})
    shop.ask("auto_correction_configure", settings={"enabled": False})

    refused = shop.fails("search", {"query": "tea", "limit": "3"})
    confirmed = shop.fails("search", {"needle": "tea"}, correctionId=made, confirm=True)

    assert refused.details["withheld"] == "Corrections are switched off."
    assert confirmed.details["field"] == "correctionId"
    assert shop.run("search", {"query": "tea"})["result"]["query"] == "tea"


@proves("correction:attempts")
def test_retries_are_bounded_and_a_success_ends_the_count(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"maxRetries": 1})
    shop.fails("search", {"needle": "tea"})
    shop.fails("search", {"needle": "tea"})

    third = shop.fails("search", {"query": "tea", "limit": "3"})

    assert "2 attempts in a row" in third.details["withheld"]
    assert shop.told("attempt:started")[-1]["attempt"] == 3
    assert shop.run("search", {"query": "tea", "limit": "3"}, "bob")["result"]["limit"] == 3
    shop.run("search", {"query": "tea"})
    assert shop.run("search", {"query": "tea", "limit": "4"})["result"]["limit"] == 4


@proves("correction:attempts")
def test_calls_that_are_under_way_are_no_failed_attempts(shop: Workshop) -> None:
    calls = [
        {"toolName": "send", "arguments": {"recipient": "bob", "amount": str(number)}}
        for number in range(10, 22)
    ]

    answer = shop.ask("tools_batch", executions=calls, parallel=True)

    assert [each["success"] for each in answer["results"]] == [True] * 12


@proves("policy:settings")
def test_debug_mode_shows_how_it_was_decided(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"debugMode": True})

    applied = shop.run("search", {"query": "tea", "limit": "3"})["metadata"]["correction"]["debug"]
    refused = shop.fails("search", {"needle": "tea"}).details["debug"]

    assert applied["patterns"] == [
        {"path": "$.limit", "pattern": "string_to_number_conversion", "certain": True}
    ]
    assert refused["faults"]
    assert refused["policy"]["debugMode"] is True


@proves("correction:audit")
def test_a_required_audit_log_records_what_was_given_and_each_step(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"requireAuditLog": True})
    shop.run("send", {"recipient": "bob", "amount": "12"})
    shop.fails("search", {"needle": "password=hunter2hunter2"})

    held, refused = shop.records("correction_ok"), shop.records("correction_refused")

    assert held[0]["audit"]["given"] == {"recipient": "bob", "amount": "12"}
    assert held[0]["audit"]["steps"][0]["pattern"] == "string_to_number_conversion"
    assert "hunter2" not in str(refused)
    assert refused[0]["audit"]["faults"]


@proves("correction:audit")
def test_a_required_audit_log_records_what_was_never_answered(shop: Workshop) -> None:
    begun = threading.Event()

    async def wait(seconds: float) -> None:
        begun.set()
        await asyncio.sleep(seconds)

    shop.database.gateway.add(wait)
    shop.ask("auto_correction_configure", settings={"requireAuditLog": True})
    error: StratagemError | None = None
    # On a busy machine the time may be over before it begins.
    for milliseconds in (50, 1_000, 15_000):
        error = shop.fails("wait", {"seconds": "30"}, options={"timeout": milliseconds})
        if begun.is_set():
            break

    (left,) = shop.records("correction_open")

    assert isinstance(error, ExecutionTimeout)
    assert left["audit"]["given"] == {"seconds": "30"}
    assert shop.ask("auto_correction_status")["metrics"]["totalCorrections"] == 0


@proves("lesson:verdicts")
def test_whoever_cancels_a_call_says_nothing_about_its_correction(shop: Workshop) -> None:
    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)

    shop.database.gateway.add(wait)
    with ThreadPoolExecutor(1) as pool:
        for _time in range(4):
            call = pool.submit(shop.fails, "wait", {"seconds": "30"})
            shop.cancel()
            assert call.result(60).details["reason"] == "cancelled"

    assert shop.told("circuit:opened") == []
    assert shop.ask("auto_correction_status")["metrics"]["totalCorrections"] == 0
    assert shop.incidents() == []


@proves("offer:restart")
def test_long_arguments_are_not_kept_and_can_still_be_confirmed(shop: Workshop) -> None:
    long = {"needle": "x" * limits.CORRECTION_KEPT_BYTES_MAX}
    made = offer(shop, long)

    alone = shop.fails("search", {}, correctionId=made, confirm=True)
    again = shop.run("search", long, correctionId=made, confirm=True)

    assert "no offer" in alone.message
    assert again["result"]["query"] == long["needle"]
    assert shop.ask("auto_correction_status")["cache"]["entries"] == 1


@proves("correction:privacy")
def test_without_an_audit_log_no_value_is_recorded_with_a_correction(shop: Workshop) -> None:
    shop.run("send", {"recipient": "bobby tables", "amount": "98765432109876543"})
    shop.fails("search", {"needle": "bobby tables"})
    shop.run("search", {"query": "bobby tables"})

    written = [
        *shop.records("correction_ok"),
        *shop.records("correction_refused"),
        *shop.records("lesson_for"),
    ]

    assert len(written) == 3
    assert "bobby" not in str(written)
    assert "98765432109876543" not in str(written)
    assert "needle" not in str(written)


@proves("record:masked")
def test_what_is_recorded_of_a_corrected_call_is_masked(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"debugMode": True})
    secret = "token=ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    shop.run("search", {"query": secret, "limit": "3"})

    (record,) = shop.records("execution_ok")

    assert record["correction"]["appliedPattern"] == "string_to_number_conversion"
    assert "ghp_abcdefgh" not in str(record["correction"])
    assert "ghp_abcdefgh" not in str(record["arguments"])


@proves("correction:cached")
def test_the_same_mistake_is_not_looked_into_twice(shop: Workshop) -> None:
    for _time in range(3):
        shop.run("send", {"recipient": "bob", "amount": "12"})
    kept = shop.ask("auto_correction_status")["cache"]

    shop.ask("auto_correction_configure", settings={"confidenceThreshold": 0.8})
    shop.run("send", {"recipient": "bob", "amount": "12"})

    assert (kept["hits"], kept["misses"]) == (2, 1)
    assert shop.ask("auto_correction_status")["cache"]["misses"] == 2


@proves("call:idempotency", "lesson:verdicts")
def test_a_corrected_call_that_several_servers_are_sent_is_evidence_once(tmp_path: Path) -> None:
    wrong = {"recipient": "bob", "amount": "12"}
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        servers = [stack.enter_context(workshop(tmp_path / "race.db")) for _server in range(3)]

        for number in range(5):
            together = threading.Barrier(3)

            def race(shop: Workshop, number: int = number, to: Any = together) -> Any:
                to.wait(60)
                return shop.run("send", wrong, requestId=f"race {number}")["result"]

            assert list(pool.map(race, servers)) == [{"recipient": "bob", "amount": 12}] * 3

        statuses = [server.ask("auto_correction_status") for server in servers]
    assert [each["activeCorrections"] for each in statuses] == [[], [], []]
    assert statuses[0]["metrics"]["totalCorrections"] == 5
