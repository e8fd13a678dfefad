"""What words for times mean, and which are refused."""

import contextlib
import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.engine.moments import AtSequence, AtTime, Latest, Moment, duration, iso, parse
from stratagem.errors import ValidationFailed

OSLO = ZoneInfo("Europe/Oslo")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


# A Wednesday, half past ten in the morning on the clocks of Oslo.
NOW = micros("2026-08-05T10:30:00+02:00")


def moment(expression: str | int, *, now: int = NOW, zone: tzinfo = OSLO) -> Moment:
    return parse(expression, now=now, zone=zone)


def instant(expression: str | int, **options: Any) -> int:
    found = moment(expression, **options)
    assert isinstance(found, AtTime)
    return found.at


def refusal(expression: object, **options: Any) -> ValidationFailed:
    with pytest.raises(ValidationFailed, match=r"^`as_of` ") as caught:
        moment(expression, **options)  # type: ignore[arg-type]
    assert caught.value.details["field"] == "as_of"
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("words", ["now", " NOW ", "today", "2026-08-05"])
def test_now_and_the_day_that_has_not_ended_mean_the_head(words: str) -> None:
    assert moment(words) == Latest()


@pytest.mark.parametrize(("words", "sequence"), [("@123", 123), ("@ 7", 7), ("@0", 0)])
def test_a_sequence_is_written_with_an_at_sign(words: str, sequence: int) -> None:
    assert moment(words) == AtSequence(sequence)


@pytest.mark.parametrize("words", ["@", "@-1", "@1.5", "@head", "@²", f"@{2**63}"])
def test_what_follows_the_at_sign_must_be_a_whole_number(words: str) -> None:
    assert "is not a sequence" in refusal(words).message


@pytest.mark.parametrize("given_as", [int, str])
def test_a_number_is_in_epoch_microseconds(given_as: type) -> None:
    assert moment(given_as(1785000000123456)) == AtTime(1785000000123456, relative=False)


@pytest.mark.parametrize(
    ("number", "unit", "right"),
    [
        (1785000000, "seconds", 1785000000000000),
        (1785000000123, "milliseconds", 1785000000123000),
        (1785000000123456789, "nanoseconds", 1785000000123456),
    ],
)
def test_other_units_are_refused_with_the_right_number(number: int, unit: str, right: int) -> None:
    error = refusal(number)

    assert f"looks like epoch {unit}" in error.message
    assert error.hint == f"Write {right}."
    assert instant(right) == right


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (5, "may mean several things"),
        ("5", "may mean several things"),
        (0, "may mean several things"),
        ("1.5", "is a number with a fraction"),
        (-5, "'-5' lies before 1970"),
        (10**20, "is too large"),
        (True, "must be text or a whole number, not bool"),
        (1785000000.5, "must be text or a whole number, not float"),
        (None, "must be text or a whole number, not NoneType"),
    ],
)
def test_numbers_that_are_no_times_are_refused(number: object, words: str) -> None:
    assert words in refusal(number).message


def test_numbers_of_any_size_are_refused_in_words() -> None:
    huge = 10**5000

    assert "is too large" in refusal(huge).message
    assert "lies before 1970" in refusal(-huge).message
    with pytest.raises(ValidationFailed, match="limit"):
        duration(huge)


def test_a_bare_number_is_answered_with_each_thing_it_may_mean() -> None:
    assert "@5 for the sequence" in refusal("5").hint
    assert "The date is 2026-03-04" in refusal("20260304").hint


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("2026-03-04T14:00:00Z", "2026-03-04T14:00:00+00:00"),
        ("2026-03-04t14:00:00z", "2026-03-04T14:00:00+00:00"),
        ("2026-03-04T14:00:00.123456-05:30", "2026-03-04T14:00:00.123456-05:30"),
        ("2026-03-04 14:00 +02:00", "2026-03-04T14:00+02:00"),
        ("2026-03-04 14:00 UTC", "2026-03-04T14:00+00:00"),
        ("2026-03-04T14:00", "2026-03-04T14:00+01:00"),
        ("2026-07-04 14:00:59", "2026-07-04T14:00:59+02:00"),
        ("2026-07-04T14", "2026-07-04T14:00+02:00"),
        ("20260704T140059Z", "2026-07-04T14:00:59+00:00"),
        ("2026-W10-1T14:00", "2026-03-02T14:00+01:00"),
        ("2026-03-04 at 2pm", "2026-03-04T14:00+01:00"),
        ("noon on 2026-03-04", "2026-03-04T12:00+01:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"),
        ("2026-08-05T10:30:00+02:00", "2026-08-05T10:30:00+02:00"),
    ],
)
def test_iso_8601_is_read_in_the_zone_unless_it_has_an_offset(words: str, meaning: str) -> None:
    assert moment(words) == AtTime(micros(meaning), relative=False)


