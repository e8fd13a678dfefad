"""Dates, times, identifiers and addresses in other forms than the schema asks for.

A date is rewritten only when it can be read in one way. `13/03/2024` has one reading, so has
`03/03/2024`; `03/04/2024` has two, and both are offered. Nothing is added unasked: a moment
without a zone stays without one until the caller says which.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

__all__ = ["DATE_ORDERS", "propose_formats"]

Proposal = tuple[str, Any]

DATE_ORDERS: Final = ("dayFirst", "monthFirst")
_MONTHS: Final = {
    name[:length]: number
    for number, name in enumerate(
        "january february march april may june july august september october november "
        "december".split(),
        start=1,
    )
    for length in (3, len(name))
} | {"sept": 9}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY_NAME: Final = r"(?:(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?,?\s+)?"
_WEEK: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/.\s])(\d{1,2})\2(\d{1,2})")
_COMPACT: Final = re.compile(r"((?:19|20)\d{2})(\d{2})(\d{2})")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([-/.\s])(\d{1,2})\2(\d{4}|\d{2})")
_DAY_MONTH: Final = re.compile(
    rf"{_DAY_NAME}(\d{{1,2}})(?:st|nd|rd|th)?[\s-]+(?:of\s+)?({_MONTH})\.?,?[\s-]+(\d{{4}})"
)
_MONTH_DAY: Final = re.compile(
    rf"{_DAY_NAME}({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})"
)
_CLOCK: Final = re.compile(
    r"(\d{1,2})(?:[:.h](\d{2})(?:[:.](\d{2})(\.\d++)?)?)?\s*+([ap]\.?m\.?)?\s*+"
    r"(z|utc|gmt|[+-]\d{2}(?::?\d{2})?)?"
)
# At most 600 characters: of 200, of which some become three when they are folded.
_MOMENT: Final = re.compile(
    r"(.*\d)(?:(?:\s*+,)?\s++(?:at\s++)?|\s*+t\s*+)(\d{1,2}(?:[:.h]\d{2}|\s*+[ap]).*+)"
)
_HEX: Final = re.compile(r"(?:urn:uuid:|uuid:)?[{(]?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})"
                         r"-?([0-9a-f]{4})-?([0-9a-f]{12})[})]?")  # fmt: skip
_DISPLAYED: Final = re.compile(r".*<\s*+([^<>\s@]++@[^<>\s@]++)\s*+>\s*+")
_BARE_HOST: Final = re.compile(r"(?:[a-z0-9-]++\.)+[a-z]{2,}+(?:[/?#:]\S*+)?", re.IGNORECASE)
_LINK: Final = re.compile(r"\[([^\[\]]*+)\]\(\s*+<?(\S+?)>?\s*+\)")
# Months are left out: `m` and "month" are as often minutes as they are months.
_DURATIONS: Final = {"second": "S", "minute": "M", "hour": "H", "day": "D", "week": "W"}
_AMOUNT: Final = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_DURATIONS)})s?")
_KNOWN_ORDER: Final = "date_order_known"
_TEXT_CHARS_MAX: Final = 200
_MILLISECONDS_FROM: Final = 100_000_000_000
_MOMENT_MAX: Final = 4_102_444_800
_NOON: Final = 12
_MIDNIGHT: Final = re.compile(r"00:00(?::00(?:\.0+)?)?(?:z|\+00:00)?")

Order = Callable[[], str | None]


def propose_formats(value: Any, form: str, order: Order) -> Iterator[Proposal]:
    """Yield a value in the form that is asked for; several where it can be read in several ways.

    `order` says in which order earlier calls wrote day and month, or None.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _epoch(value, form)
    elif isinstance(value, str) and len(value) <= _TEXT_CHARS_MAX and form in _FORMS:
        yield from _FORMS[form](value.strip(), order)
    elif isinstance(value, dict) and form == "date" and set(value) == {"year", "month", "day"}:
        parts = (value["year"], value["month"], value["day"])
        if all(isinstance(part, int) and not isinstance(part, bool) for part in parts):
            yield from (("date_rewritten", day.isoformat()) for _, day in _day(*parts))


