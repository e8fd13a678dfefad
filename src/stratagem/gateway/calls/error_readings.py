"""The kind of an error, recognised by the words of its text."""

from __future__ import annotations

import re
from typing import Final, Literal

from stratagem.deferred_tuples import NamedTuple

__all__ = ["VALIDATION", "ErrorReading", "error_title", "read_text"]

Severity = Literal["low", "medium", "high"]


class ErrorReading(NamedTuple):
    """What the words of an error say."""

    type: str
    category: str
    severity: Severity


# A look-ahead that is repeated by its name matches once and for all, so that a line is read once.
# Possessive groups would say the same, and before Python 3.11.5 they miss matches.
def _row(
    words: str, kind: str, category: str, severity: Severity
) -> tuple[re.Pattern[str], ErrorReading]:
    return re.compile(words, re.IGNORECASE), ErrorReading(kind, category, severity)


VALIDATION: Final = "parameterValidation"
# The first that fits holds, so the more particular come first.
_WORDS: Final = (
    _row(r"rate limit|too many requests|\b429\b|quota", "rateLimited", "limits", "low"),
    _row(r"additional propert|unknown (propert|param|field|argument)|unexpected (keyword|propert|"
         r"field|argument)|no parameter", "unknownProperties", VALIDATION, "medium"),
    _row(r"required|missing", "missingRequired", VALIDATION, "medium"),
    _row(r"not one of|must be one of|invalid (enum|option|choice)|allowed values",
         "enumViolation", VALIDATION, "medium"),
    _row(r"(?m:^(?=(?P<expected>.*?expected ))(?P=expected).* (but|got|received))"
         r"|is not of type|type ?error|wrong type|invalid type|"
         r"must be an? (string|number|integer|boolean|array|object)",
         "typeMismatch", VALIDATION, "medium"),
    _row(r"(greater|less|longer|shorter|more|fewer|smaller|larger) than|at (least|most)|"
         r"out of range|too (long|short|large|small|many|few)|(maximum|minimum) of",
         "constraintViolation", VALIDATION, "medium"),
    _row(r"invalid (date|format|email|url|uri|uuid)|does not match", "formatViolation", VALIDATION,
         "medium"),
    _row(r"(?m:^(?=(?P<json>.*?json))(?P=json).*(parse|decod|syntax))"
         r"|(?m:^(?=(?P<fault>.*?(?:parse|decod|syntax)))(?P=fault).*json)|malformed",
         "malformedJson", VALIDATION, "medium"),
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


# The title of an error whose own text may not be shown.
_TITLES: Final = {
    "rateLimited": "Rate limit exceeded",
    "unknownProperties": "Unknown parameter",
    "missingRequired": "Missing parameter",
    "enumViolation": "Value not allowed",
    "typeMismatch": "Wrong type",
    "constraintViolation": "Value out of bounds",
    "formatViolation": "Invalid format",
    "malformedJson": "Malformed JSON",
    "timeout": "Timed out",
    "permissionDenied": "Permission denied",
    "notFound": "Not found",
    "connection": "Connection failed",
}
# Codes of errors whose texts say more than the code does.
_TELLING: Final = frozenset({"execution_error", "validation_error", "invalid_input"})
_FILE: Final = re.compile(r"\b(?:file|directory|folder|enoent)\b", re.IGNORECASE)


def error_title(code: str, message: str) -> str:
    """Return what kind of error a text tells of, in words of ours: no value of a caller's."""
    # Every other code says by itself what happened.
    kind = read_text(message).type if code in _TELLING else ""
    if kind == "notFound" and _FILE.search(message):
        return "File not found"
    return _TITLES.get(kind) or code.replace("_", " ").capitalize()
