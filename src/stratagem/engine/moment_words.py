"""The words in which a caller may write a time, and the one instant they mean.

An expression means exactly one moment, or it is refused with a suggestion that does. A guess would
show the wrong state of the past, and nobody would notice.

* `now` is the head of the log, not an instant: what was written last is always seen.
* A day without a time means the state as that day ended; today has not ended, so it means now. The
  same holds for a month (`2026-11`, `November 2026`), and `last night` is the end of yesterday.
* `1h ago` is exact: seconds to weeks have fixed lengths, a day is 24 hours. Months and years are
  the calendar's, in the caller's zone, and end with the month where it is shorter (three months
  before May 31 is the last of February).
* A weekday is the last one before today. Midnight is the start of the day it is said of.
* A time without an offset is in the caller's zone. Where the clocks were set back it happened
  twice, where they were set forward never: both are refused.
* Nothing lies in the future, and nothing before 1970. A log whose recorded time ran ahead of the
  clock has moments that the clock has not reached: `latest` says how far they go. Words that count
  from now count from the clock all the same.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from math import isfinite
from typing import Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.moments import AtSequence, AtTime, Latest, Moment, iso
from stratagem.engine.values import check_text
from stratagem.errors import ValidationFailed

__all__ = ["parse_duration", "parse_moment"]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_UNITS: Final = (
    {"ms": 1_000, "millisecond": 1_000}
    | dict.fromkeys(("s", "sec", "second"), _SECOND)
    | dict.fromkeys(("m", "min", "minute"), _MINUTE)
    | dict.fromkeys(("h", "hr", "hour"), _HOUR)
    | dict.fromkeys(("d", "day"), _DAY)
    | dict.fromkeys(("w", "wk", "week"), 7 * _DAY)
)
_UNITS_IN_MONTHS: Final = {"mo": 1, "month": 1, "y": 12, "yr": 12, "year": 12}
_NUMBER_WORDS: Final = (
    {"a": 1, "an": 1}
    | {
        word: number
        for number, word in enumerate(
            [
                "one",
                "two",
                "three",
                "four",
                "five",
                "six",
                "seven",
                "eight",
                "nine",
                "ten",
                "eleven",
                "twelve",
                "thirteen",
                "fourteen",
                "fifteen",
                "sixteen",
                "seventeen",
                "eighteen",
                "nineteen",
                "twenty",
            ],
            1,
        )
    }
    | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_WEEKDAY_NAMES: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
_WEEKDAYS: Final = tuple(name[:3].lower() for name in _WEEKDAY_NAMES)
_NAMED_TIMES: Final = {"noon": time(12), "midnight": time(0)}

_EXAMPLES: Final = (
    "Write now, 1h ago, 2 days ago, yesterday, yesterday 14:00, last monday 14:00, "
    "10 March 2026, 2026-03-04T14:00:00Z, epoch microseconds, or @123 for a sequence."
)
# The farthest that two time zones are apart.
_ZONES_APART_MAX: Final = 26 * _HOUR
_NO_ZONE_NAMES: Final = "names of time zones (CET, Europe/Oslo) are not read."
_PRESENT: Final = "Leave it out, or write now, for the present."

_INTEGER: Final = re.compile(r"-?[0-9]+")
_DECIMAL: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PIECE: Final = re.compile(
    rf"(?:and )?(?:([0-9]+(?:\.[0-9]+)?) ?|({'|'.join(_NUMBER_WORDS)}) )([a-z]+)(?:,? |(?=[0-9])|$)"
)
_HALF: Final = re.compile(r"\bhalf an? ")
_LAST: Final = re.compile(r"^last (week|month|year)$")
_MONTH_NAMES: Final = "|".join(rf"{each[:3]}(?:{each[3:]})?" for each in _MONTHS) + "|sept"
_ORDINAL: Final = r"([0-9]{1,2})(?:st|nd|rd|th)?"
# As people and mails write it: March 10, 2026; 10 March 2026; Tue, 10 Mar 2026 14:00:00 +0100.
_WRITTEN_DATE: Final = re.compile(
    r"(?:\b(mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? )?"
    rf"\b(?:{_ORDINAL}(?: of)? ({_MONTH_NAMES})\b\.?|({_MONTH_NAMES})\b\.? {_ORDINAL})"
    r",? ([0-9]{4})\b"
)
_MONTH: Final = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})|({_MONTH_NAMES})\.?,? ([0-9]{{4}})")
_LAST_NIGHT: Final = "last night"
_DAYS: Final = (
    r"today|yesterday|(?:the )?day before yesterday|last night"
    r"|(?:last )?(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-?w[0-9]{2}-?[1-7]|[0-9]{8}"
)
_DAY_FIRST: Final = re.compile(rf"({_DAYS})(?:(?:,? at |, ?| |(?<=[0-9])t)(.+))?")
_TIME_FIRST: Final = re.compile(rf"(?:at )?(.+?)(?: on)? ({_DAYS})")
_TWELVE_HOURS: Final = re.compile(
    r"(0?[1-9]|1[0-2])(?::([0-9]{2}))?(?::([0-9]{2}))? ?([ap])\.?m\.?"
)
# Where words may begin that were written after a time.
_WORD_BREAK: Final = re.compile(r"(?=[ \[(])|(?<=:[0-9]{2})(?=[a-z])")
_CLOCK_ALONE: Final = re.compile(r"noon|midnight|[0-9]{1,2}(?::| ?[ap]\.?m\b)")
_FUTURE: Final = re.compile(r"tomorrow\b.*|next .+|(?:in |\+ ?)(.+)|(.+) (?:from now|later)")
_DAY_MONTH_YEAR: Final = re.compile(r"([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{2}|[0-9]{4})\b.*")
_YEAR_FIRST: Final = re.compile(r"([0-9]{4})[/.-]([0-9]{1,2})[/.-]([0-9]{1,2})\b.*")

_EPOCH_MAX: Final = 10**20
# From 1973 to 5138 the four usual units of an epoch number do not overlap.
_EPOCH_UNITS: Final = (
    (10**8, 10**11, "seconds", 1_000_000, 1),
    (10**11, 10**14, "milliseconds", 1_000, 1),
    (10**17, _EPOCH_MAX, "nanoseconds", 1, 1_000),
)
_EPOCH_RANGE: Final = range(10**14, 10**17)


def parse_moment(
    expression: str | int, *, now: int, zone: tzinfo, field: str = "as_of", latest: int = 0
) -> Moment:
    """Return the moment that an expression means.

    `now` is in microseconds since 1970; `zone` is where days and times without an offset are.
    `latest` is the newest moment that is accepted although it is after now, because the log's
    recorded time runs ahead of the clock.

    Raises:
        ValidationFailed: It means no moment, or more than one, or one in the future.
    """
    if isinstance(expression, bool) or not isinstance(expression, str | int):
        raise ValidationFailed(
            f"`{field}` must be text or a whole number, not {type(expression).__name__}.",
            field=field,
            hint=_EXAMPLES,
        )
    if isinstance(expression, int):
        # Python refuses to write out thousands of digits; all beyond this mean the same.
        expression = str(max(-_EPOCH_MAX, min(expression, _EPOCH_MAX)))
    given = " ".join(expression.split())
    check_text(given, field=field, chars_max=limits.TIME_WORDS_CHARS_MAX)
    asked = _Asked(given.casefold(), given, now, zone, field, max(now, latest))
    asked = replace(
        asked, text=_WRITTEN_DATE.sub(lambda found: _iso_date(asked, found), asked.text)
    )
    for read in _READERS:
        moment = read(asked)
        if moment is not None:
            return moment
    raise asked.refusal("cannot be read as a time", _EXAMPLES)


def parse_duration(expression: str | float | timedelta, *, field: str = "ttl") -> int:
    """Return a length of time in microseconds; a bare number is in seconds.

    Raises:
        ValidationFailed: It is no length of time, or not above zero, or beyond the limit.
    """
    if isinstance(expression, timedelta):
        micros = expression // _MICROSECOND
    else:
        micros = _length(expression, field)
    if micros <= 0:
        raise _no_length("must be longer than zero", field)
    if micros > limits.TTL_SECONDS_MAX * _SECOND:
        raise ValidationFailed(
            f"`{field}` is over the limit of {limits.TTL_SECONDS_MAX:,} seconds (100 years).",
            field=field,
            limit=limits.TTL_SECONDS_MAX,
            hint=_without("A bare number is in seconds", field),
        )
    return micros


@dataclass(frozen=True, slots=True)
class _Asked:
    """An expression and what its meaning depends on."""

    text: str
    given: str
    now: int
    zone: tzinfo
    field: str
    latest: int

    @property
    def here(self) -> datetime:
        """Now, on the caller's clock."""
        return (_EPOCH + timedelta(microseconds=self.now)).astimezone(self.zone)

    def as_given(self, words: str) -> str:
        """Return words of the text in the case in which they were given."""
        at = self.given.casefold().find(words)
        found = self.given[at : at + len(words)]
        return found if found.casefold() == words else words

    def refusal(self, why: str, hint: str) -> ValidationFailed:
        return ValidationFailed(
            f"`{self.field}` {self.given!r} {why}.", field=self.field, value=self.given, hint=hint
        )

    def in_future(self, hint: str = _PRESENT) -> ValidationFailed:
        return self.refusal(f"lies in the future; now is {iso(self.now)}", hint)

    def before_1970(self) -> ValidationFailed:
        return self.refusal(
            "lies before 1970", "The log cannot be older than that; check the year."
        )

    def instant(self, at: int, *, relative: bool) -> AtTime:
        if at > self.latest:
            # It may have been meant in another time zone.
            near = not relative and at - self.latest <= _ZONES_APART_MAX
            raise self.in_future(f"It means {iso(at)}. {_PRESENT}" if near else _PRESENT)
        if at < 0:
            raise self.before_1970()
        return AtTime(at, relative)


