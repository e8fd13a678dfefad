"""Dates, times, zones and durations. What time it is comes from the clock that is given."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final, Literal

from pydantic import Field

from stratagem import limits
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.gateway.builtin import durations, timepoints
from stratagem.gateway.builtin.durations import Duration
from stratagem.gateway.definitions.argument_models import Given, plain_schema, read
from stratagem.gateway.definitions.contract import Run

__all__ = ["TOOL", "runner"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERN_CHARS_MAX: Final = 200
_WEEKEND_DAYS_MAX: Final = 6

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS: Final = tuple(name.lower() for name in timepoints.WEEKDAYS)


class _Length(Given):
    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: float = Field(0, allow_inf_nan=False)
    minutes: float = Field(0, allow_inf_nan=False)
    seconds: float = Field(0, allow_inf_nan=False)


class _Input(Given):
    operation: Literal[
        "now",
        "parse",
        "format",
        "convert",
        "add",
        "subtract",
        "difference",
        "add_business_days",
        "count_business_days",
    ]
    value: str | float | None = Field(
        None,
        description="A point in time: ISO 8601, RFC 2822, Unix seconds as a number, now, today, "
        "tomorrow or yesterday",
    )
    until: str | float | None = Field(
        None, description="The other point in time, for difference and count_business_days"
    )
    duration: str | _Length | None = Field(
        None, description='For add and subtract: "1 day 12 hours", "P1DT12H" or an object of units'
    )
    days: int | None = Field(
        None,
        ge=-limits.BUSINESS_DAYS_MAX,
        le=limits.BUSINESS_DAYS_MAX,
        description="For add_business_days; negative goes back",
    )
    timezone: str | None = Field(
        None,
        max_length=64,
        description="Such as Europe/Oslo or +02:00: where a time without an offset is read, and "
        "where the answer is given; UTC by default",
    )
    to_timezone: str | None = Field(None, max_length=64, description="For convert")
    format: str | None = Field(
        None,
        min_length=1,
        max_length=_PATTERN_CHARS_MAX,
        description="For format: iso, date, time, rfc2822, http, unix, unix_ms, long, or a pattern "
        "such as %d.%m.%Y; for parse: the pattern to read by",
    )
    holidays: list[str] = Field(
        default_factory=list,
        max_length=limits.HOLIDAYS_MAX,
        description="Dates that are not business days",
    )
    weekend: list[Weekday] = Field(["saturday", "sunday"], max_length=_WEEKEND_DAYS_MAX)


TOOL: Final[dict[str, Any]] = {
    "name": "date_time",
    "description": "Work with dates and times: now, parse, format, convert time zones, add, "
    "difference, business days.",
    "longDescription": (
        "Years, months, weeks and days move the calendar and keep the clock's time; hours, minutes "
        "and seconds are exact. `difference` goes from `value` to `until` and is negative where "
        "`until` is earlier. `count_business_days` counts `value` and not `until`. A "
        "time that happened twice or never because the clocks changed is refused, and "
        "the error lists clear spellings; so is a date whose day and month cannot be "
        "told apart."
    ),
    "category": "utility",
    "tags": ["date", "time", "timezone", "calendar"],
    "inputSchema": plain_schema(_Input),
    "outputSchema": {
        "type": "object",
        "properties": {
            "result": {
                "type": ["string", "number"],
                "description": "The point in time as ISO 8601, the formatted text, the seconds of "
                "a difference, or the number of business days",
            }
        },
        "required": ["result"],
    },
    "examples": [
        {
            "input": {"operation": "parse", "value": "2026-03-01T12:00:00+01:00"},
            "output": {
                "result": "2026-03-01T12:00:00+01:00",
                "date": "2026-03-01",
                "time": "12:00:00",
                "timezone": "UTC+01:00",
                "offset": "+01:00",
                "unix": 1772362800,
                "weekday": "Sunday",
                "isoWeek": "2026-W09",
                "dayOfYear": 60,
                "quarter": 1,
            },
        },
        {
            "input": {"operation": "format", "value": "2026-03-01", "format": "long"},
            "output": {"result": "Sunday, 1 March 2026"},
        },
        {
            "input": {
                "operation": "difference",
                "value": "2026-01-31",
                "until": "2026-03-01T06:30:00",
            },
            "output": {
                "result": 2529000,
                "parts": {
                    "years": 0,
                    "months": 1,
                    "days": 1,
                    "hours": 6,
                    "minutes": 30,
                    "seconds": 0,
                },
                "iso": "P1M1DT6H30M",
                "days": 29.270833,
            },
        },
        {
            "input": {
                "operation": "add_business_days",
                "value": "2026-04-02",
                "days": 2,
                "holidays": ["2026-04-03", "2026-04-06"],
            },
            "output": {"result": "2026-04-08", "weekday": "Wednesday"},
        },
    ],
    # What it answers to "now" is another thing a moment later.
    "cacheable": False,
    "idempotent": True,
    "requirements": {},
}


def runner(
    clock: Callable[[], int],
) -> Callable[[Mapping[str, Any], Run], Coroutine[Any, Any, dict[str, Any]]]:
    """Return the tool with its clock, which gives microseconds since 1970."""

    async def run(arguments: Mapping[str, Any], run: Run) -> dict[str, Any]:  # noqa: ARG001 -- needs none
        given = read(_Input, arguments)
        now = _EPOCH + timedelta(microseconds=clock())
        return _OPERATIONS[given.operation](_Asked(given, now))

    return run


class _Asked:
    """What was asked for, with its points in time read."""

    def __init__(self, given: _Input, now: datetime) -> None:
        self.given = given
        self.now = now
        name = given.timezone
        self.zone: tzinfo = UTC if name is None else timepoints.zone(name, field="timezone")

    def moment(self, field: str = "value", pattern: str | None = None) -> datetime:
        value = self.need(field)
        found = timepoints.read(value, self.zone, self.now, field=field, pattern=pattern)
        if self.given.timezone is None:
            return found
        return _in_zone(found, self.zone, field)

    def need(self, field: str) -> Any:
        value = getattr(self.given, field)
        if value is None:
            name = "toTimezone" if field == "to_timezone" else field
            raise MissingRequired(f"{self.given.operation} needs `{name}`.", field=name)
        return value

    def duration(self) -> Duration:
        given = self.need("duration")
        parts = given if isinstance(given, str) else given.model_dump()
        return durations.read(parts, field="duration")

    def weekend(self) -> frozenset[int]:
        return frozenset(_WEEKDAYS.index(name) for name in self.given.weekend)

    def holidays(self) -> frozenset[date]:
        found = set()
        for index, text in enumerate(self.given.holidays):
            try:
                found.add(date.fromisoformat(text))
            except ValueError:
                field = f"holidays[{index}]"
                raise ValidationFailed(f"`{field}` is not a date.", field=field) from None
        return frozenset(found)


def _in_zone(moment: datetime, zone: tzinfo, field: str) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise ValidationFailed(f"`{field}` is outside the calendar.", field=field) from None


def _answer(moment: datetime) -> dict[str, Any]:
    year, week, weekday = moment.isocalendar()
    offset = timepoints.format_moment(moment, "%:z")
    return {
        "result": moment.isoformat(),
        "date": moment.date().isoformat(),
        "time": moment.time().isoformat(),
        "timezone": str(moment.tzinfo),
        "offset": offset,
        "unix": _number((moment - _EPOCH) / timedelta(seconds=1)),
        "weekday": timepoints.WEEKDAYS[weekday - 1],
        "isoWeek": f"{year:04}-W{week:02}",
        "dayOfYear": moment.timetuple().tm_yday,
        "quarter": (moment.month + 2) // 3,
    }


def _number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)


def _now(asked: _Asked) -> dict[str, Any]:
    return _answer(asked.now.astimezone(asked.zone))


def _parse(asked: _Asked) -> dict[str, Any]:
    return _answer(asked.moment(pattern=asked.given.format))


def _format(asked: _Asked) -> dict[str, Any]:
    return {"result": timepoints.format_moment(asked.moment(), asked.need("format"))}


def _convert(asked: _Asked) -> dict[str, Any]:
    zone = timepoints.zone(asked.need("to_timezone"), field="toTimezone")
    return _answer(_in_zone(asked.moment(), zone, "value"))


def _add(asked: _Asked) -> dict[str, Any]:
    return _answer(durations.add_duration(asked.moment(), asked.duration()))


def _subtract(asked: _Asked) -> dict[str, Any]:
    return _answer(durations.add_duration(asked.moment(), -asked.duration()))


def _difference(asked: _Asked) -> dict[str, Any]:
    start, end = asked.moment(), asked.moment("until")
    # Within one zone Python would count by the clock, which may have been changed in between.
    seconds = (end.astimezone(UTC) - start.astimezone(UTC)) / timedelta(seconds=1)
    sign = -1 if seconds < 0 else 1
    parts = durations.between(*((end, start) if seconds < 0 else (start, end)))
    return {
        "result": _number(seconds),
        "parts": {
            name: sign * _number(float(getattr(parts, name)))
            for name in ("years", "months", "days", "hours", "minutes", "seconds")
        },
        "iso": f"{'-' if seconds < 0 else ''}{_iso(parts)}",
        "days": _number(seconds / 86_400),
    }


def _iso(parts: Duration) -> str:
    dates = [(parts.years, "Y"), (parts.months, "M"), (parts.days, "D")]
    times = [(parts.hours, "H"), (parts.minutes, "M"), (parts.seconds, "S")]
    calendar = "".join(f"{_plain(amount)}{unit}" for amount, unit in dates if amount)
    clock = "".join(f"{_plain(amount)}{unit}" for amount, unit in times if amount)
    if not calendar and not clock:
        return "PT0S"
    return f"P{calendar}{f'T{clock}' if clock else ''}"


def _plain(amount: int | Decimal) -> str:
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _add_business_days(asked: _Asked) -> dict[str, Any]:
    start = asked.moment().date()
    day = durations.business_days(start, asked.need("days"), asked.weekend(), asked.holidays())
    return {"result": day.isoformat(), "weekday": timepoints.WEEKDAYS[day.weekday()]}


def _count_business_days(asked: _Asked) -> dict[str, Any]:
    start, end = asked.moment().date(), asked.moment("until").date()
    count = durations.count_business_days(start, end, asked.weekend(), asked.holidays())
    return {"result": count, "days": (end - start).days}


_OPERATIONS: Final[dict[str, Callable[[_Asked], dict[str, Any]]]] = {
    "now": _now,
    "parse": _parse,
    "format": _format,
    "convert": _convert,
    "add": _add,
    "subtract": _subtract,
    "difference": _difference,
    "add_business_days": _add_business_days,
    "count_business_days": _count_business_days,
}
