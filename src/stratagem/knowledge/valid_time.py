"""Valid time: since when and until when a fact holds, independent of the time of writing.

A concept or a relationship may be valid from one moment, and until another: a fact recorded in 2024
that Ann led the company until 2020 is still found for 2019. Without a period it is always valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, TypedDict

from stratagem.engine import moments
from stratagem.errors import ValidationFailed

__all__ = ["Period", "holds_at", "read_moment", "read_period", "refuse_reversed", "render_period"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_OR_MONTH: Final = re.compile(r"(\d{4})(?:-(\d{2}))?")


class Period(TypedDict):
    """Since when and until when something holds, as answers show it."""

    valid_from: str | None
    valid_to: str | None


def read_moment(text: object, *, field: str, zone: tzinfo) -> int | None:
    """Return a moment in microseconds; a year, a month or a day stands for its beginning."""
    if text is None:
        return None
    try:
        return _microseconds(str(text).strip(), zone)
    except (ValueError, OverflowError) as error:
        raise ValidationFailed(
            f"`{field}` must be a moment in ISO 8601; it was {str(text)[:100]!r}.",
            field=field,
            invalid_value=str(text)[:100],
            hint="Write 2019, 2019-05, 2019-05-01 or 2019-05-01T12:00:00Z; in place of Z an offset "
            "such as +01:00. Names of time zones are not read.",
        ) from error


def read_period(begin: object, end: object, zone: tzinfo) -> dict[str, int | None]:
    """Return the fields of a period, checked; None where one end is open."""
    period = {
        "valid_from": read_moment(begin, field="valid_from", zone=zone),
        "valid_to": read_moment(end, field="valid_to", zone=zone),
    }
    refuse_reversed(period)
    return period


def refuse_reversed(period: Mapping[str, Any]) -> None:
    """Refuse a period that ends before it begins."""
    first, last = period.get("valid_from"), period.get("valid_to")
    if first is not None and last is not None and first >= last:
        raise ValidationFailed(
            "`valid_to` is not after `valid_from`.",
            field="valid_to",
            hint="`valid_to` is the first moment at which it is no longer true.",
        )


def holds_at(content: Mapping[str, Any], at: int) -> bool:
    """Whether something holds at a moment."""
    first, last = content.get("valid_from"), content.get("valid_to")
    return (first is None or first <= at) and (last is None or at < last)


def render_period(content: Mapping[str, Any]) -> Period:
    """Return the fields of a period as answers show them."""
    first, last = content.get("valid_from"), content.get("valid_to")
    return {
        "valid_from": None if first is None else moments.iso(first),
        "valid_to": None if last is None else moments.iso(last),
    }


def _microseconds(text: str, zone: tzinfo) -> int:
    if match := _YEAR_OR_MONTH.fullmatch(text):
        moment = datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=zone)
    else:
        moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(microseconds=1)
