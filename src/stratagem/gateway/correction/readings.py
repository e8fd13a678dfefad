"""What a value may mean, and how meanings are combined.

A *reading* is a value that fits, with the changes that led to it. A place may have several. Where
one is certain it is taken; where two are certain and differ, neither is, and the caller is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.correction.model import AMBIGUOUS_SHARE, CorrectionStep

__all__ = ["Reading", "combine_slots", "confidence", "distinct", "identity", "lower_certainty"]


class Reading(NamedTuple):
    """A value that fits, and how it came about."""

    value: Any
    changes: tuple[CorrectionStep, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether every change is."""
        return all(change.certain for change in self.changes)


def confidence(changes: Iterable[CorrectionStep]) -> float:
    """Return the probability that all changes are right; certain changes do not lower it."""
    listed = list(changes)
    certain = [change.confidence for change in listed if change.certain]
    return min(certain, default=1.0) * prod(
        change.confidence for change in listed if not change.certain
    )


def identity(value: Any) -> bytes:
    """Return the identity of a value: 1, 1.0 and true are three different ones."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return repr(value).encode("utf-8", "replace")


def distinct(readings: Iterable[Reading]) -> list[Reading]:
    """Return readings of different values, the best of each: certain, then few changes."""
    ranked = sorted(readings, key=_order)
    found: dict[bytes, Reading] = {}
    for reading in ranked:
        found.setdefault(identity(reading.value), reading)
    return list(found.values())


def _order(reading: Reading) -> tuple[bool, int, float]:
    if reading.certain:
        return False, len(reading.changes), 0.0
    return True, 0, -confidence(reading.changes)


def lower_certainty(reading: Reading) -> Reading:
    """Return a reading that another one competes with: it is no longer certain."""
    *before, last = reading.changes
    weaker = CorrectionStep(
        path=last.path,
        strategy=last.strategy,
        pattern=last.pattern,
        before=last.before,
        after=last.after,
        confidence=last.confidence * AMBIGUOUS_SHARE,
        risk=last.risk,
        certain=False,
        reasoning=last.reasoning,
    )
    return reading._replace(changes=(*before, weaker))


def combine_slots(
    slots: Sequence[Sequence[Reading]],
) -> Iterator[tuple[list[Any], tuple[CorrectionStep, ...]]]:
    """Yield the best reading of every slot, then those where one slot takes another reading."""
    if not all(slots):
        return
    best = [slot[0] for slot in slots]
    yield [one.value for one in best], tuple(change for one in best for change in one.changes)
    left = limits.CORRECTION_CANDIDATES_MAX
    for index, slot in enumerate(slots):
        for other in slot[1:]:
            if left == 0:
                return
            left -= 1
            swapped = [*best[:index], other, *best[index + 1 :]]
            yield (
                [one.value for one in swapped],
                tuple(change for one in swapped for change in one.changes),
            )