def _read_now(asked: _Asked) -> Moment | None:
    return Latest() if asked.text == "now" else None


def _read_sequence(asked: _Asked) -> Moment | None:
    if not asked.text.startswith("@"):
        return None
    digits = asked.text[1:].strip()
    if not (digits.isascii() and digits.isdecimal()) or int(digits) >= 2**63:
        raise asked.refusal(
            "is not a sequence", "Write @ and the version of an entry, such as @123."
        )
    return AtSequence(int(digits))


def _read_number(asked: _Asked) -> Moment | None:
    if not _INTEGER.fullmatch(asked.text):
        if _DECIMAL.fullmatch(asked.text):
            raise asked.refusal("is a number with a fraction", "Write whole epoch microseconds.")
        return None
    number = int(asked.text)
    if number in _EPOCH_RANGE:
        return asked.instant(number, relative=False)
    if number < 0:
        raise asked.before_1970()
    for start, stop, unit, times, over in _EPOCH_UNITS:
        if start <= number < stop:
            raise asked.refusal(
                f"looks like epoch {unit}; a number must be in microseconds",
                f"Write {number * times // over}.",
            )
    if number >= _EPOCH_MAX:
        raise asked.refusal("is too large for a time", _EXAMPLES)
    raise asked.refusal("is a bare number, which may mean several things", _number_hint(asked.text))


