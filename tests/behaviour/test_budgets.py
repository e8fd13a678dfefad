"""Answers are cut to what fits beside a conversation, say so, and say how to get the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


def size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def pages(call: Call, name: str, **arguments: Any) -> list[dict[str, Any]]:
    """Follow an answer's cursor to the end."""
    answers = [call(name, **arguments)]
    while "next" in answers[-1]:
        answers.append(call(name, **arguments, cursor=answers[-1]["next"]))
        assert len(answers) < 200
    return answers


@proves("budget:value")
@pytest.mark.parametrize(
    "text",
    ["word " * 10_000, "\n" * 30_000, '"\\' * 20_000, "\u0001" * 10_000, "世界" * 20_000],
    ids=["words", "lines", "quotes", "controls", "wide"],
)
def test_a_long_text_is_read_page_by_page(call: Call, text: str) -> None:
    call.store(key="k", value=text)

    answers = pages(call, "strata_recall", key="k")

    assert "".join(answer["value"] for answer in answers) == text
    assert all(size(answer) <= 20_000 for answer in answers)
    assert all(answer["truncated"] for answer in answers[:-1])
    assert all(answer["note"] for answer in answers)
    assert answers[-1]["truncated"] is False


@proves("budget:value")
def test_a_long_document_is_read_as_json_page_by_page(call: Call) -> None:
    document = {"lines": [f'line "{number}"' for number in range(3_000)]}
    call.store(key="k", value=document)

    answers = pages(call, "strata_recall", key="k", max_chars=5_000)

    assert json.loads("".join(answer["value"] for answer in answers)) == document
    assert all(size(answer) <= 5_000 for answer in answers)


@proves("budget:value")
def test_a_value_that_fits_is_whole(call: Call) -> None:
    call.store(key="k", value="x" * 19_000)

    answer = call.recall(key="k")

    assert len(answer["value"]) == 19_000
    assert "truncated" not in answer
    assert "note" not in answer


@proves("budget:value")
def test_the_budget_counts_what_else_the_answer_says(call: Call) -> None:
    tags = [f"{number:03}" + "t" * 100 for number in range(60)]
    call.store(key="k" * 512, value="x" * 30_000, tags=tags)

    assert size(call.recall(key="k" * 512)) <= 20_000


@proves("budget:keys")
def test_many_entries_are_recalled_page_by_page(call: Call) -> None:
    call.store(items=[{"key": f"k{number}", "value": "x" * 500} for number in range(100)])
    keys = [f"k{number}" for number in (*range(50), 0, 7, *range(40, 110), 3)]

    answers = pages(call, "strata_recall", keys=keys)

    found = [entry["key"] for answer in answers for entry in answer["results"]]
    assert found == [f"k{number}" for number in range(100)]
    assert all(size(answer) <= 20_000 for answer in answers)
    assert all("left out" in answer["note"] for answer in answers[:-1])
    assert answers[-1]["truncated"] is False


@proves("budget:search")
def test_many_hits_are_shown_page_by_page(call: Call) -> None:
    text = "fjord " + "x" * 900
    call.store(items=[{"key": f"k{number:02}", "value": text} for number in range(60)])

    answers = pages(call, "strata_search", query="fjord", k=50)

    found = [hit["key"] for answer in answers for hit in answer["results"]]
    assert found == [f"k{number:02}" for number in range(59, -1, -1)]
    assert all(size(answer) <= 20_000 for answer in answers)


@proves("budget:search")
def test_a_hit_that_is_too_long_by_itself_is_shortened_and_says_so(call: Call) -> None:
    call.store(key="long", value="fjord " * 20_000)
    call.store(key="short", value="fjord")

    answers = pages(call, "strata_search", query="fjord")

    hits = {hit["key"]: hit for answer in answers for hit in answer["results"]}
    assert hits["long"]["chars"] == 120_000
    assert hits["long"]["value"].startswith("fjord")
    assert hits["short"]["value"] == "fjord"
    assert all(size(answer) <= 20_000 for answer in answers)


@proves("budget:history")
def test_long_versions_are_shown_page_by_page(call: Call) -> None:
    for number in range(30):
        call.store(key="k", value=f"{number} " + "x" * 2_000)

    answers = pages(call, "strata_history", key="k", limit=25)

    shown = [each["value"].split()[0] for answer in answers for each in answer["results"]]
    assert shown == [str(number) for number in range(29, -1, -1)]
    assert all(size(answer) <= 20_000 for answer in answers)


@proves("budget:branches")
def test_many_branches_are_listed_page_by_page(call: Call) -> None:
    names = [f"b{number:03}-" + "x" * 100 for number in range(100)]
    for name in names:
        call.branch(action="create", name=name)

    answers = pages(call, "strata_branch", action="list", max_chars=5_000)

    shown = [each["name"] for answer in answers for each in answer["results"]]
    assert shown == ["default", *names]
    assert all(size(answer) <= 5_000 for answer in answers)


