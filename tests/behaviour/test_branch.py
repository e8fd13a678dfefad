from __future__ import annotations

from tests.behaviour.conftest import Call, Opener
from tests.manifest import proves


def names(call: Call) -> list[str]:
    return [branch["name"] for branch in call.branch(action="list")["results"]]


@proves("branch:isolation")
def test_a_write_on_a_branch_is_invisible_to_its_parent(call: Call) -> None:
    call.store(key="city", value="Oslo")
    call.branch(action="fork", name="trial")

    call.store(key="city", value="Bergen", branch="trial")

    assert call.value("city") == "Oslo"
    assert call.value("city", branch="trial") == "Bergen"


@proves("branch:isolation")
def test_a_write_on_the_parent_is_invisible_to_a_fork(call: Call) -> None:
    call.store(key="city", value="Oslo")
    call.branch(action="fork", name="trial")

    call.store(key="city", value="Bergen")
    call.store(key="new", value=1)

    assert call.value("city", branch="trial") == "Oslo"
    assert call.value("new", branch="trial") is ...


@proves("branch:fork")
def test_a_fork_answers_with_its_name_parent_and_place(call: Call) -> None:
    stored = call.store(key="k", value=1)

    answer = call.branch(action="fork", name="trial")

    assert answer["action"] == "fork"
    assert (answer["name"], answer["parent"]) == ("trial", "default")
    assert answer["forked_at"] == stored["version"]
    assert answer["current"] is False


@proves("branch:fork")
def test_forking_copies_nothing_and_writes_one_event(call: Call) -> None:
    call.store(items=[{"key": f"k{number}", "value": number} for number in range(100)])
    before = int(call.head().split(":")[0])

    call.branch(action="fork", name="trial")

    assert int(call.head().split(":")[0]) == before + 1
    assert call.value("k99", branch="trial") == 99


@proves("branch:fork")
def test_a_fork_starts_from_the_current_or_the_named_branch(call: Call) -> None:
    call.branch(action="create", name="other")
    call.store(key="k", value="other", branch="other")
    call.store(key="k", value="default")

    call.branch(action="fork", name="named", branch="other")
    call.branch(action="switch", name="other")
    current = call.branch(action="fork", name="current")

    assert call.value("k", branch="named") == call.value("k", branch="current") == "other"
    assert current["parent"] == "other"


@proves("branch:fork-past")
def test_a_fork_from_a_past_moment_shows_that_moment(call: Call) -> None:
    then = call.store(key="k", value="then")["version"]
    call.store(key="k", value="now")
    call.store(key="later", value=1)

    answer = call.branch(action="fork", name="old", as_of=f"@{then}")

    assert answer["forked_at"] == then
    assert call.value("k", branch="old") == "then"
    assert call.value("later", branch="old") is ...
    assert call.keys("now", branch="old") == []
    assert call.keys("then", branch="old") == ["k"]


@proves("branch:fork-past")
def test_a_fork_from_before_its_parent_says_that_it_is_empty(call: Call) -> None:
    call.store(key="k", value=1)

    answer = call.branch(action="fork", name="old", as_of="2001-01-01")

    assert answer["note"].startswith("There was no branch 'default' yet: it was begun at ")
    assert answer["note"].endswith(" and is shown as empty.")
    assert "note" not in call.branch(action="fork", name="new")


@proves("branch:create")
def test_a_created_branch_is_empty(call: Call) -> None:
    call.store(key="k", value="fjord")
    call.log(event="e", data="fjord")

    answer = call.branch(action="create", name="fresh")

    assert answer["name"] == "fresh"
    assert "parent" not in answer
    assert call.value("k", branch="fresh") is ...
    assert call.keys("fjord", branch="fresh") == []


@proves("branch:names")
def test_a_branch_without_a_name_gets_one(call: Call) -> None:
    made = [call.branch(action=action)["name"] for action in ("fork", "create", "fork")]

    assert len(set(made)) == 3
    assert names(call) == ["default", *made]


@proves("branch:names")
def test_a_name_that_is_made_up_is_never_taken_already(call: Call) -> None:
    for number in range(5, 25):
        call.branch(action="create", name=f"branch-{number}")

    made = call.branch(action="fork")["name"]

    assert names(call).count(made) == 1


@proves("branch:names")
def test_any_printable_text_can_name_a_branch(call: Call) -> None:
    for name in ("feature/x y", "'; DROP TABLE branches", "ветка", "Default", "default "):
        call.branch(action="create", name=name)

        call.store(key="k", value=name, branch=name)

        assert call.value("k", branch=name) == name
    assert call.value("k") is ...


@proves("branch:switch")
def test_switching_changes_where_reads_and_writes_go(call: Call) -> None:
    call.store(key="k", value="default")
    call.branch(action="fork", name="trial")

    answer = call.branch(action="switch", name="trial")
    call.store(key="k", value="trial")
    call.log(event="e", data="only here")

    assert (answer["name"], answer["current"]) == ("trial", True)
    assert call.value("k") == "trial"
    assert call.value("k", branch="default") == "default"
    assert call.status()["branch"] == "trial"
    assert call.status()["events"] == 1
    call.branch(action="switch", name="default")
    assert call.value("k") == "default"
    assert call.status()["events"] == 0


