"""The types of a correction.

A *change* is one step at one place. A *candidate* is a set of changes after which the schema
accepts the arguments. A *correction* is the answer to one call: what was wrong, the arguments to
run with (or none), everything that could be offered, and where the caller has to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.evidence import Belief

__all__ = [
    "AMBIGUOUS_SHARE",
    "CERTAIN_LOW_MIN",
    "Candidate",
    "Choice",
    "Correction",
    "CorrectionStep",
    "Fault",
    "FaultType",
    "Hint",
    "HintKind",
    "Learned",
    "Nothing",
    "Risk",
    "Strategy",
    "tip",
    "tips",
]

# What is left of a confidence that another reading competes with.
AMBIGUOUS_SHARE: Final = 0.5
_TIPS: Final[Mapping[str, str]] = {
    "typeMismatch": "Give each value in the type that the schema names.",
    "missingRequired": "Give every parameter that the schema requires; tool_help lists them.",
    "unknownProperties": "Use the names of the schema; tool_help lists them.",
    "enumViolation": "Use one of the values that the schema lists, as it is written.",
    "constraintViolation": "Keep within the bounds that the schema sets.",
    "formatViolation": "Write dates and addresses in the format that the schema names.",
    "noMatchingForm": "Choose one of the forms that the schema allows, and fill it completely.",
    "malformedJson": "Send the arguments as one JSON object.",
    "limitExceeded": "Send less in one call.",
    "timeout": "Give the call more time, or ask for less at once.",
    "rateLimited": "Wait before the next call.",
    "permissionDenied": "Ask the operator of the server for the permission.",
    "notFound": "Check that what the arguments name exists.",
}
# A meaning is certain when the 5 % quantile of its belief is this high: about nine successes
# without a failure.
CERTAIN_LOW_MIN: Final = 0.75


class Strategy(StrEnum):
    """The eight ways to correct a call."""

    TYPE_CONVERSION = "typeConversion"
    MISSING_PARAMETERS = "missingParameters"
    UNKNOWN_PROPERTIES = "unknownProperties"
    ENUM_VARIANTS = "enumVariants"
    WRAPPERS = "wrappers"
    LIST_SHAPES = "listShapes"
    CONSTRAINTS = "constraints"
    FORMATS = "formats"


class Risk(StrEnum):
    """The risk of a change: nothing is lost, something is moved, or something is guessed."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Its place in the order from low to high."""
        return ("low", "medium", "high").index(self.value)


class FaultType(StrEnum):
    """What can be wrong with arguments."""

    TYPE_MISMATCH = "typeMismatch"
    MISSING_REQUIRED = "missingRequired"
    UNKNOWN_PROPERTIES = "unknownProperties"
    ENUM_VIOLATION = "enumViolation"
    CONSTRAINT_VIOLATION = "constraintViolation"
    FORMAT_VIOLATION = "formatViolation"
    NO_MATCHING_FORM = "noMatchingForm"
    MALFORMED_JSON = "malformedJson"
    LIMIT_EXCEEDED = "limitExceeded"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where."""

    type: FaultType
    path: str
    message: str
    # The properties that are missing or unknown, or the values that would be allowed.
    names: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class CorrectionStep:
    """One step of a correction.

    `certain` says that this is the only reasonable reading and that nothing is lost by it.
    """

    path: str
    strategy: Strategy
    pattern: str
    before: Any
    after: Any
    confidence: float
    risk: Risk
    certain: bool
    reasoning: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Arguments that the schema accepts, and the changes that led to them."""

    arguments: dict[str, Any]
    changes: tuple[CorrectionStep, ...]
    confidence: float

    @property
    def leading(self) -> CorrectionStep:
        """The change that decides: the least certain one."""
        return min(self.changes, key=lambda change: change.confidence)

    @property
    def strategy(self) -> Strategy:
        """The strategy of the change that decides."""
        return self.leading.strategy

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Every strategy that took part, in the order of the changes."""
        return tuple(dict.fromkeys(change.strategy for change in self.changes))

    @property
    def pattern(self) -> str:
        """The pattern of the change that decides."""
        return self.leading.pattern

    @property
    def patterns(self) -> tuple[str, ...]:
        """Every pattern applied, in the order of the changes."""
        return tuple(dict.fromkeys(change.pattern for change in self.changes))

    @property
    def risk(self) -> Risk:
        """The highest risk of any change."""
        return max((change.risk for change in self.changes), key=lambda risk: risk.rank)

    @property
    def certain(self) -> bool:
        """Whether every change is."""
        return all(change.certain for change in self.changes)

    @property
    def reasoning(self) -> str:
        """Say in words what was done and why."""
        return " ".join(dict.fromkeys(change.reasoning for change in self.changes))


@dataclass(frozen=True, slots=True)
class Choice:
    """A place where the caller has to say what was meant."""

    path: str
    question: str
    options: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """The answer to one call.

    `applied` are the arguments to run with, or None when the call is refused. Valid arguments
    are handed back as they came. `withheld` says why a certain correction was only offered.
    """

    applied: dict[str, Any] | None
    candidates: tuple[Candidate, ...] = ()
    errors: tuple[Fault, ...] = ()
    ambiguous: tuple[Choice, ...] = ()
    withheld: str | None = None
    # Whether it was given up because its time was over: more time might tell more.
    late: bool = False

    @property
    def valid(self) -> bool:
        """Whether nothing was wrong."""
        return self.applied is not None and not self.errors

    @property
    def corrected(self) -> bool:
        """Whether the arguments to run with differ from the ones given."""
        return self.applied is not None and bool(self.errors)

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was applied."""
        return self.candidates[0] if self.corrected else None


def tip(error_type: str) -> str:
    """Return what avoids errors of a type."""
    return _TIPS.get(error_type, "Read the tool's schema before calling it.")


def tips(error_types: Iterable[str]) -> list[str]:
    """Return what avoids errors of some types, each tip once and only where there is one."""
    return list(dict.fromkeys(_TIPS[each] for each in error_types if each in _TIPS))


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
    """One meaning of a form, and the belief in it: how often it held.

    It names things of the schema (a parameter, an allowed value) or a way of writing, never a
    caller's value.
    """

    meaning: Any
    belief: Belief

    @property
    def certain(self) -> bool:
        """Whether the evidence is strong enough to act upon unasked."""
        return self.belief.low >= CERTAIN_LOW_MIN


class Learned(Protocol):
    """What successful calls of one tool have taught, as the correction sees it.

    The correction has no state of its own: lessons are passed in through this protocol.
    """

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
