"""What the meta tools answer, as types: at run time each is a plain dict.

The keys are the document's. What an answer may lack, because it was not asked for or because there
is nothing to say, is in a part of its own with `total=False`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

__all__ = [
    "Comparison",
    "Discovered",
    "Plan",
    "Recommendation",
    "Recommended",
    "Recovery",
    "Validated",
]

Json = dict[str, Any]


class _Insight(TypedDict):
    successRate: float | None
    commonErrors: list[str]
    avgRecoveryTime: float | None


class _Example(TypedDict):
    example: Any
    description: str
    confidence: float | None
    usageCount: int


class _Chain(TypedDict):
    sequence: list[str]
    description: str
    successRate: float


class _Twin(TypedDict):
    name: str
    recommended: bool
    difference: Json


class _RecommendationParts(TypedDict, total=False):
    validationInsights: _Insight | None
    parameterExamples: list[_Example] | None
    toolChains: list[_Chain] | None
    twins: list[_Twin]


class Recommendation(_RecommendationParts):
    """A tool, and what speaks for it."""

    name: str
    description: str
    category: str
    relevanceScore: float
    reasoning: str
    usageHint: str


class _Standing(TypedDict):
    agentPerformanceScore: float | None
    riskLevel: Literal["low", "medium", "high"] | None
    recommendedHelpTools: list[str]
    learningOpportunities: list[str]


class _Supported(TypedDict):
    toolName: str
    confidence: float
    reason: str
    parameters: Json


class _RecommendedParts(TypedDict, total=False):
    validationInsights: _Standing | None
    patternRecommendations: list[_Supported] | None


class Recommended(_RecommendedParts):
    """The best tools for a request."""

    agentId: str | None
    intent: str
    recommendedTools: list[Recommendation]
    totalAvailableTools: int
    llmProvider: None
    confidence: float | None
    mode: str
    processingTime: float
    fallbackMode: bool
    serviceStatus: dict[str, str]


class _Suggestion(TypedDict):
    suggested: Json
    reason: str
    confidence: float


class _Failures(TypedDict):
    patternStored: bool
    similarFailuresInChannel: int | None
    recommendedLearningActions: list[str]


class _RecoveryParts(TypedDict, total=False):
    parameterCorrections: list[_Suggestion]
    learningInsights: _Failures | None


class Recovery(_RecoveryParts):
    """What to do after a call that failed."""

    failedTool: str
    errorType: str
    errorMessage: str
    alternatives: list[Recommendation]
    preventionTips: list[str]
    knownFix: Json | None
    processingTime: float
    agentId: str | None
    channelId: str | None
    fallbackMode: bool
    serviceStatus: dict[str, str]


class _Configuration(TypedDict):
    valid: bool
    errors: list[str]
    warnings: list[str]


class _CheckedParts(TypedDict, total=False):
    category: str
    description: str
    source: Literal["internal", "external"]
    reason: str
    configuration: _Configuration


class _Checked(_CheckedParts):
    toolName: str
    available: bool


class Validated(TypedDict):
    """Whether tools can be called now."""

    totalChecked: int
    availableCount: int
    unavailableCount: int
    allAvailable: bool
    results: list[_Checked]
    processingTime: float


class _FoundParts(TypedDict, total=False):
    inputSchema: Json


class _Found(_FoundParts):
    name: str
    description: str
    category: str
    source: Literal["internal", "external"]


class Discovered(TypedDict):
    """The tools that fit, and how they group."""

    totalAvailable: int
    filteredCount: int
    filters: dict[str, str]
    categoryGroups: dict[str, list[str]]
    tools: list[_Found]
    processingTime: float


class _Evidence(TypedDict):
    totalCalls: int
    successRate: float | None
    reliability: float | None
    avgLatency: float | None
    p50Latency: float | None


class _ComparedParts(TypedDict, total=False):
    relevanceScore: float


class _Compared(_ComparedParts):
    name: str
    description: str
    category: str
    status: str
    source: Literal["internal", "external"]
    parameters: list[str]
    required: list[str]
    hasOutputSchema: bool
    evidence: _Evidence | None


_Difference = TypedDict("_Difference", {"from": str, "to": str, "twins": bool, "difference": Json})


class Comparison(TypedDict):
    """How tools differ."""

    tools: list[_Compared]
    sharedParameters: list[str]
    differences: list[_Difference]
    best: dict[str, str | None]
    processingTime: float
    fallbackMode: bool
    serviceStatus: dict[str, str]


class _Step(TypedDict):
    id: str
    tool: str
    description: str
    reasoning: str
    arguments: Json
    sources: dict[str, Json]
    evidence: _Chain | None


class Plan(TypedDict):
    """Steps to a goal; `definition` can be given to `pipeline`."""

    goal: str
    steps: list[_Step]
    definition: Json | None
    inputs: Json
    missing: list[str]
    invalid: dict[str, str]
    unmatched: list[str]
    omitted: list[str]
    runnable: bool
    knownChains: list[_Chain]
    processingTime: float
    fallbackMode: bool
    serviceStatus: dict[str, str]
