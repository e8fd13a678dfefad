from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("diff:answer")
def test_a_diff_lists_what_was_added_removed_and_changed(call: Call) -> None:
    for key in ("same", "changed", "removed"):
        call.store(key=key, value="old")
    call.branch(action="fork", name="trial")
    call.store(key="changed", value="new", branch="trial")
    call.store(key="added", value=None, branch="trial")
    call.forget(key="removed", branch="trial")

    answer = call.branch(action="diff", compare="trial")

    assert (answer["branch"], answer["compare"]) == ("default", "trial")
    assert [answer[name] for name in ("added", "removed", "changed")] == [1, 1, 1]
    assert [(each["key"], each["change"]) for each in answer["results"]] == [
        ("added", "added"),
        ("changed", "changed"),
        ("removed", "removed"),
    ]
    assert (answer["results"][1]["before"], answer["results"][1]["after"]) == ("old", "new")
    assert answer["results"][2]["before"] == "old"


@proves("diff:both-sides")
def test_a_diff_shows_changes_of_either_side(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="ours", value=1)
    call.store(key="theirs", value=1, branch="trial")

    forth = call.branch(action="diff", compare="trial")["results"]
    back = call.branch(action="diff", compare="default", branch="trial")["results"]

    assert [(each["key"], each["change"]) for each in forth] == [
        ("ours", "removed"),
        ("theirs", "added"),
    ]
    assert [(each["key"], each["change"]) for each in back] == [
        ("ours", "added"),
        ("theirs", "removed"),
    ]


@proves("diff:equal")
def test_branches_that_show_the_same_do_not_differ(call: Call) -> None:
    call.store(key="k", value={"a": 1, "b": 2})
    call.branch(action="fork", name="trial")
    call.store(key="k", value={"b": 2, "a": 1}, branch="trial")
    call.store(key="brief", value=1, branch="trial")
    call.forget(key="brief", branch="trial")
    call.log(event="e", data=1, branch="trial")

    assert call.branch(action="diff", compare="trial")["results"] == []
    assert call.branch(action="diff", compare="default")["results"] == []


@proves("diff:equal")
def test_after_merging_both_ways_nothing_differs(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="a", value=1)
    call.store(key="b", value=2, branch="trial")

    call.branch(action="merge", source="trial")
    call.branch(action="merge", source="default", branch="trial")

    assert call.branch(action="diff", compare="trial")["results"] == []


@proves("diff:past")
def test_a_diff_of_the_past_compares_what_was_there_then(call: Call) -> None:
    call.branch(action="fork", name="trial")
    then = call.store(key="early", value=1, branch="trial")["version"]
    call.store(key="late", value=1, branch="trial")

    answer = call.branch(action="diff", compare="trial", as_of=f"@{then}")

    assert [each["key"] for each in answer["results"]] == ["early"]


@proves("diff:any-two")
def test_unrelated_branches_can_be_compared(call: Call) -> None:
    call.store(key="k", value=1)
    call.store(key="k", value=1, namespace="other")
    call.branch(action="create", name="apart")
    call.store(key="k", value=1, branch="apart")

    answer = call.branch(action="diff", compare="apart")

    assert [(each["namespace"], each["key"]) for each in answer["results"]] == [("other", "k")]


@proves("diff:expired")
def test_what_has_expired_does_not_differ(call: Call, clock: Clock) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value=1, ttl="10s", branch="trial")
    before = call.branch(action="diff", compare="trial")["results"]
    clock.advance(60)

    after = call.branch(action="diff", compare="trial")["results"]

    assert [each["key"] for each in before] == ["k"]
    assert after == []


@proves("diff:refused")
def test_a_diff_needs_a_branch_to_compare_with(call: Call) -> None:
    missing = call.refusal("strata_branch", action="diff")
    unknown = call.refusal("strata_branch", action="diff", compare="defaul")

    assert (missing["error"], missing["details"]["field"]) == ("missing_required", "compare")
    assert (unknown["error"], unknown["details"]["similar"]) == ("branch_not_found", ["default"])
