from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("forget:hides")
def test_a_forgotten_entry_is_neither_recalled_nor_found_nor_counted(call: Call) -> None:
    call.store(key="city", value="Oslo", tags=["norway"])

    answer = call.forget(key="city")

    assert answer["deleted"] is True
    assert answer["keys"] == ["city"]
    assert answer["version"] == 3
    assert call.value("city") is ...
    assert call.keys("Oslo") == call.keys("Oslo", tags=["norway"]) == []
    assert call.status()["keys"] == 0


@proves("forget:past")
def test_earlier_moments_still_show_what_was_forgotten(call: Call) -> None:
    stored = call.store(key="city", value="Oslo")
    call.forget(key="city")

    then = f"@{stored['version']}"

    assert call.value("city", as_of=then) == "Oslo"
    assert call.keys("Oslo", as_of=then) == ["city"]
    assert [each["deleted"] for each in call.history(key="city")["results"]] == [True, False]


@proves("forget:miss")
def test_forgetting_nothing_says_so_and_writes_nothing(call: Call) -> None:
    call.store(key="city", value="Oslo")
    call.forget(key="city")
    head = call.head()

    answers = [call.forget(key="city"), call.forget(key="never"), call.forget(keys=["x", "y"])]

    assert [answer["deleted"] for answer in answers] == [False, False, False]
    assert call.head() == head


@proves("forget:miss")
def test_forgetting_a_key_that_is_not_there_names_what_was_meant(call: Call) -> None:
    call.store(key="user/city", value="Oslo")
    call.store(key="plan", value=1, namespace="work")

    answer = call.forget(keys=["user/cty", "plan", "zebra"])

    assert answer["missing"] == ["user/cty", "plan", "zebra"]
    assert [
        (miss["key"], miss.get("near"), miss.get("elsewhere")) for miss in answer["misses"]
    ] == [
        ("user/cty", ["user/city"], None),
        ("plan", None, ["work"]),
    ]


@proves("forget:miss")
def test_a_logged_event_is_not_forgotten_and_is_named(call: Call) -> None:
    logged = call.log(event="message", data="It rains.")

    answer = call.forget(key=f"@{logged['sequence']}")

    assert answer["deleted"] is False
    assert answer["misses"][0]["event"] == "message"
    assert call.recall(key=f"@{logged['sequence']}")["found"]


@proves("forget:keys")
def test_several_keys_are_forgotten_together(call: Call) -> None:
    for key in "abc":
        call.store(key=key, value=key)

    answer = call.forget(keys=["a", "x", "c", "a"])

    assert answer["keys"] == ["a", "c"]
    assert [call.value(key) for key in "abc"] == [..., "b", ...]
    assert call.value("a", as_of=f"@{answer['version'] - 1}") is ...


@proves("forget:namespaces")
def test_only_the_entry_of_that_namespace_is_forgotten(call: Call) -> None:
    call.store(key="k", value="here")
    call.store(key="k", value="there", namespace="other")

    call.forget(key="k", namespace="other")

    assert call.value("k") == "here"
    assert call.value("k", namespace="other") is ...


@proves("forget:branch")
def test_forgetting_on_a_branch_leaves_its_parent_alone(call: Call) -> None:
    call.store(key="k", value="here")
    call.branch(action="fork", name="trial")

    call.forget(key="k", branch="trial")

    assert call.value("k", branch="trial") is ...
    assert call.keys("here", branch="trial") == []
    assert call.value("k") == "here"
