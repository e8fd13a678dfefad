"""When to send a request again, and when to give up. Pure: reads no clock and sleeps nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stratagem.deferred_dataclasses import dataclass

__all__ = ["RetryPolicy", "may_repeat"]

_FIRST_SECONDS: Final = 0.1
# A server that starts again is found within this time of being ready.
_PAUSE_SECONDS_MAX: Final = 1.0
_DOUBLINGS_MAX: Final = 10
# The server, or something before it, says that it may be asked again.
_AGAIN: Final = frozenset({502, 503, 504})
_REFUSED: Final = 429


def may_repeat(status: int, *, repeatable: bool) -> bool:
    """Whether a request that got this HTTP status may be sent again.

    A request refused by the rate limit has had no effect, so it may be repeated in any case.
    """
    return status == _REFUSED or (repeatable and status in _AGAIN)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """For how many seconds a request is repeated. `spread` draws a number between two others."""

    seconds: float
    spread: Callable[[float, float], float]

    def delay(self, attempt: int, elapsed: float, retry_after: str = "") -> float | None:
        """Return how long to wait before the next attempt; None is the time to give up.

        `retry_after` is the server's wish in seconds; the wait is never shorter than the backoff.
        """
        most = min(_FIRST_SECONDS * 2 ** min(attempt, _DOUBLINGS_MAX), _PAUSE_SECONDS_MAX)
        wait = max(
            float(retry_after) if retry_after.isdecimal() else 0.0, self.spread(most / 2, most)
        )
        return wait if elapsed + wait <= self.seconds else None
