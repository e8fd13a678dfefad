"""Each part taken away: what is left goes on, and says what is missing."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from stratagem.advice import DebuggingAdvisor
from stratagem.engine.events import Draft
from stratagem.errors import TABLE, BranchNotFound, CorrectionUnavailable, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.calls import recorder
from stratagem.gateway.definitions.schemas import Schema
from stratagem.gateway.learning import evaluator
from stratagem.gateway.learning.corrector import OutcomeRecorder
from stratagem.operation import Caller
from stratagem.storage.views import find_branch
from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves

WRONG = {"recipient": "bob", "amount": "12"}
RIGHT = {"recipient": "bob", "amount": 12}


def write_policy(shop: Workshop, settings: Any) -> None:
    """Write a policy as something newer than this may write one."""
    draft = Draft(
        names.SETTING_CHANGED,
        {"settings": settings, "preset": None},
        names.SETTINGS,
        "auto_correction",
    )
    shop.database.runtime.foundation.write(
        Caller("newer"),
        lambda transaction: transaction.append(
            find_branch(transaction.branches, "default"), [draft]
        ),
    )


def rename(database: Path, table: str, name: str) -> None:
    with closing(sqlite3.connect(database)) as damaged, damaged:
        damaged.execute(f"ALTER TABLE {table} RENAME TO {name}")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path / "shop.db") as opened:
        yield opened


def health(shop: Workshop) -> Any:
    return shop.database.runtime.gateway.corrector.health.status()


@pytest.fixture
def lessonless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """A workshop whose counts of lessons can neither be read nor written."""
    monkeypatch.setattr(recorder, "_TRIES_MAX", 1)
    with workshop(tmp_path / "lessonless.db") as opened:
        opened.teach("needle", 1)
        opened.settle()
        rename(tmp_path / "lessonless.db", "tallies", "lost")
        opened.database.runtime.gateway.corrector.evaluator.forget()
        yield opened
        rename(tmp_path / "lessonless.db", "lost", "tallies")


@proves("correction:degraded")
def test_without_a_readable_policy_only_valid_calls_run(shop: Workshop) -> None:
    write_policy(shop, {"settingOfALaterVersion": 1})

    error = shop.fails("send", WRONG)

    assert isinstance(error, CorrectionUnavailable)
    assert TABLE[error.code].gateway_code == "AUTO_CORRECTION_UNAVAILABLE"
    assert error.details["fallbackMode"] is True
    assert error.details["serviceStatus"]["policyService"] == "unavailable"
    assert error.details["violations"][0]["path"] == "$.amount"
    assert shop.run("send", RIGHT)["result"] == RIGHT
    diagnose = shop.ask("error_diagnose", error="it failed", toolName="send", parameters=WRONG)
    assert diagnose["autoCorrection"]["available"] is False
    assert diagnose["fallbackMode"] is True
    status = shop.ask("auto_correction_status")
    assert status["settings"] is None
    assert status["systemStatus"]["healthy"] is False
    assert status["systemStatus"]["enabled"] is None
    assert status["fallbackMode"] is True


@proves("correction:degraded")
def test_the_policy_comes_back_when_it_can_be_read(shop: Workshop) -> None:
    write_policy(shop, {"settingOfALaterVersion": 1})
    shop.fails("send", WRONG)

    write_policy(shop, {})

    assert shop.run("send", WRONG)["result"] == RIGHT
    assert shop.ask("auto_correction_status")["fallbackMode"] is False


@proves("policy:reset")
def test_a_policy_that_cannot_be_read_can_be_replaced(shop: Workshop) -> None:
    write_policy(shop, {"settingOfALaterVersion": 1})
    with pytest.raises(ValidationFailed) as caught:
        shop.ask("auto_correction_configure", settings={"enabled": True})
    assert "reset: true" in (caught.value.hint or "")

    answer = shop.ask("auto_correction_configure", reset=True)

    assert answer["previousSettings"] is None
    assert answer["changesApplied"] == ["Replaced settings that could not be read"]
    assert shop.run("send", {"recipient": "bob", "amount": "12"})["result"]["amount"] == 12
    write_policy(shop, None)
    assert shop.ask("auto_correction_configure", preset="production")["configurationUpdated"]
    assert shop.ask("auto_correction_status")["settings"]["requireAuditLog"] is True


@proves("correction:degraded")
def test_without_an_engine_only_valid_calls_run(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object, **_more: object) -> None:
        raise RuntimeError("the engine is broken")

    monkeypatch.setattr(evaluator, "correct", broken)

    error = shop.fails("send", WRONG)

    assert isinstance(error, CorrectionUnavailable)
    assert error.details["serviceStatus"]["correctionEngine"] == "unavailable"
    assert shop.run("send", RIGHT)["result"] == RIGHT


@proves("correction:degraded")
def test_without_lessons_the_schema_alone_corrects(lessonless: Workshop) -> None:
    answer = lessonless.run("send", WRONG)

    assert answer["result"] == RIGHT
    correction = answer["metadata"]["correction"]
    assert correction["fallbackMode"] is True
    assert correction["serviceStatus"]["patternService"] == "unavailable"
    assert lessonless.run("send", RIGHT)["result"] == RIGHT
    refused = lessonless.fails("search", {"needle": "tea"})
    assert refused.details["fallbackMode"] is True


@proves("correction:degraded")
def test_what_cannot_be_written_does_not_fail_the_call(lessonless: Workshop) -> None:
    lessonless.run("send", WRONG)
    lessonless.settle()

    assert lessonless.run("send", {"recipient": "b", "amount": "3"})["result"]["amount"] == 3
    assert health(lessonless)["learningPipeline"] == "unavailable"


@proves("correction:degraded")
def test_learning_that_fails_does_not_fail_the_call(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object, **_more: object) -> None:
        raise RuntimeError("nothing can be noted")

    monkeypatch.setattr(OutcomeRecorder, "record", broken)

    assert shop.run("send", WRONG)["result"] == RIGHT
    assert health(shop)["learningPipeline"] == "unavailable"


@proves("correction:degraded")
def test_a_database_that_is_only_read_corrects_and_learns_nothing(tmp_path: Path) -> None:
    with workshop(tmp_path / "read.db") as first:
        first.settle()
    import stratagem

    with stratagem.open(str(tmp_path / "read.db"), read_only=True, embedder="none") as reading:
        found = reading.call(
            "error_diagnose", {"toolName": "send", "parameters": WRONG, "error": "it failed"}
        )
        status = reading.call("auto_correction_status", {})

    assert found["autoCorrection"]["appliedCorrection"]["correctedParameters"] == RIGHT
    assert status["healthChecks"]["learningPipeline"] == "disabled"


@proves("correction:audit")
def test_a_required_audit_log_that_cannot_be_written_holds_corrections_back(
    shop: Workshop,
) -> None:
    shop.ask("auto_correction_configure", settings={"requireAuditLog": True})
    shop.database.runtime.gateway.corrector.health.record_failure(
        "learningPipeline", OSError("the disk is full")
    )

    refused = shop.fails("send", WRONG)

    assert "have to be recorded" in refused.details["withheld"]


@proves("correction:audit")
def test_a_required_audit_log_holds_confirmed_corrections_back_too(shop: Workshop) -> None:
    made = shop.fails("search", {"needle": "tea"}).details["corrections"][0]["correctionId"]
    shop.ask("auto_correction_configure", settings={"requireAuditLog": True})
    shop.database.runtime.gateway.corrector.health.record_failure(
        "learningPipeline", OSError("the disk is full")
    )

    error = shop.fails("search", {"needle": "tea"}, correctionId=made, confirm=True)

    assert isinstance(error, CorrectionUnavailable)
    assert error.details["serviceStatus"]["learningPipeline"] == "unavailable"


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("auto_correction_status", {}),
        ("auto_correction_test", {"testSuite": "type_conversion"}),
        ("error_diagnose", {"toolName": "send", "parameters": WRONG}),
    ],
)
def test_a_branch_that_is_not_there_is_no_fault_of_a_part(
    shop: Workshop, operation: str, given: dict[str, Any]
) -> None:
    with pytest.raises(BranchNotFound):
        shop.ask(operation, branch="nowhere", **given)

    assert shop.ask("auto_correction_status")["systemStatus"]["healthy"] is True


def test_without_validation_the_status_says_so(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Schema, "accepts", lambda *_given: True)

    status = shop.ask("auto_correction_status")

    assert status["healthChecks"]["validationService"] == "unavailable"
    assert status["systemStatus"]["healthy"] is False
    monkeypatch.undo()
    assert shop.ask("auto_correction_status")["systemStatus"]["healthy"] is True


def test_lost_records_are_seen_without_another_call(shop: Workshop) -> None:
    shop.database.runtime.gateway.recorder.lost += 1

    status = shop.ask("auto_correction_status")

    assert status["healthChecks"]["learningPipeline"] == "unavailable"
    assert "1 records were lost" in status["faults"]["learningPipeline"]


def test_a_defect_in_what_follows_a_call_does_not_end_the_recording(shop: Workshop) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    shop.run("send", RIGHT)
    shop.database.runtime.gateway.recorder.do(broken)
    shop.run("send", WRONG)

    assert shop.ask("auto_correction_status")["metrics"]["successfulCorrections"] == 1


@proves("correction:degraded")
def test_without_a_debugging_memory_calls_and_diagnoses_go_on(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> None:
        raise OSError("the debugging memory is away")

    monkeypatch.setattr(DebuggingAdvisor, "known_fix", broken)

    error = shop.fails("search", {"query": "unlucky"})
    found = shop.ask("error_diagnose", toolName="send", parameters=WRONG, error="it failed")

    assert "knownFix" not in error.details
    assert found["autoCorrection"]["appliedCorrection"]["correctedParameters"] == RIGHT


@proves("fix:told")
def test_an_error_does_not_wait_for_a_slow_memory(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()

    def slow(*_given: object) -> None:
        waiting.wait(60)

    monkeypatch.setattr(DebuggingAdvisor, "known_fix", slow)
    monkeypatch.setattr(limits, "ADVICE_SECONDS", 0.05)

    started = time.monotonic()
    error = shop.fails("search", {"query": "unlucky"})
    took = time.monotonic() - started
    waiting.set()

    assert "nothing can be found" in error.message
    assert took < 30