def _date(text: str, order: Order) -> Iterator[Proposal]:
    folded = text.casefold()
    readings = list(_dates(folded, order))
    if readings:
        yield from (
            ("date_rewritten" if pattern is None else pattern, day.isoformat())
            for pattern, day in readings
        )
        return
    moment = _MOMENT.fullmatch(folded)
    days = list(_dates(moment[1].strip(" ,"), order)) if moment else []
    if moment and len(days) == 1 and days[0][0] in {None, _KNOWN_ORDER}:
        whole = _MIDNIGHT.fullmatch(moment[2])
        certain = days[0][0] or "date_rewritten"
        yield certain if whole else "time_of_day_dropped", days[0][1].isoformat()


def _dates(text: str, order: Order) -> Iterator[tuple[str | None, dt.date]]:
    """Yield the days a text may name, each with the pattern that makes it doubtful."""
    if found := _YEAR_FIRST.fullmatch(text):
        yield from _day(int(found[1]), int(found[3]), int(found[4]))
    elif found := _COMPACT.fullmatch(text):
        yield from _day(int(found[1]), int(found[2]), int(found[3]))
    elif found := _DAY_MONTH.fullmatch(text):
        day = _day(int(found[4]), _MONTHS[found[3]], int(found[2]))
        yield from _check_weekday(day, found[1])
    elif found := _MONTH_DAY.fullmatch(text):
        day = _day(int(found[4]), _MONTHS[found[2]], int(found[3]))
        yield from _check_weekday(day, found[1])
    elif found := _YEAR_LAST.fullmatch(text):
        yield from _dates_in_order(int(found[1]), int(found[3]), found[4], order)


def _day(
    year: int, month: int, day: int, pattern: str | None = None
) -> Iterator[tuple[str | None, dt.date]]:
    try:
        yield pattern, dt.date(year, month, day)
    except ValueError:
        return


def _check_weekday(
    days: Iterator[tuple[str | None, dt.date]], name: str | None
) -> Iterator[tuple[str | None, dt.date]]:
    """Yield days, doubtful when the day of the week that is given with them is another."""
    for pattern, day in days:
        contradicts = name is not None and _WEEK[day.weekday()] != name
        yield "weekday_contradicts" if contradicts else pattern, day


def _dates_in_order(
    first: int, second: int, year: str, order: Order
) -> Iterator[tuple[str | None, dt.date]]:
    century = "century_assumed" if len(year) == 2 else None  # noqa: PLR2004 -- two digits
    full = int(year) + (2000 if century else 0)
    day_first = list(_day(full, second, first, century))
    month_first = list(_day(full, first, second, century))
    if not day_first or not month_first or day_first == month_first:
        yield from day_first or month_first
        return
    known = order()
    if known in DATE_ORDERS:
        chosen = day_first if known == "dayFirst" else month_first
        yield from ((pattern or _KNOWN_ORDER, day) for pattern, day in chosen)
        return
    yield from (("date_order_assumed", day) for _, day in [*day_first, *month_first])


def _time(text: str, _order: Order) -> Iterator[Proposal]:
    clock = _clock(text.casefold())
    if clock is not None:
        time, zone = clock
        yield ("time_rewritten", time + zone) if zone else ("zone_assumed", time + "Z")


def _clock(text: str) -> tuple[str, str] | None:
    """Return a time of day and its zone, or None when it is no time or could be two."""
    found = _CLOCK.fullmatch(text)
    if not found or not (found[2] or found[5]):
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if found[5]:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if found[5].startswith("p") else 0)
    try:
        time = dt.time(hour, minute, second).isoformat() + (found[4] or "")
    except ValueError:
        return None
    return time, _zone(found[6])


