"""Moments of the log, and how they are written.

The words that a caller may write for one are read by `moment_words`, which is imported when the
first are given: few commands name a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, TypeAlias

from stratagem.deferred_dataclasses import dataclass

__all__ = ["AtSequence", "AtTime", "Latest", "Moment", "duration", "iso", "parse"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest state, whatever the clock says."""


@dataclass(frozen=True, slots=True)
class AtSequence:
    """The state at a position of the log."""

    sequence: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The state after all events of an instant, which is in microseconds since 1970.

    `relative`: the same words will mean another instant later.
    """

    at: int
    relative: bool


Moment: TypeAlias = Latest | AtSequence | AtTime


def parse(
    expression: str | int, *, now: int, zone: tzinfo, field: str = "as_of", latest: int = 0
) -> Moment:
    """Return the moment that an expression means; see `moment_words`.

    Raises:
        ValidationFailed: It means no moment, or more than one, or one in the future.
    """
    from stratagem.engine.moment_words import parse_moment

    return parse_moment(expression, now=now, zone=zone, field=field, latest=latest)


def duration(expression: str | float | timedelta, *, field: str = "ttl") -> int:
    """Return a length of time in microseconds; a bare number is in seconds.

    Raises:
        ValidationFailed: It is no length of time, or not above zero, or beyond the limit.
    """
    from stratagem.engine.moment_words import parse_duration

    return parse_duration(expression, field=field)


def iso(at: int) -> str:
    """Write an instant as RFC 3339 in UTC, to the microsecond: what `parse` reads exactly."""
    second, micros = divmod(at, _SECOND)
    return f"{_iso_second(second)}.{micros:06}Z"


def from_iso(text: str) -> int:
    """Return the instant that `iso` has written.

    Raises:
        ValueError: It is no instant with its time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("there is no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)


# Every answer carries times, and the entries of one answer were often written together.
@lru_cache(maxsize=4096)
def _iso_second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:19]
