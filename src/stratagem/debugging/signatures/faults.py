"""An error, what caused it, and where in a text they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stratagem.debugging.signatures import frames
from stratagem.debugging.signatures.frames import Frame

__all__ = ["Fault", "Report", "filled", "indent"]


class Fault(NamedTuple):
    """One error: what it says, and where it was, newest frame first."""

    head: str
    frames: list[Frame]


class Report(NamedTuple):
    """An error with its causes, newest first, and the lines it was read from."""

    faults: list[Fault]
    begin: int
    end: int

    def told(self) -> Report:
        """Return the report with the frames that count.

        Those of the system count where no part of the report has others.
        """
        ours = any(not frame.system for fault in self.faults for frame in fault.frames)
        told = [Fault(head, frames.telling(found, ours=ours)) for head, found in self.faults]
        return self._replace(faults=_without_repeats(told))


def filled(texts: Sequence[str], at: int) -> int | None:
    """Return the first line from `at` on that is not empty."""
    return next((line for line in range(at, len(texts)) if texts[line]), None)


def indent(text: str) -> int:
    """Return how many white characters a line begins with."""
    return len(text) - len(text.lstrip())


def _without_repeats(faults: list[Fault]) -> list[Fault]:
    """Leave out what says nothing, and a cause that only says again what was said."""
    seen: set[str] = set()
    kept = []
    for fault in faults:
        if (fault.head or fault.frames) and fault.head not in seen:
            kept.append(fault)
            seen.update(filter(None, (fault.head,)))
    return kept
