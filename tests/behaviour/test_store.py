from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    1.0,
    -0.0,
    0.1,
    1e308,
    5e-324,
    2**64 - 1,
    -(2**63),
    "",
    "text",
    " spaces kept ",
    "null",
    "line\nbreak\ttab \u0000 nul \u2028 separator",
    "Grüße, 世界 👩\u200d👩\u200d👧 e\u0301",
    [],
    {},
    [[], {}, [None]],
    {"z": 1, "a": {"": [1, "2", 3.5, None]}, "é": "é"},
    {"$ref": "x", "__proto__": 1, "a.b": 2, "a b": 3},
]


@proves("store:answer")
def test_a_write_answers_with_what_it_wrote_and_when(call: Call) -> None:
    answer = call.store(key="city", value="Oslo")

    assert answer == {
        "key": "city",
        "version": 2,
        "timestamp": "2026-05-28T20:26:40.000001Z",
        "namespace": "default",
        "status": "created",
    }


@proves("store:answer")
def test_a_write_says_whether_it_created_or_updated(call: Call) -> None:
    statuses = [call.store(key="city", value=value)["status"] for value in ("Oslo", "Oslo")]
    call.forget(key="city")
    statuses.append(call.store(key="city", value="Oslo")["status"])

    assert statuses == ["created", "updated", "created"]


@proves("store:any-json")
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_exactly(call: Call, value: Any) -> None:
    call.store(key="k", value=value)

    recalled = call.value("k")

    assert repr(recalled) == repr(value)


@proves("store:any-json")
def test_a_value_as_large_and_deep_as_is_allowed_comes_back(call: Call) -> None:
    deep: Any = "bottom"
    for _ in range(63):
        deep = [deep]
    call.store(key="deep", value=deep)
    call.store(key="large", value="x" * 900_000)

    assert call.value("deep") == deep
    assert call.value("large", max_chars=1_000_000) == "x" * 900_000


@proves("store:replaces")
def test_a_store_replaces_the_entry_whole(call: Call) -> None:
    call.store(key="k", value={"a": 1, "b": 2}, tags=["x"], ttl="1d")

    call.store(key="k", value={"a": 3})

    answer = call.recall(key="k")
    assert (answer["value"], answer["tags"]) == ({"a": 3}, [])
    assert "expires" not in answer


@proves("store:namespaces")
def test_the_same_key_in_two_namespaces_is_two_entries(call: Call) -> None:
    call.store(key="k", value="here")

    answer = call.store(key="k", value="there", namespace="other")

    assert (answer["namespace"], answer["status"]) == ("other", "created")
    assert call.value("k") == call.value("k", namespace="default") == "here"
    assert call.value("k", namespace="other") == "there"
    assert call.value("k", namespace="third") is ...


@proves("store:tags")
def test_tags_come_back_sorted_and_each_once(call: Call) -> None:
    call.store(key="k", value=1, tags=["b", "a", "b", "Ä"])

    assert call.recall(key="k")["tags"] == ["a", "b", "Ä"]


@proves("store:versions")
def test_a_version_is_the_place_of_the_write_in_the_whole_log(call: Call) -> None:
    call.branch(action="fork", name="trial")

    versions = [
        call.store(key="k", value=number, branch=branch)["version"]
        for number, branch in enumerate(["default", "trial", "default", "trial"])
    ]

    assert versions == [3, 4, 5, 6]
    assert [call.value("k", as_of=f"@{version}") for version in versions] == [0, 0, 2, 2]


@proves("store:at-once")
def test_a_write_is_seen_searched_and_counted_at_once(call: Call) -> None:
    call.store(key="city", value="Oslo lies by a fjord")

    assert call.value("city") == "Oslo lies by a fjord"
    assert call.keys("fjord") == ["city"]
    assert call.status()["keys"] == 1


@proves("store:unindexed")
def test_an_entry_that_is_not_indexed_is_recalled_but_not_found(call: Call) -> None:
    call.store(key="counter", value="fjord", index=False)

    assert call.value("counter") == "fjord"
    assert call.keys("fjord") == []
    assert call.keys("counter") == []


@proves("store:at-once", "store:replaces")
def test_an_entry_is_found_by_its_newest_value_only(call: Call) -> None:
    call.store(key="city", value="Oslo")

    call.store(key="city", value="Bergen")

    assert call.keys("Oslo") == []
    assert call.keys("Bergen") == ["city"]


@proves("store:names")
@pytest.mark.parametrize(
    "name",
    [
        "a",
        "k" * 512,
        " leading and trailing ",
        "path/to/key.txt",
        "'; DROP TABLE events; --",
        '" OR 1=1',
        "%_*?",
        "default/k",
        "ключ 键 🔑",
        "null",
        "0",
    ],
)
def test_a_key_is_taken_exactly_as_given(call: Call, name: str) -> None:
    call.store(key=name, value="here")
    call.store(key=name + "x" if len(name) < 512 else "x", value="elsewhere")

    assert call.recall(key=name)["key"] == name
    assert call.value(name) == "here"
    assert call.forget(key=name)["keys"] == [name]
    assert call.value(name) is ...


@proves("store:names")
def test_keys_that_look_alike_are_different_keys(call: Call) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for key in (composed, decomposed, "Caf\u00e9"):
        call.store(key=key, value=key)

    assert [call.value(key) for key in (composed, decomposed)] == [composed, decomposed]
    assert call.status()["keys"] == 3


@proves("store:clock")
def test_time_never_runs_backwards_and_status_says_when_the_clock_did(
    call: Call, clock: Clock
) -> None:
    clock.advance(3600)
    late = call.store(key="k", value="late")
    clock.advance(-3600)

    later = call.store(key="k", value="later")

    assert later["timestamp"] > late["timestamp"]
    assert call.value("k") == call.value("k", as_of="now") == "later"
    assert call.status()["clock_ahead_seconds"] == 3600.0
