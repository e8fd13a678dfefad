"""Times as Python has them, as the arguments that operations take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar

from stratagem.errors import ValidationFailed
from stratagem.operations import find
from stratagem.parameters import TIME

__all__ = ["duration_argument", "items_argument", "moment_argument", "time_arguments"]

T = TypeVar("T")


def moment_argument(value: date | T, field: str) -> str | T:
    """Return a moment as the argument of an operation: a `datetime` as ISO 8601.

    A `date` is a day, as in the words for times: a view of it is one of its end, and what has
    happened since then begins with it.

    Raises:
        ValidationFailed: The `datetime` has no time zone. Whether it is meant in UTC or in local
            time cannot be told from it, and a wrong guess would answer with the wrong past. Or it
            has one in which it has no time in UTC.
    """
    if not isinstance(value, date):
        return value
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValidationFailed(
            f"`{field}` is a datetime without a time zone, which may mean UTC or local time.",
            field=field,
            value=value.isoformat(),
            hint="Write datetime.now(UTC), or value.astimezone() for one in local time.",
        )
    try:
        return value.astimezone(UTC).isoformat()
    except OverflowError:
        raise ValidationFailed(
            f"`{field}` lies outside the years 1 to 9999 in UTC.",
            field=field,
            value=value.isoformat(),
            hint="Leave it out where every moment is meant.",
        ) from None


def duration_argument(value: timedelta | T, field: str) -> str | T:
    """Return a length of time as the argument of an operation: a `timedelta` in seconds."""
    if not isinstance(value, timedelta):
        return value
    micros = value // timedelta(microseconds=1)
    if micros <= 0:
        raise ValidationFailed(f"`{field}` must be longer than zero.", field=field)
    return f"{micros // 1_000_000}.{micros % 1_000_000:06}s"


def items_argument(items: Sequence[Mapping[str, Any]] | T, field: str) -> list[Any] | T:
    """Return objects to be stored as the argument of an operation, with times as it takes them."""
    if not isinstance(items, list | tuple):
        return items  # type: ignore[return-value]  # what is no list is refused with the rest
    return [
        {
            name: _ITEM_CONVERSIONS[name](value, f"{field}[{at}].{name}")
            if name in _ITEM_CONVERSIONS
            else value
            for name, value in item.items()
        }
        if (type(item) is dict or isinstance(item, Mapping))
        and not _ITEM_CONVERSIONS.keys().isdisjoint(item)
        else item
        for at, item in enumerate(items)
    ]


# The fields of items that are times.
_ITEM_CONVERSIONS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "ttl": duration_argument,
    "valid_from": moment_argument,
    "valid_to": moment_argument,
}
_CONVERSIONS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "moment": moment_argument,
    "duration": duration_argument,
    "items": items_argument,
}


def time_arguments(operation: str, arguments: Any) -> Any:
    """Return arguments of an operation, with times as it takes them.

    What an operation is to store stays as it is: only its parameters for times are looked at.
    """
    if not isinstance(arguments, Mapping):
        return arguments
    declared = find(operation).parameters["properties"]
    return {
        name: _CONVERSIONS[kind](value, name)
        if (kind := declared.get(name, {}).get(TIME)) is not None
        else value
        for name, value in arguments.items()
    }
