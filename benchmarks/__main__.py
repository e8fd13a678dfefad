"""Run `python -m benchmarks`: every promise about speed, measured beside plain SQLite."""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from rich.console import Console
from rich.progress import Progress

from benchmarks import beside, results, simulation
from benchmarks.bench import Bench
from benchmarks.datasets import Datasets
from benchmarks.measuring import Clock
from benchmarks.results import Figure
from benchmarks.rows import ROWS

_PROFILED: Final = 25
_WIDTH: Final = 120


def main(arguments: list[str] | None = None) -> int:
    """Measure the rows asked for; 0 when no promise was missed."""
    given = _parser().parse_args(arguments)
    names = [given.profile] if given.profile else given.only or list(ROWS)
    profiler = cProfile.Profile() if given.profile else None
    # The rows have imported every surface. Collecting garbage would walk all of that in the middle
    # of what is measured, for as long as a thousand writes take.
    gc.freeze()
    console = _console()
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    with progress, Datasets(progress) as datasets:
        bench = Bench(datasets, Clock(profiler), given.quick, tuple(given.size or ()))
        figures = _measure(progress, bench, names)
        if profiler is None:
            figures = beside.added(figures, datasets.folder)
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(_PROFILED)
        return 0
    console.print(results.report(figures))
    if not given.only:
        for shown in simulation.tables(simulation.run()):
            console.print(shown)
        console.print(f"Kept in {results.save(figures)}", soft_wrap=True)
    return 1 if any(figure.passed is False for figure in figures) else 0


def _measure(progress: Progress, bench: Bench, names: Sequence[str]) -> list[Figure]:
    figures: list[Figure] = []
    task = progress.add_task("measuring", total=len(names))
    for name in names:
        row = ROWS[name]
        progress.update(task, description=f"{row.name}: {row.about}")
        begin = perf_counter()
        figures += row.run(bench)
        took = perf_counter() - begin
        progress.console.print(f"[dim]{row.name}: {row.about} ({took:.0f} s)[/dim]")
        progress.advance(task)
    return figures


def _console() -> Console:
    """Return where to print; a file or a pipe has no width of its own."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 entries and fewer rounds")
    parser.add_argument("--size", type=int, nargs="+", help="measure at these sizes only")
    parser.add_argument("--only", choices=list(ROWS), nargs="+", help="measure these rows only")
    parser.add_argument(
        "--profile", choices=list(ROWS), metavar="ROW", help="show where the time of a row goes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
