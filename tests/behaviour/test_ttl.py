from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("ttl:hides")
def test_an_entry_is_gone_from_its_time_on(call: Call, clock: Clock) -> None:
    call.store(key="k", value="fjord", ttl="10s", tags=["t"])
    clock.advance(9.999_999)
    during = (call.value("k"), call.keys("fjord"), call.status()["keys"])

    clock.advance(0.000_002)

    assert during == ("fjord", ["k"], 1)
    assert call.value("k") is ...
    assert call.keys("fjord") == call.keys("fjord", tags=["t"]) == []
    assert call.recall(keys=["k"])["missing"] == ["k"]
    assert call.status()["keys"] == 0


@proves("ttl:shown")
def test_an_entry_says_when_it_expires(call: Call) -> None:
    call.store(key="k", value=1, ttl="1h")
    call.store(key="lasting", value=1)

    assert call.recall(key="k")["expires"] == "2026-05-28T21:26:40.000000Z"
    assert "expires" not in call.recall(key="lasting")


@proves("ttl:past")
def test_views_of_earlier_moments_still_show_what_has_expired(call: Call, clock: Clock) -> None:
    stored = call.store(key="k", value="fjord", ttl="10s")
    clock.advance(60)
    call.store(key="other", value=1)

    for moment in (f"@{stored['version']}", "55 seconds ago"):
        assert call.value("k", as_of=moment) == "fjord"
        assert call.keys("fjord", as_of=moment) == ["k"]
    assert call.recall(key="k", as_of="5 seconds ago")["found"] is False
    assert call.keys("fjord", as_of="5 seconds ago") == []


@proves("ttl:writes")
def test_a_write_after_expiry_creates_the_entry_anew(call: Call, clock: Clock) -> None:
    call.store(key="k", value="old", ttl="10s")
    clock.advance(60)

    answer = call.store(key="k", value="new")

    assert answer["status"] == "created"
    assert call.status()["keys"] == 1
    clock.advance(60)
    assert call.value("k") == "new"


@proves("ttl:writes")
def test_an_expired_entry_cannot_be_forgotten_nor_expected(call: Call, clock: Clock) -> None:
    version = call.store(key="k", value="old", ttl="10s")["version"]
    clock.advance(60)
    head = call.head()

    forgotten = call.forget(key="k")
    unmoved = call.head()
    conflict = call.refusal("strata_store", key="k", value=1, expected_version=version)
    created = call.store(key="k", value=1, expected_version=0)

    assert forgotten["deleted"] is False
    assert unmoved == head
    assert conflict["error"] == "version_conflict"
    assert created["status"] == "created"


@proves("ttl:writes", "path:store")
def test_a_change_of_one_place_keeps_the_time_unless_a_new_one_is_given(
    call: Call, clock: Clock
) -> None:
    call.store(key="k", value={"a": 1}, ttl="10s")
    clock.advance(5)
    call.store(key="k", value=2, path="$.a")
    kept = call.recall(key="k")["expires"]

    call.store(key="k", value=3, path="$.a", ttl="10s")

    assert kept == "2026-05-28T20:26:50.000000Z"
    assert call.recall(key="k")["expires"] == "2026-05-28T20:26:55.000000Z"


@proves("ttl:writes", "path:store")
def test_a_change_of_one_place_of_an_expired_entry_begins_anew(call: Call, clock: Clock) -> None:
    call.store(key="k", value={"a": 1, "b": 1}, ttl="10s", tags=["t"])
    clock.advance(60)

    call.store(key="k", value=2, path="$.a")

    answer = call.recall(key="k")
    assert (answer["value"], answer["tags"]) == ({"a": 2}, [])
    assert "expires" not in answer


@proves("ttl:branch")
def test_a_fork_borrows_an_entry_with_its_time(call: Call, clock: Clock) -> None:
    call.store(key="k", value=1, ttl="10s")
    call.branch(action="fork", name="trial")
    call.store(key="k", value="lasting", branch="trial")
    call.branch(action="fork", name="copy")

    clock.advance(60)

    assert call.value("k") is call.value("k", branch="copy") is ...
    assert call.value("k", branch="trial") == "lasting"


@proves("ttl:branch")
def test_expiry_is_no_change_in_a_merge(call: Call, clock: Clock) -> None:
    call.store(key="k", value="brief", ttl="10s")
    call.branch(action="fork", name="trial")
    clock.advance(60)

    answer = call.branch(action="merge", source="trial")
    back = call.branch(action="merge", source="default", branch="trial")

    assert (answer["merged"], back["merged"]) == (0, 0)


GOOD: list[tuple[Any, str]] = [
    (90, "20:28:10"),
    (0.5, "20:26:40.5"),
    ("90", "20:28:10"),
    ("90s", "20:28:10"),
    ("2 minutes", "20:28:40"),
    ("1h 30m", "21:56:40"),
]


@proves("ttl:words")
@pytest.mark.parametrize(("ttl", "expires"), GOOD, ids=repr)
def test_a_length_of_time_is_seconds_or_words(call: Call, ttl: Any, expires: str) -> None:
    call.store(key="k", value=1, ttl=ttl)

    assert call.recall(key="k")["expires"].startswith(f"2026-05-28T{expires}")


@proves("ttl:words", "input:values")
@pytest.mark.parametrize(
    "ttl", [0, -1, "0s", "-5s", "soon", "", "1 month", 1e30, "200 years", [1, 2], {}], ids=repr
)
def test_a_length_of_time_that_is_none_is_refused(call: Call, ttl: Any) -> None:
    refused = call.refusal("strata_store", key="k", value=1, ttl=ttl)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "ttl")


