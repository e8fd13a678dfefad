from __future__ import annotations

from typing import Any

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


def keys(answer: dict[str, Any]) -> list[str]:
    return [entry["key"] for entry in answer["results"]]


def pages(call: Call, **wanted: Any) -> list[str]:
    """Return the keys of all pages of a list, one after the other."""
    answer = call.recall(**wanted)
    found = keys(answer)
    while answer["truncated"]:
        answer = call.recall(**wanted, cursor=answer["next"])
        found += keys(answer)
    return found


@proves("recall:list")
def test_without_a_key_a_recall_lists_the_namespace(call: Call) -> None:
    call.store(key="city", value="Oslo", tags=["place"])
    call.store(key="note", value={"text": "x" * 1_000})
    call.store(key="other", value=1, namespace="elsewhere")

    answer = call.recall()

    assert answer["found"] is True
    assert keys(answer) == ["note", "city"]
    note, city = answer["results"]
    assert note["value"].startswith('{"text":"xxx')
    assert (len(note["value"]), note["value_truncated"]) == (301, True)
    assert (city["value"], city["tags"]) == ("Oslo", ["place"])
    assert answer["truncated"] is False


@proves("recall:list")
def test_an_empty_list_says_where_there_is_something(call: Call) -> None:
    assert call.recall() == {"found": False, "results": [], "truncated": False}
    call.store(key="user/name", value="Ada", namespace="notes")

    assert call.recall()["elsewhere"] == ["notes"]
    assert call.recall(prefix="User/", namespace="notes")["near"] == ["user/name"]
    assert call.recall(prefix="user/")["elsewhere"] == ["notes"]
    assert call("strata_list", prefix="user/")["elsewhere"] == ["notes"]


@proves("recall:list")
def test_a_list_by_an_unknown_tag_names_the_tags_in_use(call: Call) -> None:
    call.store(items=[{"key": f"k{place}", "value": 1, "tags": ["other"]} for place in range(3)])
    call.store(key="city", value="Oslo", tags=["home"])

    assert call.recall(tags=["hom"])["near_tags"] == ["home", "other"]


@proves("list:filters")
def test_lists_are_filtered_and_ordered(call: Call) -> None:
    for key in ("b/2", "a/1", "b/1", "c"):
        call.store(key=key, value=key, tags=["x"] if key.endswith("1") else None)

    assert keys(call.recall(order="key")) == ["a/1", "b/1", "b/2", "c"]
    assert keys(call.recall(prefix="b/")) == ["b/1", "b/2"]
    assert keys(call.recall(tags=["x"])) == ["b/1", "a/1"]
    assert keys(call.recall(tags=["x"], prefix="a", order="key")) == ["a/1"]
    assert keys(call.recall(limit=1)) == ["c"]


@proves("list:filters")
def test_a_key_is_not_filtered(call: Call) -> None:
    refused = call.refusal("strata_recall", key="a", prefix="b")

    assert refused["details"]["field"] == "prefix"


@proves("list:pages")
def test_pages_show_one_state_whatever_is_written_meanwhile(call: Call) -> None:
    for number in range(7):
        call.store(key=f"k{number}", value=number)

    for order in ("newest", "key"):
        first = call.recall(order=order, limit=3)
        call.store(key=keys(first)[-1], value="changed")
        call.store(key="k5", value="changed")
        call.store(key="k0/new", value="new")
        call.forget(key="k6")
        rest = call.recall(order=order, limit=100, cursor=first["next"])

        found = keys(first) + keys(rest)
        assert sorted(found) == [f"k{number}" for number in range(7)]
        assert "changed" not in [entry["value"] for entry in rest["results"]]
        call.store(items=[{"key": f"k{number}", "value": number} for number in range(7)])
        call.forget(key="k0/new")


@proves("list:pages")
def test_a_page_that_is_cut_to_the_budget_goes_on_where_it_ended(call: Call) -> None:
    call.store(items=[{"key": f"k{number:02}", "value": "x" * 250} for number in range(20)])

    for order in ("newest", "key"):
        assert sorted(pages(call, order=order, max_chars=2_000)) == [
            f"k{number:02}" for number in range(20)
        ]


@proves("list:pages")
def test_a_cursor_is_good_for_its_own_list_alone(call: Call) -> None:
    for number in range(4):
        call.store(key=f"k{number}", value=number)
    cursor = call.recall(limit=2)["next"]

    for wanted in ({"order": "key"}, {"prefix": "k"}, {"namespace": "other"}, {"tags": ["x"]}):
        refused = call.refusal("strata_recall", cursor=cursor, **wanted)
        assert refused["details"]["field"] == "cursor"
    for nonsense in ("7", "zzz", "é", "x" * 10_000):
        refused = call.refusal("strata_recall", cursor=nonsense)
        assert refused["details"]["field"] == "cursor"