@proves("budget:diff")
def test_many_differences_are_shown_page_by_page(call: Call) -> None:
    call.branch(action="fork", name="trial")
    items = [{"key": f"k{number:03}", "value": "x" * 300} for number in range(200)]
    call.store(items=items, branch="trial")

    answers = pages(call, "strata_branch", action="diff", compare="trial")

    shown = [each["key"] for answer in answers for each in answer["results"]]
    assert shown == [f"k{number:03}" for number in range(200)]
    assert {answer["added"] for answer in answers} == {200}
    assert all(size(answer) <= 20_000 for answer in answers)


@proves("budget:merge")
def test_a_large_merge_says_what_it_did_without_asking_to_be_repeated(call: Call) -> None:
    call.branch(action="fork", name="trial")
    items = [{"key": f"k{number:03}", "value": "x" * 300} for number in range(200)]
    call.store(items=items, branch="trial")

    preview = pages(call, "strata_branch", action="merge", source="trial", preview=True)
    merged = call.branch(action="merge", source="trial")

    assert sum(len(answer["results"]) for answer in preview) == 200
    assert (merged["merged"], merged["truncated"]) == (200, True)
    assert "cursor" not in merged["note"]
    assert "next" not in merged
    assert size(merged) <= 20_000


@proves("budget:conflicts")
def test_many_or_long_conflicts_stay_within_the_budget_too(call: Call) -> None:
    items = [{"key": f"k{number:03}", "value": "x" * 3_000} for number in range(150)]
    call.store(items=items)
    call.branch(action="fork", name="trial")
    call.store(items=[{**item, "value": "y" * 3_000} for item in items], branch="trial")
    call.store(items=[{**item, "value": "z" * 3_000} for item in items])

    preview = call.branch(action="merge", source="trial", preview=True)
    refused = call.refusal("strata_branch", action="merge", source="trial")

    assert size(preview) <= 20_000
    assert size(refused) <= 20_000
    assert preview["conflicts"]
    assert refused["details"]["conflicts"]
    assert preview["conflict_count"] == refused["details"]["conflict_count"] == 150
    assert "left out" in preview["note"]


@proves("budget:limits", "input:values")
@pytest.mark.parametrize("budget", [0, -1, 499, 1_000_001, "much", []])
def test_a_budget_out_of_range_is_refused(call: Call, budget: Any) -> None:
    refused = call.refusal("strata_recall", key="k", max_chars=budget)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "max_chars")


@proves("budget:limits", "input:values")
@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "", "9" * 5_000, " 1"])
def test_a_cursor_that_no_answer_gave_is_refused(call: Call, cursor: str) -> None:
    call.store(key="k", value=1)

    for name, arguments in (
        ("strata_recall", {"key": "k"}),
        ("strata_recall", {"keys": ["k"]}),
        ("strata_search", {"query": "k"}),
        ("strata_history", {"key": "k"}),
        ("strata_branch", {"action": "list"}),
    ):
        refused = call.refusal(name, **arguments, cursor=cursor)
        assert (refused["error"], refused["details"]["field"]) == ("validation_error", "cursor")


@proves("budget:limits", "input:values")
@pytest.mark.parametrize("cursor", ["10", "999"])
def test_a_cursor_past_the_end_of_a_value_is_refused_with_its_length(
    call: Call, cursor: str
) -> None:
    call.store(key="city", value="Gothenburg")

    refused = call.refusal("strata_recall", key="city", cursor=cursor)

    details = refused["details"]
    assert (refused["error"], details["field"], details["limit"]) == (
        "validation_error",
        "cursor",
        10,
    )
    assert "10 characters" in refused["message"]
    assert "leave the cursor out" in refused["hint"]
    assert call.recall(key="city", cursor="9")["value"] == "g"


@proves("budget:limits", "input:values")
def test_a_cursor_past_the_last_of_several_keys_is_refused(call: Call) -> None:
    call.store(key="a", value=1)

    refused = call.refusal("strata_recall", keys=["a", "b"], cursor="2")

    assert (refused["details"]["field"], refused["details"]["limit"]) == ("cursor", 2)


@proves("budget:limits", "input:values")
def test_a_cursor_past_the_end_of_an_explanation_is_refused(call: Call) -> None:
    call("create_concept", name="Tide", explanation="Water rises and falls.", area="Sea")

    refused = call.refusal("get_concept", concept_id="Tide", cursor="500")

    assert (refused["details"]["field"], refused["details"]["limit"]) == ("cursor", 22)


@proves("budget:value")
def test_a_part_of_a_long_value_fills_what_was_asked_for(call: Call) -> None:
    call.store(key="long", value="x" * 5_000)
    call.store(key="short", value="y" * 350)

    part = call.recall(key="long", max_chars=600)
    short = call.recall(key="short", max_chars=600)

    assert 560 <= size(part) <= 600
    assert part["truncated"]
    assert len(short["value"]) == 350
    assert "truncated" not in short
