"""The availability of a service, cached so that it is not checked with every call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from stratagem.errors import StratagemError

__all__ = ["Health"]

# So long an answer holds: a service that came back is used again soon, and one that is down
# costs its time-out only now and then.
_GOOD_SECONDS: Final = 5.0
_BAD_SECONDS: Final = 1.0


class Health:
    """What is known of a service. Safe to use from several threads."""

    def __init__(self, probe: Callable[[], None], clock: Callable[[], float]) -> None:
        self._probe = probe
        self._clock = clock
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._until = float("-inf")

    def trouble(self) -> str | None:
        """Return why the service cannot be used, or None; ask it where that is not known."""
        with self._lock:
            if self._clock() >= self._until:
                self._learn(self._probe_trouble())
            return self._trouble

    def learn(self, error: StratagemError | None) -> None:
        """Take note of how the service was found by somebody who used it."""
        with self._lock:
            self._learn(None if error is None else error.message)

    def _probe_trouble(self) -> str | None:
        try:
            self._probe()
        except StratagemError as error:
            return error.message
        return None

    def _learn(self, trouble: str | None) -> None:
        self._trouble = trouble
        self._until = self._clock() + (_GOOD_SECONDS if trouble is None else _BAD_SECONDS)
