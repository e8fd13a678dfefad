"""The answers of the correction tools, as types: at run time each is a plain dict.

The keys are those of the document. A key is `NotRequired` where an answer lacks it because it was
not asked for, or because there is nothing to report.
"""

# Without `from __future__ import annotations`: `NotRequired` counts only where it is evaluated.
from typing import Any, Literal, NotRequired, TypedDict

__all__ = [
    "ActiveCorrection",
    "AgentFigures",
    "AlternativeTool",
    "BackupLesson",
    "CacheFigures",
    "CallDiagnosis",
    "CallRefusal",
    "CorrectionBreaker",
    "CorrectionBreakers",
    "CorrectionFigures",
    "CorrectionInsights",
    "CorrectionMetrics",
    "CorrectionOffer",
    "CorrectionPattern",
    "CorrectionPatterns",
    "CorrectionQuestion",
    "CorrectionStatus",
    "CorrectionTestReport",
    "CorrectionTrends",
    "DailyCount",
    "DegradedMode",
    "EarlierErrors",
    "EngineDiagnostics",
    "ErrorDiagnosis",
    "FailureFigures",
    "FaultReport",
    "InsightBreakdowns",
    "InsightsPeriod",
    "OfferedCorrections",
    "OutcomeTrend",
    "ParameterUsage",
    "PatternBackup",
    "PatternUsage",
    "PolicyChange",
    "PolicyUpdate",
    "RiskLevel",
    "ServiceHealth",
    "StrategyFigures",
    "SystemStatus",
    "TestDetails",
    "TestPerformance",
    "TestResult",
    "TestTotals",
    "ToolFigures",
    "ToolProfile",
]

RiskLevel = Literal["low", "medium", "high"]
ServiceHealth = Literal["healthy", "unavailable", "disabled"]


class DegradedMode(TypedDict, total=False):
    """What an answer reports where a part of the system does not work."""

    fallbackMode: bool
    serviceStatus: dict[str, ServiceHealth]


class CorrectionOffer(TypedDict):
    """A correction: what a call would run with, and how sure that is."""

    type: str
    strategies: list[str]
    description: str
    correctedParameters: dict[str, Any]
    confidence: float
    reasoning: str
    riskLevel: RiskLevel
    appliedPattern: str
    correctionId: str


class FaultReport(TypedDict):
    """What is wrong with an argument."""

    type: str
    path: str
    message: str


class CorrectionQuestion(TypedDict):
    """A question that only the caller can answer, and the possible answers."""

    path: str
    question: str
    options: list[Any]


class CallRefusal(TypedDict):
    """Why a call was not run, and the corrections that the caller may confirm."""

    errors: list[FaultReport]
    corrections: NotRequired[list[CorrectionOffer]]
    hint: NotRequired[str]
    choices: NotRequired[list[CorrectionQuestion]]
    withheld: NotRequired[str]


class ErrorDiagnosis(TypedDict):
    """The type, the severity and the cause of an error."""

    errorType: str
    errorCategory: str
    severity: RiskLevel
    rootCause: str | None
    affectedParameters: list[str]
    fixable: bool
    confidence: float | None
    basis: str
    errorTypes: NotRequired[list[str]]


class OfferedCorrections(TypedDict):
    """The corrections of a call, and the one that would be applied unasked."""

    available: bool
    corrections: list[CorrectionOffer]
    appliedCorrection: CorrectionOffer | None
    withheld: NotRequired[str]
    choices: NotRequired[list[CorrectionQuestion]]


class AlternativeTool(TypedDict):
    """Another tool that takes the call, and the arguments it would run with."""

    toolName: str
    reasoning: str
    parameters: dict[str, Any]


class EarlierErrors(TypedDict):
    """What earlier corrections of a tool say about an error."""

    similarErrors: int
    successfulPattern: bool
    recommendedActions: list[str]


