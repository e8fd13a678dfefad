"""What is wrong with a call: from the schema where it can tell, else from the error's words."""

from __future__ import annotations

from collections.abc import Sequence

from stratagem.gateway.calls.error_readings import VALIDATION, read_text
from stratagem.gateway.correction import Correction, Fault
from stratagem.gateway.learning.answers import ErrorDiagnosis, RiskLevel

__all__ = ["diagnose"]


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
        "errorCategory": VALIDATION,
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
