"""Reading and writing points in time for the date_time tool.

A text means one point in time or is refused: a date whose numbers may stand in two orders, and a
clock time that a zone had twice or never, are answered with the spellings that are clear. Names of
days and months are English, whatever the machine speaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final
from zoneinfo import ZoneInfo

from stratagem.errors import ValidationFailed

__all__ = ["MONTHS", "WEEKDAYS", "attach_zone", "format_moment", "read", "zone"]

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Seconds beyond this are the year 5138: somebody sent milliseconds.
_SECONDS_MAX: Final = 100_000_000_000
_OFFSET: Final = re.compile(r"([+-])(\d{2}):?(\d{2})")
_ORDERS: Final = re.compile(r"(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})(?:[ T].*)?")
_ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_MONTH_NAME: Final = re.compile(
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE
)
_CLOCK: Final = re.compile(r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?")
# As mails have it: an offset, or one of the few zones that mails name; asctime has the year there.
_AFTER_CLOCK: Final = re.compile(
    r"(?:[+-]\d{4}|UTC?|GMT|Z|[AECMP][SD]T|\d{4})?(?: ?\([^()]*\))?", re.IGNORECASE
)
_DIRECTIVE: Final = re.compile(r"%(:z|.|$)", re.DOTALL)
_READABLE: Final = frozenset("YmdHIMSfpAaBbjzyGVu%")
_ZONE_HINT: Final = "Write a name such as Europe/Oslo, UTC, or an offset such as +02:00."
_HINT: Final = "Write ISO 8601, such as 2026-03-01T12:00:00+01:00, or Unix seconds as a number."
_ZONE_APART: Final = f"{_HINT} The name of a time zone is given by itself, as `timezone`."


def zone(name: str, *, field: str) -> tzinfo:
    """Return the time zone of a name, or of an offset.

    Raises:
        ValidationFailed: There is no such zone.
    """
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if found := _OFFSET.fullmatch(name):
        minutes = int(found[2]) * 60 + int(found[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValidationFailed(
            f"`{field}`: there is no time zone {name[:64]!r}.", field=field, hint=_ZONE_HINT
        ) from None


def read(
    value: str | float, default: tzinfo, now: datetime, *, field: str, pattern: str | None = None
) -> datetime:
    """Return the point in time that a value means; a time without an offset is of the zone given.

    Raises:
        ValidationFailed: It means none, or two.
    """
    if not isinstance(value, str):
        return _from_seconds(value, default, field)
    text = value.strip()
    if pattern is not None:
        return attach_zone(_by_pattern(text, pattern, field), default, field)
    named = _read_named_day(text.lower(), now.astimezone(default))
    if named is not None:
        return named
    try:
        iso = datetime.fromisoformat(text)
    except ValueError:
        iso = None
    if iso is not None:
        return attach_zone(iso, default, field)
    # Without the name of a month the numbers would be taken in an order nobody gave.
    found = _read_mail_date(text, field) if _MONTH_NAME.search(text) else None
    if found is None:
        raise _unreadable(text, field)
    return attach_zone(found, default, field)


def attach_zone(moment: datetime, default: tzinfo, field: str) -> datetime:
    """Return a time with its zone: its own, or the one given.

    Raises:
        ValidationFailed: The zone had that time twice, or never.
    """
    if moment.tzinfo is not None:
        return moment
    early, late = moment.replace(tzinfo=default, fold=0), moment.replace(tzinfo=default, fold=1)
    if early.utcoffset() == late.utcoffset():
        return early
    real = [each.astimezone(UTC).astimezone(default).isoformat() for each in (early, late)]
    twice = early.isoformat() == real[0]
    why = "happened twice, as clocks were set back" if twice else "was skipped by the clocks"
    raise ValidationFailed(
        f"`{field}`: {moment.isoformat()} {why} in {default}.",
        field=field,
        hint=f"Write {' or '.join(real)}.",
    )


def format_moment(moment: datetime, style: str, *, field: str = "format") -> str:
    """Return a point in time in a named style, or by a pattern.

    Raises:
        ValidationFailed: The pattern has a directive that is not known.
    """
    named: dict[str, Callable[[], str]] = {
        "iso": moment.isoformat,
        "date": lambda: moment.date().isoformat(),
        "time": lambda: moment.time().isoformat(),
        "rfc2822": lambda: format_datetime(moment.replace(microsecond=0)),
        "http": lambda: format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True),
        "unix": lambda: str((moment - _EPOCH) // timedelta(seconds=1)),
        "unix_ms": lambda: str((moment - _EPOCH) // timedelta(milliseconds=1)),
        "long": lambda: format_moment(moment, "%A, %e %B %Y"),
    }
    if style in named:
        return named[style]()
    if "%" not in style:
        raise ValidationFailed(
            f"`{field}`: {style[:64]!r} is not a format.",
            field=field,
            hint=f"Use {', '.join(named)}, or a pattern such as %Y-%m-%d %H:%M.",
        )

    def directive(found: re.Match[str]) -> str:
        return _directive(moment, found[1], field)

    return _DIRECTIVE.sub(directive, style)


def _directive(moment: datetime, name: str, field: str) -> str:
    year, week, weekday = moment.isocalendar()
    offset = moment.strftime("%z")
    shown = {
        "Y": f"{moment.year:04}",
        "y": f"{moment.year % 100:02}",
        "m": f"{moment.month:02}",
        "d": f"{moment.day:02}",
        "e": str(moment.day),
        "H": f"{moment.hour:02}",
        "I": f"{(moment.hour - 1) % 12 + 1:02}",
        "M": f"{moment.minute:02}",
        "S": f"{moment.second:02}",
        "f": f"{moment.microsecond:06}",
        "p": "AM" if moment.hour < 12 else "PM",  # noqa: PLR2004 -- noon
        "A": WEEKDAYS[weekday - 1],
        "a": WEEKDAYS[weekday - 1][:3],
        "B": MONTHS[moment.month - 1],
        "b": MONTHS[moment.month - 1][:3],
        "j": f"{moment.timetuple().tm_yday:03}",
        "G": f"{year:04}",
        "V": f"{week:02}",
        "u": str(weekday),
        "z": offset,
        ":z": f"{offset[:3]}:{offset[3:]}",
        "Z": moment.tzname() or "",
        "%": "%",
    }
    if name not in shown:
        raise ValidationFailed(
            f"`{field}` has %{name}, which is not known.",
            field=field,
            hint=f"Known: {', '.join(f'%{each}' for each in shown)}.",
        )
    return shown[name]


def _read_mail_date(text: str, field: str) -> datetime | None:
    """Return the time of a date as mails have it, or None if it is none.

    Raises:
        ValidationFailed: What stands after the time is no offset.
    """
    text = _OFFSET.sub(r"\1\2\3", text)
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    clock = _CLOCK.search(text)
    after = text[clock.end() :].strip() if clock else ""
    if not _AFTER_CLOCK.fullmatch(after):
        # The library reads it as if it were not there.
        raise ValidationFailed(
            f"`{field}`: {text[:64]!r} has {after[:32]!r} after the time, which is no offset.",
            field=field,
            hint=_ZONE_APART,
        )
    return found


def _read_named_day(text: str, here: datetime) -> datetime | None:
    days = {"today": 0, "tomorrow": 1, "yesterday": -1}
    if text == "now":
        return here
    if text not in days:
        return None
    day = here + timedelta(days=days[text])
    midnight = day.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # Where the clocks skipped midnight, the day begins later.
    return midnight.astimezone(UTC).astimezone(here.tzinfo)


def _from_seconds(value: float, default: tzinfo, field: str) -> datetime:
    if abs(value) >= _SECONDS_MAX:
        raise ValidationFailed(
            f"`{field}` is too large for Unix seconds.",
            field=field,
            hint="Divide milliseconds by 1000.",
        )
    try:
        return (_EPOCH + timedelta(seconds=value)).astimezone(default)
    except (OverflowError, ValueError):
        raise ValidationFailed(f"`{field}` is outside the calendar.", field=field) from None


def _by_pattern(text: str, pattern: str, field: str) -> datetime:
    unknown = [each for each in _DIRECTIVE.findall(pattern) if each not in _READABLE]
    if unknown or "%" not in pattern:
        raise ValidationFailed(
            f"`format`: {f'%{unknown[0]}' if unknown else pattern[:64]!r} cannot be used "
            "for reading.",
            field="format",
            hint=f"Directives for reading: {', '.join(f'%{each}' for each in sorted(_READABLE))}.",
        )
    try:
        return datetime.strptime(text, pattern)  # noqa: DTZ007 -- the zone is attached next
    except (ValueError, re.error) as error:
        raise ValidationFailed(
            f"`{field}` does not match `format`: {error}.", field=field
        ) from None


def _unreadable(text: str, field: str) -> ValidationFailed:
    if _ORDERS.fullmatch(text) and not _ISO_DATE.match(text):
        return ValidationFailed(
            f"`{field}`: {text[:64]!r} does not say which number is the day and which the month.",
            field=field,
            hint="Write year-month-day, or say how with `format`: %d/%m/%Y or %m/%d/%Y.",
        )
    return ValidationFailed(
        f"`{field}`: {text[:64]!r} is not a point in time.", field=field, hint=_ZONE_APART
    )
