"""What the correction tools answer, as types: at run time each is a plain dict.

The keys are the document's. What an answer may lack, because it was not asked for or because there
is nothing to say, is in a part of its own with `total=False`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

__all__ = [
    "Breaker",
    "Circuits",
    "Configured",
    "CorrectionStatus",
    "Diagnosis",
    "Insights",
    "Offer",
    "Patterns",
    "Tested",
]

Health = Literal["healthy", "unavailable", "disabled"]
Json = dict[str, Any]


class _Degradable(TypedDict, total=False):
    """What an answer says where a part of the system is missing."""

    fallbackMode: bool
    serviceStatus: dict[str, str]


class Offer(TypedDict):
    """A correction: what a call would run with, and how sure that is."""

    type: str
    strategies: list[str]
    description: str
    correctedParameters: Json
    confidence: float
    reasoning: str
    riskLevel: Literal["low", "medium", "high"]
    appliedPattern: str
    correctionId: str


class _Diagnosed(TypedDict):
    errorType: str
    errorCategory: str
    severity: Literal["low", "medium", "high"]
    rootCause: str | None
    affectedParameters: list[str]
    fixable: bool
    confidence: float | None
    basis: str


class _DiagnosedCall(_Diagnosed, total=False):
    errorTypes: list[str]


class _Choice(TypedDict):
    path: str
    question: str
    options: list[Any]


class _Corrections(TypedDict):
    available: bool
    corrections: list[Offer]
    appliedCorrection: Offer | None


class _Offered(_Corrections, total=False):
    withheld: str
    choices: list[_Choice]


class _Alternative(TypedDict):
    toolName: str
    reasoning: str
    parameters: Json


class _Learned(TypedDict):
    similarErrors: int
    successfulPattern: bool
    recommendedActions: list[str]


class _DiagnosisParts(_Degradable, total=False):
    alternatives: list[_Alternative]
    knownFix: Json


class Diagnosis(_DiagnosisParts):
    """What is wrong with a call, and how it could be mended."""

    diagnosis: _DiagnosedCall
    autoCorrection: _Offered
    preventionTips: list[str]
    learningInsights: _Learned
    processingTime: float
    timestamp: str


class _System(TypedDict):
    enabled: bool | None
    healthy: bool
    version: str
    uptime: int
    lastRestart: str


class _Metrics(TypedDict):
    totalCorrections: int
    successfulCorrections: int
    successRate: float | None
    averageCorrectionTime: float | None
    correctionsToday: int
    patternMatches: int
    newPatternsLearned: int
    refusedCalls: int
    truncated: bool


class _Strategy(TypedDict):
    attempts: int
    successes: int
    successRate: float | None


class _Active(TypedDict):
    agentId: str | None
    toolName: str
    attempt: int
    startedAt: str
    status: str


class _StatusParts(TypedDict, total=False):
    metrics: _Metrics
    strategyPerformance: dict[str, _Strategy]
    cache: dict[str, float]
    activeCorrections: list[_Active]
    faults: dict[str, str]


class CorrectionStatus(_StatusParts):
    """How the corrections are doing."""

    systemStatus: _System
    healthChecks: dict[str, Health]
    fallbackMode: bool
    serviceStatus: dict[str, Health]
    settings: Json | None
    toolSettings: dict[str, Json] | None


class _ConfiguredParts(TypedDict, total=False):
    toolName: str


class Configured(_ConfiguredParts):
    """What a change of the policy changed, or would change."""

    configurationUpdated: bool
    previousSettings: Json | None
    newSettings: Json
    changesApplied: list[str]
    restartRequired: bool
    effectiveImmediately: bool
    version: int | None
    timestamp: str


class _TestDetails(TypedDict):
    originalParameters: Any
    correctedParameters: Json | None
    correctionType: str | None


class _TestParts(TypedDict, total=False):
    reason: str
    suggestions: list[str]


class _TestResult(_TestParts):
    testName: str
    passed: bool
    executionTime: float
    errorDetected: bool
    errorTypes: list[str]
    correctionApplied: bool
    correctionMatched: bool | None
    confidence: float | None
    details: _TestDetails


class _TestsOverall(TypedDict):
    totalTests: int
    passed: int
    failed: int
    successRate: float | None
    averageExecutionTime: float | None


class _TestedParts(TypedDict, total=False):
    testSuite: str
    performance: dict[str, float | None]
    diagnostics: Json


class Tested(_TestedParts):
    """How corrections did when they were tried out."""

    testResults: list[_TestResult]
    overallResults: _TestsOverall


class _Span(TypedDict):
    start: str
    end: str
    duration: str


class _Overall(TypedDict):
    totalCorrections: int
    successfulCorrections: int
    failedCorrections: int
    refusedCalls: int
    successRate: float | None
    averageLatency: float | None
    totalTimeSaved: None
    errorsPrevented: int


class _Day(TypedDict):
    date: str
    count: int


class _Trends(TypedDict):
    dailyCorrections: list[_Day]
    successRateImprovement: float | None
    newPatternsLearned: int
    patternsDeprecated: int


class _Used(TypedDict):
    id: str
    name: str
    usageCount: int
    successRate: float | None
    averageConfidence: float | None
    toolsApplied: list[str]
    description: str
    learned: bool


class _Agent(TypedDict):
    agentId: str
    correctionsUsed: int
    refusedCalls: int
    successRate: float | None
    topErrorTypes: list[str]
    improvementSuggestions: list[str]


class _ToolFigures(TypedDict):
    toolName: str
    correctionsApplied: int
    refusedCalls: int
    successRate: float | None
    commonErrors: list[str]
    mostEffectiveStrategies: list[str]


class _Failure(TypedDict):
    errorType: str
    count: int
    failedCorrections: int
    refusedCalls: int
    affectedTools: list[str]
    recommendations: list[str]


class _InsightsParts(TypedDict, total=False):
    topPatterns: list[_Used]
    agentBreakdown: list[_Agent]
    toolBreakdown: list[_ToolFigures]
    failurePatterns: list[_Failure]
    truncated: bool


class Insights(_InsightsParts):
    """What the records of a time say about corrections."""

    timeRange: _Span
    overallMetrics: _Overall
    trends: _Trends
    recommendations: list[str]


class _PatternParts(TypedDict, total=False):
    description: str
    path: str
    meaning: str


class _Pattern(_PatternParts):
    patternId: str
    name: str
    toolName: str
    learned: bool
    usageCount: int
    successRate: float | None
    confidence: float
    certain: bool
    status: Literal["active", "deprecated"]


class Patterns(TypedDict, total=False):
    """What was learned: the patterns, one tool's profile, a backup, or what was restored."""

    patterns: list[_Pattern]
    total: int
    toolName: str
    profile: Json
    backup: Json
    restored: int
    unchanged: int


class Breaker(TypedDict):
    """Whether corrections of a tool are held back; `lastFailure` in milliseconds since 1970."""

    toolName: str
    status: Literal["closed", "open", "half-open"]
    failures: int
    reason: str
    lastFailure: int | None
    coolDownSeconds: float


class Circuits(TypedDict, total=False):
    """The breakers, or what a reset did."""

    circuitBreakers: list[Breaker]
    toolName: str
    reset: bool
    reason: str
