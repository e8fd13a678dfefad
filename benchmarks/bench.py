"""What a row of the benchmark is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.datasets import Datasets
from benchmarks.measuring import Clock
from benchmarks.results import Figure

__all__ = ["Bench", "Row"]


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: its datasets, its clock and how thorough it is."""

    datasets: Datasets
    clock: Clock
    quick: bool
    asked_sizes: tuple[int, ...]

    def sizes(self, *usual: int) -> tuple[int, ...]:
        """Return the sizes to measure at: those asked for, or the usual ones."""
        return self.asked_sizes or ((10_000,) if self.quick else usual)

    def rounds(self, usual: int) -> int:
        """Return how often to repeat."""
        return max(3, usual // 3) if self.quick else usual


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of work that something is promised about."""

    name: str
    about: str
    run: Callable[[Bench], Iterator[Figure]]