@pytest.mark.parametrize(
    ("words", "next_day"),
    [
        ("2026-03-04", "2026-03-05T00:00+01:00"),
        ("2026-W10-3", "2026-03-05T00:00+01:00"),
        # The clocks changed on these days.
        ("2026-03-29", "2026-03-30T00:00+02:00"),
        ("2025-10-26", "2025-10-27T00:00+01:00"),
    ],
)
def test_a_date_means_the_last_moment_of_that_day(words: str, next_day: str) -> None:
    assert moment(words) == AtTime(micros(next_day) - 1, relative=False)


def test_a_day_whose_midnight_does_not_exist_begins_when_the_clocks_change() -> None:
    beirut = ZoneInfo("Asia/Beirut")

    assert instant("2022-03-26", zone=beirut) == micros("2022-03-27T01:00+03:00") - 1


@pytest.mark.parametrize(
    ("words", "ago"),
    [
        ("1h ago", HOUR),
        ("90 minutes ago", 90 * 60 * SECOND),
        ("2 days ago", 2 * DAY),
        ("1d 2h ago", 26 * HOUR),
        ("1d2h ago", 26 * HOUR),
        ("1 day, 2 hours and 3 mins ago", 26 * HOUR + 180 * SECOND),
        ("1.5h ago", 90 * 60 * SECOND),
        ("An Hour  AGO", HOUR),
        ("a week ago", 7 * DAY),
        ("two weeks ago", 14 * DAY),
        ("30 secs ago", 30 * SECOND),
        ("250ms ago", SECOND // 4),
        ("0s ago", 0),
        ("last week", 7 * DAY),
    ],
)
def test_lengths_of_time_are_counted_back_from_now(words: str, ago: int) -> None:
    assert moment(words) == AtTime(NOW - ago, relative=True)


@pytest.mark.parametrize(
    ("now", "words", "meaning"),
    [
        ("2026-08-05T10:30+02:00", "3 months ago", "2026-05-05T10:30+02:00"),
        ("2026-08-05T10:30+02:00", "8 months ago", "2025-12-05T10:30+01:00"),
        ("2026-05-31T10:30+02:00", "3 months ago", "2026-02-28T10:30+01:00"),
        ("2024-02-29T10:30+01:00", "1 year ago", "2023-02-28T10:30+01:00"),
        ("2026-08-05T10:30+02:00", "1y 1mo 1d ago", "2025-07-04T10:30+02:00"),
        ("2026-08-05T10:30+02:00", "last month", "2026-07-05T10:30+02:00"),
        ("2026-08-05T10:30+02:00", "last year", "2025-08-05T10:30+02:00"),
        # The clocks skipped this hour: the month is counted all the same.
        ("2026-04-29T02:30+02:00", "1 month ago", "2026-03-29T03:30+02:00"),
    ],
)
def test_months_and_years_are_those_of_the_calendar(now: str, words: str, meaning: str) -> None:
    assert instant(words, now=micros(now)) == micros(meaning)


@pytest.mark.parametrize(
    ("words", "next_day"),
    [
        ("yesterday", "2026-08-05"),
        ("last monday", "2026-08-04"),
        ("Monday", "2026-08-04"),
        ("tues", "2026-08-05"),
        ("thursday", "2026-07-31"),
        ("sun", "2026-08-03"),
        # Today is a Wednesday; the last one was a week ago.
        ("wednesday", "2026-07-30"),
        ("last wed", "2026-07-30"),
    ],
)
def test_a_day_word_means_the_last_moment_of_that_day(words: str, next_day: str) -> None:
    assert moment(words) == AtTime(micros(f"{next_day}T00:00+02:00") - 1, relative=True)


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("yesterday 14:00", "2026-08-04T14:00"),
        ("Yesterday at 2pm", "2026-08-04T14:00"),
        ("yesterday, at 2 p.m.", "2026-08-04T14:00"),
        ("yesterday,14:00:30", "2026-08-04T14:00:30"),
        ("2:30pm yesterday", "2026-08-04T14:30"),
        ("at 12:00:05 am on sunday", "2026-08-02T00:00:05"),
        ("yesterday 12pm", "2026-08-04T12:00"),
        ("yesterday noon", "2026-08-04T12:00"),
        ("yesterday midnight", "2026-08-04T00:00"),
        ("last monday 14:00", "2026-08-03T14:00"),
        ("today 9:15", "2026-08-05T09:15"),
        ("09:15", "2026-08-05T09:15"),
        ("at 9am", "2026-08-05T09:00"),
        ("midnight", "2026-08-05T00:00"),
    ],
)
def test_a_time_of_day_is_on_the_clocks_of_the_zone(words: str, meaning: str) -> None:
    assert moment(words) == AtTime(micros(f"{meaning}+02:00"), relative=True)