@proves("ttl:branch")
def test_what_expired_is_merged_like_anything_else_and_hides_itself(
    call: Call, clock: Clock
) -> None:
    call.store(key="k", value="first")
    call.branch(action="fork", name="trial")
    call.store(key="k", value="brief", ttl="5s", branch="trial")
    clock.advance(60)

    answer = call.branch(action="merge", source="trial")

    assert [(each["key"], each["change"]) for each in answer["results"]] == [("k", "removed")]
    assert call.value("k") is call.value("k", branch="trial") is ...
    assert call.branch(action="diff", compare="trial")["results"] == []


@proves("ttl:branch")
def test_in_which_order_expired_versions_are_merged_makes_no_difference(
    call: Call, clock: Clock
) -> None:
    for branch in ("c1", "c2"):
        call.branch(action="fork", name=branch)
    call.store(key="k", value="perm")
    call.branch(action="fork", name="b")
    call.store(key="k", value="temp", ttl="1m", branch="b")
    clock.advance(120)

    for branch, order in {"c1": ("b", "default"), "c2": ("default", "b")}.items():
        for source in order:
            call.branch(action="merge", source=source, branch=branch)

    assert call.branch(action="diff", compare="c2", branch="c1")["results"] == []
    assert call.value("k", branch="c1") is call.value("k", branch="c2") is ...
    seen = call.branch(action="diff", compare="c1")["results"]
    assert [(each["key"], each["side"], each["change"]) for each in seen] == [
        ("k", "theirs", "removed")
    ]
    call.store(key="k", value="changed")
    assert call.branch(action="merge", source="default", branch="c1")["merged"] == 1
    assert call.value("k", branch="c1") == "changed"


LATER = {
    "a later one": (("theirs", "20s"), ("ours", "10s"), "theirs"),
    "an earlier one": (("theirs", "10s"), ("ours", "20s"), "ours"),
    "one for good": (("theirs", None), ("ours", "10s"), "theirs"),
    "one with an end": (("theirs", "10s"), ("ours", None), "ours"),
    "one that is forgotten": (("theirs", "10s"), (..., None), ...),
}


@proves("ttl:conflict")
@pytest.mark.parametrize("seconds", [0, 60], ids=["at once", "long after"])
@pytest.mark.parametrize(("theirs", "ours", "stands"), LATER.values(), ids=LATER)
def test_of_two_versions_in_conflict_the_one_that_expires_later_stands(
    call: Call, clock: Clock, theirs: Any, ours: Any, stands: Any, seconds: int
) -> None:
    call.store(key="k", value="base")
    call.branch(action="fork", name="trial")
    for (value, ttl), branch in ((theirs, "trial"), (ours, "default")):
        if value is ...:
            call.forget(key="k", branch=branch)
        else:
            options = {"ttl": ttl} if ttl else {}
            call.store(key="k", value=value, branch=branch, **options)
    written = call.status()["head"].split(":")[0]
    clock.advance(seconds)

    call.branch(action="merge", source="trial", strategy="source_wins")
    call.branch(action="merge", source="default", branch="trial")

    assert call.branch(action="diff", compare="trial")["results"] == []
    if seconds == 0:
        assert call.value("k") == call.value("k", branch="trial") == stands
    else:
        lasting = dict([theirs, ours])[stands] is None
        assert call.value("k") == (stands if lasting else ...)
    assert int(call.status()["head"].split(":")[0]) > int(written)


@proves("ttl:conflict", "merge:fields")
@pytest.mark.parametrize("order", ["abc", "bac", "acb", "cba"])
def test_a_field_of_a_value_that_expires_never_gets_into_one_that_lasts(
    call: Call, order: str
) -> None:
    call.store(key="q", value={"v": 0, "w": 0})
    for branch in (*order, "into"):
        call.branch(action="fork", name=branch)
    call.store(key="q", value={"v": 1, "w": 0}, ttl=1800, branch="a")
    call.store(key="q", value=1, path="$.w", branch="b")
    call.store(key="q", value={"v": 2, "w": 0}, ttl=7200, branch="c")

    for source in order:
        call.branch(action="merge", source=source, branch="into")

    answer = call.recall(key="q", branch="into")
    assert answer["value"] == {"v": 0, "w": 1}
    assert "expires" not in answer


@proves("ttl:conflict", "merge:fields")
def test_fields_of_entries_that_expire_together_are_merged(call: Call) -> None:
    call.store(key="k", value={}, ttl="10s")
    call.branch(action="fork", name="trial")
    call.store(key="k", value=1, path="$.a", branch="trial")
    call.store(key="k", value=1, path="$.b")
    for value, branch in ((5, "trial"), (7, "default")):
        call.store(key="k", value=value, path="$.c", branch=branch)

    call.branch(action="merge", source="trial")
    call.branch(action="merge", source="default", branch="trial")

    assert call.value("k") == call.value("k", branch="trial") == {"a": 1, "b": 1, "c": 7}
    assert call.recall(key="k")["expires"] == "2026-05-28T20:26:50.000000Z"


@proves("ttl:conflict", "merge:fields")
def test_lasting_values_do_not_conflict_over_one_that_both_branches_passed_over(call: Call) -> None:
    call.store(key="k", value={"v": 0, "w": 0})
    for branch in ("brief", "one", "other"):
        call.branch(action="fork", name=branch)
    call.store(key="k", value={"v": 1, "w": 1}, ttl="10s", branch="brief")
    call.store(key="k", value=5, path="$.v", branch="one")
    call.store(key="k", value=7, path="$.w", branch="other")
    for branch in ("one", "other"):
        call.branch(action="merge", source="brief", branch=branch)

    call.branch(action="merge", source="other", branch="one")

    assert call.value("k", branch="one") == {"v": 5, "w": 7}
