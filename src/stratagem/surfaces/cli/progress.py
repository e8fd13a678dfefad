"""Progress of what takes longer than a moment, on stderr.

On a terminal a bar appears once a second has passed; elsewhere a line is printed now and then,
so that a log shows that something is going on. In JSON nothing is shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stratagem.surfaces.cli.output import Output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Reporter", "progress"]

_PATIENCE_SECONDS = 1.0
_BETWEEN_LINES_SECONDS = 10.0


class Reporter:
    """Takes how much is done, how much there is, and what is being done."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._begun = self._said = time.monotonic()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, done: int, total: int, what: str) -> None:
        """Report."""
        now = time.monotonic()
        if self._output.json or now - self._begun < _PATIENCE_SECONDS:
            return
        if self._output.aside.is_terminal:
            self._draw(done, total, what)
        elif done < total and now - self._said >= _BETWEEN_LINES_SECONDS:
            # Of what is done the result tells.
            self._said = now
            self._output.note(f"{what}: {done:,} of {total:,}")

    def close(self) -> None:
        """Take the bars away."""
        if self._bars is not None:
            self._bars.stop()

    def _draw(self, done: int, total: int, what: str) -> None:
        bars = self._bars = self._bars or self._start()
        if what not in self._tasks:
            for task in self._tasks.values():
                bars.update(task, completed=bars.tasks[task].total)
            self._tasks[what] = bars.add_task(what, total=total)
        bars.update(self._tasks[what], completed=done, total=total)

    def _start(self) -> Any:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
        bars = Progress(*columns, console=self._output.aside, transient=True)
        bars.start()
        return bars


@contextmanager
def progress(output: Output) -> Iterator[Reporter]:
    """Show the progress of what the block does."""
    reporter = Reporter(output)
    try:
        yield reporter
    finally:
        reporter.close()