def test_days_are_those_of_the_zone() -> None:
    now = micros("2026-08-05T01:00+00:00")

    assert instant("yesterday noon", now=now, zone=UTC) == micros("2026-08-04T12:00+00:00")
    west = timezone(timedelta(hours=-5))
    assert instant("yesterday noon", now=now, zone=west) == micros("2026-08-03T12:00-05:00")


@pytest.mark.parametrize(
    "words",
    [
        "tomorrow",
        "tomorrow 14:00",
        "in 2 hours",
        "+2h",
        "2 hours from now",
        "a week later",
        "next monday",
        "today 14:00",
        "noon",
        "2pm",
        "2026-08-06",
        "9999-12-31",
        "2026-08-05T10:30:00.000001+02:00",
        NOW + 1,
    ],
)
def test_the_future_is_refused_with_what_now_is(words: str | int) -> None:
    error = refusal(words)

    assert "lies in the future; now is 2026-08-05T08:30:00.000000Z" in error.message


def test_a_time_that_is_still_to_come_in_the_callers_zone_is_told_in_utc() -> None:
    assert "It means 2026-08-05T09:00:00.000000Z." in refusal("2026-08-05T11:00").hint
    assert "It means" not in refusal("2026-08-09T11:00").hint


def test_a_time_alone_that_is_still_to_come_is_answered_with_that_of_yesterday() -> None:
    assert "2026-08-04T14:00:00" in refusal("14:00").hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("03/04/2026", "Write 2026-03-04 or 2026-04-03."),
        ("3.4.26", "Write 2026-03-04 or 2026-04-03."),
        ("03-04-2026 14:00", "Write 2026-03-04 or 2026-04-03."),
        ("04/04/2026", "Write 2026-04-04."),
        ("25/12/2025", "Write 2025-12-25."),
        ("2026/3/4", "Write 2026-03-04."),
        ("2026-3-4", "Write 2026-03-04."),
        ("99/99/2026", "Write year-month-day, such as 2026-03-04."),
        ("2h", "Write 2h ago."),
        ("-1h", "Write 1h ago."),
        ("now - 1h", "Write 1h ago."),
        ("1.5 months ago", "Months and years must be whole; use days."),
        ("yesterday 14:00Z", "Write the date: 2026-08-04T14:00:00+00:00."),
    ],
)
def test_what_is_ambiguous_is_refused_with_a_spelling_that_is_not(words: str, hint: str) -> None:
    assert refusal(words).hint == hint


def test_a_time_that_happened_twice_is_refused_with_both_offsets() -> None:
    error = refusal("2025-10-26 02:30")

    assert "happened twice in Europe/Oslo" in error.message
    assert error.hint == "Write 2025-10-26T02:30:00+02:00 or 2025-10-26T02:30:00+01:00."


def test_a_time_that_was_skipped_is_refused_with_its_neighbours() -> None:
    error = refusal("2026-03-29T02:30")

    assert "did not happen in Europe/Oslo" in error.message
    assert error.hint == "Write 2026-03-29T03:30:00+02:00 or 2026-03-29T01:30:00+01:00."


