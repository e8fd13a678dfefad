"""Repeated warnings are written a few times, then only counted.

Under an attack a line for each connection would fill the disk and hide what else happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from stratagem import limits

__all__ = ["RepeatedWarnings"]

# Kinds of warnings that are told apart; there are some dozens in all.
_KINDS_MAX: Final = 1_000


class RepeatedWarnings(logging.Filter):
    """Lets the first warnings of a kind pass in each interval, and says how many others there were.

    Of one kind are warnings of one logger with one wording, whatever they name.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic = monotonic
        # When the interval of each kind began, and how many there were in it.
        self._seen: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; the first of an interval says what was left out before."""
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        began, count = self._seen.get(kind, (now, 0))
        if now - began >= limits.WARNINGS_ALIKE_SECONDS:
            left_out = count - limits.WARNINGS_ALIKE_MAX
            if left_out > 0:
                _add(record, f" (and {left_out:,} more like it, in {now - began:.0f} seconds)")
            began, count = now, 0
        if len(self._seen) >= _KINDS_MAX and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = began, count + 1
        if count == limits.WARNINGS_ALIKE_MAX - 1:
            seconds = limits.WARNINGS_ALIKE_SECONDS
            _add(record, f" (others like it are only counted for {seconds:.0f} seconds)")
        return count < limits.WARNINGS_ALIKE_MAX


def _add(record: logging.LogRecord, words: str) -> None:
    record.msg, record.args = record.getMessage() + words, ()
