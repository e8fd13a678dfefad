"""The answers of the meta tools, as types: at run time each is a plain dict.

The keys are those of the document. A key is `NotRequired` where an answer lacks it because it was
not asked for, or because there is nothing to report.
"""

# Without `from __future__ import annotations`: `NotRequired` counts only where it is evaluated.
from typing import Any, Literal, NotRequired, TypedDict

from stratagem.gateway.registry.answers import MissingPart

__all__ = [
    "AgentPerformance",
    "AgentStanding",
    "ArgumentCorrection",
    "ArgumentExample",
    "CallerInsights",
    "ComparedTool",
    "DiscoveredTool",
    "ErrorRecovery",
    "HandlerCheck",
    "InputSource",
    "IntentSupport",
    "OpenArgument",
    "PlanOption",
    "PlanStep",
    "RelatedFailures",
    "ServiceReport",
    "StepSource",
    "ToolAvailability",
    "ToolChain",
    "ToolComparison",
    "ToolDifference",
    "ToolDiscovery",
    "ToolEvidence",
    "ToolRecommendation",
    "ToolRecommendations",
    "ToolReliability",
    "ToolSource",
    "ToolTwin",
    "ToolValidation",
    "WorkflowPlan",
]

ToolSource = Literal["internal", "external"]


class ServiceReport(TypedDict):
    """Which parts answered; in fallback mode at least one did not."""

    fallbackMode: bool
    serviceStatus: dict[str, str]


class ToolReliability(TypedDict):
    """How the calls of a tool went."""

    successRate: float | None
    commonErrors: list[str]
    avgRecoveryTime: float | None


class ArgumentExample(TypedDict):
    """Arguments that a tool can be called with, and where they come from."""

    example: Any
    description: str
    confidence: float | None
    usageCount: int


class ToolChain(TypedDict):
    """Tools that were called one after another, and how often that worked."""

    sequence: list[str]
    description: str
    successRate: float


class ToolTwin(TypedDict):
    """A tool for the same job as a recommended one, and what tells the two apart."""

    name: str
    recommended: bool
    difference: dict[str, Any]


class ToolRecommendation(TypedDict):
    """A tool, and the reasons to recommend it."""

    name: str
    description: str
    category: str
    relevanceScore: float
    reasoning: str
    usageHint: str
    validationInsights: NotRequired[ToolReliability | None]
    parameterExamples: NotRequired[list[ArgumentExample] | None]
    toolChains: NotRequired[list[ToolChain] | None]
    twins: NotRequired[list[ToolTwin]]


class AgentPerformance(TypedDict):
    """How the calls of a caller went; null where there were none."""

    agentPerformanceScore: float | None
    riskLevel: Literal["low", "medium", "high"] | None


class AgentStanding(AgentPerformance):
    """How the calls of a caller went, and what would help it."""

    recommendedHelpTools: list[str]
    learningOpportunities: list[str]


class IntentSupport(TypedDict):
    """A tool that worked after similar requests."""

    toolName: str
    confidence: float
    reason: str
    parameters: dict[str, Any]


class CallerInsights(TypedDict, total=False):
    """What records say about the caller and about similar requests, where that was asked for."""

    validationInsights: AgentStanding | None
    patternRecommendations: list[IntentSupport] | None


class ToolRecommendations(ServiceReport, CallerInsights):
    """The best tools for a request."""

    agentId: str | None
    intent: str
    recommendedTools: list[ToolRecommendation]
    note: str | None
    totalAvailableTools: int
    llmProvider: None
    confidence: float | None
    mode: str
    processingTime: float


class ArgumentCorrection(TypedDict):
    """Corrected arguments for a call that failed."""

    suggested: dict[str, Any]
    reason: str
    confidence: float


class RelatedFailures(TypedDict):
    """What the records of a tool's failures say about one of them."""

    patternStored: bool
    similarFailuresInChannel: int | None
    recommendedLearningActions: list[str]