@pytest.mark.parametrize(
    "words",
    [
        "1969-12-31",
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00+14:00",
        "99 years ago",
        "60y ago",
        f"{'9' * 50} months ago",
        f"{'9' * 50} h ago",
    ],
)
def test_what_lies_before_1970_is_refused(words: str) -> None:
    assert "lies before 1970" in refusal(words).message


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "is empty"),
        (" \t ", "is empty"),
        ("a\x00b", "control character"),
        ("x" * 65, "the limit is 64"),
        ("this morning", "cannot be read as a time"),
        ("in 2024", "cannot be read as a time"),
        ("2026-W10", "cannot be read as a time"),
        ("some night", "cannot be read as a time"),
        ("last night at 2am", "does not say on which of two days"),
        ("Mon, 10 Mar 2026", "names a day of the week that is not the date's"),
        ("February 30, 2026", "names a day that is not in the calendar"),
        ("2026-13", "names a month that is not in the calendar"),
        ("2026-11", "lies in the future"),
        ("November 2026", "lies in the future"),
        ("March 10", "cannot be read as a time"),
        ("half a month ago", "has a fraction of a month or year"),
        ("ago", "cannot be read as a time"),
        ("2026-02-30", "names a day that is not in the calendar"),
        ("yesterday morning", "has 'morning' where a time of day belongs"),
        ("yesterday 25:00", "has '25:00' where a time of day belongs"),
        ("yesterday 13pm", "has '13pm' where a time of day belongs"),
        ("yesterday 1:75pm", "has '1:75pm' where a time of day belongs"),
        ("several days ago", "is not a known length of time"),
        ("5 parsecs ago", "is not a known length of time"),
        ("1d, ago", "is not a known length of time"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(words: str, why: str) -> None:
    assert why in refusal(words).message


@pytest.mark.parametrize(
    ("words", "zone_name"),
    [
        ("2026-01-05 14:30 CET", "CET"),
        ("2026-01-05T14:30CET", "CET"),
        ("2026-01-05T14:30:00[Europe/Oslo]", "[Europe/Oslo]"),
        ("5 January 2026 2:30 pm America/New_York", "America/New_York"),
        ("2026-01-05 14:30 UTC+2", "UTC+2"),
        ("yesterday noon Pacific Time", "Pacific Time"),
        ("2pm EST", "EST"),
    ],
)
def test_a_time_zone_with_a_name_is_refused_with_what_is_read(words: str, zone_name: str) -> None:
    refused = refusal(words)

    assert f"has {zone_name!r} after the time" in refused.message
    assert "+01:00" in refused.hint
    assert "names of time zones (CET, Europe/Oslo) are not read" in refused.hint


def test_a_name_beside_an_offset_is_to_be_left_out() -> None:
    for words in ("Mon, 5 Jan 2026 14:00:00 +0100 (CET)", "2026-01-05T14:00+01:00[Europe/Oslo]"):
        assert refusal(words).hint.startswith("Leave ")
    assert not refusal("2026-01-05 14:00 UTC +2").hint.startswith("Leave ")


def test_examples_are_given_for_unknown_words_and_all_of_them_work() -> None:
    examples = refusal("whenever").hint.removeprefix("Write ").removesuffix(".").split(", ")
    examples.remove("epoch microseconds")

    for words in examples:
        moment(words.removeprefix("or ").removesuffix(" for a sequence"))


def test_the_parameter_is_named() -> None:
    with pytest.raises(ValidationFailed, match=r"^`since` ") as caught:
        parse("whenever", now=NOW, zone=UTC, field="since")

    assert caught.value.details == {"field": "since", "value": "whenever"}


VOCABULARY = (
    "now last yesterday today monday at on ago in a an 2 14:00 1.5 h days months 2026-03-29 "
    "02:30 pm noon @ - + / , . t z utc w10 99999999999999999999 week 03"
)
WORDS = st.sampled_from(VOCABULARY.split())


@given(st.lists(WORDS, max_size=6).map(" ".join) | st.lists(WORDS, max_size=4).map("".join))
@example("9999-12-31T23:59:59-23:59")
def test_any_words_mean_one_past_moment_or_are_refused(words: str) -> None:
    try:
        found = moment(words)
    except ValidationFailed:
        return

    assert not isinstance(found, AtTime) or 0 <= found.at <= NOW


@given(st.text(max_size=20) | st.integers())
def test_any_input_at_all_is_read_or_refused(expression: str | int) -> None:
    with contextlib.suppress(ValidationFailed):
        moment(expression)


@given(st.integers(0, NOW))
def test_what_iso_writes_is_read_exactly(at: int) -> None:
    text = iso(at)

    assert moment(text) == AtTime(at, relative=False)
    assert text == (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001 -- local times
    st.sampled_from(["Europe/Oslo", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
@example(datetime(2025, 10, 26, 2, 30), "Europe/Oslo")  # noqa: DTZ001
@example(datetime(2026, 3, 29, 2, 30), "Europe/Oslo")  # noqa: DTZ001
def test_a_local_time_is_read_exactly_when_it_happened_once(local: datetime, name: str) -> None:
    zone = ZoneInfo(name)
    readings = {
        iso((local.replace(tzinfo=zone, fold=fold) - EPOCH) // timedelta(microseconds=1))
        for fold in (0, 1)
    }

    if len(readings) == 1:
        assert iso(instant(local.isoformat(), zone=zone)) in readings
    else:
        spellings = refusal(local.isoformat(), zone=zone).hint[6:-1].split(" or ")
        assert {iso(instant(spelling, zone=zone)) for spelling in spellings} == readings


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        (90, 90),
        (1.5, 1.5),
        ("90", 90),
        ("1.5", 1.5),
        ("90s", 90),
        ("2h", 7200),
        (" 7D ", 7 * 86400),
        ("1w", 7 * 86400),
        ("1d 12h", 129600),
        ("a week", 7 * 86400),
        (limits.TTL_SECONDS_MAX, limits.TTL_SECONDS_MAX),
    ],
)
def test_a_length_of_time_is_read_in_seconds_or_words(
    expression: str | float, seconds: float
) -> None:
    assert duration(expression) == seconds * SECOND


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (0, "must be longer than zero"),
        (-5, "must be longer than zero"),
        (1e-9, "must be longer than zero"),
        ("0s", "must be longer than zero"),
        (math.nan, "is nan, which is not a length of time"),
        (math.inf, "is inf, which is not a length of time"),
        (True, "not bool"),
        (None, "not NoneType"),
        ("", "is empty"),
        ("soon", "'soon' is not a length of time"),
        ("2h ago", "'2h ago' is not a length of time"),
        ("1 month", "has months or years"),
        ("x" * 65, "the limit is 64"),
        (limits.TTL_SECONDS_MAX + 1, "limit of 3,162,240,000 seconds (100 years)"),
        (1.7e308, "limit"),
        (-1.7e308, "must be longer than zero"),
        ("9" * 60, "limit"),
    ],
)
def test_what_is_no_length_of_time_is_refused_in_words(expression: Any, words: str) -> None:
    with pytest.raises(ValidationFailed, match=r"^`ttl` ") as caught:
        duration(expression)

    assert words in caught.value.message
    assert caught.value.details["field"] == "ttl"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("March 10, 2026", "2026-03-10T23:59:59.999999+01:00"),
        ("10 March 2026", "2026-03-10T23:59:59.999999+01:00"),
        ("Mar. 10th 2026", "2026-03-10T23:59:59.999999+01:00"),
        ("10th of March 2026", "2026-03-10T23:59:59.999999+01:00"),
        ("March 10, 2026 14:00", "2026-03-10T14:00:00+01:00"),
        ("10 March 2026 at 2pm", "2026-03-10T14:00:00+01:00"),
        ("14:00 on March 10, 2026", "2026-03-10T14:00:00+01:00"),
        ("Tuesday, March 10, 2026", "2026-03-10T23:59:59.999999+01:00"),
        ("Tue, 10 Mar 2026 14:00:00 +0100", "2026-03-10T14:00:00+01:00"),
        ("10 Mar 2026 14:00:00 GMT", "2026-03-10T14:00:00+00:00"),
        ("2026-03", "2026-03-31T23:59:59.999999+02:00"),
        ("March 2026", "2026-03-31T23:59:59.999999+02:00"),
        ("Sept 2025", "2025-09-30T23:59:59.999999+02:00"),
        ("six hours ago", "2026-08-05T04:30:00+02:00"),
        ("sixteen hours ago", "2026-08-04T18:30:00+02:00"),
        ("half an hour ago", "2026-08-05T10:00:00+02:00"),
        ("one hour and half a minute ago", "2026-08-05T09:29:30+02:00"),
        ("half a year ago", "2026-02-05T10:30:00+01:00"),
        ("the day before yesterday", "2026-08-03T23:59:59.999999+02:00"),
        ("day before yesterday 14:00", "2026-08-03T14:00:00+02:00"),
        ("last night", "2026-08-04T23:59:59.999999+02:00"),
    ],
)
def test_times_as_people_and_mails_write_them(words: str, means: str) -> None:
    assert instant(words) == micros(means)


@pytest.mark.parametrize("words", ["2026-08", "August 2026"])
def test_the_month_that_has_not_ended_means_the_head(words: str) -> None:
    assert moment(words) == Latest()


def test_a_length_of_time_may_be_half_of_a_unit() -> None:
    assert duration("half an hour") == HOUR // 2