def _number_hint(digits: str) -> str:
    hint = f"Write @{digits} for the sequence, or 16-digit epoch microseconds for a time."
    return f"{hint} The date is {date.fromisoformat(digits)}." if _is_date(digits) else hint


def _refuse_future(asked: _Asked) -> Moment | None:
    if found := _FUTURE.fullmatch(asked.text):
        length = found[1] or found[2]
        if length is None or _span(length):
            raise asked.in_future()
    return None


def _read_ago(asked: _Asked) -> Moment | None:
    text = _LAST.sub(r"1 \1 ago", asked.text)
    if not text.endswith(" ago"):
        return None
    span = _span(text.removesuffix(" ago"))
    if span is None:
        raise asked.refusal(
            "is not a known length of time", "Write 90 minutes ago, 1d 2h ago or a week ago."
        )
    return _back(asked, *span)


def _read_day(asked: _Asked) -> Moment | None:
    if found := _DAY_FIRST.fullmatch(asked.text):
        day, clock = found.groups()
    elif found := _TIME_FIRST.fullmatch(asked.text):
        clock, day = found.groups()
    else:
        return None
    named = not day[0].isdecimal()
    if day == _LAST_NIGHT and clock is not None:
        raise asked.refusal(
            "does not say on which of two days", "Write yesterday 22:00 or today 02:00."
        )
    read = _named_day if named else _date
    return _on_day(asked, read(asked, day), clock, named=named)


