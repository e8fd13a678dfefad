"""A call of a service's method as a call of the operation that does the same on a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Self, TypeVar, get_type_hints

from stratagem.deferred_dataclasses import dataclass
from stratagem.parameters import MISSING
from stratagem.schemas import method_schema
from stratagem.sdk.deserialization import deserialize

__all__ = ["MethodCall", "as_method", "is_reading", "reword_note"]

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class _Counterpart:
    """The operation that does what a method does, with arguments that are always the same.

    `part` of its answer is what the method returns.
    """

    operation: str
    fixed: Mapping[str, Any] | None = None
    part: str | None = None


_BRANCH: Final = "strata_branch"
# The methods that have no operation of their own name, by their system.
_COUNTERPARTS: Final[Mapping[tuple[str, str], _Counterpart]] = {
    ("memory", "recall_many"): _Counterpart("strata_recall", part="results"),
    ("memory", "instructions"): _Counterpart("strata_status", part="instructions"),
    ("memory", "time_range"): _Counterpart("strata_history"),
    ("memory", "purge"): _Counterpart("strata_purge", part="erased"),
    ("memory", "erase"): _Counterpart("strata_purge"),
    ("memory", "branches"): _Counterpart(_BRANCH, {"action": "list"}),
    **{
        ("memory", action): _Counterpart(_BRANCH, {"action": action})
        for action in ("create", "delete", "diff", "fork", "merge", "restore", "switch")
    },
    ("debugging", "statistics"): _Counterpart("debugging_statistics"),
}


def reword_note(result: ResultT) -> ResultT:
    """Name methods instead of operations in what a result advises, where it does."""
    note, notices = getattr(result, "note", None), getattr(result, "notices", None)
    if isinstance(note, str):
        result.note = as_method(note)  # type: ignore[attr-defined]
    if isinstance(notices, list):
        result.notices = [as_method(each) for each in notices]  # type: ignore[attr-defined]
    return result


def as_method(hint: str) -> str:
    """Return a hint in which operations are named as methods of the SDK."""
    # Whoever meets no error need not read the whole table.
    from stratagem.call_forms import reword

    return reword(hint, "method")


def is_reading(method: Callable[..., Any]) -> bool:
    """Whether the operation that a method stands for only reads."""
    # As above.
    from stratagem.operations import TABLE

    counterpart = _counterpart_of(method)
    operation = TABLE.get(counterpart.operation)
    return operation is not None and operation.reads(counterpart.fixed or {})


def _counterpart_of(method: Callable[..., Any]) -> _Counterpart:
    system = method.__module__.split(".")[1]
    prefix = "strata_" if system == "memory" else ""
    known = _COUNTERPARTS.get((system, method.__name__))
    return known or _Counterpart(f"{prefix}{method.__name__}")


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a method, ready to be sent."""

    operation: str
    arguments: dict[str, Any]
    returns: Any
    part: str | None

    @classmethod
    def of(cls, method: Callable[..., Any], arguments: Mapping[str, Any]) -> Self:
        """Return the call of a method with arguments."""
        system = method.__module__.split(".")[1]
        declared = method_schema(system, method.__name__)["properties"]
        given = {
            name: value
            for name, value in arguments.items()
            # Where null is the default, None says nothing; elsewhere it is a value.
            if value is not MISSING
            and (value is not None or declared[name].get("default", MISSING) is not None)
        }
        if given.get("env") == "auto":
            # Where it was tried is where this program runs, not where the server does.
            given["env"] = _detect_environment()
        counterpart = _counterpart_of(method)
        return cls(
            counterpart.operation,
            {**(counterpart.fixed or {}), **given},
            _return_type(method),
            counterpart.part,
        )

    def result(self, answer: Any) -> Any:
        """Return what the method returns for an answer."""
        if self.part is not None:
            return deserialize(self.returns, answer[self.part])
        is_miss = isinstance(answer, Mapping) and answer.get("found") is False
        return None if is_miss else deserialize(self.returns, answer)


def _detect_environment() -> dict[str, str]:
    from stratagem.debugging.detection import detect

    return detect()


@cache
def _return_type(method: Callable[..., Any]) -> Any:
    return get_type_hints(method).get("return", Any)
