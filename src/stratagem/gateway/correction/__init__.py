"""Corrections of calls: from the schema first, then from what successful calls taught.

`correct(schema, arguments)` does no I/O, reads no clock and keeps no state. It never runs
anything: it says with which arguments a call can be run, or that it should not be.

What is *applied* is lossless and unambiguous, and valid. What is not certain is *offered*, with a
confidence that is calibrated. A silently wrong call is worse than a refused one.
"""

from stratagem.gateway.correction.engine import correct
from stratagem.gateway.correction.model import (
    Candidate,
    Choice,
    Correction,
    CorrectionStep,
    Fault,
    FaultType,
    Hint,
    HintKind,
    Learned,
    Nothing,
    Risk,
    Strategy,
)
from stratagem.gateway.correction.open_names import name_slips, remarks
from stratagem.gateway.correction.policy import PRESETS, Policy, StrategySetting, preset
from stratagem.gateway.correction.schemas import Ready, ready

__all__ = [
    "PRESETS",
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
    "Policy",
    "Ready",
    "Risk",
    "Strategy",
    "StrategySetting",
    "correct",
    "name_slips",
    "preset",
    "ready",
    "remarks",
]