def _read_month(asked: _Asked) -> Moment | None:
    found = _MONTH.fullmatch(asked.text)
    if found is None:
        return None
    digits, month, name, year = found.groups()
    number = _month_number(name) if name else int(month)
    if not 1 <= number <= len(_MONTHS) or int(digits or year) < 1:
        raise asked.refusal("names a month that is not in the calendar", _EXAMPLES)
    first = date(int(digits or year), number, 1)
    today = asked.here.date()
    if first == today.replace(day=1):
        return Latest()
    last = first.replace(day=monthrange(first.year, first.month)[1])
    return _day_end(asked, last, named=False)


def _read_clock(asked: _Asked) -> Moment | None:
    text = asked.text.removeprefix("at ")
    clock = _clock(text)
    if clock is None:
        # A bare number before a word is no time: `10 March`.
        if _CLOCK_ALONE.match(text):
            _refuse_rest(asked, asked.here.date(), text, "neither a day nor an offset")
        return None
    today = asked.here.date()
    at = _at_clock(asked, today, clock, named=True)
    if at > asked.now:
        earlier = today - timedelta(days=1)
        raise asked.in_future(f"A time alone is today's. Write {earlier}T{clock} for yesterday's.")
    return asked.instant(at, relative=True)


def _refuse_order(asked: _Asked) -> Moment | None:
    """Refuse a date whose numbers do not say which is the day and which the month."""
    if found := _YEAR_FIRST.fullmatch(asked.text):
        year, month, day = map(int, found.groups())
        raise asked.refusal("is not written as ISO 8601", _dates_hint(year, (month, day)))
    if found := _DAY_MONTH_YEAR.fullmatch(asked.text):
        one, other, year = map(int, found.groups())
        century = 2000 if year < 100 else 0  # noqa: PLR2004 -- a year of two digits
        raise asked.refusal(
            "does not say which number is the day and which the month",
            _dates_hint(century + year, (one, other), (other, one)),
        )
    return None


def _refuse_span(asked: _Asked) -> Moment | None:
    """Refuse a length of time that does not say from when."""
    bare = asked.text.removeprefix("now").strip().removeprefix("-").strip()
    if _span(bare) is None:
        return None
    raise asked.refusal("is a length of time, not a moment", f"Write {bare} ago.")


_READERS: Final[tuple[Callable[[_Asked], Moment | None], ...]] = (
    _read_now,
    _read_sequence,
    _read_number,
    _refuse_future,
    _read_ago,
    _read_day,
    _read_month,
    _read_clock,
    _refuse_order,
    _refuse_span,
)


def _dates_hint(year: int, *candidates: tuple[int, int]) -> str:
    dates = {f"{year:04}-{month:02}-{day:02}" for month, day in candidates}
    real = sorted(text for text in dates if _is_date(text))
    return f"Write {' or '.join(real or ['year-month-day, such as 2026-03-04'])}."


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _span(text: str) -> tuple[Decimal, Decimal] | None:
    """Return a length of time as months and microseconds, or None if the text is none."""
    months = micros = Decimal(0)
    text = _HALF.sub("0.5 ", text)
    position = 0
    while piece := _PIECE.match(text, position):
        digits, word, unit = piece.groups()
        amount = Decimal(digits or _NUMBER_WORDS[word])
        name = unit if unit in _UNITS else unit.removesuffix("s")
        if name not in _UNITS and name not in _UNITS_IN_MONTHS:
            return None
        months += amount * _UNITS_IN_MONTHS.get(name, 0)
        micros += amount * _UNITS.get(name, 0)
        position = piece.end()
    return (months, micros) if text and position == len(text) else None


