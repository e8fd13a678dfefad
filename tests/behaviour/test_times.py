"""Time words, at a Thursday evening: the clock starts at 2026-05-28T20:26:40Z."""

from __future__ import annotations

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import START, Clock
from tests.manifest import proves

HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def clock() -> Clock:
    """A clock that starts long before the first write: time never goes backwards in a log."""
    return Clock(START - 30 * DAY * 1_000_000)


@pytest.fixture
def call(call: Call, clock: Clock) -> Call:
    """A memory with one value for each of the last days and hours."""
    for name, ago in (
        ("ten days", 10 * DAY),
        ("three days", 3 * DAY),
        ("two days", 2 * DAY),
        ("yesterday noon", DAY + 8 * HOUR + 1_600),
        ("five hours", 5 * HOUR),
        ("ninety minutes", 90 * 60),
        ("ten minutes", 600),
    ):
        clock.now = START - ago * 1_000_000
        call.store(key="k", value=name)
    clock.now = START
    return call


WORDS = {
    "now": "ten minutes",
    "today": "ten minutes",
    "5 minutes ago": "ten minutes",
    "10 minutes ago": "ten minutes",
    "11 minutes ago": "ninety minutes",
    "1h ago": "ninety minutes",
    "2h ago": "five hours",
    "90 min ago": "ninety minutes",
    "6 hours ago": "yesterday noon",
    "yesterday": "yesterday noon",
    "yesterday 14:00": "yesterday noon",
    "yesterday at 11am": "two days",
    "2 days ago": "two days",
    "1 week ago": "ten days",
    "last tuesday": "two days",
    "last monday": "three days",
    "2026-05-25": "three days",
    "2026-05-28T15:00:00Z": "yesterday noon",
    "2026-05-28T18:00:00+02:00": "five hours",
    "2026-05-28 16:00": "five hours",
}


@proves("time:words")
@pytest.mark.parametrize(("words", "expected"), WORDS.items(), ids=WORDS)
def test_a_moment_in_words_shows_what_was_there_then(
    call: Call, words: str, expected: str, clock: Clock
) -> None:
    assert call.value("k", as_of=words) == expected


@proves("time:numbers")
def test_a_moment_is_also_epoch_microseconds_or_a_sequence(call: Call, clock: Clock) -> None:
    versions = call.history(key="k")["results"]

    at = START - 3 * HOUR * 1_000_000

    assert call.value("k", as_of=at) == call.value("k", as_of=str(at)) == "five hours"
    for each in versions:
        assert call.value("k", as_of=f"@{each['version']}") == each["value"]


@proves("time:before")
def test_a_moment_before_the_first_write_shows_nothing(call: Call, clock: Clock) -> None:
    assert call.recall(key="k", as_of="20 days ago")["found"] is False
    assert call.recall(key="k", as_of="1999-01-01")["found"] is False
    assert call.search(query="days", as_of="20 days ago")["results"] == []
    assert call.history(key="k", as_of="20 days ago")["results"] == []


@proves("time:relative")
def test_relative_words_move_with_the_clock(call: Call, clock: Clock) -> None:
    before = call.value("k", as_of="30 minutes ago")

    clock.advance(HOUR)

    assert before == "ninety minutes"
    assert call.value("k", as_of="30 minutes ago") == "ten minutes"


@proves("time:relative")
def test_an_absolute_moment_keeps_its_meaning(call: Call, clock: Clock) -> None:
    moment = "2026-05-28T20:20:00Z"
    before = call.value("k", as_of=moment)

    clock.advance(HOUR)
    call.store(key="k", value="later")

    assert before == call.value("k", as_of=moment) == "ten minutes"


@proves("time:relative")
def test_a_moment_that_is_still_the_present_shows_what_is_written_at_it(
    call: Call, clock: Clock
) -> None:
    moment = "2026-05-28T20:26:40Z"
    before = call.value("k", as_of=moment)

    call.store(key="k", value="at that very moment")

    assert before == "ten minutes"
    assert call.value("k", as_of=moment) == "at that very moment"


@proves("time:everywhere")
def test_every_reading_operation_takes_a_moment(call: Call, clock: Clock) -> None:
    moment = "3 hours ago"

    call.branch(action="fork", name="old", as_of=moment)

    assert call.keys("five hours", as_of=moment) == ["k"]
    assert call.history(key="k", as_of=moment)["results"][0]["value"] == "five hours"
    assert call.value("k", branch="old") == "five hours"
    assert call.branch(action="diff", compare="old", as_of=moment)["results"] == []


FUTURE = ["tomorrow", "in 5 minutes", "next monday", "2026-05-29", "2026-05-28T20:27:00Z", "23:00"]
UNCLEAR = [
    "03/04/2026",
    "5",
    "1h",
    "soon",
    "1780000000",
    "",
    " ",
    "yesterday-ish",
    "25:00",
    "2026-02-30",
    "last fortnight",
    "-1h ago",
    "@",
    "@-1",
    "@1.5",
    "@99999999999999999999999",
]


@proves("time:future")
@pytest.mark.parametrize("words", FUTURE)
def test_a_moment_in_the_future_is_refused(call: Call, clock: Clock, words: str) -> None:
    refused = call.refusal("strata_recall", key="k", as_of=words)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "as_of")
    assert "future" in refused["message"]


@proves("time:unclear")
@pytest.mark.parametrize("words", UNCLEAR)
def test_a_moment_that_is_unclear_is_refused_with_a_spelling_that_is_not(
    call: Call, clock: Clock, words: str
) -> None:
    refused = call.refusal("strata_recall", key="k", as_of=words)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "as_of")


@proves("time:unclear")
def test_a_sequence_that_was_not_written_yet_is_refused(call: Call) -> None:
    refused = call.refusal("strata_recall", key="k", as_of="@999")

    assert refused["error"] == "validation_error"
    assert refused["details"]["limit"] == 8
    assert "as_of '@8'" in refused["hint"] or "--as-of @8" in refused["hint"]


@proves("time:transaction")
def test_a_version_of_several_items_means_all_of_them(call: Call) -> None:
    items = [{"key": key, "value": "together"} for key in "abc"]
    stored = call.store(items=items)["results"]
    call.store(items=[{"key": key, "value": "later"} for key in "abc"])

    for each in stored:
        moment = f"@{each['version']}"
        assert [call.value(key, as_of=moment) for key in "abc"] == ["together"] * 3
