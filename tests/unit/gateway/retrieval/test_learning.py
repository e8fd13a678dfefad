"""Recommendation gets better by what was called, and not worse for what was not."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.choosing import chosen
from stratagem import limits
from stratagem.gateway.advice.retrieval.request_history import RequestHistory
from stratagem.search.embedding import StaticEmbedder


def test_what_works_is_found_and_the_rest_is_not_harmed() -> None:
    before, after = chosen(120)

    assert after["called"].first > before["called"].first + 0.3
    assert after["called"].five >= before["called"].five
    assert after["called"].calls < before["called"].calls
    assert after["never called"] == before["never called"]


def followed(intents: RequestHistory, number: int, intent: str, *, worked: bool = True) -> None:
    caller, label = f"caller {number}", {"requestId": str(number)}
    request: dict[str, Any] = {"intent": intent, "caller": caller, "context": label}
    intents.add({**request, "tools": [f"tool_{number}"], "at": number})
    status = "success" if worked else "failed"
    call = {"caller": caller, "tool": f"tool_{number}", "context": label, "status": status}
    intents.note({**call, "startedAt": number})


@pytest.mark.parametrize("embedded", [True, False])
def test_only_the_newest_requests_are_learned_from(
    monkeypatch: pytest.MonkeyPatch, embedded: bool
) -> None:
    monkeypatch.setattr(limits, "RECOMMENDATIONS_LEARNED_MAX", 10)
    intents = RequestHistory(StaticEmbedder() if embedded else None)

    for number in range(100):
        followed(intents, number, f"weather in city {number}", worked=number % 2 == 0)

    assert 10 <= len(intents) <= 20
    support = intents.support("weather in city 98")
    assert support["tool_98"].worked == 1
    assert support["tool_98"].similarity == pytest.approx(1.0)
    assert "tool_0" not in support