def _back(asked: _Asked, months: Decimal, micros: Decimal) -> Moment:
    if months != months.to_integral_value():
        raise asked.refusal(
            "has a fraction of a month or year", "Months and years must be whole; use days."
        )
    return asked.instant(_months_back(asked, int(months)) - int(micros), relative=True)


def _months_back(asked: _Asked, months: int) -> int:
    if not months:
        return asked.now
    here = asked.here
    year, month = divmod(here.year * 12 + here.month - 1 - months, 12)
    if year < _EPOCH.year - 1:
        raise asked.before_1970()
    day = min(here.day, monthrange(year, month + 1)[1])
    return _micros(here.replace(year=year, month=month + 1, day=day, fold=0))


def _iso_date(asked: _Asked, found: re.Match[str]) -> str:
    """Write a date with the name of its month as ISO 8601 has it."""
    weekday, day, month, first_month, day_after, year = found.groups()
    number = _month_number(month or first_month)
    written = f"{year}-{number:02}-{int(day or day_after):02}"
    if weekday and _is_date(written):
        real = date.fromisoformat(written).weekday()
        if _WEEKDAYS[real] != weekday:
            raise asked.refusal(
                "names a day of the week that is not the date's",
                f"Write {written} if the date is right; it was a {_WEEKDAY_NAMES[real]}.",
            )
    return written


def _month_number(name: str) -> int:
    return 1 + next(at for at, each in enumerate(_MONTHS) if each.startswith(name[:3]))


def _named_day(asked: _Asked, words: str) -> date:
    today = asked.here.date()
    if words == "today":
        return today
    if words in {"yesterday", _LAST_NIGHT}:
        return today - timedelta(days=1)
    if words.endswith("before yesterday"):
        return today - timedelta(days=2)
    days = (today.weekday() - _WEEKDAYS.index(words.removeprefix("last ")[:3])) % 7
    return today - timedelta(days=days or 7)


def _date(asked: _Asked, text: str) -> date:
    try:
        return date.fromisoformat(text.upper())
    except ValueError:
        raise asked.refusal("names a day that is not in the calendar", _EXAMPLES) from None


def _on_day(asked: _Asked, day: date, clock_text: str | None, *, named: bool) -> Moment:
    if clock_text is None:
        return _day_end(asked, day, named=named)
    clock = _clock(clock_text)
    if clock is None:
        _refuse_rest(asked, day, clock_text, "no offset")
        raise asked.refusal(
            f"has {asked.as_given(clock_text)!r} where a time of day belongs",
            f"Write 14:00, 2pm, noon or midnight; {_NO_ZONE_NAMES}",
        )
    return asked.instant(_at_clock(asked, day, clock, named=named), relative=named)


def _day_end(asked: _Asked, day: date, *, named: bool) -> Moment:
    today = asked.here.date()
    if day == today:
        return Latest()
    if _micros(datetime.combine(day, time(), asked.zone)) > asked.latest:
        raise asked.in_future()
    next_day = datetime.combine(day + timedelta(days=1), time(), asked.zone)
    # Where the clocks change at midnight, the earlier reading (fold=0) starts the day.
    end = _micros(next_day) - 1
    return asked.instant(min(end, asked.latest) if day > today else end, relative=named)


def _clock(text: str) -> time | None:
    """Return a time of day, with its offset if it has one, or None if the text is none."""
    if text in _NAMED_TIMES:
        return _NAMED_TIMES[text]
    try:
        if twelve := _TWELVE_HOURS.fullmatch(text):
            hour, minute, second, half = twelve.groups("0")
            return time(int(hour) % 12 + (12 if half == "p" else 0), int(minute), int(second))
        text = re.sub(r" ?(?:utc|gmt|z)$", "Z", text)
        text = re.sub(r" (?=[+-])", "", text)
        return time.fromisoformat(f"0{text}" if text[1:2] == ":" else text)
    except ValueError:
        return None


