"""Answers that would not fit beside a conversation are cut, and say how to read the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.behaviour.knowledge.conftest import Knowing
from tests.contracts.samples import Clock
from tests.manifest import proves

LONG = "x" * 180


def size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def read_all(call: Knowing, operation: str, field: str, **arguments: Any) -> list[Any]:
    """Follow the cursor to the end; every answer keeps to the budget."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    for _ in range(100):
        answer = call(operation, **arguments, **cursor)
        assert size(answer) <= arguments.get("max_chars", 20_000)
        assert answer.get("total", len(answer[field])) == len(answer[field]) > 0
        found += answer[field]
        if "next" not in answer:
            return found
        assert answer["truncated"] is True
        assert "limit" in arguments or f"cursor='{answer['next']}'" in answer["note"]
        cursor = {"cursor": answer["next"]}
    raise AssertionError("it never ends")


@proves("knowledge:budget")
def test_lists_are_cut_and_go_on_where_they_ended(meaning: Knowing) -> None:
    center = meaning.concept("Center")
    names = []
    for number in range(9):
        name = f"{number} {LONG}"
        other = meaning.concept(name, "Ships in the harbour.", area=LONG[:100])
        meaning.relate(other, center, "prerequisite")
        names.append(name)

    for operation, field, arguments in (
        ("search_concepts_exact", "results", {"name": LONG}),
        ("search_concepts_semantic", "results", {"query": "ships harbour", "area": LONG[:100]}),
        ("get_recent_concepts", "results", {}),
        ("get_concepts_by_certainty", "results", {"min_certainty": 61}),
        ("get_related_concepts", "results", {"concept_id": center}),
        ("get_prerequisites", "prerequisites", {"concept_id": center}),
    ):
        whole = meaning(operation, **arguments)
        assert "next" not in whole, operation
        pieces = read_all(meaning, operation, field, max_chars=1_500, **arguments)
        assert pieces == whole[field], operation
        assert set(names) <= {each["name"] for each in pieces}, operation


@proves("knowledge:pages")
def test_every_list_is_paged_past_its_limit(meaning: Knowing) -> None:
    center = meaning.concept("Center", "Ships in the harbour.")
    others = [meaning.concept(f"Ship {number}", "Ships in the harbour.") for number in range(7)]
    for other in others:
        meaning.relate(center, other, strength=0.5)
    meaning("mark_known", concepts=others)

    for operation, count, arguments in (
        ("search_concepts_exact", 8, {}),
        ("search_concepts_semantic", 8, {"query": "ships harbour"}),
        ("get_recent_concepts", 8, {}),
        ("get_concepts_by_certainty", 8, {}),
        ("get_related_concepts", 7, {"concept_id": "Center"}),
        ("list_known", 7, {}),
    ):
        whole = meaning(operation, limit=50, **arguments)["results"]
        pieces = read_all(meaning, operation, "results", limit=3, **arguments)
        assert pieces == whole, operation
        assert len({each["concept_id"] for each in pieces}) == count, operation


@proves("knowledge:budget")
def test_without_saying_so_answers_keep_to_the_default_budget(call: Knowing) -> None:
    for number in range(45):
        call.concept(f"{number} {LONG}", area="a" * 100, topic="t" * 100, subtopic="s" * 100)

    answer = call("search_concepts_exact", limit=100)

    assert 1 < answer["total"] == len(answer["results"]) < 45
    assert answer["message"] == "Found 45 concepts matching criteria"
    assert len(read_all(call, "search_concepts_exact", "results", limit=100)) == 45
    assert call("search_concepts_exact", limit=100, max_chars=100_000)["total"] == 45


@proves("knowledge:budget")
def test_a_long_hierarchy_is_cut_under_its_headings(call: Knowing) -> None:
    for number in range(24):
        call.concept(
            "C", area=f"Area {number // 12}", topic=f"Topic {number // 4}", subtopic=f"S{number}"
        )
    whole = call("list_hierarchy")

    seen: dict[tuple[str, str], list[str]] = {}
    counts: dict[str, set[int]] = {}
    cursor: dict[str, str] = {}
    answers = 0
    while True:
        answer = call("list_hierarchy", max_chars=900, **cursor)
        answers += 1
        assert size(answer) <= 900
        assert answer["total_concepts"] == 24
        for area in answer["areas"]:
            counts.setdefault(area["name"], set()).add(area["concept_count"])
            for topic in area["topics"]:
                assert topic["concept_count"] == 4
                place = (area["name"], topic["name"])
                seen.setdefault(place, []).extend(each["name"] for each in topic["subtopics"])
        if "next" not in answer:
            break
        cursor = {"cursor": answer["next"]}

    assert answers > 2
    assert counts == {"Area 0": {12}, "Area 1": {12}}
    assert seen == {
        (area["name"], topic["name"]): [each["name"] for each in topic["subtopics"]]
        for area in whole["areas"]
        for topic in area["topics"]
    }
    assert "next" not in whole


@proves("knowledge:budget")
def test_a_long_explanation_is_read_in_pieces(call: Knowing) -> None:
    explanation = "".join(f"{number} — line\n" for number in range(4_000))
    concept_id = call.concept("C", explanation)

    read = ""
    cursor: dict[str, str] = {}
    for _ in range(100):
        answer = call("get_concept", concept_id=concept_id, **cursor)
        assert size(answer) <= 20_000
        read += answer["concept"]["explanation"]
        if "next" not in answer:
            break
        cursor = {"cursor": answer["next"]}

    assert read == explanation
    whole = call("get_concept", concept_id=concept_id, max_chars=200_000)
    assert whole["concept"]["explanation"] == explanation
    assert "note" not in whole


@proves("knowledge:budget")
def test_a_long_history_keeps_the_newest_and_says_how_to_see_the_rest(
    call: Knowing, clock: Clock
) -> None:
    concept_id = call.concept("C", "0 " + "w" * 1_000)
    for number in range(1, 30):
        clock.advance(1)
        call("update_concept", concept_id=concept_id, explanation=f"{number} " + "w" * 1_000)

    answer = call("get_concept", concept_id=concept_id, include_history=True)
    history = answer["concept"]["explanation_history"]

    assert size(answer) <= 20_000
    assert 5 < len(history) < 30
    assert history[-1]["explanation"] == answer["concept"]["explanation"]
    assert [each["explanation"].split()[0] for each in history] == [
        str(number) for number in range(30 - len(history), 30)
    ]
    assert f"{30 - len(history)} earlier explanations were left out" in answer["note"]
    earlier = call.get(concept_id, as_of=history[0]["timestamp"], include_history=True)
    assert earlier["explanation_history"][-1] == history[0]
    assert earlier["explanation_history"][0]["explanation"].startswith("0 ")
    everything = call.get(concept_id, include_history=True, max_chars=100_000)
    assert len(everything["explanation_history"]) == 30


@proves("knowledge:budget")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cursor", "x"),
        ("cursor", ""),
        ("cursor", "-1"),
        ("cursor", "1" * 30),
        ("cursor", "²"),
        ("max_chars", 499),
        ("max_chars", 1_000_001),
        ("max_chars", "many"),
        ("max_chars", True),
    ],
)
def test_a_budget_that_cannot_be_is_refused(call: Knowing, field: str, value: Any) -> None:
    call.concept("C")

    for operation in ("get_recent_concepts", "list_hierarchy"):
        refused = call.refusal(operation, **{field: value})
        assert (refused["error"], refused["details"]["field"]) == ("validation_error", field)
