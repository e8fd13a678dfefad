"""When to send a request again, and when to give up. Pure: reads no clock and sleeps nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Patience", "may_repeat"]

_FIRST_SECONDS: Final = 0.1
# A server that starts again is found within this time of being ready.
_PAUSE_SECONDS_MAX: Final = 1.0
_DOUBLINGS_MAX: Final = 10
# The server, or something before it, says that it may be asked again.
_AGAIN: Final = frozenset({502, 503, 504})
_REFUSED: Final = 429


def may_repeat(status: int, *, repeatable: bool) -> bool:
    """Whether a request that was answered so may be sent again.

    One that was turned away for coming too often has done nothing yet, whatever it would do.
    """
    return status == _REFUSED or (repeatable and status in _AGAIN)


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long a request is sent again. `spread` draws a number between two others."""

    seconds: float
    spread: Callable[[float, float], float]

    def pause(self, attempt: int, elapsed: float, wished: str = "") -> float | None:
        """Return how long to wait before the next attempt; None is the time to give up.

        `wished` is what the server said about it, in seconds; one that wishes for none is spared
        all the same.
        """
        most = min(_FIRST_SECONDS * 2 ** min(attempt, _DOUBLINGS_MAX), _PAUSE_SECONDS_MAX)
        wait = max(float(wished) if wished.isdecimal() else 0.0, self.spread(most / 2, most))
        return wait if elapsed + wait <= self.seconds else None
