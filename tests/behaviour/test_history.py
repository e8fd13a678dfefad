from __future__ import annotations

from typing import Any

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


def shown(call: Call, key: str, **options: object) -> list[object]:
    return [each["value"] for each in call.history(key=key, **options)["results"]]


@proves("history:versions")
def test_a_history_has_every_version_newest_first(call: Call, clock: Clock) -> None:
    first = call.store(key="k", value="one", tags=["t"])
    clock.advance(10)
    second = call.store(key="k", value="two")
    third = call.forget(key="k")

    answer = call.history(key="k")

    assert answer["truncated"] is False
    writers = {each.pop("actor") for each in answer["results"]}
    assert len(writers) == 1
    assert all(writers)
    assert answer["results"] == [
        {
            "value": None,
            "version": third["version"],
            "timestamp": third["timestamp"],
            "tags": [],
            "deleted": True,
        },
        {
            "value": "two",
            "version": second["version"],
            "timestamp": second["timestamp"],
            "tags": [],
            "deleted": False,
        },
        {
            "value": "one",
            "version": first["version"],
            "timestamp": first["timestamp"],
            "tags": ["t"],
            "deleted": False,
        },
    ]


@proves("history:versions")
def test_every_version_of_a_history_can_be_recalled(call: Call) -> None:
    for number in range(5):
        call.store(key="k", value=number)

    versions = call.history(key="k")["results"]

    for each in versions:
        assert call.value("k", as_of=f"@{each['version']}") == each["value"]
        assert call.value("k", as_of=each["timestamp"]) == each["value"]


@proves("history:versions")
def test_a_key_that_was_never_stored_has_an_empty_history(call: Call) -> None:
    assert call.history(key="never")["results"] == []
    assert call.history(key="k", namespace="never")["results"] == []


@proves("history:branch")
def test_a_history_reaches_through_a_fork_and_no_further(call: Call) -> None:
    call.store(key="k", value="shared")
    call.branch(action="fork", name="trial")
    call.store(key="k", value="default only")
    call.store(key="k", value="trial only", branch="trial")

    assert shown(call, "k") == ["default only", "shared"]
    assert shown(call, "k", branch="trial") == ["trial only", "shared"]


@proves("history:past")
def test_a_history_can_end_at_a_past_moment(call: Call) -> None:
    versions = [call.store(key="k", value=number)["version"] for number in range(4)]

    assert shown(call, "k", as_of=f"@{versions[1]}") == [1, 0]


@proves("history:paging")
def test_pages_of_a_history_give_every_version_once(call: Call) -> None:
    for number in range(25):
        call.store(key="k", value=number)

    pages, cursor = [], None
    while True:
        options: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page = call.history(key="k", limit=10, **options)
        pages.append([each["value"] for each in page["results"]])
        cursor = page.get("next")
        if not page["truncated"]:
            break

    assert cursor is None
    assert pages == [
        list(range(24, 14, -1)),
        list(range(14, 4, -1)),
        list(range(4, -1, -1)),
    ]


@proves("history:paging")
def test_a_page_that_is_exactly_full_is_the_last(call: Call) -> None:
    for number in range(10):
        call.store(key="k", value=number)

    page = call.history(key="k", limit=10)

    assert page["truncated"] is False
    assert "next" not in page


@proves("history:paging")
def test_twenty_versions_are_shown_unless_asked_otherwise(call: Call) -> None:
    for number in range(21):
        call.store(key="k", value=number)

    page = call.history(key="k")

    assert len(page["results"]) == 20
    assert page["truncated"] is True


@proves("history:range")
def test_without_a_key_a_history_is_the_branchs_time_range(call: Call, clock: Clock) -> None:
    first = call.store(key="a", value=1)
    clock.advance(60)
    call.branch(action="fork", name="trial")
    call.store(key="b", value=1)
    clock.advance(60)
    last = call.log(event="e", data=1, branch="trial")

    answer = call.history(branch="trial")

    assert answer["branch"] == "trial"
    assert (answer["oldest"], answer["latest"]) == (first["timestamp"], last["timestamp"])
    assert (answer["oldest_sequence"], answer["latest_sequence"]) == (2, last["sequence"])
    assert call.value("a", as_of=answer["oldest"]) == 1


@proves("history:range")
def test_a_branch_with_nothing_on_it_has_no_time_range(call: Call) -> None:
    answer = call.history()

    assert answer["branch"] == "default"
    assert answer.get("oldest") is answer.get("latest") is None
