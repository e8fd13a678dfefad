"""Times as Python has them, as the arguments that operations take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from stratagem.errors import ValidationFailed

__all__ = ["duration_argument", "items_argument", "moment_argument"]

T = TypeVar("T")


def moment_argument(value: datetime | T, field: str) -> str | T:
    """Return a moment as the argument of an operation: a `datetime` as ISO 8601.

    Raises:
        ValidationFailed: The `datetime` has no time zone. Whether it is meant in UTC or in local
            time cannot be told from it, and a wrong guess would answer with the wrong past.
    """
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValidationFailed(
            f"`{field}` is a datetime without a time zone, which may mean UTC or local time.",
            field=field,
            value=value.isoformat(),
            hint="Write datetime.now(UTC), or value.astimezone() for one in local time.",
        )
    return value.astimezone(UTC).isoformat()


def duration_argument(value: timedelta | T, field: str) -> str | T:
    """Return a length of time as the argument of an operation: a `timedelta` in seconds."""
    if not isinstance(value, timedelta):
        return value
    micros = value // timedelta(microseconds=1)
    if micros <= 0:
        raise ValidationFailed(f"`{field}` must be longer than zero.", field=field)
    return f"{micros // 1_000_000}.{micros % 1_000_000:06}s"


def items_argument(items: Sequence[Mapping[str, Any]] | T, field: str) -> list[Any] | T:
    """Return entries to be stored as the argument of an operation."""
    if not isinstance(items, list | tuple):
        return items  # type: ignore[return-value]  # what is no list is refused with the rest
    return [
        {**item, "ttl": duration_argument(item["ttl"], f"{field}.ttl")}
        if isinstance(item, Mapping) and isinstance(item.get("ttl"), timedelta)
        else item
        for item in items
    ]
