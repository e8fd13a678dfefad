"""What the validator found wrong, in the words of this package."""

from __future__ import annotations

from typing import Any, Final

from stratagem import limits
from stratagem.engine.paths import Steps, render
from stratagem.gateway.correction.model import Fault, FaultType
from stratagem.gateway.correction.schemas import Ready

__all__ = ["faults", "malformed_text_fault", "no_json", "too_much"]

_SHOWN_CHARS: Final = 300
_TYPES: Final = {
    "type": FaultType.TYPE_MISMATCH,
    "required": FaultType.MISSING_REQUIRED,
    "dependentRequired": FaultType.MISSING_REQUIRED,
    "additionalProperties": FaultType.UNKNOWN_PROPERTIES,
    "unevaluatedProperties": FaultType.UNKNOWN_PROPERTIES,
    "propertyNames": FaultType.UNKNOWN_PROPERTIES,
    "enum": FaultType.ENUM_VIOLATION,
    "const": FaultType.ENUM_VIOLATION,
    "format": FaultType.FORMAT_VIOLATION,
    "anyOf": FaultType.NO_MATCHING_FORM,
    "oneOf": FaultType.NO_MATCHING_FORM,
}


def faults(schema: Ready, arguments: Any, *, size: int = 0) -> tuple[Fault, ...]:
    """Return what is wrong with arguments, the first few; of large ones only the first."""
    # To find every fault of large arguments takes long, even where it takes little memory.
    most = limits.CORRECTION_FAULTS_MAX if size <= limits.CORRECTION_REPAIRED_CHARS_MAX else 1
    found = tuple(map(_fault, schema.bounds.errors(arguments, most)))
    if found or schema.bounds.accepts(arguments):
        return found
    return (too_much("The arguments do not fit, and are too large for saying where."),)


def malformed_text_fault(text: str) -> Fault:
    """Return the fault of text that is not JSON."""
    shown = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    return Fault(FaultType.MALFORMED_JSON, "$", f"The arguments are not a JSON object: {shown!r}.")


def no_json(reason: str) -> Fault:
    """Return the fault of arguments that hold something else than JSON."""
    return Fault(FaultType.MALFORMED_JSON, "$", f"The arguments are no JSON: {reason}.")


def too_much(reason: str) -> Fault:
    """Return the fault of a call that is not looked into."""
    return Fault(FaultType.LIMIT_EXCEEDED, "$", reason)


def _fault(error: Any) -> Fault:
    keyword = _keyword(error)
    path = render(_steps(error.instance_path))
    message = str(error.message)
    if len(message) > _SHOWN_CHARS:
        message = f"{message[:_SHOWN_CHARS]}…"
    return Fault(
        _TYPES.get(keyword, FaultType.CONSTRAINT_VIOLATION), path, message, _names(error.kind)
    )


def _keyword(error: Any) -> str:
    """Return the last keyword on the way to the rule; an index may follow it."""
    names = [step for step in error.schema_path if isinstance(step, str)]
    return names[-1] if names else ""


def _steps(path: list[str | int]) -> Steps:
    return tuple(path)


def _names(kind: Any) -> tuple[Any, ...]:
    if hasattr(kind, "property"):
        return (kind.property,)
    if hasattr(kind, "unexpected"):
        return tuple(kind.unexpected)
    if hasattr(kind, "options") and isinstance(kind.options, list):
        return tuple(kind.options)
    return ()