def _refuse_rest(asked: _Asked, day: date, text: str, why: str) -> None:
    """Refuse a time of day with something after it, such as the name of a time zone."""
    breaks = [found.start() for found in _WORD_BREAK.finditer(text)]
    for end in reversed(breaks):
        clock, rest = _clock(text[:end]), text[end:].strip()
        if clock is not None:
            break
    else:
        return
    shown = asked.as_given(rest)
    if clock.tzinfo is not None and not (rest[0].isdecimal() or rest[0] in "+-"):
        hint = f"Leave {shown!r} out if the offset is right; {_NO_ZONE_NAMES}"
    else:
        bare = datetime.combine(day, clock.replace(tzinfo=None)).isoformat()
        hint = f"Write {bare}Z for UTC, or {bare}+01:00 with your offset; {_NO_ZONE_NAMES}"
    raise asked.refusal(f"has {shown!r} after the time, which is {why}", hint)


def _at_clock(asked: _Asked, day: date, clock: time, *, named: bool) -> int:
    """Return the instant at which a clock showed the time on that day."""
    if clock.tzinfo is not None:
        if named:
            hint = f"Write the date: {day}T{clock}."
            raise asked.refusal("has an offset, but its day depends on the zone", hint)
        return _micros(datetime.combine(day, clock))
    early = datetime.combine(day, clock, asked.zone)
    late = early.replace(fold=1)
    if early.utcoffset() != late.utcoffset():
        raise _clock_change(asked, early, late)
    return _micros(early)


def _clock_change(asked: _Asked, early: datetime, late: datetime) -> ValidationFailed:
    # A time that happened twice has two instants; one that was skipped has none, and going
    # through UTC gives the times to which the clocks were set.
    spellings = [moment.isoformat() for moment in (early, late)]
    real = [moment.astimezone(UTC).astimezone(asked.zone).isoformat() for moment in (early, late)]
    if spellings == real:
        why = f"happened twice in {asked.zone}, as the clocks were set back"
    else:
        why = f"did not happen in {asked.zone}, as the clocks were set forward"
    return asked.refusal(why, f"Write {' or '.join(real)}.")


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _length(expression: str | float, field: str) -> int:
    if isinstance(expression, str):
        return _length_in_words(expression, field)
    if isinstance(expression, bool) or not isinstance(expression, int | float):
        kind = type(expression).__name__
        raise _no_length(f"must be text or a number of seconds, not {kind}", field)
    if not isinstance(expression, int) and not isfinite(expression):
        raise _no_length(f"is {expression}, which is not a length of time", field)
    # A product beyond the largest float could not be rounded.
    return round(max(0, min(expression, limits.TTL_SECONDS_MAX + 1)) * _SECOND)


def _length_in_words(expression: str, field: str) -> int:
    given = " ".join(expression.split())
    check_text(given, field=field, chars_max=limits.TIME_WORDS_CHARS_MAX)
    if _DECIMAL.fullmatch(given):
        return int(Decimal(given) * _SECOND)
    span = _span(given.casefold())
    if span is None:
        raise _no_length(f"{given!r} is not a length of time", field)
    months, micros = span
    if months:
        raise _no_length(f"{given!r} has months or years, which differ in length", field)
    return int(micros)


def _no_length(why: str, field: str) -> ValidationFailed:
    hint = _without("Write 90s, 2h, 1d 12h or 7d", field)
    return ValidationFailed(f"`{field}` {why}.", field=field, hint=hint)


def _without(advice: str, field: str) -> str:
    """Add to a hint the meaning of the expression without the length of time, if it has one."""
    return f"{advice}; leave it out to keep the entry for good." if field == "ttl" else f"{advice}."
