"""What a correction is made of.

A *change* is one step at one place. A *candidate* is a set of changes after which the schema
accepts the arguments. A *correction* is the answer to one call: what was wrong, the arguments to
run with (or none), everything that could be offered, and where the caller has to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

__all__ = [
    "AMBIGUOUS_SHARE",
    "Candidate",
    "Choice",
    "Correction",
    "CorrectionStep",
    "Fault",
    "FaultType",
    "Risk",
    "Strategy",
]

# What is left of a confidence that another reading competes with.
AMBIGUOUS_SHARE: Final = 0.5


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
    """What could go wrong: nothing is lost, something is moved, something is guessed."""

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