@proves("list:views")
def test_a_list_takes_a_branch_and_a_moment(call: Call, clock: Clock) -> None:
    then = call.store(key="a", value=1)["version"]
    call.store(key="short", value=1, ttl=60)
    call.branch(action="fork", name="trial")
    call.store(key="b", value=2, branch="trial")
    call.forget(key="a")

    assert keys(call.recall()) == ["short"]
    assert keys(call.recall(branch="trial")) == ["b", "short", "a"]
    assert keys(call.recall(as_of=f"@{then}")) == ["a"]
    clock.advance(120)
    assert keys(call.recall()) == []


@proves("history:events")
def test_an_unknown_label_names_those_in_use(call: Call) -> None:
    call.log(event="other", data=1)
    call.log(event="decision", data=1)

    assert call.history(event="decisions")["near"] == ["decision", "other"]


@proves("history:events")
def test_a_session_that_is_not_there_is_named_with_those_that_are(call: Call) -> None:
    call.log(event="message", data="to Rome", session="trip")
    call.log(event="message", data="to work", session="standup")
    call.log(event="message", data="elsewhere", session="tirps", namespace="other")

    missed = call.history(session="tirp")
    label = call.history(session="trip", event="massage")

    assert missed["near_sessions"] == ["trip", "standup"]
    assert "near" not in missed
    assert label["near"] == ["message"]
    assert "near_sessions" not in label


@proves("history:events")
def test_where_no_event_fits_the_namespaces_that_have_such_events_are_named(call: Call) -> None:
    call.log(event="message", data="to Rome", session="trip", namespace="travel")
    call.log(event="decision", data="by train", namespace="work")
    call.store(key="city", value="Rome", namespace="places")

    nothing = call.history(order="newest")
    label = call.history(event="message")
    later = call.history(event="message", after=2)
    paged = call.history(event="message", cursor="1")

    assert nothing["elsewhere"] == ["travel", "work"]
    assert label["elsewhere"] == ["travel"]
    assert "elsewhere" not in later
    assert "elsewhere" not in paged


@proves("list:names")
def test_namespaces_and_tags_are_listed_with_their_counts(call: Call) -> None:
    call.store(key="a", value=1, tags=["x"])
    call.store(key="b", value=1, tags=["x", "y"], namespace="notes")
    call.store(key="c", value=1, namespace="notes")
    call.log(event="tick", data=1, namespace="notes", tags=["x"])
    call.forget(key="c", namespace="notes")

    spaces = call("strata_namespaces")
    tags = call("strata_tags")

    assert [(each["name"], each["entries"], each["events"]) for each in spaces["results"]] == [
        ("notes", 1, 1),
        ("default", 1, 0),
    ]
    assert spaces["current"] == "default"
    assert tags["results"] == [{"tag": "x", "count": 3}, {"tag": "y", "count": 1}]
    assert call("strata_tags", namespace="default")["results"] == [{"tag": "x", "count": 1}]


@proves("namespace:delete")
def test_a_namespace_is_deleted_at_once_and_restored(call: Call) -> None:
    items = [{"key": f"k{number}", "value": number, "tags": ["x"]} for number in range(3)]
    call.store(items=items, namespace="notes")
    call.log(event="tick", data=1, namespace="notes")
    call.branch(action="fork", name="kept")

    gone = call("strata_delete_namespace", name="notes")

    assert (gone["deleted"], gone["events"]) == (3, 1)
    assert keys(call.recall(namespace="notes")) == []
    assert len(keys(call.recall(namespace="notes", as_of=gone["before"]))) == 3
    assert call.branch(action="diff", compare="kept")["ours"] == 3
    assert call("strata_delete_namespace", name="notes")["deleted"] == 0

    call.store(key="k1", value="new", namespace="notes")
    back = call("strata_restore_namespace", name="notes", as_of=gone["before"])

    assert (back["restored"], back["kept"]) == (2, 1)
    found = call.recall(namespace="notes", order="key")["results"]
    assert [(entry["key"], entry["value"], entry["tags"]) for entry in found] == [
        ("k0", 0, ["x"]),
        ("k1", "new", []),
        ("k2", 2, ["x"]),
    ]


