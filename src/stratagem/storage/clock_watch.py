"""A clock that jumps: how far the log's recorded time is ahead of it, and what that means.

Recorded time never goes backwards. So one write by a clock that is far ahead, or a clock that is
set back, leaves the log ahead of the clock until the clock has caught up.
"""

from __future__ import annotations

import logging
from typing import Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Head
from stratagem.engine.moments import iso
from stratagem.storage.contract import LogReader

__all__ = ["ClockGap", "ClockWatch", "clock_gap"]

logger = logging.getLogger(__name__)

_SECOND: Final = 1_000_000
_AHEAD_MAX: Final = round(limits.CLOCK_AHEAD_SECONDS * _SECOND)
_UNITS: Final = (("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("minutes", 60))


class ClockGap(NamedTuple):
    """How far the recorded time is ahead of the clock, and the first event that it is for."""

    seconds: float
    since: int
    latest: int

    @property
    def warning(self) -> str:
        """What happened, what it means, and what to do, in words."""
        return (
            f"The log is {_length(self.seconds)} ahead of this machine's clock since "
            f"@{self.since}: that write was made with a clock that was ahead, or the clock "
            "was set back since. Until the clock reaches that time, writes are dated just "
            f"after {iso(self.latest)}; time limits still follow the clock. Check the clock. "
            "If it was "
            f"ahead, entries and tokens with a time limit that were written from @{self.since} on "
            "expire too late: write them again. Refer to moments since then as @sequence."
        )


def clock_gap(log: LogReader, now: int) -> ClockGap | None:
    """Return how far the log is ahead of the clock; None where it is not by more than a moment."""
    head = log.head()
    if head.at - now <= _AHEAD_MAX:
        return None
    since = log.sequence_at(now + _AHEAD_MAX) + 1
    return ClockGap(round((head.at - now) / _SECOND, 3), since, head.at)


class ClockWatch:
    """Warns in the log of this process, once for each jump of the clock that is found."""

    def __init__(self, place: str) -> None:
        self._place = place
        # The smallest gap since the last warning: it shrinks while the clock runs.
        self._least: int | None = None

    def look(self, head: Head, now: int, log: LogReader) -> None:
        """Compare the newest event with the clock."""
        gap = head.at - now
        if gap <= _AHEAD_MAX:
            self._least = None
            return
        if self._least is None or gap > self._least + _AHEAD_MAX:
            found = clock_gap(log, now)
            if found is not None:
                logger.warning("%s: %s", self._place, found.warning)
            self._least = gap
        self._least = min(self._least, gap)


def _length(seconds: float) -> str:
    for name, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:,.1f} seconds"
