from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("items:answer")
def test_several_entries_are_stored_at_one_time(call: Call) -> None:
    call.store(key="b", value="old")

    answer = call.store(items=[{"key": "a", "value": 1}, {"key": "b", "value": None}])

    assert [each["key"] for each in answer["results"]] == ["a", "b"]
    assert [each["status"] for each in answer["results"]] == ["created", "updated"]
    assert len({each["timestamp"] for each in answer["results"]}) == 1
    assert answer["version"] == answer["results"][-1]["version"]
    assert (call.value("a"), call.value("b")) == (1, None)


@proves("items:options")
def test_items_have_options_of_their_own_and_share_those_beside_them(
    call: Call, clock: Clock
) -> None:
    call.branch(action="fork", name="trial")

    call.store(
        items=[
            {"key": "a", "value": 1},
            {"key": "b", "value": {"x": 1}, "namespace": "own", "tags": ["own"], "ttl": "1h"},
            {"key": "c", "value": 2, "path": "$.deep", "index": False},
        ],
        namespace="shared",
        tags=["shared"],
        ttl="10s",
        branch="trial",
    )

    a = call.recall(key="a", namespace="shared", branch="trial")
    b = call.recall(key="b", namespace="own", branch="trial")
    assert (a["tags"], b["tags"]) == (["shared"], ["own"])
    assert call.value("c", namespace="shared", branch="trial") == {"deep": 2}
    assert call.value("a", namespace="shared") is ...
    clock.advance(60)
    assert call.value("a", namespace="shared", branch="trial") is ...
    assert call.value("b", namespace="own", branch="trial") == {"x": 1}


@proves("items:atomic")
@pytest.mark.parametrize(
    "bad",
    [
        {"key": "", "value": 1},
        {"key": "k", "value": 1, "expected_version": 99},
        {"key": "k", "value": 1, "path": "$..x"},
        {"key": "k", "value": 1, "ttl": "soon"},
        {"key": "k", "value": 1, "tags": [""]},
        {"key": "k", "value": "x" * (4 * 1024 * 1024)},
        {"key": "a", "value": 1, "path": "$.b"},
    ],
    ids=lambda bad: ", ".join(set(bad) - {"key", "value"}) or str(bad)[:20],
)
def test_one_bad_item_keeps_all_of_them_from_being_written(call: Call, bad: Any) -> None:
    call.refusal("strata_store", items=[{"key": "a", "value": 1}, bad])

    assert call.value("a") is ...
    assert call.status()["keys"] == 0


@proves("items:order")
def test_a_later_item_sees_what_an_earlier_one_wrote(call: Call) -> None:
    answer = call.store(
        items=[
            {"key": "k", "value": {"a": 1}},
            {"key": "k", "value": 2, "path": "$.b"},
            {"key": "k", "value": 3, "path": "$.a"},
        ]
    )

    assert call.value("k") == {"a": 3, "b": 2}
    assert [each["status"] for each in answer["results"]] == ["created", "updated", "updated"]
    assert len(call.history(key="k")["results"]) == 3


@proves("items:limits")
def test_a_thousand_items_are_stored_and_one_more_is_refused(call: Call) -> None:
    items = [{"key": f"k{number}", "value": number} for number in range(1_001)]

    refused = call.refusal("strata_store", items=items)
    call.store(items=items[:1_000])

    assert refused["details"]["limit"] == 1_000
    assert call.status()["keys"] == 1_000


@proves("items:limits")
def test_many_items_say_how_many_were_written_even_where_not_all_are_shown(call: Call) -> None:
    items = [{"key": f"k{number}", "value": number} for number in range(1_000)]

    answer = call.store(items=items)

    assert answer["truncated"] is True
    assert len(str(answer)) < 25_000
    assert "1000" in answer["note"]
    assert "cursor" not in answer["note"]
    assert "next" not in answer


@proves("items:shape", "input:values")
@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([], "items"),
        ([{"key": "a", "value": 1}, {"value": 1}], "items[1].key"),
        ([{"key": "k"}], "items[0].value"),
        ([{"key": "a", "value": 1}, {"key": "", "value": 1}], "items[1].key"),
        ([{"key": "k", "value": 1, "ttl": "soon"}], "items[0].ttl"),
        ([{"key": "k", "value": 1, "branch": "trial"}], "items[0].branch"),
        (["k"], "items[0]"),
        ("k", "items"),
    ],
    ids=repr,
)
def test_items_that_are_none_are_refused_and_the_place_is_named(
    call: Call, items: Any, path: str
) -> None:
    refused = call.refusal("strata_store", items=items)

    assert refused["error"] in {"validation_error", "missing_required", "invalid_input"}
    assert refused["details"]["field"] == "items"
    assert refused["details"].get("path", "items") == path
    assert path.removesuffix(".branch") in refused["message"]


@proves("items:shape")
def test_items_and_a_key_exclude_each_other(call: Call) -> None:
    refused = call.refusal("strata_store", key="k", value=1, items=[{"key": "a", "value": 1}])

    assert refused["details"]["field"] == "items"