@proves("namespace:delete")
def test_a_namespace_that_is_misspelt_names_the_one_that_may_be_meant(call: Call) -> None:
    call.store(key="a", value=1, namespace="projects")
    call.log(event="tick", data=1, namespace="projectile")
    before = call("strata_status")["head"].split(":")[0]

    missed = call("strata_delete_namespace", name="projcts")
    unlike = call("strata_delete_namespace", name="zebra")
    gone = call("strata_delete_namespace", name="projects")
    late = call("strata_restore_namespace", name="projcts", as_of="now")
    then = call("strata_restore_namespace", name="Project", as_of=f"@{before}")

    assert (missed["deleted"], missed["near"]) == (0, ["projects"])
    assert then["near"] == ["projects"]
    assert not any("near" in each for each in (unlike, gone, late))


@proves("recall:near")
def test_a_miss_names_near_keys_and_other_namespaces(call: Call) -> None:
    for key in ("user/name", "user/city", "project"):
        call.store(key=key, value=key)
    call.store(key="plan", value=1, namespace="notes")

    near = {
        key: call.recall(key=key).get("near")
        for key in ("user", "user/*", "USER/NAME", "usr/nmae", "name", "zebra")
    }

    both = ["user/city", "user/name"]
    assert near == {
        "user": both,
        "user/*": both,
        "USER/NAME": ["user/name"],
        "usr/nmae": ["user/name"],
        "name": ["user/name"],
        "zebra": None,
    }
    assert call.recall(key="plan") == {
        "found": False,
        "key": "plan",
        "namespace": "default",
        "reason": "absent",
        "elsewhere": ["notes"],
    }


@proves("recall:near")
def test_of_namespaces_with_a_key_those_with_a_similar_name_come_first(call: Call) -> None:
    for name in ("lab", "alpha", "beta", "delta"):
        call.store(key="host", value=name, namespace=name)

    assert call.recall(key="host", namespace="labs")["elsewhere"] == ["lab", "delta", "beta"]


@proves("recall:near")
def test_a_miss_names_the_branches_that_show_the_key(call: Call) -> None:
    for name in ("trial", "done", "gone"):
        call.branch(action="fork", name=name)
        call.store(key="plan", value="a party", branch=name)
    call.forget(key="plan", branch="done")
    call.branch(action="delete", name="gone")
    call.branch(action="create", name="empty")
    call.store(key="city", value="Oslo")

    missed = call.recall(key="plan")

    assert missed["branches"] == ["trial"]
    assert call.history(key="plan")["branches"] == ["trial"]
    assert call.recall(key="city", branch="empty")["branches"] == ["default"]
    assert "branches" not in call.recall(key="plan", branch="done")
    assert "branches" not in call.recall(key="plan", as_of="@1")


@proves("recall:near")
def test_a_miss_says_what_became_of_the_key(call: Call, clock: Clock) -> None:
    stored = call.store(key="gone", value=1)
    call.forget(key="gone")
    short = call.store(key="short", value=1, ttl=5)
    clock.advance(10)

    gone, expired = call.recall(key="gone"), call.recall(key="short")
    early = call.recall(key="short", as_of=f"@{stored['version']}")
    again = call.store(key="short", value=2)
    earlier = call.recall(key="short", as_of=f"@{stored['version']}")

    assert (gone["reason"], gone["before"]) == ("forgotten", f"@{stored['version']}")
    assert call.value("gone", as_of=gone["before"]) == 1
    assert (expired["reason"], expired["before"]) == ("expired", f"@{short['version']}")
    assert call.value("short", as_of=expired["before"]) == 1
    assert (early["reason"], early["before"]) == ("later", f"@{short['version']}")
    assert early["timestamp"] == short["timestamp"] < again["timestamp"]
    assert earlier == early


@proves("recall:near")
def test_a_path_that_leads_nowhere_says_how_far_it_leads(call: Call) -> None:
    call.store(key="cfg", value={"db": {"host": "a", "port": 1}})
    call.store(key="text", value='{"host": "a"}')

    miss, text = call.recall(key="cfg", path="$.db.user"), call.recall(key="text", path="$.host")

    assert (miss["found"], miss["reason"]) == (False, "path")
    assert (miss["place"], miss["there"]) == ("$.db", "the fields host, port")
    assert text["there"].startswith("text that holds JSON")


@proves("recall:near")
def test_a_moment_that_is_named_shows_the_entry(call: Call, clock: Clock) -> None:
    first = call.store(key="lease", value="long")["version"]
    call.branch(action="fork", name="trial")
    call.store(key="lease", value="short", ttl="10s", branch="trial")
    clock.advance(20)
    call.branch(action="merge", source="trial")

    miss = call.recall(key="lease")

    assert (miss["reason"], miss["before"]) == ("expired", f"@{first}")
    assert call.value("lease", as_of=miss["before"]) == "long"


