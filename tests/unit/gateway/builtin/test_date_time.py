"""Dates and times: what they mean, how they are moved, and what is refused as unclear."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stratagem.errors import MissingRequired, StratagemError, ValidationFailed
from stratagem.gateway.builtin import date_time, durations
from stratagem.gateway.builtin.durations import Duration
from stratagem.gateway.builtin.timepoints import zone
from tests.unit.gateway.attempts import attempt

NOW = 1_772_362_800_000_000  # 2026-03-01T11:00:00Z


def ask(operation: str, value: Any = None, **rest: Any) -> dict[str, Any]:
    run = date_time.runner(lambda: NOW)
    arguments = {"operation": operation, **({} if value is None else {"value": value}), **rest}
    return asyncio.run(run(arguments, attempt()))


def result(operation: str, value: Any = None, **rest: Any) -> Any:
    return ask(operation, value, **rest)["result"]


def test_now_comes_from_the_clock() -> None:
    assert result("now") == "2026-03-01T11:00:00+00:00"
    assert result("now", timezone="Asia/Kolkata") == "2026-03-01T16:30:00+05:30"


@pytest.mark.parametrize(
    ("value", "options", "iso"),
    [
        ("2026-03-01", {}, "2026-03-01T00:00:00+00:00"),
        ("20260301T1200Z", {}, "2026-03-01T12:00:00+00:00"),
        ("2026-W10-1", {}, "2026-03-02T00:00:00+00:00"),
        ("2026-03-01T12:00", {"timezone": "America/New_York"}, "2026-03-01T12:00:00-05:00"),
        ("2026-03-01T12:00+02:00", {}, "2026-03-01T12:00:00+02:00"),
        ("2026-03-01T12:00+02:00", {"timezone": "UTC"}, "2026-03-01T10:00:00+00:00"),
        (0, {}, "1970-01-01T00:00:00+00:00"),
        (-1.5, {}, "1969-12-31T23:59:58.500000+00:00"),
        (1_772_362_800, {"timezone": "+01:00"}, "2026-03-01T12:00:00+01:00"),
        ("Mon, 02 Mar 2026 10:00:00 +0100", {}, "2026-03-02T10:00:00+01:00"),
        ("Mon, 02 Mar 2026 10:00:00 +01:00 (CET)", {}, "2026-03-02T10:00:00+01:00"),
        ("2 Mar 2026 10:00 EST", {}, "2026-03-02T10:00:00-05:00"),
        ("Mon Mar  2 10:00:00 2026", {}, "2026-03-02T10:00:00+00:00"),
        ("now", {}, "2026-03-01T11:00:00+00:00"),
        ("today", {"timezone": "Pacific/Auckland"}, "2026-03-02T00:00:00+13:00"),
        ("Tomorrow", {}, "2026-03-02T00:00:00+00:00"),
        ("yesterday", {}, "2026-02-28T00:00:00+00:00"),
        ("03/04/2026", {"format": "%d/%m/%Y"}, "2026-04-03T00:00:00+00:00"),
        ("Mar 4, 2026 2:05 PM", {"format": "%b %d, %Y %I:%M %p"}, "2026-03-04T14:05:00+00:00"),
    ],
)
def test_a_value_means_one_point_in_time(value: Any, options: dict[str, Any], iso: str) -> None:
    assert result("parse", value, **options) == iso


def test_a_point_in_time_is_shown_from_all_sides() -> None:
    found = ask("parse", "2027-01-01T08:30:00.25", timezone="Europe/Oslo")

    assert found == {
        "result": "2027-01-01T08:30:00.250000+01:00",
        "date": "2027-01-01",
        "time": "08:30:00.250000",
        "timezone": "Europe/Oslo",
        "offset": "+01:00",
        "unix": 1798788600.25,
        "weekday": "Friday",
        "isoWeek": "2026-W53",
        "dayOfYear": 1,
        "quarter": 1,
    }


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("iso", "2026-03-01T14:05:09+01:00"),
        ("date", "2026-03-01"),
        ("time", "14:05:09"),
        ("rfc2822", "Sun, 01 Mar 2026 14:05:09 +0100"),
        ("http", "Sun, 01 Mar 2026 13:05:09 GMT"),
        ("unix", "1772370309"),
        ("unix_ms", "1772370309000"),
        ("long", "Sunday, 1 March 2026"),
        ("%d.%m.%y %I:%M:%S.%f %p", "01.03.26 02:05:09.000000 PM"),
        ("%a %b %e %j %G-W%V-%u 100%%", "Sun Mar 1 060 2026-W09-7 100%"),
        ("%H:%M %z %:z %Z", "14:05 +0100 +01:00 CET"),
        ("%A %B", "Sunday March"),
    ],
)
def test_a_point_in_time_is_written(style: str, text: str) -> None:
    assert result("format", "2026-03-01T14:05:09", timezone="Europe/Oslo", format=style) == text


@pytest.mark.parametrize(
    ("value", "duration", "timezone", "iso"),
    [
        ("2026-01-31", "P1M", "UTC", "2026-02-28T00:00:00+00:00"),
        ("2024-02-29", "1 year", "UTC", "2025-02-28T00:00:00+00:00"),
        ("2026-01-01", "1 week, 2 days and 3h", "UTC", "2026-01-10T03:00:00+00:00"),
        ("2026-01-01", "-90 minutes", "UTC", "2025-12-31T22:30:00+00:00"),
        ("2026-01-01", {"hours": 1.5, "seconds": 0.25}, "UTC", "2026-01-01T01:30:00.250000+00:00"),
        ("2026-01-01", "-P1DT0.5S", "UTC", "2025-12-30T23:59:59.500000+00:00"),
        # The clocks went forward at 02:00 on the 29th, and back at 03:00 on October 25.
        ("2026-03-28T12:00", "1 day", "Europe/Oslo", "2026-03-29T12:00:00+02:00"),
        ("2026-03-28T12:00", "24 hours", "Europe/Oslo", "2026-03-29T13:00:00+02:00"),
        ("2026-03-28T02:30", "1 day", "Europe/Oslo", "2026-03-29T03:30:00+02:00"),
        ("2026-10-24T02:30", "1 day", "Europe/Oslo", "2026-10-25T02:30:00+02:00"),
    ],
)
def test_time_is_added(value: str, duration: Any, timezone: str, iso: str) -> None:
    assert result("add", value, duration=duration, timezone=timezone) == iso


def test_time_is_subtracted() -> None:
    assert (
        result("subtract", "2026-03-31", duration="1 month 1 hour") == "2026-02-27T23:00:00+00:00"
    )


def test_a_difference_is_exact_and_in_parts() -> None:
    found = ask("difference", "2026-03-28T12:00", until="2026-03-29T12:00", timezone="Europe/Oslo")
    back = ask("difference", "2026-03-01", until="2024-12-25T18:00")

    assert (found["result"], found["parts"]["days"], found["iso"]) == (23 * 3600, 1, "P1D")
    assert back["iso"] == "-P1Y2M3DT6H"
    assert back["parts"] == {
        "years": -1,
        "months": -2,
        "days": -3,
        "hours": -6,
        "minutes": 0,
        "seconds": 0,
    }
    assert ask("difference", "now", until="now")["iso"] == "PT0S"


def test_zones_are_converted() -> None:
    assert (
        result("convert", "2026-07-01T12:00Z", toTimezone="America/New_York")
        == "2026-07-01T08:00:00-04:00"
    )
    assert (
        result("convert", "2026-07-01T12:00", timezone="Asia/Tokyo", toTimezone="UTC")
        == "2026-07-01T03:00:00+00:00"
    )


def test_business_days() -> None:
    easter = ["2026-04-03", "2026-04-06"]

    assert ask("add_business_days", "2026-04-02", days=1, holidays=easter) == {
        "result": "2026-04-07",
        "weekday": "Tuesday",
    }
    assert result("add_business_days", "2026-04-07", days=-1, holidays=easter) == "2026-04-02"
    assert result("add_business_days", "2026-04-04", days=0) == "2026-04-04"
    assert result("count_business_days", "2026-04-01", until="2026-05-01", holidays=easter) == 20
    assert result("count_business_days", "2026-05-01", until="2026-04-01") == -22
    assert (
        result("add_business_days", "2026-04-02", days=1, weekend=["friday", "saturday"])
        == "2026-04-05"
    )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"operation": "guess"}, "operation"),
        ({"operation": "parse"}, "value"),
        ({"operation": "parse", "value": "soon"}, "value"),
        ({"operation": "parse", "value": ""}, "value"),
        ({"operation": "parse", "value": "03/04/2026"}, "value"),
        ({"operation": "parse", "value": "1 2 2026"}, "value"),
        ({"operation": "parse", "value": "2 Mar 2026 10:00 CET"}, "value"),
        ({"operation": "parse", "value": "2 Mar 2026 10:00 UTC+2"}, "value"),
        ({"operation": "parse", "value": "2 Mar 2026 2:00 pm"}, "value"),
        ({"operation": "parse", "value": "2026-02-30"}, "value"),
        ({"operation": "parse", "value": "1700000000"}, "value"),
        ({"operation": "parse", "value": 1_700_000_000_000}, "value"),
        ({"operation": "parse", "value": -99_999_999_999}, "value"),
        ({"operation": "parse", "value": True}, "value"),
        ({"operation": "parse", "value": "2026-03-29T02:30", "timezone": "Europe/Oslo"}, "value"),
        ({"operation": "parse", "value": "2026-10-25T02:30", "timezone": "Europe/Oslo"}, "value"),
        ({"operation": "parse", "value": "x", "format": "%Q"}, "format"),
        ({"operation": "parse", "value": "x", "format": "plain"}, "format"),
        ({"operation": "parse", "value": "x", "format": "%Y %Y"}, "value"),
        ({"operation": "parse", "value": "2026", "format": "%m"}, "value"),
        ({"operation": "now", "timezone": "Mars/Olympus"}, "timezone"),
        ({"operation": "now", "timezone": "../../etc/passwd"}, "timezone"),
        ({"operation": "now", "timezone": "/etc/localtime"}, "timezone"),
        ({"operation": "now", "timezone": ""}, "timezone"),
        ({"operation": "now", "timezone": "+99:00"}, "timezone"),
        ({"operation": "convert", "value": "now"}, "toTimezone"),
        (
            {"operation": "convert", "value": "0001-01-01", "toTimezone": "America/New_York"},
            "value",
        ),
        ({"operation": "format", "value": "now"}, "format"),
        ({"operation": "format", "value": "now", "format": "%"}, "format"),
        ({"operation": "format", "value": "now", "format": "nice"}, "format"),
        ({"operation": "add", "value": "now"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "a while"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "5"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "5 x"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "P"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "PT"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "1.5 months"}, "duration"),
        ({"operation": "add", "value": "now", "duration": "9" * 150 + " days"}, "duration"),
        ({"operation": "add", "value": "now", "duration": {"years": 10_000}}, "duration"),
        ({"operation": "add", "value": "now", "duration": {"hours": 1e308}}, "duration"),
        ({"operation": "add", "value": "now", "duration": {"fortnights": 1}}, "duration"),
        ({"operation": "add", "value": "9999-12-31", "duration": "1 day"}, "duration"),
        ({"operation": "difference", "value": "now"}, "until"),
        ({"operation": "add_business_days", "value": "now"}, "days"),
        ({"operation": "add_business_days", "value": "9999-12-30", "days": 9}, "days"),
        ({"operation": "add_business_days", "value": "now", "days": 99_999}, "days"),
        (
            {"operation": "add_business_days", "value": "now", "days": 1, "holidays": ["x"]},
            "holidays[0]",
        ),
        (
            {"operation": "add_business_days", "value": "now", "days": 1, "weekend": ["caturday"]},
            "weekend[0]",
        ),
        (
            {
                "operation": "add_business_days",
                "value": "now",
                "days": 1,
                "weekend": ["monday"] * 7,
            },
            "weekend",
        ),
    ],
)
def test_what_is_wrong_or_unclear_is_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(StratagemError) as refused:
        asyncio.run(date_time.runner(lambda: NOW)(arguments, attempt()))

    assert isinstance(refused.value, ValidationFailed | MissingRequired)
    assert refused.value.details["field"].startswith(field)


def test_an_unclear_time_is_answered_with_the_clear_spellings() -> None:
    with pytest.raises(ValidationFailed) as refused:
        ask("parse", "2026-10-25T02:30", timezone="Europe/Oslo")

    assert refused.value.hint == "Write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00."


INSTANTS = st.integers(0, 3_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
DAYS = st.dates(date(1950, 1, 1), date(2080, 1, 1))


@given(DAYS, DAYS, st.frozensets(st.integers(0, 6), max_size=6), st.frozensets(DAYS, max_size=5))
def test_business_days_are_counted_as_one_by_one(
    start: date, end: date, weekend: frozenset[int], holidays: frozenset[date]
) -> None:
    first, last = min(start, end), max(start, end)
    days = (first + timedelta(days=n) for n in range(min((last - first).days, 2_000)))
    last = min(last, first + timedelta(days=2_000))
    one_by_one = sum(day.weekday() not in weekend and day not in holidays for day in days)

    assert durations.count_business_days(first, last, weekend, holidays) == one_by_one
    assert durations.count_business_days(last, first, weekend, holidays) == -one_by_one


@given(
    INSTANTS,
    INSTANTS,
    st.sampled_from(["UTC", "Europe/Oslo", "America/New_York", "Australia/Lord_Howe"]),
)
def test_a_difference_added_again_leads_to_the_other_end(
    one: datetime, other: datetime, name: str
) -> None:
    where = zone(name, field="timezone")
    start, end = sorted(each.astimezone(where) for each in (one, other))
    assume(start.astimezone(UTC) <= end.astimezone(UTC))

    found = durations.between(start, end)

    parts = (found.years, found.months, found.days, found.hours, found.minutes, found.seconds)
    assert all(part >= 0 for part in parts)
    assert found.months < 12
    assert durations.add_duration(start, found).astimezone(UTC) == end.astimezone(UTC)
    assert durations.add_duration(start, Duration()).astimezone(UTC) == start.astimezone(UTC)