class ErrorRecovery(ServiceReport):
    """What to do after a call that failed."""

    failedTool: str
    errorType: str
    errorMessage: str
    alternatives: list[ToolRecommendation]
    preventionTips: list[str]
    knownFix: dict[str, Any] | None
    processingTime: float
    agentId: str | None
    channelId: str | None
    parameterCorrections: NotRequired[list[ArgumentCorrection]]
    learningInsights: NotRequired[RelatedFailures | None]


class HandlerCheck(TypedDict):
    """Whether the handler of a tool is configured."""

    valid: bool
    errors: list[str]
    warnings: list[str]


class ToolAvailability(TypedDict):
    """Whether a tool can be called now; of an unknown tool nothing else is reported."""

    toolName: str
    available: bool
    category: NotRequired[str]
    description: NotRequired[str]
    source: NotRequired[ToolSource]
    reason: NotRequired[str]
    configuration: NotRequired[HandlerCheck]


class ToolValidation(TypedDict):
    """Whether tools can be called now."""

    totalChecked: int
    availableCount: int
    unavailableCount: int
    allAvailable: bool
    results: list[ToolAvailability]
    processingTime: float


class DiscoveredTool(TypedDict):
    """A registered tool, as a list shows it."""

    name: str
    description: str
    category: str
    source: ToolSource
    unavailable: NotRequired[MissingPart]
    inputSchema: NotRequired[dict[str, Any]]


class ToolDiscovery(TypedDict):
    """The tools that pass the filters, and how they group."""

    totalAvailable: int
    filteredCount: int
    filters: dict[str, str]
    categoryGroups: dict[str, list[str]]
    tools: list[DiscoveredTool]
    processingTime: float


class ToolEvidence(TypedDict):
    """How the calls of a tool went, and how long they took."""

    totalCalls: int
    successRate: float | None
    reliability: float | None
    avgLatency: float | None
    p50Latency: float | None


class ComparedTool(TypedDict):
    """One of the tools of a comparison."""

    name: str
    description: str
    category: str
    status: str
    source: ToolSource
    parameters: list[str]
    required: list[str]
    hasOutputSchema: bool
    evidence: ToolEvidence | None
    relevanceScore: NotRequired[float]


# A class cannot have a field named `from`.
ToolDifference = TypedDict(
    "ToolDifference", {"from": str, "to": str, "twins": bool, "difference": dict[str, Any]}
)


class ToolComparison(ServiceReport):
    """How tools differ."""

    tools: list[ComparedTool]
    sharedParameters: list[str]
    differences: list[ToolDifference]
    best: dict[str, str | None]
    processingTime: float


# Where an argument of a step comes from: an input of the plan, or an earlier step.
InputSource = TypedDict(
    "InputSource",
    {"from": Literal["input"], "name": str, "value": str, "schema": dict[str, Any], "reason": str},
)
StepSource = TypedDict(
    "StepSource",
    {"from": Literal["step"], "step": str, "path": str, "value": str, "reason": str},
)


class OpenArgument(TypedDict):
    """A required argument that has to be given, and why nothing else gives it."""

    name: str
    schema: dict[str, Any]
    reason: str


class PlanOption(TypedDict):
    """Another tool for a step, and which of its required arguments would be open."""

    tool: str
    description: str
    score: float
    open: list[str]


class PlanStep(TypedDict):
    """A call of a plan, with the source of each argument; a named tool has no score."""

    id: str
    part: str
    tool: str
    description: str
    score: float | None
    reasoning: str
    arguments: dict[str, Any]
    sources: dict[str, InputSource | StepSource]
    open: list[OpenArgument]
    alternatives: list[PlanOption]
    evidence: ToolChain | None


class WorkflowPlan(ServiceReport):
    """Steps to a goal; `definition` can be given to `pipeline`."""

    goal: str
    steps: list[PlanStep]
    definition: dict[str, Any] | None
    inputs: dict[str, Any]
    missing: list[str]
    invalid: dict[str, str]
    unmatched: list[str]
    omitted: list[str]
    unproven: list[str]
    runnable: bool
    knownChains: list[ToolChain]
    processingTime: float
