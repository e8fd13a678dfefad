"""Measuring two ways of doing the same work so that noise hits both.

The two take turns, round by round, and each round begins with the other one. A figure is the
median over the rounds, and a ratio is one of medians. Processor time is taken beside: on a busy
machine, where whoever takes longer is interrupted more often, its ratio is the truer one.
"""

from __future__ import annotations

import cProfile
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import TypeVar

__all__ = ["Clock", "Pair", "Times"]

T = TypeVar("T")
Operation = Callable[[T], object]


@dataclass(slots=True)
class Times:
    """Seconds per operation, by the clock and of the processor, for each round."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The one in the middle."""
        return median(self.seconds)

    @property
    def p95(self) -> float:
        """What nineteen of twenty stay below."""
        return quantiles(self.seconds, n=20)[-1] if len(self.seconds) > 1 else self.seconds[0]


@dataclass(slots=True)
class Pair:
    """The times of both ways."""

    ours: Times = field(default_factory=Times)
    plain: Times = field(default_factory=Times)

    @property
    def ratio(self) -> float:
        """How many times as long ours takes."""
        return self.ours.median / self.plain.median

    @property
    def cpu_ratio(self) -> float:
        """How many times as much of the processor ours takes."""
        return median(self.ours.cpu_seconds) / median(self.plain.cpu_seconds)


class Clock:
    """Takes times; with a profiler, also where ours goes."""

    def __init__(self, profiler: cProfile.Profile | None = None) -> None:
        self._profiler = profiler

    def ours(self, operation: Operation[T], items: Sequence[T], into: Times) -> None:
        """Time our way of doing an operation for each item."""
        if self._profiler is not None:
            self._profiler.enable()
        try:
            _timed(operation, items, into)
        finally:
            if self._profiler is not None:
                self._profiler.disable()

    def plain(self, operation: Operation[T], items: Sequence[T], into: Times) -> None:
        """Time the yardstick's way."""
        _timed(operation, items, into)

    def alternate(
        self, ours: Operation[T], plain: Operation[T], rounds: Sequence[Sequence[T]]
    ) -> Pair:
        """Let the two take turns on the items of each round; the first round warms up."""
        gc.collect()
        pair = Pair()
        for turn, items in enumerate(rounds):
            into = pair if turn else Pair()
            if turn % 2:
                self.plain(plain, items, into.plain)
            self.ours(ours, items, into.ours)
            if not turn % 2:
                self.plain(plain, items, into.plain)
        return pair

    def each(self, ours: Operation[T], plain: Operation[T], items: Sequence[T]) -> Pair:
        """Let the two take turns on each item: one time for each."""
        pair = Pair()
        for item in items:
            self.ours(ours, (item,), pair.ours)
            self.plain(plain, (item,), pair.plain)
        return pair


def _timed(operation: Operation[T], items: Sequence[T], into: Times) -> None:
    begin, cpu_begin = perf_counter(), process_time()
    for item in items:
        operation(item)
    into.seconds.append((perf_counter() - begin) / len(items))
    into.cpu_seconds.append((process_time() - cpu_begin) / len(items))
