from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("log:answer")
def test_a_logged_event_answers_with_its_place_and_time(call: Call) -> None:
    answer = call.log(event="observation", data="it rains")

    assert answer == {"sequence": 2, "timestamp": "2026-05-28T20:26:40.000001Z"}


@proves("log:searchable")
def test_a_logged_event_is_found_with_all_that_was_said(call: Call) -> None:
    data = {"where": "Bergen", "what": ["rain", 3.5, None]}
    logged = call.log(event="observation", data=data, tags=["weather"], session="monday")

    (hit,) = call.search(query="bergen rain")["results"]

    assert hit["kind"] == "event"
    assert (hit["event"], hit["sequence"]) == ("observation", logged["sequence"])
    assert hit["value"] == data
    assert (hit["tags"], hit["session"], hit["namespace"]) == (["weather"], "monday", "default")
    assert "key" not in hit


@proves("log:searchable")
def test_an_event_is_found_by_its_label(call: Call) -> None:
    call.log(event="deployment", data=1)

    assert call.keys("deployment") == ["deployment"]


@proves("log:searchable")
def test_a_message_is_found_by_what_was_said_and_not_by_its_label(call: Call) -> None:
    call.store(key="queue", value="NATS JetStream brokers every message")
    call.log(event="message", data={"role": "user", "text": "My sister Elin is vegetarian."})
    call.log(event="message", data={"role": "assistant", "text": "A table for three, then?"})
    call.log(event="message", data={"role": "admin", "name": "Kim"})

    found = call.search(query="message")["results"]

    assert {hit.get("key") or hit["value"]["role"] for hit in found} == {"queue", "admin"}
    (said,) = call.search(query="vegetarian")["results"]
    assert said["event"] == "message"


@proves("log:any-json")
@pytest.mark.parametrize("data", [None, True, 0, "", [], {}, {"a": [1.5]}], ids=repr)
def test_any_json_can_be_logged(call: Call, data: Any) -> None:
    call.log(event="label", data=data)

    assert repr(call.search(query="label")["results"][0]["value"]) == repr(data)


@proves("log:append-only")
def test_equal_events_are_two_events_and_no_entry(call: Call) -> None:
    call.log(event="tick", data=1)
    call.log(event="tick", data=1)

    assert call.status()["events"] == 2
    assert call.status()["keys"] == 0
    assert call.recall(key="tick")["found"] is False
    assert call.forget(key="tick")["deleted"] is False


@proves("log:namespaces")
def test_a_search_in_a_namespace_finds_its_events_only(call: Call) -> None:
    call.log(event="here", data="rain")
    call.log(event="there", data="rain", namespace="other")

    assert call.keys("rain", namespace="other") == ["there"]
    assert set(call.keys("rain")) == {"here", "there"}


@proves("log:branch")
def test_an_event_on_a_branch_is_found_there_only(call: Call) -> None:
    call.log(event="before", data="rain")
    call.branch(action="fork", name="trial")

    call.log(event="inside", data="rain", branch="trial")
    call.log(event="outside", data="rain")

    assert set(call.keys("rain", branch="trial")) == {"before", "inside"}
    assert set(call.keys("rain")) == {"before", "outside"}
