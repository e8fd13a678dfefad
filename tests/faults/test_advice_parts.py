"""Advice about tools with each of its parts taken away: what is left answers, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import stratagem
from stratagem.gateway.advice.execution_records import ExecutionRecordsCache
from stratagem.gateway.advice.record_services import PatternService, ValidationService
from stratagem.gateway.names import TOOLS
from stratagem.operation import Caller
from stratagem.storage.contract import WriteRequest
from tests.behaviour.gateway.advice.registered import register_weather_and_mail
from tests.manifest import proves


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", durability="fast") as opened:
        register_weather_and_mail(opened)
        yield opened


def ask(db: stratagem.Stratagem, intent: str) -> dict[str, Any]:
    return db.call("tools_recommend", {"intent": intent})


def names(answer: dict[str, Any]) -> list[str]:
    return [each["name"] for each in answer["recommendedTools"]]


class Broken:
    """A store of records that cannot be read."""

    def of(self, *_: Any) -> Any:
        raise OSError("the disk is gone")


@proves("recommend:degraded")
def test_without_the_validation_service_the_answer_still_comes(db: stratagem.Stratagem) -> None:
    recommender = db.runtime.gateway.recommender()
    recommender.validation = ValidationService(Broken())  # type: ignore[arg-type]

    answer = ask(db, "weather in Oslo")

    assert names(answer)[0] == "get_weather"
    assert answer["validationInsights"] is None
    assert answer["recommendedTools"][0]["parameterExamples"] is not None
    assert answer["fallbackMode"] is True
    assert answer["serviceStatus"] == {
        "validationService": "unavailable",
        "patternService": "available",
    }


@proves("recommend:degraded")
def test_without_the_pattern_service_the_answer_still_comes(db: stratagem.Stratagem) -> None:
    recommender = db.runtime.gateway.recommender()
    recommender.patterns = PatternService(Broken(), Broken())  # type: ignore[arg-type]

    answer = ask(db, "weather in Oslo")

    assert names(answer)[0] == "get_weather"
    assert answer["patternRecommendations"] is None
    assert answer["validationInsights"] is not None
    assert answer["serviceStatus"]["patternService"] == "unavailable"


@proves("recommend:degraded")
def test_a_part_that_comes_back_is_used_again(db: stratagem.Stratagem) -> None:
    recommender = db.runtime.gateway.recommender()
    recommender.validation = ValidationService(Broken())  # type: ignore[arg-type]
    ask(db, "weather in Oslo")

    recommender.validation = ValidationService(ExecutionRecordsCache())

    assert ask(db, "weather in Oslo")["fallbackMode"] is False


@proves("recommend:degraded")
def test_without_the_debugging_memory_the_rest_is_answered(db: stratagem.Stratagem) -> None:
    class Away:
        def known_fix(
            self, text: str, tool: str, branch: str, caller: Caller
        ) -> dict[str, Any] | None:
            raise OSError(text, tool, branch, caller)

    db.runtime.gateway.recommender().advisor = Away()

    answer = db.call(
        "tools_recommend_on_error", {"failedTool": "read_file", "errorMessage": "disk full"}
    )

    assert answer["knownFix"] is None
    assert answer["preventionTips"]


def test_an_erased_tool_is_forgotten(db: stratagem.Stratagem) -> None:
    before = names(ask(db, "weather in Oslo"))
    store = db.runtime.foundation.store

    store.purge(WriteRequest("admin"), space=TOOLS, key="get_weather", sequence=None)

    assert before[0] == "get_weather"
    assert "get_weather" not in names(ask(db, "weather in Oslo"))
