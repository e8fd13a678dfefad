from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


def parted(call: Call, base: Any, ours: Any, theirs: Any) -> None:
    """Store one value, fork, and change it on both branches; `...` means absent."""
    for branch, value in (("default", base), ("trial", theirs), ("default", ours)):
        if branch == "trial":
            call.branch(action="fork", name="trial")
        if value is ...:
            call.forget(key="k", branch=branch)
        else:
            call.store(key="k", value=value, branch=branch)


@proves("merge:takes")
def test_what_only_the_source_changed_is_taken(call: Call) -> None:
    call.store(key="changed", value="old")
    call.store(key="removed", value="old")
    call.store(key="kept", value="old")
    call.branch(action="fork", name="trial")
    call.store(key="changed", value="new", branch="trial")
    call.store(key="added", value="new", branch="trial")
    call.forget(key="removed", branch="trial")
    call.store(key="ours", value="mine")

    answer = call.branch(action="merge", source="trial")

    assert (answer["source"], answer["target"]) == ("trial", "default")
    assert answer["merged"] == 3
    assert {each["key"]: each["change"] for each in answer["results"]} == {
        "added": "added",
        "changed": "changed",
        "removed": "removed",
    }
    shown = [call.value(key) for key in ("changed", "removed", "kept", "added", "ours")]
    assert shown == ["new", ..., "old", "new", "mine"]


@proves("merge:takes")
def test_merging_leaves_the_source_as_it_was(call: Call) -> None:
    parted(call, "base", "base", "theirs")
    call.store(key="ours", value=1)

    call.branch(action="merge", source="trial")

    assert call.value("k", branch="trial") == "theirs"
    assert call.value("ours", branch="trial") is ...


@proves("merge:takes")
def test_what_was_merged_is_searchable_and_counted(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value="fjord", tags=["t"], branch="trial")

    call.branch(action="merge", source="trial")

    assert call.keys("fjord", tags=["t"]) == ["k"]
    assert call.status()["keys"] == 1


@proves("merge:fields")
def test_objects_are_merged_field_by_field(call: Call) -> None:
    parted(
        call,
        {"name": "Oslo", "size": 1, "deep": {"a": 1, "b": 1}, "gone": 1},
        {"name": "Oslo", "size": 2, "deep": {"a": 2, "b": 1}, "gone": 1, "ours": 1},
        {"name": "Bergen", "size": 1, "deep": {"a": 1, "b": 2}, "theirs": 1},
    )

    call.branch(action="merge", source="trial")

    assert call.value("k") == {
        "name": "Bergen",
        "size": 2,
        "deep": {"a": 2, "b": 2},
        "ours": 1,
        "theirs": 1,
    }


@proves("merge:fields")
def test_the_same_change_on_both_sides_is_no_conflict(call: Call) -> None:
    parted(call, {"a": 1}, {"a": 2, "b": [1]}, {"a": 2, "b": [1]})

    answer = call.branch(action="merge", source="trial")

    assert answer["merged"] == 0
    assert call.value("k") == {"a": 2, "b": [1]}


@proves("merge:tags")
def test_tags_are_merged_as_sets(call: Call) -> None:
    call.store(key="k", value=1, tags=["both", "old"])
    call.branch(action="fork", name="trial")
    call.store(key="k", value=1, tags=["both", "theirs"], branch="trial")
    call.store(key="k", value=1, tags=["both", "old", "ours"])

    call.branch(action="merge", source="trial")

    assert call.recall(key="k")["tags"] == ["both", "ours", "theirs"]