def _zone(text: str | None) -> str:
    if not text:
        return ""
    if text in {"z", "utc", "gmt"}:
        return "Z"
    return text if ":" in text else f"{text[:3]}:{text[3:] or '00'}"


def _date_time(text: str, order: Order) -> Iterator[Proposal]:
    folded = text.casefold()
    moment = _MOMENT.fullmatch(folded)
    if not moment:
        for pattern, day in _dates(folded, order):
            doubt = "midnight_assumed" if pattern in {None, _KNOWN_ORDER} else pattern
            yield str(doubt), f"{day.isoformat()}T00:00:00Z"
        return
    clock = _clock(moment[2].strip())
    if clock is None:
        return
    for pattern, day in _dates(moment[1].strip(" ,"), order):
        named = pattern or "date_time_rewritten"
        if not clock[1] and pattern in {None, _KNOWN_ORDER}:
            named = "zone_assumed"
        yield named, f"{day.isoformat()}T{clock[0]}{clock[1] or 'Z'}"


def _epoch(value: float, form: str) -> Iterator[Proposal]:
    seconds = value / 1000 if value >= _MILLISECONDS_FROM else value
    if form not in {"date", "date-time"} or not 0 < seconds < _MOMENT_MAX:
        return
    moment = dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    compact = _COMPACT.fullmatch(str(value)) if isinstance(value, int) else None
    if form == "date" and compact:
        for _, day in _day(int(compact[1]), int(compact[2]), int(compact[3])):
            yield "date_rewritten", day.isoformat()
            return
    shown = moment.date().isoformat() if form == "date" else moment.isoformat()
    yield "epoch_converted", shown.replace("+00:00", "Z")


def _uuid(text: str, _order: Order) -> Iterator[Proposal]:
    if found := _HEX.fullmatch(text.casefold()):
        yield "identifier_rewritten", "-".join(found.groups())


def _markdown_link(text: str) -> Iterator[Proposal]:
    """Yield the address of a link as Markdown writes it."""
    if found := _LINK.fullmatch(text):
        address = found[2].removeprefix("mailto:")
        same = found[1].strip() in {found[2], address}
        yield "address_unwrapped" if same else "link_text_dropped", address


def _email(text: str, _order: Order) -> Iterator[Proposal]:
    yield "address_unwrapped", text
    yield from _markdown_link(text)
    if text.casefold().startswith("mailto:"):
        yield "address_unwrapped", text[len("mailto:") :]
    elif text.startswith("<") and text.endswith(">"):
        yield "address_unwrapped", text[1:-1].strip()
    elif found := _DISPLAYED.fullmatch(text):
        yield "display_name_dropped", found[1]


def _uri(text: str, _order: Order) -> Iterator[Proposal]:
    yield "address_unwrapped", text
    yield from _markdown_link(text)
    if text.startswith("<") and text.endswith(">"):
        yield "address_unwrapped", text[1:-1].strip()
    elif _BARE_HOST.fullmatch(text):
        yield "scheme_assumed", f"https://{text}"


def _duration(text: str, _order: Order) -> Iterator[Proposal]:
    yield "duration_rewritten", text.upper()
    found = _AMOUNT.fullmatch(text.casefold())
    if found:
        mark = _DURATIONS[found[2]]
        yield "duration_rewritten", f"P{'T' if mark in 'HMS' else ''}{found[1]}{mark}"


def _trim(text: str, _order: Order) -> Iterator[Proposal]:
    yield "address_unwrapped", text


_FORMS: Final[Mapping[str, Callable[[str, Order], Iterator[Proposal]]]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _duration,
    "uuid": _uuid,
    "email": _email,
    "idn-email": _email,
    "uri": _uri,
    "url": _uri,
    "iri": _uri,
    "hostname": _trim,
    "ipv4": _trim,
    "ipv6": _trim,
}
