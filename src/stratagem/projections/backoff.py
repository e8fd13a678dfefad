"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable

from stratagem import limits

__all__ = ["delay"]


def delay(attempts: int, draw: Callable[[], float]) -> int:
    """Return microseconds to wait after some attempts: twice as long after each, up to a bound.

    `draw` gives a number in [0, 1). Waits lie between half and one and a half of the mean, so
    that processes that failed together do not come back together.
    """
    doublings = min(max(attempts - 1, 0), 30)
    mean = min(limits.OUTBOX_DELAY_SECONDS * (1 << doublings), limits.OUTBOX_DELAY_SECONDS_MAX)
    return round(mean * (0.5 + draw()) * 1_000_000)
