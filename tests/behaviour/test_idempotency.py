from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call, Opener
from tests.contracts.samples import Clock
from tests.manifest import proves

WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "store": ("strata_store", {"key": "k", "value": {"a": [1, 2.5, None]}, "tags": ["t"]}),
    "items": ("strata_store", {"items": [{"key": "k", "value": 1}, {"key": "l", "value": 2}]}),
    "path": ("strata_store", {"key": "doc", "value": 1, "path": "$.n"}),
    "forget": ("strata_forget", {"key": "old"}),
    "forget nothing": ("strata_forget", {"key": "never"}),
    "log": ("strata_log", {"event": "e", "data": {"a": 1}, "session": "s"}),
    "fork": ("strata_branch", {"action": "fork", "name": "new"}),
    "fork without a name": ("strata_branch", {"action": "fork"}),
    "create": ("strata_branch", {"action": "create"}),
    "merge": ("strata_branch", {"action": "merge", "source": "trial"}),
    "delete": ("strata_branch", {"action": "delete", "name": "trial"}),
    "restore": ("strata_branch", {"action": "restore", "name": "gone"}),
}


@pytest.fixture
def call(call: Call) -> Call:
    call.store(key="old", value=1)
    call.branch(action="fork", name="trial")
    call.store(key="theirs", value=1, branch="trial")
    call.log(event="theirs", data=1, branch="trial")
    call.branch(action="create", name="gone")
    call.branch(action="delete", name="gone")
    return call


@proves("request:repeat")
@pytest.mark.parametrize(("name", "arguments"), WRITES.values(), ids=WRITES)
def test_a_repeated_write_returns_the_first_answer_and_writes_nothing(
    call: Call, clock: Clock, name: str, arguments: dict[str, Any]
) -> None:
    first = call(name, **arguments, request_id="r1")
    head = call.head()
    clock.advance(60)

    again = call(name, **arguments, request_id="r1")

    assert again == first
    assert call.head() == head


@proves("request:repeat")
def test_a_repeat_after_other_writes_still_returns_the_first_answer(call: Call) -> None:
    first = call.store(key="k", value="one", request_id="r1")
    call.store(key="k", value="two")

    again = call.store(key="k", value="one", request_id="r1")

    assert again == first
    assert call.value("k") == "two"


@proves("request:reused")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("strata_store", {"key": "k", "value": "two"}),
        ("strata_store", {"key": "l", "value": "one"}),
        ("strata_store", {"key": "k", "value": "one", "tags": ["t"]}),
        ("strata_store", {"key": "k", "value": "one", "branch": "trial"}),
        ("strata_store", {"key": "k", "value": "one", "namespace": "other"}),
        ("strata_store", {"key": "k", "value": "one", "ttl": 5}),
        ("strata_forget", {"key": "k"}),
        ("strata_log", {"event": "k", "data": "one"}),
        ("strata_branch", {"action": "create", "name": "k"}),
    ],
)
def test_an_id_with_other_arguments_is_refused(
    call: Call, name: str, arguments: dict[str, Any]
) -> None:
    call.store(key="k", value="one", request_id="r1")

    refused = call.refusal(name, **arguments, request_id="r1")

    assert refused["error"] == "request_id_reused"
    assert refused["details"]["request_id"] == "r1"


@proves("request:reused")
def test_a_branch_that_was_named_or_current_is_the_same_branch(call: Call) -> None:
    first = call.store(key="k", value=1, branch="default", request_id="r1")

    again = call.store(key="k", value=1, request_id="r1")

    assert again == first


@proves("request:failed")
def test_a_refused_write_does_not_use_its_id_up(call: Call) -> None:
    call.refusal("strata_store", key="k", value=1, expected_version=99, request_id="r1")

    answer = call.store(key="k", value=1, request_id="r1")

    assert answer["status"] == "created"


@proves("request:reopen")
def test_an_id_is_remembered_when_the_database_is_opened_again(opened: Opener) -> None:
    one = opened()
    first = one.store(key="k", value=1, request_id="r1")

    again = opened().store(key="k", value=1, request_id="r1")

    assert again == first


@proves("request:values", "input:values")
@pytest.mark.parametrize("request_id", ["", " ", "r" * 129, "a\nb", True])
def test_an_id_that_cannot_be_one_is_refused(call: Call, request_id: Any) -> None:
    refused = call.refusal("strata_store", key="k", value=1, request_id=request_id)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "request_id")


@proves("request:values", "input:values")
def test_a_time_of_many_digits_is_refused_with_an_id_too(call: Call) -> None:
    refused = call.refusal(
        "strata_branch", action="fork", name="far", as_of=-(10**30), request_id="r1"
    )

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "as_of")
