"""One attempt to find out what a call meant.

An attempt walks through the schema and the value together. A value that the validator accepts is
left unchanged. Otherwise every form that the value may stand for is tried, and forms may be nested:
JSON in text, a list in it, text in the list that should be numbers. Every form that is kept was
accepted by the validator of its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from stratagem import limits
from stratagem.engine.paths import Steps, render
from stratagem.gateway.correction import objects, shapes
from stratagem.gateway.correction.model import Choice, CorrectionStep, Hint, HintKind, Learned
from stratagem.gateway.correction.open_names import is_misnamed
from stratagem.gateway.correction.patterns import PATTERNS
from stratagem.gateway.correction.policy import Policy
from stratagem.gateway.correction.readings import (
    Reading,
    combine_slots,
    confidence,
    distinct,
    identity,
    lower_certainty,
)
from stratagem.gateway.correction.schemas import Node

__all__ = ["Attempt", "Exhausted", "IsLate", "Late"]

# Whether the time for a correction is over.
IsLate = Callable[[], bool]


# What making a validator costs, in steps.
_BRANCH_STEPS: Final = 5


class Exhausted(Exception):
    """The call would take too long to look into."""


class Late(Exhausted):
    """The time is over in which the call was to be looked into."""


def _never() -> bool:
    return False


class Attempt:
    """The state of correcting one call: its policy, the lessons, and the remaining work."""

    def __init__(
        self,
        policy: Policy,
        learned: Learned,
        tool: str | None,
        is_late: IsLate = _never,
    ) -> None:
        self.policy = policy
        self.tool = tool
        self.choices: dict[str, Choice] = {}
        # The call as it was written, when it came as text.
        self.written = ""
        self._learned = learned
        self._left = limits.CORRECTION_STEPS_MAX
        self._is_late = is_late

    def spend(self, steps: int = 1) -> None:
        """Count work done.

        Raises:
            Exhausted: There is no more to spend, or no time left to do it in.
        """
        self._left -= steps
        if self._left < 0:
            raise Exhausted
        if self._is_late():
            raise Late

    def change(
        self, pattern: str, steps: Steps, before: Any, after: Any, *, detail: str = ""
    ) -> CorrectionStep | None:
        """Return a change, or None when the policy does not use its strategy."""
        known = PATTERNS[pattern]
        if not self.policy.uses(known.strategy):
            return None
        path = render(steps)
        return CorrectionStep(
            path=path,
            strategy=known.strategy,
            pattern=pattern,
            before=before,
            after=after,
            confidence=known.confidence,
            risk=known.risk,
            certain=known.certain,
            reasoning=f"{path}{detail}: {known.reasoning}",
        )

    def ask(self, steps: Steps, question: str, options: Iterable[Any]) -> None:
        """Note that the caller has to choose; the innermost place says it best."""
        path = render(steps)
        if not any(known.startswith(path) for known in self.choices):
            self.choices[path] = Choice(path, question, tuple(options))

    def hints(self, kind: HintKind, steps: Steps, form: str) -> list[Hint]:
        """Return what was learned about a form at a place."""
        place = "".join("[*]" if isinstance(step, int) else f".{step}" for step in steps)
        return list(self._learned.hints(kind, f"${place}", form))

    def read(self, node: Node, value: Any, steps: Steps, chain: int = 0) -> list[Reading]:
        """Return what a value may mean at a place, best first; nothing when it fits in no way."""
        self.spend()
        accepted = node.accepts(value)
        if accepted and not is_misnamed(node, value):
            return [Reading(value)]
        if chain > limits.CORRECTION_CHAIN_MAX or len(steps) > limits.VALUE_DEPTH_MAX:
            return []
        found = [
            reading
            for reading in self._forms(node, value, steps, chain)
            if node.accepts(reading.value)
        ]
        # What is valid and cannot be read in another way is what it is.
        return self.rank_readings(found or ([Reading(value)] if accepted else []), steps)

    def rank_readings(self, found: Iterable[Reading], steps: Steps) -> list[Reading]:
        """Return readings best first, none of them certain when two certain ones differ."""
        readings = _without_detours(distinct(found))
        certain = [reading for reading in readings if reading.certain]
        if len(certain) > 1:
            self.ask(steps, "Which of these is meant?", [one.value for one in certain])
            readings = [lower_certainty(one) if one.certain else one for one in readings]
            readings.sort(key=lambda one: -confidence(one.changes))
        elif not certain and len(readings) > 1:
            self.ask(steps, "Which of these is meant?", [one.value for one in readings])
        return readings[: limits.CORRECTION_CANDIDATES_MAX]

    def _forms(self, node: Node, value: Any, steps: Steps, chain: int) -> Iterator[Reading]:
        if node.branches:
            # Each has a validator of its own, made when it is first asked.
            self.spend(_BRANCH_STEPS * len(node.branches))
            for branch in shapes.likely_branches(node.branches, value):
                yield from self.read(branch, value, steps, chain)
            return
        if isinstance(value, dict) and "object" in node.types:
            yield from objects.readings(self, node, value, steps, chain)
        elif isinstance(value, list) and "array" in node.types:
            yield from self._elements(node, value, steps)
        for pattern, form in shapes.forms(self, node, value, steps):
            yield from self.read_form(pattern, node, (value, form), steps, chain)

    def read_form(
        self, pattern: str, node: Node, forms: tuple[Any, Any], steps: Steps, chain: int
    ) -> Iterator[Reading]:
        """Yield the readings of a form that a value was turned into."""
        before, after = forms
        change = self.change(pattern, steps, before, after)
        if change is None:
            return
        for reading in self.read(node, after, steps, chain + 1):
            yield Reading(reading.value, (change, *reading.changes))

    def _elements(self, node: Node, value: list[Any], steps: Steps) -> Iterator[Reading]:
        slots = []
        for index, item in enumerate(value):
            readings = self.read(node.element(index), item, (*steps, index))
            if not readings:
                return
            slots.append(readings)
        for values, changes in combine_slots(slots):
            yield Reading(values, changes)


def _without_detours(readings: list[Reading]) -> list[Reading]:
    """Leave out certain readings that only continue another one that already fits.

    These are the list of a value where the tool takes the value itself, and further conversions of
    a value that fits.
    """
    certain = [reading for reading in readings if reading.certain]
    return [one for one in readings if not (one.certain and any(_beyond(one, o) for o in certain))]


def _beyond(one: Reading, other: Reading) -> bool:
    if identity(one.value) == identity([other.value]):
        return True
    steps = [(change.path, change.pattern) for change in other.changes]
    further = [(change.path, change.pattern) for change in one.changes]
    return len(steps) < len(further) and bool(steps) and further[: len(steps)] == steps
