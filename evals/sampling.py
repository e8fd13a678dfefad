"""How sure a figure is, by drawing the questions again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

__all__ = ["Interval", "difference", "interval"]

_DRAWS: Final = 10_000
_SEED: Final = 1


class Interval(NamedTuple):
    """A mean, and where 95 of 100 redrawn means lie."""

    mean: float
    low: float
    high: float


def interval(scores: Sequence[float]) -> Interval:
    """Return the mean of some scores and its interval."""
    values = np.asarray(scores, np.float64)
    rng = np.random.default_rng(_SEED)
    # Drawing n of n with repeats is the same as giving each a count that adds up to n.
    counts = rng.multinomial(len(values), np.full(len(values), 1 / len(values)), _DRAWS)
    means = counts @ values / len(values)
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(float(values.mean()), float(low), float(high))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return by how much one set of scores is above another, question by question."""
    return interval(np.subtract(ours, theirs).tolist())
