"""The answers of the correction and meta tools, as types for annotations."""

from stratagem.gateway.advice.answers import (
    ErrorRecovery,
    ToolComparison,
    ToolDiscovery,
    ToolRecommendation,
    ToolRecommendations,
    ToolValidation,
    WorkflowPlan,
)
from stratagem.gateway.learning.answers import (
    CallDiagnosis,
    CorrectionBreaker,
    CorrectionBreakers,
    CorrectionInsights,
    CorrectionOffer,
    CorrectionPatterns,
    CorrectionStatus,
    CorrectionTestReport,
    PolicyUpdate,
)

__all__ = [
    "CallDiagnosis",
    "CorrectionBreaker",
    "CorrectionBreakers",
    "CorrectionInsights",
    "CorrectionOffer",
    "CorrectionPatterns",
    "CorrectionStatus",
    "CorrectionTestReport",
    "ErrorRecovery",
    "PolicyUpdate",
    "ToolComparison",
    "ToolDiscovery",
    "ToolRecommendation",
    "ToolRecommendations",
    "ToolValidation",
    "WorkflowPlan",
]
