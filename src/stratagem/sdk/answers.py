"""The answers of the correction and meta tools, as types for annotations."""

from stratagem.gateway.advice.answers import (
    Comparison,
    Discovered,
    Plan,
    Recommendation,
    Recommended,
    Recovery,
    Validated,
)
from stratagem.gateway.learning.answers import (
    Breaker,
    Circuits,
    Configured,
    CorrectionStatus,
    Diagnosis,
    Insights,
    Offer,
    Patterns,
    Tested,
)

__all__ = [
    "Breaker",
    "Circuits",
    "Comparison",
    "Configured",
    "CorrectionStatus",
    "Diagnosis",
    "Discovered",
    "Insights",
    "Offer",
    "Patterns",
    "Plan",
    "Recommendation",
    "Recommended",
    "Recovery",
    "Tested",
    "Validated",
]