@proves("recall:near")
def test_several_misses_are_explained(call: Call) -> None:
    call.store(key="user/city", value="Oslo")

    answer = call.recall(keys=["user/cty", "zebra"])

    assert answer["missing"] == ["user/cty", "zebra"]
    assert [(miss["key"], miss["near"]) for miss in answer["misses"]] == [
        ("user/cty", ["user/city"])
    ]


@proves("recall:near")
def test_near_keys_are_found_among_many(call: Call) -> None:
    call.store(items=[{"key": f"log/{number:04}", "value": 0} for number in range(600)])
    call.store(key="user/name", value="Ada")

    assert call.recall(key="user/nme")["near"] == ["user/name"]
    assert call.recall(key="User/Name")["near"] == ["user/name"]


@proves("history:events")
def test_events_are_read_in_order_by_what_they_are(call: Call, clock: Clock) -> None:
    def log(event: str, data: int, session: str | None = None) -> int:
        named = {"session": session} if session else {}
        sequence: int = call.log(event=event, data=data, **named)["sequence"]
        clock.advance(3_600)
        return sequence

    first, second, third = log("step", 1, "a"), log("note", 2, "a"), log("step", 3, "b")
    call.log(event="step", data=4, namespace="other")

    def data(**wanted: Any) -> list[int]:
        return [event["data"] for event in call.history(**wanted)["results"]]

    assert data(after=0) == [1, 2, 3]
    assert data(event="step") == [1, 3]
    assert data(session="a") == [1, 2]
    assert data(session="a", event="note") == [2]
    assert data(after=first) == [2, 3]
    assert data(since="2h ago") == [2, 3]
    assert data(since=f"@{third}") == [3]
    assert data(order="newest") == [3, 2, 1]
    assert data(after=0, as_of=f"@{second}") == [1, 2]
    assert data(after=0, namespace="other") == [4]
    assert data(event="nothing") == []
    event = call.history(session="b")["results"][0]
    assert (event["event"], event["session"], event["sequence"]) == ("step", "b", third)


@proves("history:events")
def test_a_session_is_read_with_whole_messages_as_far_as_there_is_room(call: Call) -> None:
    text = "An answer in many words. " * 100
    for _ in range(10):
        call.log(event="message", data={"role": "assistant", "content": text}, session="talk")

    read, listed = call.history(session="talk"), call.history(event="message")

    assert read["results"][0]["data"]["content"] == text
    assert 2 <= len(read["results"]) < 10
    following = call.history(session="talk", cursor=read["next"])["results"]
    assert following[0]["sequence"] == read["results"][-1]["sequence"] + 1
    assert listed["results"][0]["value_truncated"]
    assert listed["note"] == (
        "A value was too long and was cut; recall '@' and its sequence to read it all."
    )


@proves("history:events")
def test_events_since_a_day_begin_with_it(call: Call, clock: Clock) -> None:
    # The clock of the tests stands at half past eight in the evening.
    clock.advance(-18 * 3_600)
    call.log(event="early", data=1)
    clock.advance(18 * 3_600)
    call.log(event="late", data=2)

    labels = [each["event"] for each in call.history(since="today")["results"]]

    assert labels == ["early", "late"]


@proves("history:events")
def test_events_are_paged_either_way(call: Call) -> None:
    for number in range(5):
        call.log(event="tick", data=number)

    for order, expected in (("oldest", [0, 1, 2, 3, 4]), ("newest", [4, 3, 2, 1, 0])):
        answer = call.history(event="tick", order=order, limit=2)
        found = [event["data"] for event in answer["results"]]
        while answer["truncated"]:
            answer = call.history(event="tick", order=order, limit=2, cursor=answer["next"])
            found += [event["data"] for event in answer["results"]]
        assert found == expected


@proves("history:events")
def test_versions_are_not_filtered_like_events(call: Call) -> None:
    refused = call.refusal("strata_history", key="a", event="b")

    assert refused["details"]["field"] == "event"


@proves("history:range")
def test_the_time_range_is_that_of_the_namespace_and_the_moment(call: Call) -> None:
    first = call.store(key="a", value=1)["version"]
    only = call.store(key="b", value=1, namespace="notes")["version"]
    call.store(key="c", value=1)

    notes, past = call.history(namespace="notes"), call.history(as_of=f"@{first}")

    assert (notes["oldest_sequence"], notes["latest_sequence"]) == (only, only)
    assert past["latest_sequence"] == first
    assert "oldest" not in call.history(namespace="nowhere")
