"""A missing parameter that the schema lists the values of: the one that calls usually give.

It is a guess about this call, however usual, so it is only offered. Values that the schema does
not list are somebody's own and are never proposed.
"""

from __future__ import annotations

from typing import Any, Final

from stratagem.gateway.correction import Candidate, Change, Correction, FaultType, Risk, Strategy
from stratagem.gateway.learning.profiles import Profile
from stratagem.gateway.registry.tools import Tool

__all__ = ["usual_values"]

PATTERN: Final = "usual_value_for_missing"
_CALLS_MIN: Final = 5
_CONFIDENCE_MAX: Final = 0.9


def usual_values(
    tool: Tool, arguments: Any, found: Correction, profile: Profile
) -> Candidate | None:
    """Return arguments completed by what calls of the tool usually give, if that makes them fit."""
    missing = [fault for fault in found.errors if fault.type is FaultType.MISSING_REQUIRED]
    if not isinstance(arguments, dict) or len(missing) != len(found.errors) or not missing:
        return None
    if profile.calls < _CALLS_MIN or any(fault.path != "$" for fault in missing):
        return None
    filled, changes = dict(arguments), []
    for name in (name for fault in missing for name in fault.names):
        usual = profile.usual(f"$.{name}")
        if usual is None:
            return None
        filled[name] = usual[0]
        changes.append(_change(name, usual))
    if not tool.input.accepts(filled):
        return None
    return Candidate(filled, tuple(changes), min(each.confidence for each in changes))


def _change(name: str, usual: tuple[Any, float]) -> Change:
    value, confidence = usual
    return Change(
        path=f"$.{name}",
        strategy=Strategy.MISSING_PARAMETERS,
        pattern=PATTERN,
        before=None,
        after=value,
        confidence=min(confidence, _CONFIDENCE_MAX),
        risk=Risk.HIGH,
        certain=False,
        reasoning=f"$.{name}: calls of this tool that worked mostly had this value.",
    )
