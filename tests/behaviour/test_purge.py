from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("purge:entry")
def test_a_purged_entry_is_gone_from_every_branch_and_moment(call: Call) -> None:
    then = call.store(key="k", value="treasure")["version"]
    call.branch(action="fork", name="trial")
    call.store(key="k", value="treasure trove", branch="trial")

    answer = call.purge(key="k")

    assert answer["erased"] == 2
    assert "are not changed" in answer["note"]
    for view in ({}, {"branch": "trial"}, {"as_of": f"@{then}"}):
        miss = call.recall(key="k", **view)
        assert (miss["found"], miss["reason"]) == (False, "absent")
        assert call.keys("treasure", **view) == []
    assert call.history(key="k", branch="trial")["results"] == []
    assert call.status()["keys"] == 0


@proves("purge:entry")
def test_a_purge_leaves_everything_else(call: Call) -> None:
    call.store(key="k", value="treasure")
    call.store(key="k", value="kept", namespace="other")
    call.store(key="l", value="kept")
    call.log(event="e", data="kept")

    call.purge(key="k")

    assert call.value("k", namespace="other") == call.value("l") == "kept"
    assert call.keys("kept", namespace="default") == ["e", "l"]
    assert (call.status()["keys"], call.status()["events"]) == (2, 1)


@proves("purge:entry")
def test_a_purged_key_can_be_stored_anew(call: Call) -> None:
    call.store(key="k", value="treasure")
    call.purge(key="k")

    answer = call.store(key="k", value="fresh", expected_version=0)

    assert answer["status"] == "created"
    assert [each["value"] for each in call.history(key="k")["results"]] == ["fresh"]


@proves("purge:event")
def test_a_purged_event_is_gone_with_its_copies_and_from_its_neighbours(call: Call) -> None:
    logged = call.log(event="said", data="treasure", session="s")
    call.log(event="next", data="plain", session="s")
    call.branch(action="create", name="apart")
    call.branch(action="merge", source="default", branch="apart")
    before = [len(call.keys("treasure", branch=name)) for name in ("default", "apart")]

    answer = call.purge(sequence=logged["sequence"])

    assert before == [2, 2]
    assert answer["erased"] == 2
    assert call.keys("treasure") == call.keys("treasure", branch="apart") == []
    assert call.keys("plain") == ["next"]


@proves("purge:request")
def test_an_answer_that_quoted_what_was_purged_is_not_repeated(call: Call) -> None:
    call.store(key="k", value="treasure", request_id="r1")
    call.purge(key="k")

    refused = call.refusal("strata_store", key="k", value="treasure", request_id="r1")

    assert refused["error"] == "request_id_reused"
    assert "purged" in refused["message"]


@proves("purge:miss")
def test_purging_nothing_says_so(call: Call) -> None:
    head = call.head()

    answer = call.purge(key="never")

    assert answer["erased"] == 0
    assert call.head() == head


@proves("purge:merge")
def test_branches_still_merge_after_a_purge(call: Call) -> None:
    call.store(key="k", value="base")
    call.log(event="e", data="treasure")
    call.branch(action="fork", name="trial")
    call.store(key="k", value="theirs", branch="trial")
    call.store(key="other", value=1, branch="trial")
    logged = call.log(event="f", data="treasure", branch="trial")
    call.purge(key="k")
    call.purge(sequence=logged["sequence"])

    answer = call.branch(action="merge", source="trial")

    assert (answer["merged"], answer["events"]) == (1, 0)
    assert call.branch(action="diff", compare="trial")["results"] == []
    assert call.value("other") == 1
