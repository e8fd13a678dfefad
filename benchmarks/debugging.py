"""Run `python -m benchmarks.debugging`: ranking fixes at 100,000 incidents and 300,000 outcomes.

Incidents have one solution and, on average, three outcomes each. Queries are errors of incidents
that are there, with other values in them. The same queries are then asked after twice as many
outcomes were recorded elsewhere: the time must not follow their number.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

import stratagem
from benchmarks import texts
from stratagem.debugging import kinds
from stratagem.debugging.signatures import signature_fields
from stratagem.engine.events import Draft
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.views import find_branch

__all__ = ["PROMISED_MS", "measured"]

_ENV: Final = {"os": "linux", "python": "3.12"}
_BUCKET: Final = "linux|py3"
_BATCH: Final = 500
PROMISED_MS: Final = 15.0

Watched = Callable[[Sequence[int], str], Iterable[int]]


def main() -> int:
    """Fill a database, measure, and print; 0 when the promise was kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.debugging", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="incidents; outcomes × 3")
    size = parser.parse_args().size
    table = Table(title=f"ranked_solutions at {size:,} incidents")
    for column in ("outcomes", "p50 ms", "p95 ms", "promise"):
        table.add_column(column, justify="right")
    first, second = measured(size, lambda numbers, words: track(numbers, description=words))
    for outcomes, times in ((3 * size, first), (6 * size, second)):
        table.add_row(
            f"{outcomes:,}",
            f"{median(times):.1f}",
            f"{sorted(times)[int(0.95 * len(times))]:.1f}",
            f"{PROMISED_MS:g}",
        )
    Console().print(table)
    return 0 if median(first) <= PROMISED_MS else 1


def measured(
    size: int, watched: Watched = lambda numbers, _words: numbers
) -> tuple[list[float], list[float]]:
    """Return milliseconds of lookups, before and after as many outcomes more came in elsewhere."""
    entries = [text for _, text in texts.entries(size)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "debugging.db")
        with stratagem.open(path, durability="fast") as db:
            assert db.runtime.foundation.index.embedder is not None
            db.runtime.foundation.index.embedder.load()
            _fill(db, entries, watched)
            first = _measure(db, entries, size)
            _more_outcomes(db, size, watched)
            return first, _measure(db, entries, size)


def _fill(db: stratagem.Stratagem, entries: list[str], watched: Watched) -> None:
    draw = random.Random(1)
    for begin in watched(range(0, len(entries), _BATCH), "incidents"):
        drafts: list[Draft] = []
        for number in range(begin, min(begin + _BATCH, len(entries))):
            drafts += _incident(number, entries[number])
            drafts += [_outcome(number, draw.random() < 0.6, attempt) for attempt in range(3)]
        _append(db, drafts)


def _more_outcomes(db: stratagem.Stratagem, size: int, watched: Watched) -> None:
    for begin in watched(range(0, 3 * size, 4 * _BATCH), "outcomes elsewhere"):
        numbers = range(begin, min(begin + 4 * _BATCH, 3 * size))
        # On every hundredth incident only: those are not asked about.
        _append(
            db,
            [
                _outcome(number % size // 100 * 100, number % 2 == 0, 3 + number)
                for number in numbers
            ],
        )


def _measure(db: stratagem.Stratagem, entries: list[str], size: int) -> list[float]:
    draw, times = random.Random(2), []
    for number in [draw.randrange(size // 100) * 100 + 1 for _ in range(100)]:
        query = f"{_error(number, entries[number])} at 10:0{number % 10}:00"
        begin = perf_counter()
        db.debugging.ranked_solutions(query, _ENV)
        times.append(1_000 * (perf_counter() - begin))
    return times


def _error(number: int, text: str) -> str:
    return f"ValueError: {' '.join(text.split()[:8])} failed with code {number}"


def _incident(number: int, text: str) -> list[Draft]:
    signature = _error(number, text)
    incident: dict[str, Any] = {
        "incident_id": f"inc_{number}",
        "title": " ".join(text.split()[:8]),
        "error_signature": signature,
        **signature_fields(signature, signature),
        "summary": text,
    }
    steps = [f"restart the {text[:12]}"]
    solution: dict[str, Any] = {
        "solution_id": f"sol_{number}",
        "incident_id": f"inc_{number}",
        "steps": steps,
        "env": _ENV,
        "env_bucket": _BUCKET,
    }
    return [
        Draft(kinds.INCIDENT_ADDED, incident, kinds.INCIDENTS, f"inc_{number}"),
        Draft(kinds.SOLUTION_ADDED, solution, kinds.SOLUTIONS, f"sol_{number}"),
    ]


def _outcome(number: int, worked: bool, attempt: int) -> Draft:  # noqa: FBT001 -- yes or no
    content = {
        "outcome_id": f"out_{number}_{attempt}",
        "solution_id": f"sol_{number}",
        "incident_id": f"inc_{number}",
        "worked": worked,
        "env": _ENV,
        "env_bucket": _BUCKET,
    }
    kind = kinds.FIX_WORKED if worked else kinds.FIX_FAILED
    return Draft(kind, content, kinds.outcomes(worked=worked))


def _append(db: stratagem.Stratagem, drafts: list[Draft]) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append(find_branch(transaction.branches, "default"), drafts)

    db.runtime.foundation.store.write(work, WriteRequest("benchmarks"))


if __name__ == "__main__":
    raise SystemExit(main())
