"""What calls answer and what is recorded of them, as types: at run time each is a plain dict.

The keys are the document's. A key that an answer may lack is `NotRequired`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from stratagem.errors import Blame, GatewayErrorBody
from stratagem.gateway.registry.answers import (
    ToolDetails,
    ToolGuardrail,
    ToolRefusal,
    ToolSummary,
)

__all__ = [
    "BatchAnswer",
    "BatchFailure",
    "BatchSuccess",
    "BreakerState",
    "CacheRules",
    "CallAnswer",
    "CallMetadata",
    "CallProgress",
    "CancelledWork",
    "ClearedCache",
    "CorrectionNote",
    "ErasedExecutions",
    "ExecutionDetails",
    "ExecutionFacts",
    "ExecutionPage",
    "ExecutionRecord",
    "ExecutionStatus",
    "RecordedError",
    "RecordedExecution",
    "ResultCacheFigures",
    "ToolAnswer",
    "ToolDescription",
    "ToolEntry",
    "ToolHelp",
    "ToolList",
    "ToolPerformance",
    "ToolStatistics",
    "ToolUse",
    "WorkEntry",
    "WorkKind",
    "WorkList",
    "WorkNote",
    "WorkOutcome",
    "WorkState",
]

ExecutionStatus = Literal["success", "failed", "timeout"]
WorkKind = Literal["call", "batch", "pipeline"]
WorkState = Literal["running", "cancelling", "lost", "finished", "failed"]


class CallProgress(TypedDict):
    """How far a call has come, as it is published."""

    executionId: str
    requestId: str | None
    toolName: str
    percentage: float | None
    message: str | None
    caller: str


class CorrectionNote(TypedDict):
    """How the arguments of a call were corrected; `processingTime` in milliseconds.

    What is recorded of it has no `correctedParameters`: the record has the arguments already.
    """

    type: str
    strategies: list[str]
    description: str
    correctedParameters: NotRequired[dict[str, Any]]
    confidence: float
    reasoning: str
    riskLevel: Literal["low", "medium", "high"]
    appliedPattern: str
    correctionId: str
    confirmed: bool
    errors: list[str]
    processingTime: float
    fallbackMode: NotRequired[bool]
    serviceStatus: NotRequired[dict[str, Literal["healthy", "unavailable", "disabled"]]]
    debug: NotRequired[dict[str, Any]]


class CallMetadata(TypedDict):
    """How a call went: `duration` in milliseconds, `correction` where its arguments were changed.

    `repeated`: it was called before under the same request id, and this is what came of it.
    """

    duration: float
    cached: bool
    provider: str | None
    attempts: int
    correction: NotRequired[CorrectionNote]
    warnings: NotRequired[list[str]]
    repeated: NotRequired[bool]


class McpContent(TypedDict):
    """What a tool of an MCP server answered, as it was sent, next to what `result` has of it.

    `content` is left out where `result` is `{"content": …}`; `structured`: whether `result` is its
    `structuredContent`.
    """

    structured: bool
    content: NotRequired[list[dict[str, Any]]]
    _meta: NotRequired[dict[str, Any]]


class CallAnswer(TypedDict):
    """A call that worked; `result` is any JSON. `mcp`: of tools of MCP servers only.

    `running`: it was started with `async` and goes on; `work_list` tells what comes of it.
    """

    executionId: str
    result: Any
    metadata: CallMetadata
    running: NotRequired[bool]
    mcp: NotRequired[McpContent]


class BatchSuccess(CallAnswer):
    """A call of a batch that worked."""

    toolName: str
    success: Literal[True]
    requestId: NotRequired[str]


class BatchFailure(TypedDict):
    """A call of a batch that failed."""

    toolName: str
    success: Literal[False]
    error: GatewayErrorBody
    requestId: NotRequired[str]


class BatchAnswer(TypedDict):
    """The results of a batch, in the order of its calls. `running`: it was started with `async`."""

    executionId: str
    results: list[BatchSuccess | BatchFailure]
    total: int
    succeeded: int
    failed: int
    skipped: int
    running: NotRequired[bool]


class RecordedError(TypedDict):
    """What is recorded of an error; to others than the caller only its code is shown."""

    code: str
    message: NotRequired[str]
    blame: NotRequired[Blame]
    knownFix: NotRequired[dict[str, Any]]
    body: NotRequired[str]


class ExecutionFacts(TypedDict):
    """What everybody who may look at executions sees of each."""

    executionId: str
    tool: str
    toolId: str
    revision: int
    caller: str
    status: ExecutionStatus
    duration: float
    cached: bool
    provider: str | None
    attempts: int


class _ExecutionContents(TypedDict, total=False):
    context: dict[str, Any]
    arguments: Any
    # As they were given, where they were corrected.
    originalArguments: Any
    correction: CorrectionNote
    warnings: list[str]
    error: RecordedError
    result: Any
    resultRef: str


class ExecutionRecord(ExecutionFacts, _ExecutionContents):
    """An execution as it is written: `startedAt` in microseconds since 1970."""

    startedAt: int


class RecordedExecution(ExecutionRecord):
    """An execution with its place in the log."""

    sequence: int


class ExecutionDetails(ExecutionFacts, _ExecutionContents):
    """An execution as it is shown: another caller's without its contents, and saying so."""

    startedAt: str
    withheld: NotRequired[str]