class CallDiagnosis(DegradedMode):
    """What is wrong with a call, and how it could be corrected."""

    diagnosis: ErrorDiagnosis
    autoCorrection: OfferedCorrections
    preventionTips: list[str]
    learningInsights: EarlierErrors
    processingTime: float
    timestamp: str
    alternatives: NotRequired[list[AlternativeTool]]
    knownFix: NotRequired[dict[str, Any]]


class SystemStatus(TypedDict):
    """Whether corrections are switched on and work, and since when."""

    enabled: bool | None
    healthy: bool
    version: str
    uptime: int
    lastRestart: str


class CorrectionMetrics(TypedDict):
    """How corrections did in a span of time."""

    totalCorrections: int
    successfulCorrections: int
    successRate: float | None
    averageCorrectionTime: float | None
    correctionsToday: int
    patternMatches: int
    newPatternsLearned: int
    refusedCalls: int
    truncated: bool


class StrategyFigures(TypedDict):
    """How one strategy did."""

    attempts: int
    successes: int
    successRate: float | None


class CacheFigures(TypedDict):
    """How the cache of corrections is doing."""

    entries: int
    hits: int
    misses: int
    hitRate: float | None


class ActiveCorrection(TypedDict):
    """A corrected call that is under way."""

    agentId: str | None
    toolName: str
    attempt: int
    startedAt: str
    status: str


class CorrectionStatus(TypedDict):
    """How the corrections are doing."""

    systemStatus: SystemStatus
    healthChecks: dict[str, ServiceHealth]
    fallbackMode: bool
    serviceStatus: dict[str, ServiceHealth]
    settings: dict[str, Any] | None
    toolSettings: dict[str, dict[str, Any]] | None
    metrics: NotRequired[CorrectionMetrics]
    strategyPerformance: NotRequired[dict[str, StrategyFigures]]
    cache: NotRequired[CacheFigures]
    activeCorrections: NotRequired[list[ActiveCorrection]]
    faults: NotRequired[dict[str, str]]


class PolicyChange(TypedDict):
    """The settings before and after a change of the policy; `version` is None for a preview."""

    configurationUpdated: bool
    previousSettings: dict[str, Any] | None
    newSettings: dict[str, Any]
    changesApplied: list[str]
    restartRequired: bool
    effectiveImmediately: bool
    version: int | None
    toolName: NotRequired[str]


class PolicyUpdate(PolicyChange):
    """What a change of the policy changed, or would change, and when."""

    timestamp: str


class TestDetails(TypedDict):
    """The arguments of a test case before and after its correction."""

    originalParameters: Any
    correctedParameters: dict[str, Any] | None
    correctionType: str | None


class TestResult(TypedDict):
    """How one test case went."""

    testName: str
    passed: bool
    executionTime: float
    errorDetected: bool
    errorTypes: list[str]
    correctionApplied: bool
    correctionMatched: bool | None
    confidence: float | None
    details: TestDetails
    reason: NotRequired[str]
    suggestions: NotRequired[list[str]]


class TestTotals(TypedDict):
    """How all test cases went."""

    totalTests: int
    passed: int
    failed: int
    successRate: float | None
    averageExecutionTime: float | None


class TestPerformance(TypedDict):
    """How long test cases took, in milliseconds."""

    p50: float | None
    p99: float | None
    slowest: float | None


class EngineDiagnostics(TypedDict):
    """The load of the machine and the speed of the engine, with what would help."""

    systemLoad: Literal["normal", "high"]
    loadPerCore: float
    patternCacheHitRate: float | None
    correctionEngineLatency: float | None
    recommendedOptimizations: list[str]


class CorrectionTestReport(TypedDict):
    """How corrections did when they were tried out."""

    testResults: list[TestResult]
    overallResults: TestTotals
    testSuite: NotRequired[str]
    performance: NotRequired[TestPerformance]
    diagnostics: NotRequired[EngineDiagnostics]


class InsightsPeriod(TypedDict):
    """The span of time that figures are about."""

    start: str
    end: str
    duration: str


class CorrectionFigures(TypedDict):
    """How all corrections of a time went."""

    totalCorrections: int
    successfulCorrections: int
    failedCorrections: int
    refusedCalls: int
    successRate: float | None
    averageLatency: float | None
    totalTimeSaved: None
    errorsPrevented: int


