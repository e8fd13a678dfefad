"""Lengths of time, and the calendar's arithmetic with them.

Years, months, weeks and days move the calendar and keep the clock's time; hours, minutes and
seconds are exact. So a day after Saturday noon is Sunday noon even where the clocks change in
between, and 24 hours after it is not. A month added to January 31 ends with February.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import astuple, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed

__all__ = ["Duration", "add_duration", "between", "business_days", "count_business_days", "read"]

_ISO: Final = re.compile(
    r"([+-])?P(?!$)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?!$)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
_PIECE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)(?:\s*,|\s+and\b)?\s*")
_UNITS: Final = {
    **dict.fromkeys(("y", "yr", "year"), "years"),
    **dict.fromkeys(("mo", "month"), "months"),
    **dict.fromkeys(("w", "wk", "week"), "weeks"),
    **dict.fromkeys(("d", "day"), "days"),
    **dict.fromkeys(("h", "hr", "hour"), "hours"),
    **dict.fromkeys(("m", "min", "minute"), "minutes"),
    **dict.fromkeys(("s", "sec", "second"), "seconds"),
}
_WHOLE: Final = ("years", "months", "weeks", "days")
_HINT: Final = 'Write "1 day 12 hours", "P1DT12H" or {"days": 1, "hours": 12}.'
_TEXT_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, in the units it was given in."""

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: Decimal = Decimal(0)
    minutes: Decimal = Decimal(0)
    seconds: Decimal = Decimal(0)

    def __neg__(self) -> Duration:
        return Duration(*(-part for part in astuple(self)))


def read(given: str | Mapping[str, Any], *, field: str) -> Duration:
    """Read a length of time.

    Raises:
        ValidationFailed: It is none.
    """
    if isinstance(given, Mapping):
        return _duration_of({name: Decimal(str(value)) for name, value in given.items()}, field)
    text = given.strip()
    if len(text) > _TEXT_CHARS_MAX:
        raise _refusal(text, field)
    if found := _ISO.fullmatch(text):
        names = [each.name for each in fields(Duration)]
        numbers = [Decimal(number or 0) for number in found.groups()[1:]]
        made = _duration_of(dict(zip(names, numbers, strict=True)), field)
        return -made if found[1] == "-" else made
    return _in_words(text.lower(), field)


def add_duration(moment: datetime, duration: Duration, *, field: str = "duration") -> datetime:
    """Return a point in time moved by a duration.

    Raises:
        ValidationFailed: That lies outside the calendar.
    """
    zone = moment.tzinfo or UTC
    try:
        moved = _months_later(moment.replace(tzinfo=None), duration.years * 12 + duration.months)
        moved += timedelta(weeks=duration.weeks, days=duration.days)
        exact = timedelta(
            microseconds=int(
                (duration.hours * 3600 + duration.minutes * 60 + duration.seconds) * 1_000_000
            )
        )
        # A time that the clocks skipped is moved on by as much, as clocks are.
        return (moved.replace(tzinfo=zone).astimezone(UTC) + exact).astimezone(zone)
    except (OverflowError, ValueError):
        raise ValidationFailed(f"`{field}` leads outside the calendar.", field=field) from None


def between(start: datetime, end: datetime) -> Duration:
    """Return the largest whole units from one point to a later one, in the first one's zone."""
    end = end.astimezone(start.tzinfo)
    months = (end.year - start.year) * 12 + end.month - start.month
    while months and _later(add_duration(start, Duration(months=months)), end):
        months -= 1
    base = add_duration(start, Duration(months=months))
    days = (end.date() - base.date()).days
    while days and _later(add_duration(start, Duration(months=months, days=days)), end):
        days -= 1
    rest = end.astimezone(UTC) - add_duration(start, Duration(months=months, days=days)).astimezone(
        UTC
    )
    minutes, seconds = divmod(Decimal(rest // timedelta(microseconds=1)) / 1_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return Duration(months // 12, months % 12, 0, days, hours, minutes, seconds)


def business_days(
    day: date, count: int, weekend: frozenset[int], holidays: frozenset[date]
) -> date:
    """Return the day that lies so many business days later, or earlier.

    Raises:
        ValidationFailed: That lies outside the calendar.
    """
    step = timedelta(days=1 if count > 0 else -1)
    left = abs(count)
    try:
        while left:
            day += step
            left -= day.weekday() not in weekend and day not in holidays
    except OverflowError:
        raise ValidationFailed("`days` leads outside the calendar.", field="days") from None
    return day


def count_business_days(
    start: date, end: date, weekend: frozenset[int], holidays: frozenset[date]
) -> int:
    """Return how many business days lie from one day on, up to another that is not counted."""
    if end < start:
        return -count_business_days(end, start, weekend, holidays)
    weeks, rest = divmod((end - start).days, 7)
    working = weeks * (7 - len(weekend))
    working += sum((start.weekday() + offset) % 7 not in weekend for offset in range(rest))
    return working - sum(start <= day < end and day.weekday() not in weekend for day in holidays)


def _later(one: datetime, other: datetime) -> bool:
    # Two times of one zone are compared by their clocks, which may have been changed in between.
    return one.astimezone(UTC) > other.astimezone(UTC)


def _duration_of(parts: Mapping[str, Decimal], field: str) -> Duration:
    for name, amount in parts.items():
        if name in _WHOLE and amount != amount.to_integral_value():
            raise ValidationFailed(
                f"`{field}`: {name} are whole numbers.", field=field, hint="Use hours for the rest."
            )
        if abs(amount) > limits.TTL_SECONDS_MAX * 100:
            raise ValidationFailed(f"`{field}` leads outside the calendar.", field=field)
    numbers: dict[str, Any] = {
        name: int(amount) if name in _WHOLE else amount for name, amount in parts.items()
    }
    return Duration(**numbers)


def _in_words(text: str, field: str) -> Duration:
    negative = text.startswith("-")
    position = 1 if negative else 0
    parts: dict[str, Decimal] = {}
    while piece := _PIECE.match(text, position):
        unit = piece[2] if piece[2] in _UNITS else piece[2].removesuffix("s")
        if unit not in _UNITS:
            break
        name = _UNITS[unit]
        parts[name] = parts.get(name, Decimal(0)) + Decimal(piece[1])
        position = piece.end()
    if not parts or position < len(text):
        raise _refusal(text, field)
    made = _duration_of(parts, field)
    return -made if negative else made


def _refusal(text: str, field: str) -> ValidationFailed:
    return ValidationFailed(
        f"`{field}`: {text[:64]!r} is not a length of time.", field=field, hint=_HINT
    )


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:  # noqa: PLR2004 -- what Python's calendar holds
        raise OverflowError
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)
