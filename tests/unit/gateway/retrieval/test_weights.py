"""When the best tool is no answer."""

from __future__ import annotations

from stratagem.gateway.advice.retrieval.weights import SCORE_MIN, answer_score_min


def test_the_more_tools_there_are_the_nearer_the_best_has_to_be() -> None:
    floors = [answer_score_min(tools) for tools in (20, 200, 4_000)]

    assert floors == sorted(floors)
    assert [round(floor, 2) for floor in floors] == [0.07, 0.1, 0.16]


def test_a_handful_of_tools_is_asked_no_less_of_than_twenty() -> None:
    assert answer_score_min(0) == answer_score_min(3) == answer_score_min(20) > SCORE_MIN
