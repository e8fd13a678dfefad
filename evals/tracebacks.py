"""Do errors of one cause get one signature, and errors of two causes two?

Every traceback is given its signature. Two variants of one cause agree when their signatures are
the same; two causes collide when any of theirs are. Run alone with `python -m evals.tracebacks`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import orjson
from rich.console import Console
from rich.table import Table

from evals.suites import Figure, Options, Outcome, Suite, need
from stratagem.debugging.signatures import signature

__all__ = ["SUITE"]

AGREEMENT_MIN: Final = 97.0
# No two causes may share a signature.
APART_MIN: Final = 100.0

_DATA: Final = Path(__file__).resolve().parents[1] / ".." / "shared" / "evals"

Groups = dict[str, list[str]]


def run(options: Options) -> Outcome:
    """Sign every traceback and compare all pairs."""
    groups = _read(options.data)
    alike = [one == other for group in groups.values() for one, other in combinations(group, 2)]
    collisions = list(_collisions(groups))
    apart = [not names for names in collisions]
    return Outcome(
        figures=[
            Figure("pairs of one cause with one signature, %", _percent(alike), AGREEMENT_MIN),
            Figure("pairs of two causes with two, %", _percent(apart), APART_MIN),
        ],
        tables=[_table(groups)],
        notes=[f"{one} and {other} share a signature" for one, other in filter(None, collisions)],
    )


def _read(data: Path) -> Groups:
    path = need(data / "incidents" / "tracebacks_dev.jsonl")
    groups: Groups = defaultdict(list)
    for line in path.read_bytes().splitlines():
        row = orjson.loads(line)
        groups[row["group"]].append(signature(row["text"]))
    return dict(groups)


def _collisions(groups: Groups) -> Iterator[tuple[str, str] | None]:
    """Yield for each pair of causes their names if they share a signature, else nothing."""
    for one, other in combinations(groups, 2):
        yield None if set(groups[one]).isdisjoint(groups[other]) else (one, other)


def _percent(holds: list[bool]) -> float:
    return 100 * sum(holds) / max(len(holds), 1)


def _table(groups: Groups) -> Table:
    table = Table("cause", "variants", "signatures", "the first of them")
    for name, signed in sorted(groups.items()):
        first = signed[0].partition("\n")[0]
        table.add_row(name, str(len(signed)), str(len(set(signed))), first.replace("[", "\\["))
    return table


SUITE: Final = Suite("tracebacks", "one signature for each cause, and no other", run)


def main() -> int:
    """Run this suite alone; 0 when it passed."""
    outcome = run(Options(data=_DATA.resolve()))
    console = Console(width=140)
    for shown in (*outcome.tables, *outcome.notes):
        console.print(shown)
    for figure in outcome.figures:
        console.print(f"{figure.name}: {figure.value:.1f}")
    return 0 if outcome.passed else 1


if __name__ == "__main__":
    sys.exit(main())
