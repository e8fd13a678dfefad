"""What the operations of the gateway take. The document's names are in camel case."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.definitions.documents import Status
from stratagem.parameters import AsOf, BranchName, Input, Param, RequestId, param

__all__ = [
    "BatchInput",
    "CacheClearInput",
    "CacheInput",
    "ConfigurationInput",
    "ContextInput",
    "ExecuteInput",
    "ExecutionsInput",
    "GrantInput",
    "HelpInput",
    "ListResourcesInput",
    "ListToolsInput",
    "NothingInput",
    "OptionsInput",
    "PipelineInput",
    "RegisterInput",
    "RemoveInput",
    "ResourceCreateInput",
    "ResourceInput",
    "ResourceRemoveInput",
    "ResourceUpdateInput",
    "ToolInput",
    "UpdateInput",
    "UpstreamCompleteInput",
    "UpstreamListInput",
    "UpstreamPromptInput",
    "UpstreamResourceInput",
]

Label = Annotated[str, Param("A label", min_length=1, max_length=limits.TOOL_LABEL_CHARS_MAX)]
ToolName = Annotated[str, Param("Name or id of a tool", min_length=1, max_length=512)]


@dataclass(kw_only=True)
class ConfigurationInput(Input):
    """How the calls of a tool are run; times in milliseconds, `cacheTtl` in seconds."""

    timeout: int | None = param(
        "Most milliseconds",
        default=None,
        ge=1,
        le=int(limits.EXECUTION_SECONDS_MAX * 1000),
        quiet=True,
    )
    retries: int | None = param(
        "How often a failed call is tried again",
        default=None,
        ge=0,
        le=limits.RETRIES_MAX,
        quiet=True,
    )
    cache: bool | None = param("Whether results may be cached", default=None, quiet=True)
    cache_ttl: float | None = param(
        "Seconds that a result stays in the cache",
        default=None,
        gt=0,
        le=30 * 24 * 3600,
        quiet=True,
    )
    idempotent: bool | None = param(
        "Whether calling it twice has the effect of one call", default=None, quiet=True
    )
    concurrency: int | None = param(
        "Calls that may run at once",
        default=None,
        ge=1,
        le=limits.EXECUTIONS_AT_ONCE_MAX,
        quiet=True,
    )
    rate_limit: int | None = param("Calls per minute, for each caller", default=None, ge=1)
    max_output: int | None = param(
        "Most bytes of a result", default=None, ge=1024, le=limits.OUTPUT_BYTES_MAX, quiet=True
    )


@dataclass(kw_only=True)
class RequirementsInput(Input):
    """What a tool needs to be run."""

    permissions: list[Label] = param(
        "What it needs or is allowed", default_factory=list, quiet=True
    )
    resources: list[Label] = param("Resources that it needs", default_factory=list, quiet=True)


@dataclass(kw_only=True)
class BudgetInput(Input):
    """How often something may be called, and what that may cost, in a stretch of time (UTC)."""

    calls: int | None = param("Most calls", default=None, ge=1)
    cost: float | None = param("Limit for the sum of `pricing.cost`", default=None, gt=0)
    per: Literal["hour", "day", "month"] = param("When it starts again from zero", default="day")


@dataclass(kw_only=True)
class RightsInput(Input):
    """Who may call a tool, and how much."""

    callers: list[Label] | None = param(
        "Names of the tokens that may call it; its owner and administrators always may",
        default=None,
        max_length=limits.TAGS_MAX,
    )
    approval: bool = param("Whether a person approves each call", default=False)
    budget: BudgetInput | None = param("How much all callers may call it", default=None)


@dataclass(kw_only=True)
class _Definition(Input):
    long_description: str | None = param(
        "Documentation of the tool",
        default=None,
        max_length=limits.TOOL_LONG_DESCRIPTION_CHARS_MAX,
        quiet=True,
    )
    version: Label | None = param("Its version", default=None, quiet=True)
    author: Label | None = param("Who wrote the tool", default=None, quiet=True)
    category: Label | None = param("Group of tools", default=None, quiet=True)
    tags: list[Label] | None = param("Labels", default=None, max_length=limits.TAGS_MAX, quiet=True)
    capabilities: list[Label] | None = param(
        "What the tool can do", default=None, max_length=limits.TAGS_MAX, quiet=True
    )
    provider: Label | None = param("Who provides it", default=None, quiet=True)
    output_schema: dict[str, Any] | None = param(
        "JSON Schema of its results", default=None, quiet=True
    )
    examples: list[dict[str, Any]] | None = param(
        "Example calls", default=None, max_length=limits.TOOL_EXAMPLES_MAX, quiet=True
    )
    configuration: ConfigurationInput | None = param(
        "How its calls are run", default=None, quiet=True
    )
    requirements: RequirementsInput | None = param(
        "What it needs to be run", default=None, quiet=True
    )
    permissions: dict[str, Any] | None = param(
        "What it needs or is allowed", default=None, quiet=True
    )
    pricing: dict[str, Any] | None = param("What a call costs", default=None, quiet=True)
    rights: RightsInput | None = param("Who may call it, and how much", default=None, quiet=True)
    metadata: dict[str, Any] | None = param("Any JSON about it", default=None, quiet=True)
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class RegisterInput(_Definition):
    """Parameters of tool_register."""

    name: str = param("Its name", quiet=True)
    description: str = param(
        "What it is for", min_length=1, max_length=limits.TOOL_DESCRIPTION_CHARS_MAX, quiet=True
    )
    input_schema: dict[str, Any] = param("JSON Schema of its parameters", quiet=True)
    handler: dict[str, Any] = param("What runs the tool", quiet=True)
    status: Status | None = param("Whether it can be called", default=None, quiet=True)


@dataclass(kw_only=True)
class UpdateInput(_Definition):
    """Parameters of tool_update."""

    tool_id: ToolName
    description: str | None = param(
        "What it is for",
        default=None,
        min_length=1,
        max_length=limits.TOOL_DESCRIPTION_CHARS_MAX,
        quiet=True,
    )
    input_schema: dict[str, Any] | None = param(
        "JSON Schema of its parameters", default=None, quiet=True
    )
    handler: dict[str, Any] | None = param("What runs the tool", default=None, quiet=True)
    status: Status | None = param("Whether it can be called", default=None, quiet=True)
    expected_version: int | None = param("Only if at this version", default=None, quiet=True)


@dataclass(kw_only=True)
class ToolInput(Input):
    """Parameters of tool_get."""

    tool_id: ToolName
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class RemoveInput(Input):
    """Parameters of tool_remove."""

    tool_id: ToolName
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class ListToolsInput(Input):
    """Parameters of tools_list."""

    category: str | None = param("Group of tools", default=None, quiet=True)
    provider: str | None = param("Who provides it", default=None, quiet=True)
    capabilities: list[str] | None = param("What the tool can do", default=None, quiet=True)
    tags: list[str] | None = param("Labels", default=None, quiet=True)
    status: Status | None = param("Only with this status", default=None, quiet=True)
    search: str | None = param(
        "Words in the name or description",
        default=None,
        max_length=limits.QUERY_CHARS_MAX,
        quiet=True,
    )
    limit: int = param(
        "Most results",
        default=limits.TOOLS_LISTED_DEFAULT,
        ge=1,
        le=limits.TOOLS_LISTED_MAX,
        quiet=True,
    )
    offset: int = param("Results to skip", default=0, ge=0, quiet=True)
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class OptionsInput(Input):
    """How one call is run; `timeout` in milliseconds."""

    timeout: int | None = param(
        "Most milliseconds",
        default=None,
        ge=1,
        le=int(limits.EXECUTION_SECONDS_MAX * 1000),
        quiet=True,
    )
    retries: int | None = param(
        "How often a failed call is tried again",
        default=None,
        ge=0,
        le=limits.RETRIES_MAX,
        quiet=True,
    )
    skip_cache: bool = param("Run it even if a result is cached", default=False, quiet=True)
    priority: Literal["low", "normal", "high"] = param(
        "Which calls go first", default="normal", quiet=True
    )
    auto_correct: bool = param("Correct arguments that do not fit", default=True, quiet=True)


@dataclass(kw_only=True)
class ContextInput(Input):
    """Labels for filtering and analysis: never identity or permission."""

    open_ended: ClassVar[bool] = True

    def labels(self) -> dict[str, Any]:
        """Return the labels that were given."""
        return {name: value for name, value in self.to_arguments().items() if value is not None}

    agent_id: str | None = param(
        "A label of the agent that calls", default=None, max_length=256, quiet=True
    )
    channel_id: str | None = param(
        "A label of the conversation", default=None, max_length=256, quiet=True
    )
    request_id: str | None = param(
        "A label of the request", default=None, max_length=256, quiet=True
    )


@dataclass(kw_only=True)
class SandboxInput(Input):
    """What a caller allows; it may narrow what the tool has, never widen it."""

    enabled: bool = param("Whether it is on", default=True, quiet=True)
    permissions: dict[str, Any] = param(
        "What it needs or is allowed", default_factory=dict, quiet=True
    )


@dataclass(kw_only=True)
class ExecuteInput(Input):
    """Parameters of tool_execute."""

    tool_name: ToolName = param("Name or id")
    arguments: dict[str, Any] | str = param(
        "Arguments for the tool", default_factory=dict, quiet=True
    )
    options: OptionsInput | None = param("How the call is run", default=None, quiet=True)
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    sandbox: SandboxInput | None = param(
        "What the call may do; it narrows what the tool may", default=None, quiet=True
    )
    correction_id: str | None = param("An offered correction to apply", default=None)
    confirm: bool = param("Apply the offered correction", default=False, quiet=True)
    async_: bool = param(
        "Answer at once, with an id for work_list and work_cancel",
        default=False,
        alias="async",
    )
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class BatchItem(Input):
    """One call of a batch."""

    tool_name: ToolName
    arguments: dict[str, Any] | str = param(
        "Arguments for the tool", default_factory=dict, quiet=True
    )
    options: OptionsInput | None = param("How the call is run", default=None, quiet=True)
    correction_id: str | None = param("An offered correction to apply", default=None)
    confirm: bool = param("Apply the offered correction", default=False, quiet=True)


@dataclass(kw_only=True)
class BatchInput(Input):
    """Parameters of tools_batch."""

    executions: list[BatchItem] = param(
        "The calls", min_length=1, max_length=limits.BATCH_MAX, quiet=True
    )
    parallel: bool = param("Run the calls at once", default=True, quiet=True)
    stop_on_error: bool = param("In order only", default=False)
    async_: bool = param(
        "Answer at once, with an id for work_list and work_cancel",
        default=False,
        alias="async",
        quiet=True,
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class PipelineInput(Input):
    """Parameters of tools_pipeline."""

    name: str | None = param(
        "Its name", default=None, max_length=limits.TOOL_NAME_CHARS_MAX, quiet=True
    )
    steps: list[dict[str, Any]] | None = param("[{tool, arguments, …}]", default=None)
    output: Any = param("What the pipeline answers", default=None, quiet=True)
    input: Any = param("Input of the pipeline", default=None, quiet=True)
    dry_run: bool = param("Only show what would be done", default=False)
    resume: str | None = param("The id of an interrupted run", default=None)
    save_as: str | None = param("Register it as a tool of this name", default=None)
    description: str | None = param("What it is for", default=None, quiet=True)
    async_: bool = param(
        "Answer at once, with an id for work_list and work_cancel",
        default=False,
        alias="async",
        quiet=True,
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class HelpInput(Input):
    """Parameters of tool_help."""

    tool_name: ToolName
    branch: BranchName = None


@dataclass(kw_only=True)
class ExecutionsInput(Input):
    """Parameters of tool_executions."""

    tool_id: str | None = param("Name or id of a tool", default=None, quiet=True)
    execution_id: str | None = param("One execution", default=None, quiet=True)
    agent_id: str | None = param("A label of the agent that calls", default=None, quiet=True)
    status: Literal["success", "failed", "timeout"] | None = param(
        "Only with this status", default=None, quiet=True
    )
    from_: str | None = param(
        "Not before this time", default=None, alias="from", quiet=True, time="moment"
    )
    to: str | None = param("Not after this time", default=None, quiet=True, time="moment")
    limit: int = param(
        "Most results",
        default=limits.EXECUTIONS_LISTED_DEFAULT,
        ge=1,
        le=limits.EXECUTIONS_LISTED_MAX,
        quiet=True,
    )
    cursor: str | None = param("`next` of the last answer", default=None, quiet=True)
    branch: BranchName = None


Pattern = Annotated[
    str, Param("A tool's name, or a pattern such as git_*", min_length=1, max_length=128)
]
Patterns = Annotated[
    list[Pattern], Param("Names and patterns", max_length=limits.TOOL_SET_PATTERNS_MAX)
]


@dataclass(kw_only=True)
class ToolSetInput(Input):
    """Parameters of toolset_define."""

    name: str = param("Its name", pattern=r"^[a-z][a-z0-9_-]*$", max_length=64, quiet=True)
    allow: Patterns = param("Tools in it: names and patterns", min_length=1)
    deny: Patterns = param("Tools excluded from it", default_factory=list)
    approve: Patterns = param(
        "Tools of it whose calls a person has to approve", default_factory=list
    )
    read_only: bool = param("Only tools that change nothing", default=False)
    budget: BudgetInput | None = param("How much each caller may call it", default=None)
    description: str = param("What it is for", default="", max_length=1000, quiet=True)


@dataclass(kw_only=True)
class ToolSetNameInput(Input):
    """Parameters of toolset_remove."""

    name: str = param("Its name", min_length=1, max_length=64, quiet=True)


@dataclass(kw_only=True)
class ConnectionInput(Input):
    """Parameters of connection_set."""

    name: str = param("Its name", pattern=r"^[a-z][a-z0-9_-]*$", max_length=64, quiet=True)
    kind: Literal["search", "database", "webhook", "smtp", "api", "folder"] = param(
        "Kind of connection"
    )
    settings: dict[str, Any] = param("Where and how; secrets as ${NAME}")


@dataclass(kw_only=True)
class ConnectionNameInput(Input):
    """Parameters of connection_remove."""

    name: str = param("Its name", min_length=1, max_length=64, quiet=True)


@dataclass(kw_only=True)
class ApprovalInput(Input):
    """Parameters of approval_decide."""

    id: str = param("Its id in approvals_list", min_length=1, max_length=256)
    decision: Literal["approve", "reject"] = param("The decision")
    reason: str | None = param("The reason, shown to the caller", default=None, max_length=500)


@dataclass(kw_only=True)
class WorkListInput(Input):
    """Parameters of work_list."""

    execution_id: str | None = param(
        "Only this one, with its result once it has ended",
        default=None,
        min_length=1,
        max_length=256,
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class WorkCancelInput(Input):
    """Parameters of work_cancel."""

    execution_id: str = param(
        "Its executionId, or the requestId you gave it",
        min_length=1,
        max_length=256,
        aliases=("requestId", "runId"),
    )


@dataclass(kw_only=True)
class RetentionInput(Input):
    """Parameters of executions_erase."""

    days: float = param(
        "Erase the content of older ones",
        default=limits.EXECUTION_DAYS_KEPT,
        ge=0,
        le=limits.EXECUTION_DAYS_KEPT_MAX,
    )
    preview: bool = param("Erase nothing; tell how many there are", default=False)


@dataclass(kw_only=True)
class ToolPurgeInput(Input):
    """Parameters of tool_purge."""

    record_id: str = param("Name or id of a tool, or the id of an execution")
    confirm: bool = param("true: erase it; otherwise only show what would be erased", default=False)


@dataclass(kw_only=True)
class CacheInput(Input):
    """Parameters of cache_configure."""

    enabled: bool | None = param("Whether it is on", default=None, quiet=True)
    ttl: float | None = param("Seconds", default=None, gt=0, le=30 * 24 * 3600)
    max_size: int | str | None = param('Bytes, or "100MB"', default=None)
    strategy: Literal["lru"] = param("What a full cache drops first", default="lru", quiet=True)


@dataclass(kw_only=True)
class CacheClearInput(Input):
    """Parameters of cache_clear."""

    tool_id: str | None = param("Name or id of a tool", default=None, quiet=True)


@dataclass(kw_only=True)
class BreakerResetInput(Input):
    """Parameters of breaker_reset."""

    tool_name: str = param("Its name in breakers_list", min_length=1, max_length=512)
    reason: str | None = param("The reason, for event listeners", default=None, max_length=200)


@dataclass(kw_only=True)
class NothingInput(Input):
    """Parameters of an operation that takes none."""


@dataclass(kw_only=True)
class GuardrailMatch(Input):
    """Which calls a guardrail is about: those that fit each list; * and ? are wildcards."""

    tools: list[Label] | None = param("Names of tools", default=None, max_length=500)
    tags: list[Label] | None = param("Tags of tools", default=None, max_length=100)
    sources: list[Label] | None = param(
        "Upstream servers, documents or providers that tools come from",
        default=None,
        max_length=100,
    )
    callers: list[Label] | None = param(
        "Callers, as token:alice or alice", default=None, max_length=500
    )


@dataclass(kw_only=True)
class GuardrailCheckInput(Input):
    """What a guardrail does."""

    type: Literal["mask", "block", "ask", "python", "tool"] = param(
        "A rule, or what is run to decide"
    )
    level: Literal["basic", "strict"] | None = param("How much is masked", default=None)
    reason: str | None = param(
        "Why it blocks or asks", default=None, max_length=limits.GUARDRAIL_REASON_CHARS_MAX
    )
    callable: str | None = param(
        "A Python function, package.module:function, that the operator has allowed",
        default=None,
        max_length=300,
    )
    name: str | None = param(
        "A Python function that was added in this process", default=None, max_length=300
    )
    tool: str | None = param("A registered tool", default=None, max_length=512)
    timeout: int | None = param(
        "Most milliseconds",
        default=None,
        ge=1,
        le=int(limits.GUARDRAIL_SECONDS_MAX * 1000),
    )


@dataclass(kw_only=True)
class GuardrailInput(Input):
    """Parameters of guardrail_define."""

    name: str = param("Its name", pattern=r"^[a-z][a-z0-9_-]*$", max_length=64, quiet=True)
    when: Literal["before", "after"] = param("Whether it sees arguments or results")
    check: GuardrailCheckInput = param("What it does")
    match: GuardrailMatch | None = param("Which calls it applies to; all by default", default=None)
    order: int = param("Lower ones run first", default=100, ge=1, le=1_000_000)
    description: str = param("What it is for", default="", max_length=1000, quiet=True)


@dataclass(kw_only=True)
class GuardrailNameInput(Input):
    """Parameters of guardrail_remove."""

    name: str = param("Its name", min_length=1, max_length=64, quiet=True)


SecretName = Annotated[
    str, Param("Its name", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100, quiet=True)
]


@dataclass(kw_only=True)
class GrantInput(Input):
    """Parameters of secret_grant."""

    tool: ToolName
    name: SecretName
    origin: str | None = param(
        "Where it may be sent, as https://api.example.org:443; the tool's own origin by default",
        default=None,
        min_length=1,
        max_length=300,
        aliases=("host",),
    )


@dataclass(kw_only=True)
class SecretInput(Input):
    """Parameters of secret_set: a value, or where it is."""

    name: SecretName
    value: str | None = param(
        "The secret itself", default=None, min_length=1, max_length=limits.SECRET_BYTES_MAX
    )
    file: str | None = param(
        "A file on the server that holds it", default=None, min_length=1, max_length=4096
    )
    command: list[str] | None = param(
        "A program on the server, with its arguments, that prints it", default=None, max_length=100
    )


@dataclass(kw_only=True)
class SecretNameInput(Input):
    """Parameters of secret_remove."""

    name: SecretName


@dataclass(kw_only=True)
class WithdrawInput(Input):
    """Parameters of secret_withdraw."""

    tool: ToolName
    name: str = param("Its name", quiet=True)


ResourceName = Annotated[str, Param("Name or id", min_length=1, max_length=512)]
Variables = Annotated[
    list[Label] | None, Param("Names of its variables", quiet=True, max_length=limits.VARIABLES_MAX)
]


@dataclass(kw_only=True)
class ResourceCreateInput(Input):
    """Parameters of resource_create."""

    type: Literal["prompt", "template", "data"] = param("Its kind", quiet=True)
    name: Label = param("Its name", quiet=True)
    description: str = param(
        "What it is for", default="", max_length=limits.TOOL_DESCRIPTION_CHARS_MAX, quiet=True
    )
    content: str = param("Its text", max_length=limits.RESOURCE_CHARS_MAX, quiet=True)
    variables: Variables = None
    tags: list[Label] = param(
        "Labels", default_factory=list, max_length=limits.TAGS_MAX, quiet=True
    )
    metadata: dict[str, Any] | None = param("Any JSON about it", default=None, quiet=True)
    version: Label | None = param("Its version", default=None, quiet=True)
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class ResourceUpdateInput(Input):
    """Parameters of resource_update."""

    resource_id: ResourceName
    description: str | None = param(
        "What it is for", default=None, max_length=limits.TOOL_DESCRIPTION_CHARS_MAX, quiet=True
    )
    content: str | None = param(
        "Its text", default=None, max_length=limits.RESOURCE_CHARS_MAX, quiet=True
    )
    variables: Variables = None
    tags: list[Label] | None = param("Labels", default=None, max_length=limits.TAGS_MAX, quiet=True)
    metadata: dict[str, Any] | None = param("Any JSON about it", default=None, quiet=True)
    version: Label | None = param("Its version", default=None, quiet=True)
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class ResourceInput(Input):
    """Parameters of resource_get and resource_versions."""

    resource_id: ResourceName
    variables: dict[str, Any] | None = param("Values to render it with", default=None)
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class ResourceRemoveInput(Input):
    """Parameters of resource_remove."""

    resource_id: ResourceName
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class ListResourcesInput(Input):
    """Parameters of resources_list."""

    type: Literal["prompt", "template", "data"] | None = param("Its kind", default=None, quiet=True)
    tags: list[str] | None = param("Labels", default=None, quiet=True)
    search: str | None = param(
        "Words in the name or description",
        default=None,
        max_length=limits.QUERY_CHARS_MAX,
        quiet=True,
    )
    limit: int = param(
        "Most results",
        default=limits.TOOLS_LISTED_DEFAULT,
        ge=1,
        le=limits.TOOLS_LISTED_MAX,
        quiet=True,
    )
    offset: int = param("Results to skip", default=0, ge=0, quiet=True)
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class ServerInput(Input):
    """Parameters of server_add: a command to start, or an address."""

    name: Label = param("Its name", quiet=True)
    transport: Literal["stdio", "http"] | None = param(
        "How to reach it; derived from command or url", default=None, quiet=True
    )
    command: str | None = param("Program to start", default=None, quiet=True)
    args: list[str] = param("Arguments of the command", default_factory=list, quiet=True)
    env: dict[str, str] = param(
        "Environment variables of the command", default_factory=dict, quiet=True
    )
    url: str | None = param("Its address", default=None, quiet=True)
    headers: dict[str, str] = param("HTTP headers to send", default_factory=dict, quiet=True)
    auth: dict[str, str] | None = param(
        'How users sign in to it: {"type": "oauth"}', default=None, quiet=True
    )

    def definition(self) -> dict[str, Any]:
        """Return the definition in the form in which it is kept."""
        if self.transport == "http" or (self.transport is None and self.url is not None):
            kept: dict[str, Any] = {
                "transport": "http",
                "url": self.url or "",
                "headers": self.headers,
            } | ({} if self.auth is None else {"auth": self.auth})
        else:
            kept = {
                "transport": "stdio",
                "command": self.command or "",
                "args": self.args,
                "env": self.env,
            }
        other = {"url": self.url} if kept["transport"] == "stdio" else {"command": self.command}
        kept |= {name: each for name, each in other.items() if each is not None}
        return {"name": self.name, **kept}


UserName = Annotated[
    str | None,
    Param(
        "The user it belongs to, as the log names users; the caller by default",
        max_length=200,
        quiet=True,
    ),
]


@dataclass(kw_only=True)
class SignInInput(Input):
    """Parameters of server_sign_in."""

    name: Label = param("The upstream server", quiet=True)
    user: UserName = None
    redirect_uri: str | None = param(
        "Where the browser returns to: http://127.0.0.1:PORT/… of a program of the user",
        default=None,
        max_length=300,
        pattern=r"^http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}/[A-Za-z0-9/_-]{0,100}$",
        quiet=True,
    )


@dataclass(kw_only=True)
class FinishSignInInput(Input):
    """Parameters of sign_in_finish."""

    state: str = param("As server_sign_in returned it", min_length=1, max_length=300)
    code: str = param("The code of the authorization server", min_length=1, max_length=4096)
    issuer: str | None = param("Its `iss`, if there was one", default=None, max_length=2048)


@dataclass(kw_only=True)
class CredentialInput(Input):
    """Parameters of credential_set."""

    server: Label = param("The upstream server", quiet=True)
    name: SecretName
    value: str = param("The credential", min_length=1, max_length=limits.SECRET_BYTES_MAX)
    user: UserName = None


@dataclass(kw_only=True)
class SignOutInput(Input):
    """Parameters of credential_remove."""

    server: Label = param("The upstream server", quiet=True)
    user: UserName = None


@dataclass(kw_only=True)
class ServerNameInput(Input):
    """Parameters of server_remove."""

    name: Label = param("Its name", quiet=True)


@dataclass(kw_only=True)
class RefreshServerInput(ServerNameInput):
    """Parameters of server_refresh."""

    approve: bool = param("Approve changed tools as they are now", default=False)


@dataclass(kw_only=True)
class UpstreamListInput(Input):
    """Parameters of upstream_list, and of all that reads what it lists."""

    servers: list[Label] | None = param(
        "Only these upstream servers", default=None, max_length=limits.UPSTREAM_SERVERS_MAX
    )
    tools: list[Label] | None = param(
        "Only servers with such a name or such a tool; * and ? are wildcards",
        default=None,
        max_length=limits.TAGS_MAX,
    )


@dataclass(kw_only=True)
class UpstreamPromptInput(UpstreamListInput):
    """Parameters of upstream_prompt."""

    name: Label = param("Name of the prompt")
    arguments: dict[str, str] = param("Its arguments", default_factory=dict, quiet=True)


@dataclass(kw_only=True)
class UpstreamResourceInput(UpstreamListInput):
    """Parameters of upstream_resource."""

    uri: str = param(
        "Address of the resource", min_length=1, max_length=limits.UPSTREAM_URI_CHARS_MAX
    )


@dataclass(kw_only=True)
class UpstreamCompleteInput(UpstreamListInput):
    """Parameters of upstream_complete."""

    prompt: Label | None = param("Name of a prompt", default=None)
    template: str | None = param(
        "Address template of resources", default=None, max_length=limits.UPSTREAM_URI_CHARS_MAX
    )
    argument: Label = param("The argument to complete", quiet=True)
    value: str = param(
        "What was typed so far", default="", max_length=limits.UPSTREAM_URI_CHARS_MAX, quiet=True
    )
    arguments: dict[str, str] = param(
        "Arguments that have values already", default_factory=dict, quiet=True
    )


@dataclass(kw_only=True)
class OpenApiInput(Input):
    """Parameters of openapi_add."""

    url: str | None = param("Its address", default=None, quiet=True)
    document: dict[str, Any] | str | None = param(
        "The OpenAPI document, as an object or text", default=None, quiet=True
    )
    base_url: str | None = param("Instead of the document's servers", default=None)
    prefix: str | None = param(
        "Prefix for the name of each tool", default=None, max_length=32, quiet=True
    )


@dataclass(kw_only=True)
class ProviderConfigureInput(Input):
    """Parameters of provider_configure."""

    provider: Label = param("Who provides it", quiet=True)
    config: dict[str, Any] = param("Settings of the provider", quiet=True)
    branch: BranchName = None


@dataclass(kw_only=True)
class ProvidersInput(Input):
    """Parameters of providers_list."""

    branch: BranchName = None


@dataclass(kw_only=True)
class ProviderToolsInput(Input):
    """Parameters of provider_tools."""

    provider: Label = param("Who provides it", quiet=True)
    tools: list[str] | None = param("Only these", default=None)
    branch: BranchName = None


@dataclass(kw_only=True)
class ProviderCallInput(Input):
    """Parameters of provider_call."""

    provider: Label = param("Who provides it", quiet=True)
    payload: Any = param("The provider's answer, or the calls in it")
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None
