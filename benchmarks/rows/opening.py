"""Opening a large database, and what one takes in memory, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

import orjson

from benchmarks import texts
from benchmarks.bench import Bench, Row
from benchmarks.datasets import Dataset
from benchmarks.results import Figure, seconds

__all__ = ["MEMORY", "OPEN"]

_OPEN_SECONDS: Final = 0.3
_MEMORY_MB: Final = 350
_BRANCHES: Final = 100
_ROOT: Final = Path(__file__).parents[2]


def first_recall(bench: Bench) -> Iterator[Figure]:
    """Open in a fresh process and recall one entry."""
    for size in bench.sizes(1_000_000):
        dataset = bench.datasets.get(size, embedded=False)
        with dataset.ours() as db:
            for number in range(len(db.memory.branches().results), _BRANCHES):
                db.memory.fork(f"one-of-many-{number}")
        ours, plain = _taking_turns(dataset, bench.rounds(9))
        opened, imported = (median(each[name] for each in ours) for name in ("open", "import"))
        bare = median(each["open"] for each in plain)
        yield Figure(
            "open",
            f"{_BRANCHES} branches, to the first recall",
            size,
            opened,
            "s",
            bare,
            "< 300 ms",
            passed=opened < _OPEN_SECONDS,
            note=f"a fresh process, lexical only; imports take {seconds(imported)} before",
        )


def _taking_turns(
    dataset: Dataset, rounds: int
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    turns = [(_child("open", dataset), _child("open-plain", dataset)) for _ in range(rounds)]
    return [ours for ours, _ in turns], [plain for _, plain in turns]


def at_rest(bench: Bench) -> Iterator[Figure]:
    """Open in a fresh process, search once and look at what is resident."""
    for size in bench.sizes(100_000):
        dataset = bench.datasets.get(size, embedded=True)
        ours = _child("memory", dataset)["megabytes"]
        plain = _child("memory-plain", dataset)["megabytes"]
        yield Figure(
            "memory",
            "at rest, after a search",
            size,
            ours,
            "MB",
            plain,
            f"< {_MEMORY_MB} MB",
            passed=ours < _MEMORY_MB,
            note="RSS of a process, shared mappings counted",
        )


def _child(job: str, dataset: Dataset) -> dict[str, float]:
    """Run a job of `benchmarks.child` and return what it measured."""
    arguments = [job, str(dataset.ours_path), str(dataset.plain_path), texts.key_of(7)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", *arguments],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    measured: dict[str, float] = orjson.loads(done.stdout)
    return measured


OPEN: Final = Row("open", "a large database, to the first answer", first_recall)
MEMORY: Final = Row("memory", "what an open database keeps resident", at_rest)