class DailyCount(TypedDict):
    """How many corrections there were on one day."""

    date: str
    count: int


class OutcomeTrend(TypedDict):
    """Corrections by day, and how their success rate changed from the first half to the second."""

    dailyCorrections: list[DailyCount]
    successRateImprovement: float | None


class CorrectionTrends(OutcomeTrend):
    """The trend of outcomes, with the patterns that were learned and given up."""

    newPatternsLearned: int
    patternsDeprecated: int


class PatternUsage(TypedDict):
    """How often a pattern was used, and how that went."""

    id: str
    name: str
    usageCount: int
    successRate: float | None
    averageConfidence: float | None
    toolsApplied: list[str]
    description: str
    learned: bool


class AgentFigures(TypedDict):
    """How the calls for one agent went."""

    agentId: str
    correctionsUsed: int
    refusedCalls: int
    successRate: float | None
    topErrorTypes: list[str]
    improvementSuggestions: list[str]


class ToolFigures(TypedDict):
    """How the calls of one tool went."""

    toolName: str
    correctionsApplied: int
    refusedCalls: int
    successRate: float | None
    commonErrors: list[str]
    mostEffectiveStrategies: list[str]


class FailureFigures(TypedDict):
    """How often an error was not corrected, or not well."""

    errorType: str
    count: int
    failedCorrections: int
    refusedCalls: int
    affectedTools: list[str]
    recommendations: list[str]


class InsightBreakdowns(TypedDict, total=False):
    """The parts of the insights that can be left out."""

    topPatterns: list[PatternUsage]
    agentBreakdown: list[AgentFigures]
    toolBreakdown: list[ToolFigures]
    failurePatterns: list[FailureFigures]
    truncated: bool


class CorrectionInsights(InsightBreakdowns):
    """What the records of a time say about corrections."""

    timeRange: InsightsPeriod
    overallMetrics: CorrectionFigures
    trends: CorrectionTrends
    recommendations: list[str]


class CorrectionPattern(TypedDict):
    """A pattern of corrections, built in or learned, and how it did at one tool."""

    patternId: str
    name: str
    toolName: str
    learned: bool
    usageCount: int
    successRate: float | None
    confidence: float
    certain: bool
    status: Literal["active", "deprecated"]
    description: NotRequired[str]
    path: NotRequired[str]
    meaning: NotRequired[str]


class ParameterUsage(TypedDict):
    """How often a parameter was given, and with what kinds of value."""

    path: str
    given: int
    share: float
    types: dict[str, int]
    forms: dict[str, int]
    usual: NotRequired[Any]
    confidence: NotRequired[float]


class ToolProfile(TypedDict):
    """What a tool is usually called with."""

    calls: int
    parameters: list[ParameterUsage]


class BackupLesson(TypedDict):
    """A lesson in a backup: what one teacher taught, and how often."""

    tool: str
    kind: str
    path: str
    form: str
    meaning: str
    teacher: str
    held: int
    fell: int


class PatternBackup(TypedDict):
    """Lessons in a form that `restore` takes."""

    format: str
    version: int
    lessons: list[BackupLesson]


class CorrectionPatterns(TypedDict, total=False):
    """What was learned: the patterns, one tool's profile, a backup, or what was restored."""

    patterns: list[CorrectionPattern]
    total: int
    toolName: str
    profile: ToolProfile
    backup: PatternBackup
    restored: int
    unchanged: int


class CorrectionBreaker(TypedDict):
    """Whether corrections of a tool are held back; `lastFailure` in milliseconds since 1970."""

    toolName: str
    status: Literal["closed", "open", "half-open"]
    failures: int
    reason: str
    lastFailure: int | None
    coolDownSeconds: float


class CorrectionBreakers(TypedDict, total=False):
    """The breakers, or what a reset did."""

    circuitBreakers: list[CorrectionBreaker]
    toolName: str
    reset: bool
    reason: str
