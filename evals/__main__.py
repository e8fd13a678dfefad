"""Run `python -m evals` for every suite, or `python -m evals recall` for one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from evals import (
    answers,
    concepts,
    debug,
    entries,
    incidents,
    injection,
    recall,
    repair,
    text_tools,
    tools,
    tracebacks,
    vectors,
)
from evals.suites import DataMissing, Options, Outcome, Suite

SUITES: Final[dict[str, Suite]] = {
    suite.name: suite
    for suite in (
        recall.SUITE,
        entries.SUITE,
        concepts.SUITE,
        answers.SUITE,
        incidents.SUITE,
        debug.SUITE,
        tracebacks.SUITE,
        vectors.SUITE,
        injection.SUITE,
        repair.SUITE,
        tools.SUITE,
        text_tools.SUITE,
    )
}

_WIDTH: Final = 120
_DATA: Final = Path(__file__).resolve().parents[1] / ".." / "shared" / "evals"


def main(arguments: list[str] | None = None) -> int:
    """Run the suites asked for; 0 when all of them passed."""
    parser = _parser()
    given = parser.parse_args(arguments)
    unknown = [name for name in given.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    options = Options(
        data=given.data.resolve(),
        form=given.form,
        compare=given.compare,
        size=given.size,
        png=given.png,
        half=given.half,
        save=given.save,
        against=given.against,
        embedder=given.embedder,
    )
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width of its own.
        console = Console(width=_WIDTH)
    failed = False
    for name in given.suites or SUITES:
        suite = SUITES[name]
        console.print(f"\n[bold]{suite.name}[/bold]: {suite.about}\n")
        try:
            outcome = suite.run(options)
        except DataMissing as error:
            console.print(f"[red]{error}[/red]", soft_wrap=True)
            return 2
        failed |= not outcome.passed
        _show(console, outcome)
    return 1 if failed else 0


def _show(console: Console, outcome: Outcome) -> None:
    for table in outcome.tables:
        console.print(table)
    for note in outcome.notes:
        console.print(note)
    for figure in outcome.figures:
        wanted = f" ({figure.wanted})" if figure.wanted else ""
        verdict = "[green]passed[/green]" if figure.passed else "[red]missed[/red]"
        console.print(f"{figure.name}: [bold]{figure.value:.1f}[/bold]{wanted} {verdict}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    names = ", ".join(SUITES)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {names}; else all")
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of the evaluation data")
    parser.add_argument(
        "--form",
        choices=list(recall.FORMS),
        default="message",
        help="recall: how a message is handed over",
    )
    parser.add_argument("--compare", action="store_true", help="recall: compare all forms")
    parser.add_argument("--size", type=int, default=100_000, help="vectors: how many texts")
    parser.add_argument("--png", type=Path, help="repair: where to write the reliability diagram")
    parser.add_argument(
        "--half",
        choices=["report", "tuning"],
        default="report",
        help="tools, entries, concepts, injection: which half; numbers were chosen on the tuning "
        "half",
    )
    parser.add_argument("--save", type=Path, help="tools: where to write the ranks")
    parser.add_argument("--against", type=Path, help="tools: ranks to compare with")
    parser.add_argument("--embedder", default="static", help="tools: which embedder to use")
    return parser


if __name__ == "__main__":
    sys.exit(main())