@proves("branch:list")
def test_the_list_has_every_live_branch_and_marks_the_current_one(call: Call) -> None:
    call.branch(action="fork", name="b")
    call.branch(action="create", name="a")
    call.branch(action="fork", name="gone")
    call.branch(action="delete", name="gone")
    call.branch(action="switch", name="b")

    answer = call.branch(action="list")

    assert [each["name"] for each in answer["results"]] == ["default", "b", "a"]
    assert [each["current"] for each in answer["results"]] == [False, True, False]
    assert [each.get("parent") for each in answer["results"]] == [None, "default", None]
    assert answer["current"] == "b"


@proves("branch:delete")
def test_a_deleted_branch_is_gone_from_reads_writes_and_lists(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value=1, branch="trial")

    answer = call.branch(action="delete", name="trial")

    assert answer["deleted"] is True
    assert names(call) == ["default"]
    for name, arguments in (
        ("strata_recall", {"key": "k"}),
        ("strata_store", {"key": "k", "value": 2}),
        ("strata_search", {"query": "k"}),
        ("strata_history", {"key": "k"}),
        ("strata_log", {"event": "e", "data": 1}),
        ("strata_forget", {"key": "k"}),
    ):
        refused = call.refusal(name, branch="trial", **arguments)
        assert refused["error"] == "branch_not_found"
        assert "restore" in refused["hint"]


@proves("branch:delete")
def test_a_recall_that_hit_before_the_branch_was_deleted_is_refused_after(call: Call) -> None:
    then = call.store(key="k", value=1)["version"]
    call.branch(action="fork", name="trial")
    seen = [call.value("k", branch="trial"), call.value("k", branch="trial", as_of=f"@{then}")]

    call.branch(action="delete", name="trial")

    assert seen == [1, 1]
    for view in ({}, {"as_of": f"@{then}"}):
        refused = call.refusal("strata_recall", key="k", branch="trial", **view)
        assert refused["error"] == "branch_not_found"


