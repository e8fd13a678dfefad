"""The progress of work that is made of parts: a batch of its calls, a pipeline of its steps."""

from __future__ import annotations

from stratagem.gateway.calls.work import WorkItem
from stratagem.gateway.definitions.contract import ProgressReport

__all__ = ["ProgressOfParts"]


class ProgressOfParts:
    """Reports how much of the whole is done; each part counts alike."""

    def __init__(self, count: int, item: WorkItem, report: ProgressReport) -> None:
        self._done = [0.0] * count
        self._item = item
        self._report = report

    def part(self, number: int) -> ProgressReport:
        """Return what a part reports its own progress to."""

        def report(fraction: float | None, message: str | None) -> None:
            if fraction is not None:
                self._done[number] = max(self._done[number], fraction)
            self._tell(message)

        return report

    def begin_part(self, number: int, message: str) -> None:
        """Note that a part begins, and that all before it have ended."""
        self._done[:number] = [1.0] * number
        self._tell(message)

    def end_part(self, number: int, message: str) -> None:
        """Note that a part has ended."""
        self._done[number] = 1.0
        self._tell(message)

    def _tell(self, message: str | None) -> None:
        fraction = sum(self._done) / len(self._done)
        self._item.percentage, self._item.message = round(100 * fraction, 1), message
        self._report(fraction, message)
