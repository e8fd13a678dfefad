"""What is wrong with a call: from the schema where it can tell, else from the error's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from stratagem.gateway.correction import Correction, Fault
from stratagem.gateway.learning.answers import ErrorDiagnosis, RiskLevel

__all__ = ["ErrorReading", "diagnose", "read_text"]


class ErrorReading(NamedTuple):
    """What the words of an error say."""

    type: str
    category: str
    severity: RiskLevel


# A look-ahead that is repeated by its name matches once and for all, so that a line is read once.
# Possessive groups would say the same, and before Python 3.11.5 they miss matches.
def _row(
    words: str, kind: str, category: str, severity: RiskLevel
) -> tuple[re.Pattern[str], ErrorReading]:
    return re.compile(words, re.IGNORECASE), ErrorReading(kind, category, severity)


_VALIDATION: Final = "parameterValidation"
# The first that fits holds, so the more particular come first.
_WORDS: Final = (
    _row(r"rate limit|too many requests|\b429\b|quota", "rateLimited", "limits", "low"),
    _row(r"additional propert|unknown (propert|param|field|argument)|unexpected (keyword|propert|"
         r"field|argument)|no parameter", "unknownProperties", _VALIDATION, "medium"),
    _row(r"required|missing", "missingRequired", _VALIDATION, "medium"),
    _row(r"not one of|must be one of|invalid (enum|option|choice)|allowed values",
         "enumViolation", _VALIDATION, "medium"),
    _row(r"(?m:^(?=(?P<expected>.*?expected ))(?P=expected).* (but|got|received))"
         r"|is not of type|type ?error|wrong type|invalid type|"
         r"must be an? (string|number|integer|boolean|array|object)",
         "typeMismatch", _VALIDATION, "medium"),
    _row(r"(greater|less|longer|shorter|more|fewer|smaller|larger) than|at (least|most)|"
         r"out of range|too (long|short|large|small|many|few)|(maximum|minimum) of",
         "constraintViolation", _VALIDATION, "medium"),
    _row(r"invalid (date|format|email|url|uri|uuid)|does not match", "formatViolation", _VALIDATION,
         "medium"),
    _row(r"(?m:^(?=(?P<json>.*?json))(?P=json).*(parse|decod|syntax))"
         r"|(?m:^(?=(?P<fault>.*?(?:parse|decod|syntax)))(?P=fault).*json)|malformed",
         "malformedJson", _VALIDATION, "medium"),
    _row(r"time ?d? ?-?out|deadline", "timeout", "execution", "medium"),
    _row(r"permission|forbidden|denied|unauthori[sz]ed|not allowed|\b40[13]\b",
         "permissionDenied", "authorisation", "high"),
    _row(r"no such (tool|file)|not found|unknown tool|does not exist|\b404\b",
         "notFound", "resolution", "medium"),
    _row(r"connect|unreachable|refused|dns|network|\b50[234]\b", "connection", "execution", "high"),
)  # fmt: skip
_UNKNOWN: Final = ErrorReading("unknown", "execution", "medium")


def read_text(error: str) -> ErrorReading:
    """Return what the words of an error say."""
    return next((reading for words, reading in _WORDS if words.search(error)), _UNKNOWN)


def diagnose(error: str, found: Correction | None) -> ErrorDiagnosis:
    """Return the diagnosis in the documented form. Only the schema's word is certain."""
    if found is None or not found.errors:
        reading = read_text(error)
        return {
            "errorType": reading.type,
            "errorCategory": reading.category,
            "severity": reading.severity,
            "rootCause": error or None,
            "affectedParameters": [],
            "fixable": False,
            "confidence": None,
            "basis": "text" if found is None else "text; the parameters fit the schema",
        }
    first = found.errors[0]
    return {
        "errorType": first.type.value,
        "errorCategory": _VALIDATION,
        "severity": _severity(found),
        "rootCause": "; ".join(f"{fault.path}: {fault.message}" for fault in found.errors),
        "affectedParameters": _affected_parameters(found.errors),
        "errorTypes": sorted({fault.type.value for fault in found.errors}),
        "fixable": bool(found.candidates),
        "confidence": 1.0,
        "basis": "schema",
    }


def _severity(found: Correction) -> RiskLevel:
    return "medium" if found.candidates else "high"


def _affected_parameters(faults: Sequence[Fault]) -> list[str]:
    """Return the parameters that faults are about, each once."""
    names: dict[str, None] = {}
    for fault in faults:
        place = fault.path.removeprefix("$").lstrip(".")
        if place:
            names[place] = None
        elif fault.type.value in {"missingRequired", "unknownProperties"}:
            names |= dict.fromkeys(map(str, fault.names))
    return list(names)
