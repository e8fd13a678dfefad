"""What the operations of the gateway take. The document's names are in camel case."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from stratagem import limits
from stratagem.gateway.definitions.contract import Status

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
]

Branch = Annotated[str | None, Field(description="Branch")]
AsOf = Annotated[str | int | None, Field(description="Past moment")]
RequestId = Annotated[str | None, Field(description="Makes a retry safe")]
Label = Annotated[str, Field(min_length=1, max_length=limits.TOOL_LABEL_CHARS_MAX)]
ToolName = Annotated[str, Field(min_length=1, max_length=512, description="Name or id of a tool")]


class Input(BaseModel):
    """The base of all: names in camel case, or as Python has them."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=False
    )

    def given(self) -> dict[str, Any]:
        """Return what was given, under the document's names."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class ConfigurationInput(Input):
    """How the calls of a tool are run; times in milliseconds, `cacheTtl` in seconds."""

    timeout: int | None = Field(None, ge=1, le=int(limits.EXECUTION_SECONDS_MAX * 1000))
    retries: int | None = Field(None, ge=0, le=limits.RETRIES_MAX)
    cache: bool | None = None
    cache_ttl: float | None = Field(None, gt=0, le=30 * 24 * 3600)
    idempotent: bool | None = None
    concurrency: int | None = Field(None, ge=1, le=limits.EXECUTIONS_AT_ONCE_MAX)
    rate_limit: int | None = Field(None, ge=1, description="Calls a minute, of one caller")
    max_output: int | None = Field(None, ge=1024, le=limits.OUTPUT_BYTES_MAX)


class RequirementsInput(Input):
    """What a tool needs to be run."""

    permissions: list[Label] = Field(default_factory=list)
    resources: list[Label] = Field(default_factory=list)


class _Definition(Input):
    long_description: str | None = Field(None, max_length=limits.TOOL_LONG_DESCRIPTION_CHARS_MAX)
    version: Label | None = None
    author: Label | None = None
    category: Label | None = None
    tags: list[Label] | None = Field(None, max_length=limits.TAGS_MAX)
    capabilities: list[Label] | None = Field(None, max_length=limits.TAGS_MAX)
    provider: Label | None = None
    output_schema: dict[str, Any] | None = None
    examples: list[dict[str, Any]] | None = Field(None, max_length=limits.TOOL_EXAMPLES_MAX)
    configuration: ConfigurationInput | None = None
    requirements: RequirementsInput | None = None
    permissions: dict[str, Any] | None = None
    pricing: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    branch: Branch = None
    request_id: RequestId = None


class RegisterInput(_Definition):
    """Parameters of tool_register."""

    name: str
    description: str = Field(min_length=1, max_length=limits.TOOL_DESCRIPTION_CHARS_MAX)
    input_schema: dict[str, Any]
    handler: dict[str, Any]
    status: Status | None = None


class UpdateInput(_Definition):
    """Parameters of tool_update."""

    tool_id: ToolName
    description: str | None = Field(
        None, min_length=1, max_length=limits.TOOL_DESCRIPTION_CHARS_MAX
    )
    input_schema: dict[str, Any] | None = None
    handler: dict[str, Any] | None = None
    status: Status | None = None
    expected_version: int | None = None


class ToolInput(Input):
    """Parameters of tool_get."""

    tool_id: ToolName
    branch: Branch = None
    as_of: AsOf = None


class RemoveInput(Input):
    """Parameters of tool_remove."""

    tool_id: ToolName
    branch: Branch = None
    request_id: RequestId = None


class ListToolsInput(Input):
    """Parameters of tools_list."""

    category: str | None = None
    provider: str | None = None
    capabilities: list[str] | None = None
    tags: list[str] | None = None
    status: Status | None = None
    search: str | None = Field(None, max_length=limits.QUERY_CHARS_MAX)
    limit: int = Field(limits.TOOLS_LISTED_DEFAULT, ge=1, le=limits.TOOLS_LISTED_MAX)
    offset: int = Field(0, ge=0)
    branch: Branch = None
    as_of: AsOf = None


class OptionsInput(Input):
    """How one call is run; `timeout` in milliseconds."""

    timeout: int | None = Field(None, ge=1, le=int(limits.EXECUTION_SECONDS_MAX * 1000))
    retries: int | None = Field(None, ge=0, le=limits.RETRIES_MAX)
    skip_cache: bool = False
    priority: Literal["low", "normal", "high"] = "normal"
    auto_correct: bool = True


class ContextInput(Input):
    """Labels for filtering and analysis: never identity or permission."""

    model_config = ConfigDict(extra="allow")

    agent_id: str | None = Field(None, max_length=256)
    channel_id: str | None = Field(None, max_length=256)
    request_id: str | None = Field(None, max_length=256)


class SandboxInput(Input):
    """What a caller allows; it may narrow what the tool has, never widen it."""

    enabled: bool = True
    permissions: dict[str, Any] = Field(default_factory=dict)


class ExecuteInput(Input):
    """Parameters of tool_execute."""

    tool_name: ToolName = Field(description="Name or id")
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    options: OptionsInput | None = None
    context: ContextInput | None = None
    sandbox: SandboxInput | None = None
    correction_id: str | None = Field(None, description="An offered correction to apply")
    confirm: bool = False
    branch: Branch = None
    request_id: RequestId = None


class BatchItem(Input):
    """One call of a batch."""

    tool_name: ToolName
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    options: OptionsInput | None = None
    correction_id: str | None = Field(None, description="An offered correction to apply")
    confirm: bool = False


class BatchInput(Input):
    """Parameters of tools_batch."""

    executions: list[BatchItem] = Field(min_length=1, max_length=limits.BATCH_MAX)
    parallel: bool = True
    stop_on_error: bool = Field(default=False, description="In order only")
    context: ContextInput | None = None
    branch: Branch = None


class PipelineInput(Input):
    """Parameters of tools_pipeline."""

    name: str | None = Field(None, max_length=limits.TOOL_NAME_CHARS_MAX)
    steps: list[dict[str, Any]] | None = Field(None, description="[{tool, arguments, …}]")
    output: Any = None
    input: Any = None
    dry_run: bool = Field(default=False, description="Say what would be done")
    resume: str | None = Field(None, description="The id of a run that was cut off")
    save_as: str | None = Field(None, description="Register it as a tool of this name")
    description: str | None = None
    context: ContextInput | None = None
    branch: Branch = None


class HelpInput(Input):
    """Parameters of tool_help."""

    tool_name: ToolName
    branch: Branch = None


class ExecutionsInput(Input):
    """Parameters of tool_executions."""

    tool_id: str | None = None
    execution_id: str | None = None
    agent_id: str | None = None
    status: Literal["success", "failed", "timeout"] | None = None
    from_: str | None = Field(None, alias="from")
    to: str | None = None
    limit: int = Field(limits.EXECUTIONS_LISTED_DEFAULT, ge=1, le=limits.EXECUTIONS_LISTED_MAX)
    cursor: str | None = None
    branch: Branch = None


class RetentionInput(Input):
    """Parameters of executions_erase."""

    days: float = Field(
        limits.EXECUTION_DAYS_KEPT,
        ge=0,
        le=limits.EXECUTION_DAYS_KEPT_MAX,
        description="Older ones lose their content",
    )
    preview: bool = Field(default=False, description="Erase nothing; say how many there are")


class CacheInput(Input):
    """Parameters of cache_configure."""

    enabled: bool | None = None
    ttl: float | None = Field(None, gt=0, le=30 * 24 * 3600, description="Seconds")
    max_size: int | str | None = Field(None, description='Bytes, or "100MB"')
    strategy: Literal["lru"] = "lru"


class CacheClearInput(Input):
    """Parameters of cache_clear."""

    tool_id: str | None = None


class NothingInput(Input):
    """Parameters of an operation that takes none."""


class GrantInput(Input):
    """Parameters of secret_grant."""

    tool: ToolName
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)
    host: str = Field(min_length=1, max_length=255, description="Where it may be sent")


class WithdrawInput(Input):
    """Parameters of secret_withdraw."""

    tool: ToolName
    name: str


ResourceName = Annotated[str, Field(min_length=1, max_length=512, description="Name or id")]
Variables = Annotated[list[Label] | None, Field(max_length=limits.VARIABLES_MAX)]


class ResourceCreateInput(Input):
    """Parameters of resource_create."""

    type: Literal["prompt", "template", "data"]
    name: Label
    description: str = Field("", max_length=limits.TOOL_DESCRIPTION_CHARS_MAX)
    content: str = Field(max_length=limits.RESOURCE_CHARS_MAX)
    variables: Variables = None
    tags: list[Label] = Field(default_factory=list, max_length=limits.TAGS_MAX)
    metadata: dict[str, Any] | None = None
    version: Label | None = None
    branch: Branch = None
    request_id: RequestId = None


class ResourceUpdateInput(Input):
    """Parameters of resource_update."""

    resource_id: ResourceName
    description: str | None = Field(None, max_length=limits.TOOL_DESCRIPTION_CHARS_MAX)
    content: str | None = Field(None, max_length=limits.RESOURCE_CHARS_MAX)
    variables: Variables = None
    tags: list[Label] | None = Field(None, max_length=limits.TAGS_MAX)
    metadata: dict[str, Any] | None = None
    version: Label | None = None
    branch: Branch = None
    request_id: RequestId = None


class ResourceInput(Input):
    """Parameters of resource_get and resource_versions."""

    resource_id: ResourceName
    variables: dict[str, Any] | None = Field(None, description="Values to render it with")
    branch: Branch = None
    as_of: AsOf = None


class ResourceRemoveInput(Input):
    """Parameters of resource_remove."""

    resource_id: ResourceName
    branch: Branch = None
    request_id: RequestId = None


class ListResourcesInput(Input):
    """Parameters of resources_list."""

    type: Literal["prompt", "template", "data"] | None = None
    tags: list[str] | None = None
    search: str | None = Field(None, max_length=limits.QUERY_CHARS_MAX)
    limit: int = Field(limits.TOOLS_LISTED_DEFAULT, ge=1, le=limits.TOOLS_LISTED_MAX)
    offset: int = Field(0, ge=0)
    branch: Branch = None
    as_of: AsOf = None


class ServerInput(Input):
    """Parameters of server_add: a command to start, or an address."""

    name: Label
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    def definition(self) -> dict[str, Any]:
        """Return the definition in the form in which it is kept."""
        if self.url is not None:
            kept: dict[str, Any] = {"transport": "http", "url": self.url, "headers": self.headers}
        else:
            kept = {
                "transport": "stdio",
                "command": self.command or "",
                "args": self.args,
                "env": self.env,
            }
        return {"name": self.name, **kept}


class ServerNameInput(Input):
    """Parameters of server_refresh and server_remove."""

    name: Label
    approve: bool = Field(default=False, description="Take changed tools as they are now")


class OpenApiInput(Input):
    """Parameters of openapi_add."""

    url: str | None = None
    document: dict[str, Any] | str | None = None
    base_url: str | None = Field(None, description="Instead of the document's servers")
    prefix: str | None = Field(None, max_length=32)


class ProviderConfigureInput(Input):
    """Parameters of provider_configure."""

    provider: Label
    config: dict[str, Any]
    branch: Branch = None


class ProvidersInput(Input):
    """Parameters of providers_list."""

    branch: Branch = None


class ProviderToolsInput(Input):
    """Parameters of provider_tools."""

    provider: Label
    tools: list[str] | None = Field(None, description="Only these")
    branch: Branch = None


class ProviderCallInput(Input):
    """Parameters of provider_call."""

    provider: Label
    payload: Any = Field(description="The provider's answer, or the calls in it")
    context: ContextInput | None = None
    branch: Branch = None
