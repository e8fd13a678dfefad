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

    shown = [[(each["key"], each["side"], each["change"]) for each in way] for way in (forth, back)]
    assert shown == [
        [("ours", "ours", "added"), ("theirs", "theirs", "added")],
        [("ours", "theirs", "added"), ("theirs", "ours", "added")],
    ]


@proves("diff:both-sides")
def test_what_this_branch_moved_on_by_is_not_removed(call: Call) -> None:
    call.store(key="k", value="old")
    call.store(key="both", value="old")
    call.branch(action="fork", name="trial")
    for number in range(8):
        call.store(key=f"new{number}", value=number)
    call.forget(key="k")
    call.store(key="both", value="ours")
    call.store(key="both", value="theirs", branch="trial")

    answer = call.branch(action="diff", compare="trial")

    counts = {name: answer[name] for name in ("added", "removed", "changed", "ours", "both")}
    assert counts == {"added": 0, "removed": 0, "changed": 0, "ours": 9, "both": 1}
    both, removed = answer["results"][:2]
    assert (both["side"], both["before"], both["after"]) == ("both", "ours", "theirs")
    assert (removed["side"], removed["change"], removed["before"]) == ("ours", "removed", "old")


@proves("diff:knowledge")
def test_a_diff_shows_what_a_merge_would_delete_by_whatever_way_it_was_learnt(call: Call) -> None:
    call.branch(action="fork", name="a")
    call.branch(action="fork", name="b")
    call.store(key="plan", value="ship on friday", branch="a")
    call.branch(action="merge", source="a")
    call.forget(key="plan")
    call.branch(action="merge", source="default", branch="b")

    forth = call.branch(action="diff", compare="b", branch="a")["results"]
    back = call.branch(action="diff", compare="a", branch="b")["results"]
    preview = call.branch(action="merge", source="b", branch="a", preview=True)["results"]
    merged = call.branch(action="merge", source="b", branch="a")["results"]

    assert [(each["key"], each["side"], each["change"]) for each in forth] == [
        ("plan", "theirs", "removed")
    ]
    assert [(each["key"], each["side"]) for each in back] == [("plan", "ours")]
    assert [(each["key"], each["change"]) for each in preview] == [("plan", "removed")]
    assert merged == preview
    assert call.branch(action="diff", compare="b", branch="a")["results"] == []


@proves("diff:particulars")
def test_a_diff_says_what_of_an_entry_differs(call: Call) -> None:
    call.store(key="expiry", value=1)
    call.store(key="tags", value=1, tags=["old"])
    call.branch(action="fork", name="trial")
    call.store(key="expiry", value=1, ttl="1h", branch="trial")
    call.store(key="tags", value=2, tags=["new"], branch="trial")

    expiry, tags = call.branch(action="diff", compare="trial")["results"]

    assert (expiry["change"], expiry["differs"]) == ("changed", ["expires"])
    assert "expires_before" not in expiry
    assert expiry["expires_after"] == "2026-05-28T21:26:40.000000Z"
    call.store(key="lease", value=1, ttl="1h", branch="trial")
    added = call.branch(action="diff", compare="trial")["results"][1]
    preview = call.branch(action="merge", source="trial", preview=True)["results"][2]
    assert (added["change"], added["expires_after"]) == ("added", "2026-05-28T21:26:40.000000Z")
    assert (preview["key"], preview["expires_after"]) == ("lease", added["expires_after"])
    assert tags["differs"] == ["value", "tags"]
    assert (tags["tags_before"], tags["tags_after"]) == (["old"], ["new"])


@proves("diff:places")
def test_a_diff_says_which_branch_changed_each_place_of_what_both_changed(call: Call) -> None:
    call.store(key="prefs", value={"theme": "dark", "size": 1, "deep": {"a": 1}}, tags=["old"])
    call.store(key="single", value="old")
    call.branch(action="fork", name="trial")
    call.store(key="prefs", value={"theme": "blue", "size": 2, "deep": {"a": 1}}, tags=["old"])
    call.store(
        key="prefs",
        value={"theme": "light", "size": 1, "deep": {"a": 2}, "new": [1]},
        tags=["new"],
        ttl="1h",
        branch="trial",
    )
    call.store(key="single", value="ours")

    prefs, single = call.branch(action="diff", compare="trial")["results"]

    assert prefs["changed_by"] == {
        "$.theme": "both",
        "$.size": "ours",
        "$.deep.a": "theirs",
        "$.new": "theirs",
        "tags": "theirs",
        "expires": "theirs",
    }
    assert "changed_by" not in single


@proves("diff:equal")
def test_branches_that_show_the_same_do_not_differ(call: Call) -> None:
    call.store(key="k", value={"a": 1, "b": 2})
    call.branch(action="fork", name="trial")
    call.store(key="k", value={"b": 2, "a": 1}, branch="trial")
    call.store(key="brief", value=1, branch="trial")
    call.forget(key="brief", branch="trial")

    for compare in ("trial", "default"):
        answer = call.branch(action="diff", compare=compare)
        assert (answer["results"], answer["events"], answer["ours_events"]) == ([], 0, 0)


@proves("diff:events", "merge:events")
def test_a_diff_counts_the_events_that_a_merge_would_bring(call: Call) -> None:
    call.branch(action="fork", name="trial")
    for data in (1, 2):
        call.log(event="e", data=data, branch="trial")
    call.log(event="e", data=3)
    then = call.status()["head"].split(":")[0]

    before = call.branch(action="diff", compare="trial")
    back = call.branch(action="diff", compare="default", branch="trial")
    preview = call.branch(action="merge", source="trial", preview=True)
    merged = call.branch(action="merge", source="trial")
    after = call.branch(action="diff", compare="trial")
    past = call.branch(action="diff", compare="trial", as_of=f"@{then}")

    assert (before["events"], before["ours_events"], before["results"]) == (2, 1, [])
    assert (back["events"], back["ours_events"]) == (1, 2)
    assert preview["events"] == merged["events"] == 2
    assert (after["events"], after["ours_events"]) == (0, 1)
    assert (past["events"], past["ours_events"]) == (2, 1)


@proves("diff:equal")
def test_a_branch_that_is_compared_with_itself_is_told_so(call: Call) -> None:
    call.store(key="k", value=1)
    call.branch(action="fork", name="trial")

    note = call.branch(action="diff", compare="default")["note"]

    assert note == (
        "'default' was compared with itself: give another branch as `branch` or as `compare`."
    )
    assert "note" not in call.branch(action="diff", compare="default", branch="trial")


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


@proves("diff:past")
def test_a_diff_of_a_moment_before_a_branch_says_that_it_did_not_exist(call: Call) -> None:
    before = call.store(key="a", value=1)["version"]
    call.branch(action="fork", name="trial")
    call.branch(action="create", name="empty")

    forked = call.branch(action="diff", compare="trial", as_of=f"@{before}")
    created = call.branch(action="diff", compare="empty", as_of=f"@{before}")

    assert forked["results"] == []
    assert forked["note"].startswith("There was no branch 'trial' yet: it was begun at ")
    assert forked["note"].endswith("is shown as what 'default' was then.")
    assert created["ours"] == 1
    assert created["note"].endswith("is shown as empty.")
    assert "note" not in call.branch(action="diff", compare="trial")


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