@proves("branch:delete")
def test_deleting_the_current_branch_goes_back_to_default(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.branch(action="switch", name="trial")

    call.branch(action="delete", name="trial")

    assert call.status()["branch"] == "default"


@proves("branch:delete")
def test_the_default_branch_cannot_be_deleted(call: Call) -> None:
    refused = call.refusal("strata_branch", action="delete", name="default")

    assert refused["error"] == "branch_protected"


@proves("branch:delete-parent")
def test_children_of_a_deleted_branch_keep_what_they_borrowed(call: Call) -> None:
    call.branch(action="fork", name="parent")
    call.store(key="k", value="borrowed", branch="parent")
    call.branch(action="fork", name="child", branch="parent")

    call.branch(action="delete", name="parent")

    assert call.value("k", branch="child") == "borrowed"
    assert call.keys("borrowed", branch="child") == ["k"]


@proves("branch:restore")
def test_a_deleted_branch_comes_back_as_it_was(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value="kept", branch="trial")
    call.branch(action="delete", name="trial")

    answer = call.branch(action="restore", name="trial")

    assert answer["name"] == "trial"
    assert "deleted" not in answer
    assert call.value("k", branch="trial") == "kept"
    assert call.keys("kept", branch="trial") == ["k"]


@proves("branch:restore")
def test_of_several_branches_of_a_name_the_last_deleted_is_restored(call: Call) -> None:
    for value in ("first", "second"):
        call.branch(action="create", name="trial")
        call.store(key="k", value=value, branch="trial")
        call.branch(action="delete", name="trial")

    call.branch(action="restore", name="trial")

    assert call.value("k", branch="trial") == "second"


@proves("branch:restore")
def test_each_of_several_deleted_branches_of_a_name_can_be_restored(call: Call) -> None:
    made = []
    for value in ("first", "second", "third"):
        made.append(call.branch(action="create", name="trial")["created"])
        call.store(key="k", value=value, branch="trial")
        call.branch(action="delete", name="trial")
    too_early = call.refusal("strata_branch", action="restore", name="trial", as_of="@1")

    first = call.branch(action="restore", name="one", source="trial", as_of=made[0])
    second = call.branch(action="restore", name="trial", as_of=made[1])
    third = call.branch(action="restore", name="three", source="trial")

    values = [call.value("k", branch=name) for name in ("one", "trial", "three")]
    assert values == ["first", "second", "third"]
    assert made[1] in first["note"]
    assert made[2] in first["note"]
    assert (made[0] in second["note"], made[1] in second["note"]) == (True, False)
    assert made[0] in third["note"]
    assert (too_early["error"], too_early["details"]["field"]) == ("branch_not_found", "as_of")
    assert made[0] in too_early["hint"]


@proves("branch:restore")
def test_only_a_deleted_branch_whose_name_is_free_can_be_restored(call: Call) -> None:
    call.branch(action="create", name="trial")
    live = call.refusal("strata_branch", action="restore", name="trial")
    call.branch(action="delete", name="trial")
    call.branch(action="create", name="trial")
    taken = call.refusal("strata_branch", action="restore", name="trial")
    never = call.refusal("strata_branch", action="restore", name="never")

    assert [each["error"] for each in (live, taken, never)] == [
        "branch_exists",
        "branch_exists",
        "branch_not_found",
    ]
    assert "source" in taken["hint"]
    assert "source" not in live["hint"]


@proves("branch:restore")
def test_a_deleted_branch_whose_name_was_used_again_comes_back_under_another(call: Call) -> None:
    call.branch(action="fork", name="trial")
    call.store(key="k", value="kept", branch="trial")
    call.branch(action="delete", name="trial")
    call.branch(action="create", name="trial")

    answer = call.branch(action="restore", source="trial", name="old trial")

    assert (answer["name"], answer["parent"]) == ("old trial", "trial")
    assert call.value("k", branch="old trial") == "kept"
    assert call.value("k", branch="trial") is ...
    merged = call.branch(action="merge", source="old trial")
    assert (merged["merged"], call.value("k")) == (1, "kept")
    never = call.refusal("strata_branch", action="restore", source="never", name="other")
    assert (never["error"], never["details"]["field"]) == ("branch_not_found", "source")


@proves("branch:delete", "branch:create")
def test_a_new_branch_of_a_deleted_ones_name_shows_nothing_of_it(call: Call) -> None:
    call.branch(action="create", name="trial")
    call.store(key="k", value="first", branch="trial")
    seen = call.value("k", branch="trial")
    call.branch(action="delete", name="trial")

    call.branch(action="create", name="trial")

    assert seen == "first"
    assert call.value("k", branch="trial") is ...
    call.store(key="k", value="second", branch="trial")
    assert call.value("k", branch="trial") == "second"


@proves("branch:elsewhere")
def test_what_another_client_does_to_a_branch_is_seen_at_once(opened: Opener) -> None:
    one, other = opened(), opened()
    one.branch(action="create", name="trial")
    one.store(key="k", value="first", branch="trial")
    before = other.value("k", branch="trial")

    one.branch(action="delete", name="trial")
    refused = other.refusal("strata_recall", key="k", branch="trial")
    one.branch(action="create", name="trial")
    fresh = other.value("k", branch="trial")
    one.store(key="k", value="second", branch="trial")

    assert before == "first"
    assert refused["error"] == "branch_not_found"
    assert fresh is ...
    assert other.value("k", branch="trial") == "second"


@proves("branch:elsewhere")
def test_a_client_is_not_moved_to_another_branch_of_the_name_of_its_own(opened: Opener) -> None:
    one, other = opened(), opened()
    one.branch(action="create", name="trial")
    other.branch(action="switch", name="trial")
    other.store(key="k", value="mine")

    one.branch(action="delete", name="trial")
    one.branch(action="create", name="trial")
    one.store(key="k", value="theirs", branch="trial")

    for name, arguments in (
        ("strata_store", {"key": "k", "value": "lost"}),
        ("strata_recall", {"key": "k"}),
        ("strata_recall", {"key": "k", "as_of": "1s ago"}),
        ("strata_search", {"query": "theirs"}),
        ("strata_log", {"event": "e", "data": "lost"}),
        ("strata_history", {"key": "k"}),
        ("strata_branch", {"action": "merge", "source": "default"}),
    ):
        refused = other.failure(name, **arguments)
        assert refused["error"] == "branch_not_found", name
        assert "switch" in refused["hint"]
    assert "another branch has its name" in other.status()["note"]
    assert other.value("k", branch="trial") == "theirs"
    other.branch(action="restore", source="trial", name="mine")
    other.branch(action="switch", name="mine")
    assert other.value("k") == "mine"
    other.branch(action="switch", name="trial")
    assert other.value("k") == "theirs"


@proves("branch:depth")
def test_branches_can_be_forked_from_forks(call: Call) -> None:
    parent = "default"
    for number in range(10):
        call.store(key=f"k{number}", value=number, branch=parent)
        call.branch(action="fork", name=f"b{number}", branch=parent)
        parent = f"b{number}"

    assert [call.value(f"k{number}", branch=parent) for number in range(10)] == list(range(10))
    assert call.value("k9", branch="b3") is ...


@proves("branch:depth")
def test_a_line_of_forks_has_a_limit_that_is_named(call: Call) -> None:
    parent = "default"
    for number in range(63):
        call.branch(action="fork", name=f"b{number}", branch=parent)
        parent = f"b{number}"

    refused = call.refusal("strata_branch", action="fork", name="deeper", branch=parent)

    assert refused["error"] == "validation_error"
    assert refused["details"]["limit"] == 64
