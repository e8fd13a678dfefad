from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves

DOCUMENT: dict[str, Any] = {
    "user": {"name": "Ada", "first name": "A", "roles": ["admin", "author"]},
    "a.b": 1,
    "none": None,
}


@proves("path:recall")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("$.user.name", "Ada"),
        ("user.name", "Ada"),
        ("$['user']['first name']", "A"),
        ('$["a.b"]', 1),
        ("$.user.roles[0]", "admin"),
        ("$.user.roles[-1]", "author"),
        ("$.none", None),
    ],
)
def test_one_place_of_a_value_is_recalled(call: Call, path: str, value: Any) -> None:
    call.store(key="k", value=DOCUMENT)

    answer = call.recall(key="k", path=path)

    assert answer["found"] is True
    assert answer["value"] == value


@proves("path:recall")
@pytest.mark.parametrize("path", ["$.user.age", "$.user.roles[2]", "$.user[0]", "$.none.x"])
def test_a_place_that_is_not_there_is_a_miss(call: Call, path: str) -> None:
    call.store(key="k", value=DOCUMENT)

    assert call.recall(key="k", path=path)["found"] is False


@proves("path:store")
@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("$.a", 2, {"a": 2, "list": [1]}),
        ("$.b", 2, {"a": 1, "list": [1], "b": 2}),
        ("$.b.c.d", 2, {"a": 1, "list": [1], "b": {"c": {"d": 2}}}),
        ("$.list[0]", 2, {"a": 2 - 1, "list": [2]}),
        ("$.list[1]", 2, {"a": 1, "list": [1, 2]}),
        ("$", "whole", "whole"),
    ],
)
def test_one_place_is_changed_and_the_rest_is_kept(
    call: Call, path: str, value: Any, expected: Any
) -> None:
    call.store(key="k", value={"a": 1, "list": [1]}, tags=["t"])

    answer = call.store(key="k", value=value, path=path)

    assert answer["status"] == "updated"
    assert call.value("k") == expected
    assert call.recall(key="k")["tags"] == ["t"]


@proves("path:store")
def test_a_place_of_an_entry_that_is_not_there_begins_it(call: Call) -> None:
    answer = call.store(key="k", value=1, path="$.a.b")

    assert answer["status"] == "created"
    assert call.value("k") == {"a": {"b": 1}}


@proves("path:store")
def test_tags_given_with_a_place_replace_the_entrys(call: Call) -> None:
    call.store(key="k", value={"a": 1}, tags=["old"])

    call.store(key="k", value=2, path="$.a", tags=["new"])
    replaced = call.recall(key="k")["tags"]
    call.store(key="k", value=3, path="$.a", tags=[])

    assert replaced == ["new"]
    assert call.recall(key="k")["tags"] == []


@proves("path:store")
def test_a_place_changed_on_a_fork_leaves_the_parent_alone(call: Call) -> None:
    call.store(key="k", value={"a": 1})
    call.branch(action="fork", name="trial")

    call.store(key="k", value=2, path="$.a", branch="trial")

    assert call.value("k") == {"a": 1}
    assert call.value("k", branch="trial", path="$.a") == 2


@proves("path:store")
def test_the_changed_entry_is_found_by_its_new_words_and_the_kept_ones(call: Call) -> None:
    call.store(key="k", value={"city": "Oslo", "river": "Akerselva"})

    call.store(key="k", value="Bergen", path="$.city")

    assert call.keys("Bergen") == call.keys("Akerselva") == ["k"]
    assert call.keys("Oslo") == []


@proves("path:refused")
@pytest.mark.parametrize(
    "path",
    ["$..a", "$.*", "$.list[*]", "$.list[0:1]", "$[?@.a]", "$.a[", "$.list[0,1]", "", "$.1", "$x"],
)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "missing"])
def test_a_path_that_names_not_one_place_is_refused(call: Call, path: str, stored: bool) -> None:
    if stored:
        call.store(key="k", value={"a": 1, "list": [1]})

    reading = call.refusal("strata_recall", key="k", path=path)
    writing = call.refusal("strata_store", key="k", value=2, path=path)

    for refused in (reading, writing):
        assert (refused["error"], refused["details"]["field"]) == ("validation_error", "path")


@proves("path:refused")
@pytest.mark.parametrize("path", ["$.a.b", "$.list.x", "$.list[5]", "$[0]"])
def test_a_place_that_cannot_be_reached_is_refused(call: Call, path: str) -> None:
    call.store(key="k", value={"a": 1, "list": [1]})

    refused = call.refusal("strata_store", key="k", value=2, path=path)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "path")
    assert call.value("k") == {"a": 1, "list": [1]}


@proves("path:refused")
def test_a_place_may_not_make_the_value_too_deep(call: Call) -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    call.store(key="k", value={"a": deep})

    path = "$.a" + "[0]" * 60
    refused = call.refusal("strata_store", key="k", value=[[[[1]]]], path=path)

    assert refused["details"]["limit"] == 64


@proves("path:refused")
def test_a_change_inside_of_text_that_looks_like_json_says_what_to_send(call: Call) -> None:
    call.store(key="text", value='{"a": 1}')

    refused = call.refusal("strata_store", key="text", path="$.a", value=2)

    assert "store it as JSON" in refused["hint"]