@proves("merge:places")
def test_two_conflicts_in_one_entry_can_be_decided_place_by_place(call: Call) -> None:
    base, ours, theirs = {"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 1}, {"a": 2, "b": 2, "c": 2}
    parted(call, base, ours, theirs)
    preview = call.branch(action="merge", source="trial", preview=True)
    ids = [each["id"] for each in preview["conflicts"]]

    some = {"default/k#$.a": "source"}
    left = call.refusal("strata_branch", action="merge", source="trial", decisions=some)
    answer = call.branch(
        action="merge",
        source="trial",
        decisions={**some, "default/k#$.b": {"value": 12}, "k": "target"},
    )

    assert ids == ["default/k#$.a", "default/k#$.b", "default/k#$.c"]
    assert [each["id"] for each in left["details"]["conflicts"]] == ids[1:]
    assert call.value("k") == {"a": 2, "b": 12}
    assert answer["resolved"] == 3


@proves("merge:places")
def test_a_value_for_the_only_conflict_in_an_entry_keeps_the_rest_of_it(call: Call) -> None:
    parted(call, {"a": 0, "b": 0}, {"a": 1, "b": 0}, {"a": 2, "b": 0})
    refused = call.refusal("strata_branch", action="merge", source="trial")
    (conflict,) = refused["details"]["conflicts"]

    call.branch(action="merge", source="trial", decisions={conflict["id"]: {"value": 12}})

    assert (conflict["id"], conflict["path"]) == ("default/k#$.a", "$.a")
    assert call.value("k") == {"a": 12, "b": 0}


@proves("merge:places")
def test_an_entry_named_like_a_place_of_another_is_not_decided_with_it(call: Call) -> None:
    parted(call, {"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 2, "b": 2})
    call.store(key="k#$.a", value="ours")
    call.store(key="k#$.a", value="theirs", branch="trial")

    decisions = {"default/k#$.a": "source", "k": "target"}
    call.branch(action="merge", source="trial", decisions=decisions)

    assert (call.value("k"), call.value("k#$.a")) == ({"a": 1, "b": 1}, "theirs")


@proves("merge:conflict")
def test_in_which_session_an_entry_was_written_is_no_conflict(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value={"a": 1}, session="ours")
    call.store(key="k", value={"b": 1}, session="theirs", branch="trial")

    call.branch(action="merge", source="trial")

    assert call.value("k") == {"a": 1, "b": 1}


CONFLICTS = {
    "two edits": ("base", "ours", "theirs"),
    "an edit and a removal": ("base", "ours", ...),
    "a removal and an edit": ("base", ..., "theirs"),
    "two lists": ([1], [1, 2], [1, 3]),
    "two kinds": ({"a": 1}, "text", {"a": 2}),
    "numbers of two kinds": (0, 1, 1.0),
    "null and a value": ("base", None, 0),
}


@proves("merge:conflict")
@pytest.mark.parametrize(("base", "ours", "theirs"), CONFLICTS.values(), ids=CONFLICTS)
def test_different_changes_of_one_place_refuse_the_whole_merge(
    call: Call, base: Any, ours: Any, theirs: Any
) -> None:
    parted(call, base, ours, theirs)
    call.store(key="harmless", value=1, branch="trial")

    refused = call.refusal("strata_branch", action="merge", source="trial")

    (conflict,) = refused["details"]["conflicts"]
    assert refused["error"] == "merge_conflict"
    assert (conflict["id"], conflict["key"], conflict["path"]) == ("default/k", "k", "$")
    sides = {"base": base, "ours": ours, "theirs": theirs}
    shown = {name: conflict.get(name, ...) for name in sides}
    assert repr(shown) == repr(sides)
    assert call.value("harmless") is ...
    assert call.value("k") == ours


@proves("merge:conflict")
def test_conflicts_name_the_place_inside_the_value(call: Call) -> None:
    parted(
        call,
        {"a": {"b c": [1]}, "same": 1},
        {"a": {"b c": [2]}, "same": 2},
        {"a": {"b c": [3]}, "same": 2},
    )

    refused = call.refusal("strata_branch", action="merge", source="trial")

    (conflict,) = refused["details"]["conflicts"]
    assert conflict["path"] == "$.a['b c']"
    assert (conflict["base"], conflict["ours"], conflict["theirs"]) == ([1], [2], [3])


@proves("merge:conflict")
def test_a_value_added_on_both_sides_has_no_base(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value="theirs", branch="trial")
    call.store(key="k", value="ours")

    refused = call.refusal("strata_branch", action="merge", source="trial")

    (conflict,) = refused["details"]["conflicts"]
    assert "base" not in conflict
    assert (conflict["ours"], conflict["theirs"]) == ("ours", "theirs")


@proves("merge:strategy")
@pytest.mark.parametrize(("strategy", "winner"), [("source_wins", 3), ("target_wins", 2)])
def test_a_strategy_decides_the_places_that_conflict_and_only_those(
    call: Call, strategy: str, winner: int
) -> None:
    parted(
        call,
        {"both": 1, "ours": 1, "theirs": 1},
        {"both": 2, "ours": 2, "theirs": 1},
        {"both": 3, "ours": 1, "theirs": 3},
    )

    answer = call.branch(action="merge", source="trial", strategy=strategy)

    assert answer["resolved"] == 1
    assert call.value("k") == {"both": winner, "ours": 2, "theirs": 3}


@proves("merge:strategy")
def test_a_strategy_decides_between_an_edit_and_a_removal(call: Call) -> None:
    parted(call, "base", ..., "theirs")
    call.branch(action="fork", name="copy")

    call.branch(action="merge", source="trial", strategy="target_wins")
    call.branch(action="merge", source="trial", strategy="source_wins", branch="copy")

    assert call.value("k") is ...
    assert call.value("k", branch="copy") == "theirs"


@proves("merge:decisions")
def test_each_conflict_is_decided_by_itself(call: Call) -> None:
    for key in "abc":
        call.store(key=key, value="base")
    call.branch(action="fork", name="trial")
    for key in "abc":
        call.store(key=key, value="theirs", branch="trial")
        call.store(key=key, value="ours")

    answer = call.branch(
        action="merge",
        source="trial",
        decisions={"default/a": "source", "b": "target", "default/c": {"value": ["own"]}},
    )

    assert answer["resolved"] == 3
    assert [call.value(key) for key in "abc"] == ["theirs", "ours", ["own"]]


@proves("merge:decisions")
def test_conflicts_that_no_decision_names_still_refuse_the_merge(call: Call) -> None:
    for key in "ab":
        call.store(key=key, value="base")
    call.branch(action="fork", name="trial")
    for key in "ab":
        call.store(key=key, value="theirs", branch="trial")
        call.store(key=key, value="ours")

    refused = call.refusal(
        "strata_branch", action="merge", source="trial", decisions={"default/a": "source"}
    )

    assert [conflict["id"] for conflict in refused["details"]["conflicts"]] == ["default/b"]
    assert call.value("a") == "ours"


@proves("merge:decisions")
def test_a_decision_for_no_conflict_is_refused(call: Call) -> None:
    parted(call, "base", "base", "theirs")

    unknown = call.refusal(
        "strata_branch", action="merge", source="trial", decisions={"default/k": "source"}
    )
    wrong = call.refusal("strata_branch", action="merge", source="trial", decisions={"k": "mine"})

    assert unknown["details"]["unknown"] == ["default/k"]
    assert unknown["hint"] == "No other conflict is left to decide."
    assert wrong["details"]["field"] == "decisions"


@proves("merge:decisions")
def test_a_key_that_may_mean_two_conflicts_is_answered_with_their_ids(call: Call) -> None:
    for namespace in ("default", "team"):
        call.store(key="plan", value="base", namespace=namespace)
    call.branch(action="fork", name="trial")
    for namespace in ("default", "team"):
        call.store(key="plan", value="theirs", namespace=namespace, branch="trial")
        call.store(key="plan", value="ours", namespace=namespace)

    refused = call.refusal(
        "strata_branch", action="merge", source="trial", decisions={"plan": "source"}
    )

    assert refused["details"]["unknown"] == ["plan"]
    assert refused["hint"] == "Undecided: default/plan, team/plan."


@proves("merge:decisions")
def test_what_was_decided_once_is_not_asked_again(call: Call) -> None:
    parted(call, "base", "ours", "theirs")
    call.branch(action="merge", source="trial", decisions={"default/k": "target"})
    call.store(key="other", value=1, branch="trial")

    up = call.branch(action="merge", source="trial")
    down = call.branch(action="merge", source="default", branch="trial")

    assert [each["key"] for each in up["results"]] == ["other"]
    assert [each["key"] for each in down["results"]] == ["k"]
    assert call.value("k", branch="trial") == "ours"


@proves("merge:preview")
def test_a_preview_says_what_a_merge_would_do_and_changes_nothing(call: Call) -> None:
    parted(call, {"a": 1}, {"a": 1}, {"a": 2})
    call.log(event="e", data=1, branch="trial")
    head = call.head()

    preview = call.branch(action="merge", source="trial", preview=True)
    unchanged = call.head()
    merged = call.branch(action="merge", source="trial")

    assert unchanged == head
    assert preview["preview"] is True
    assert (preview["merged"], preview["events"]) == (1, 1)
    same = ("merged", "events", "resolved", "results", "conflicts", "source", "target")
    assert [preview[name] for name in same] == [merged[name] for name in same]


@proves("merge:preview")
@pytest.mark.parametrize(("base", "ours", "theirs"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_preview_shows_the_conflicts_that_the_merge_would_refuse_with(
    call: Call, base: Any, ours: Any, theirs: Any
) -> None:
    parted(call, base, ours, theirs)

    preview = call.branch(action="merge", source="trial", preview=True)
    refused = call.refusal("strata_branch", action="merge", source="trial")

    wanted = ("id", "key", "namespace", "path")
    (shown,), (said,) = preview["conflicts"], refused["details"]["conflicts"]
    assert {name: shown[name] for name in wanted} == {name: said[name] for name in wanted}
    for name in ("base", "ours", "theirs"):
        assert repr(shown.get(name)) == repr(said.get(name))


@proves("merge:events")
def test_logged_events_are_carried_over_once(call: Call) -> None:
    call.log(event="before", data="rain")
    call.branch(action="fork", name="trial")
    call.log(event="inside", data="rain", tags=["t"], session="s", branch="trial")
    call.log(event="outside", data="rain")

    first = call.branch(action="merge", source="trial")
    again = call.branch(action="merge", source="trial")
    down = call.branch(action="merge", source="default", branch="trial")

    assert [each["events"] for each in (first, again, down)] == [1, 0, 1]
    for branch in ("default", "trial"):
        assert sorted(call.keys("rain", branch=branch)) == ["before", "inside", "outside"]
    assert call.status()["events"] == 3


@proves("merge:events")
def test_events_that_came_by_two_ways_are_there_once(call: Call) -> None:
    for name in ("a", "b", "c"):
        call.branch(action="fork", name=name)
    call.log(event="e", data="rain", branch="a")
    call.branch(action="merge", source="a", branch="b")
    call.branch(action="merge", source="a", branch="c")
    call.branch(action="merge", source="b")
    call.branch(action="merge", source="c")
    call.branch(action="merge", source="default", branch="a")

    assert call.keys("rain") == ["e"]
    assert call.keys("rain", branch="a") == ["e"]


@proves("merge:again")
def test_merging_up_syncing_down_editing_and_merging_up_again_meets_no_conflict(
    call: Call,
) -> None:
    call.store(key="k", value={"a": 0, "b": 0})
    call.branch(action="fork", name="trial")
    for turn in range(1, 5):
        call.store(key="k", value={"a": turn, "b": turn - 1}, branch="trial")
        call.branch(action="merge", source="trial")
        call.store(key="k", value={"a": turn, "b": turn})
        call.branch(action="merge", source="default", branch="trial")

    assert call.value("k") == call.value("k", branch="trial") == {"a": 4, "b": 4}


@proves("merge:again")
def test_a_merge_with_nothing_new_changes_nothing(call: Call) -> None:
    parted(call, "base", "base", "theirs")
    call.branch(action="merge", source="trial")
    head = call.head()

    again = call.branch(action="merge", source="trial")

    assert (again["merged"], again["events"], again["results"]) == (0, 0, [])
    assert call.head() == head


@proves("merge:again")
def test_a_removal_that_was_merged_is_not_undone_by_merging_back(call: Call) -> None:
    parted(call, "base", "base", ...)
    call.branch(action="merge", source="trial")

    call.branch(action="merge", source="default", branch="trial")

    assert call.value("k") is call.value("k", branch="trial") is ...


@proves("merge:criss-cross")
def test_branches_that_merged_each_other_crosswise_merge_without_false_conflicts(
    call: Call,
) -> None:
    call.store(key="k", value={"a": 0, "b": 0, "c": 0})
    call.branch(action="fork", name="x")
    call.branch(action="fork", name="y")
    call.store(key="k", value={"a": 1, "b": 0, "c": 0}, branch="x")
    call.store(key="k", value={"a": 0, "b": 1, "c": 0}, branch="y")
    call.branch(action="fork", name="x2", branch="x")
    call.branch(action="fork", name="y2", branch="y")
    call.branch(action="merge", source="y2", branch="x")
    call.branch(action="merge", source="x2", branch="y")
    call.store(key="k", value={"a": 1, "b": 1, "c": 2}, branch="x")

    call.branch(action="merge", source="x", branch="y")
    call.branch(action="merge", source="y")

    assert call.value("k", branch="y") == call.value("k") == {"a": 1, "b": 1, "c": 2}


@proves("merge:any-two")
def test_branches_without_a_common_past_can_be_merged(call: Call) -> None:
    call.store(key="ours", value=1)
    call.branch(action="create", name="apart")
    call.store(key="theirs", value=2, branch="apart")
    call.log(event="e", data=3, branch="apart")

    answer = call.branch(action="merge", source="apart")

    assert (answer["merged"], answer["events"]) == (1, 1)
    assert [call.value(key) for key in ("ours", "theirs")] == [1, 2]


@proves("merge:any-two")
def test_a_sibling_a_child_and_a_parent_can_each_be_merged(call: Call) -> None:
    call.branch(action="fork", name="a")
    call.branch(action="fork", name="b")
    call.branch(action="fork", name="child", branch="a")
    call.store(key="k", value="child", branch="child")

    call.branch(action="merge", source="child", branch="b")
    call.branch(action="merge", source="b")
    call.branch(action="merge", source="default", branch="a")

    assert [call.value("k", branch=name) for name in ("b", "default", "a")] == ["child"] * 3


@proves("merge:any-two")
def test_a_merge_brings_along_what_the_source_had_borrowed(call: Call) -> None:
    call.branch(action="create", name="line")
    call.store(key="k", value="deep", branch="line")
    call.log(event="e", data="rain", branch="line")
    call.branch(action="fork", name="child", branch="line")

    call.branch(action="merge", source="child")

    assert call.value("k") == "deep"
    assert call.keys("rain") == ["e"]


@proves("merge:refused")
def test_a_branch_does_not_merge_into_itself_or_from_nowhere(call: Call) -> None:
    itself = call.refusal("strata_branch", action="merge", source="default")
    nowhere = call.refusal("strata_branch", action="merge", source="nowhere")
    missing = call.refusal("strata_branch", action="merge")

    assert itself["error"] == "branch_protected"
    assert (nowhere["error"], nowhere["details"]["field"]) == ("branch_not_found", "source")
    assert (missing["error"], missing["details"]["field"]) == ("missing_required", "source")


@proves("merge:namespaces")
def test_entries_of_every_namespace_are_merged(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value=1, branch="trial")
    call.store(key="k", value=2, namespace="other", branch="trial")

    answer = call.branch(action="merge", source="trial")

    assert [(each["namespace"], each["key"]) for each in answer["results"]] == [
        ("default", "k"),
        ("other", "k"),
    ]
    assert call.value("k", namespace="other") == 2


@proves("merge:oversized")
def test_a_merged_value_that_no_store_would_take_is_refused(call: Call) -> None:
    half = "x" * 2_200_000
    parted(call, {}, {"ours": half}, {"theirs": half})

    refused = call.refusal("strata_branch", action="merge", source="trial")

    assert refused["error"] == "validation_error"
    assert refused["details"]["limit"] == 4 * 1024 * 1024


@proves("merge:again")
def test_a_change_that_reached_the_source_by_another_way_is_not_lost(call: Call) -> None:
    call.store(key="k", value=1)
    call.branch(action="fork", name="theirs")
    call.branch(action="fork", name="ours")
    call.store(key="k", value=2, branch="theirs")
    call.branch(action="merge", source="theirs", branch="ours")
    call.store(key="k", value=1, branch="theirs")
    call.branch(action="merge", source="theirs")

    call.branch(action="merge", source="default", branch="ours")

    assert call.value("k", branch="ours") == 1
    assert call.branch(action="diff", compare="ours")["results"] == []