class ExecutionPage(TypedDict):
    """Executions, newest first; `next` is the cursor of the next page."""

    executions: list[ExecutionDetails]
    next: NotRequired[str]


class PurgedToolRecord(TypedDict):
    """What was erased of a tool or an execution, or would be: records by kind."""

    kind: Literal["tool", "execution"]
    id: str
    purged: bool
    records: dict[str, int]
    erased: int
    copies: dict[str, int]
    note: str


class ErasedExecutions(TypedDict):
    """How many executions lost their contents; `more`: there are others that are old enough.

    With `preview` none did, and `found` says how many would.
    """

    erased: int
    days: float
    more: bool
    found: NotRequired[int]
    preview: NotRequired[bool]


class WorkNote(TypedDict):
    """What other processes know of work: times in microseconds, `seenAt` of its process."""

    executionId: str
    kind: WorkKind
    name: str
    caller: str
    startedAt: int
    requestIds: list[str]
    parent: str | None
    detached: bool
    process: str
    seenAt: int
    cancelledBy: NotRequired[str]


class WorkEntry(TypedDict):
    """A call, batch or pipeline; `duration` in milliseconds so far, `parent` what it is part of.

    A state of "lost" says that no process goes on with it: one that ran it has ended.
    """

    executionId: str
    kind: WorkKind
    name: str
    caller: str
    state: WorkState
    startedAt: str
    duration: float
    requestId: str | None
    parent: str | None
    detached: bool
    percentage: float | None
    message: str | None


class WorkOutcome(TypedDict):
    """The result of work that has ended: its `answer`, or its `error`."""

    executionId: str
    state: WorkState
    answer: NotRequired[Any]
    error: NotRequired[RecordedError]


class WorkList(TypedDict):
    """What is under way; `outcome` where one was asked for that has ended."""

    work: list[WorkEntry]
    outcome: NotRequired[WorkOutcome]


class CancelledWork(TypedDict):
    """Whether there was such work, and it will end."""

    executionId: str
    cancelled: bool


class ToolPerformance(TypedDict):
    """How the newest calls of a tool went; milliseconds."""

    avgLatency: float | None
    successRate: float | None


class ToolUse(ToolPerformance):
    """How a tool's calls went, in short."""

    totalCalls: int


class ToolStatistics(ToolUse):
    """How a tool's calls went: exact counts, and speed from the newest ones."""

    successfulCalls: int
    failedCalls: int
    reliability: float
    p50Latency: float | None
    p99Latency: float | None
    lastUsed: str | None
    commonErrors: list[str]


class ToolEntry(ToolSummary, ToolRefusal):
    """A tool in a list."""

    performance: ToolPerformance


class ToolList(TypedDict):
    """A page of tools; `total` and `categories` are of all that fit."""

    tools: list[ToolEntry]
    total: int
    categories: list[str]


class ToolDescription(ToolDetails, ToolRefusal):
    """A tool with its definition and its statistics."""

    statistics: ToolStatistics
    guardrails: NotRequired[list[ToolGuardrail]]


class ToolAnswer(TypedDict):
    """Everything about a tool."""

    tool: ToolDescription


class ToolHelp(TypedDict):
    """What a model needs to call a tool."""

    toolName: str
    description: str
    longDescription: str | None
    category: str
    status: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    required: list[str]
    examples: list[dict[str, Any]]
    statistics: ToolUse
    usage: str


class CacheRules(TypedDict, total=False):
    """How results are cached; what was never set is missing."""

    enabled: bool
    seconds: float
    bytes_max: int


class ResultCacheFigures(TypedDict):
    """How the cache of results is doing; `ttl` in seconds, None for each tool's own."""

    enabled: bool
    strategy: str
    entries: int
    bytes: int
    maxSize: int
    ttl: float | None
    hits: int
    misses: int


class ClearedCache(TypedDict):
    """How many results were taken out of the cache."""

    cleared: int


class ToolBreaker(TypedDict):
    """A circuit breaker as callers see it."""

    toolName: str
    status: Literal["closed", "open", "half-open"]
    failures: int
    reason: str
    lastFailure: str | None
    retryAfter: int | None


class ToolBreakers(TypedDict):
    """The breakers of tools that failed lately."""

    breakers: list[ToolBreaker]


class BreakerReset(TypedDict):
    """Whether a breaker was open and is closed now."""

    toolName: str
    reset: bool


class BreakerState(TypedDict):
    """A circuit breaker; `lastFailure` is a time of the clock that the breakers go by."""

    toolName: str
    status: Literal["closed", "open", "half-open"]
    failures: int
    reason: str
    lastFailure: float | None
    retryAfter: float | None
