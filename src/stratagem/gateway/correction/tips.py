"""What avoids an error the next time, by the type of the error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["tip", "tips"]

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
    "permissionDenied": "Ask whoever runs the server for the right.",
    "notFound": "Check that what the arguments name exists.",
}


def tip(error_type: str) -> str:
    """Return what avoids errors of a type."""
    return _TIPS.get(error_type, "Read the tool's schema before calling it.")


def tips(error_types: Iterable[str]) -> list[str]:
    """Return what avoids errors of some types, each tip once and only where there is one."""
    return list(dict.fromkeys(_TIPS[each] for each in error_types if each in _TIPS))
