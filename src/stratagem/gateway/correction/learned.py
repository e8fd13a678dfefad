"""What successful calls of a tool have taught, as the correction sees it.

The engine of corrections keeps nothing. Whoever keeps patterns hands them in behind this
protocol. A hint says what a form turned out to mean, and how often that held; it names things
of the schema (a parameter, an allowed value) or a way of writing, never a caller's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from stratagem.engine.evidence import Belief

__all__ = ["CERTAIN_LOW_MIN", "Hint", "HintKind", "Learned", "Nothing"]

# A meaning is certain when even the cautious end of the belief (it errs once in twenty) lies
# this high: about nine successes without a failure.
CERTAIN_LOW_MIN: Final = 0.75


class HintKind(StrEnum):
    """What a hint is about, with its form and its meaning."""

    # A name that the schema lacks → the parameter that was meant.
    ALIAS = "alias"
    # A text (in lower case) that an enum lacks → the allowed value that was meant.
    CHOICE = "choice"
    # A separator → "split" when text with it was a list, "whole" when it was one element.
    LIST = "list"
    # "day/month" → "dayFirst" or "monthFirst".
    DATE_ORDER = "dateOrder"


class Hint(NamedTuple):
    """One meaning of a form, and the belief in it."""

    meaning: Any
    belief: Belief

    @property
    def certain(self) -> bool:
        """Whether the evidence is strong enough to act upon unasked."""
        return self.belief.low >= CERTAIN_LOW_MIN


class Learned(Protocol):
    """What the patterns of one tool know."""

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        """Return what a form at a place turned out to mean, the most believed first.

        The path is that of the object that has the name, or of the value that has the form,
        with `[*]` for any element of a list.
        """
        ...


class Nothing:
    """The patterns of a tool that was never called."""

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        """Return nothing."""
        del kind, path, form
        return ()
