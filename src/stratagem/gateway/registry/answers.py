"""What the operations on the registry answer, as types: at run time each is a plain dict.

The keys are the document's. A key that an answer may lack is `NotRequired`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, final

from stratagem.gateway.definitions.documents import ServerDocument, Status

__all__ = [
    "Approval",
    "ApprovalList",
    "BudgetDocument",
    "ConnectionDocument",
    "ConnectionList",
    "CredentialEntry",
    "CredentialList",
    "DecidedApproval",
    "EffectiveConfiguration",
    "GuardrailCheck",
    "GuardrailDocument",
    "GuardrailList",
    "KeptSecret",
    "MissingPart",
    "NewGrant",
    "OpenApiTools",
    "ProviderConfiguration",
    "ProviderEntry",
    "ProviderList",
    "ProviderResults",
    "ProviderTools",
    "RegistrationChecks",
    "RemovedConnection",
    "RemovedGuardrail",
    "RemovedSecret",
    "RemovedServer",
    "RemovedTool",
    "RemovedToolSet",
    "Resource",
    "ResourceAnswer",
    "ResourceList",
    "ResourceType",
    "ResourceVersion",
    "ResourceVersions",
    "SecretEntry",
    "SecretGrant",
    "SecretList",
    "ServerEntry",
    "ServerList",
    "ServerTool",
    "ServerTools",
    "SignInAnswer",
    "SignedIn",
    "SignedOut",
    "SourceTools",
    "ToolDetails",
    "ToolGuardrail",
    "ToolRefusal",
    "ToolRegistration",
    "ToolSetDocument",
    "ToolSetList",
    "ToolSummary",
    "ToolUpdate",
    "UpstreamCompletion",
    "UpstreamContents",
    "UpstreamListing",
    "UpstreamMessages",
    "UpstreamPrompt",
    "UpstreamResource",
    "UpstreamState",
    "UpstreamTemplate",
    "WithdrawnGrants",
]

ResourceType = Literal["prompt", "template", "data"]
JsonSchema = dict[str, Any]
# In a model provider's own format.
ProviderJson = dict[str, Any]


class RegistrationChecks(TypedDict):
    """What was found when a definition was checked."""

    passed: bool
    warnings: list[str]


@final
class ToolRegistration(TypedDict):
    """A tool that was registered; `version` is its revision."""

    toolId: str
    name: str
    status: Status
    version: int
    validation: RegistrationChecks


class ToolUpdate(TypedDict):
    """A tool that was updated; `changes` has the new value of each field that changed."""

    toolId: str
    name: str
    status: Status
    version: int
    changes: dict[str, Any]
    validation: RegistrationChecks


class RemovedTool(TypedDict):
    """A tool that was removed."""

    toolId: str
    name: str
    removed: bool


class MissingPart(TypedDict):
    """Why a standard tool cannot be called yet, and what has to be done so that it can."""

    reason: str
    nextStep: str


class ToolSummary(TypedDict):
    """What a list says of a tool; `fault`: why it cannot be called, though it is registered.

    `unavailable`: what a standard tool lacks.
    """

    id: str
    name: str
    description: str
    category: str
    provider: str
    status: Status
    version: str
    title: NotRequired[str]
    annotations: NotRequired[dict[str, Any]]
    icons: NotRequired[list[dict[str, Any]]]
    tags: NotRequired[list[str]]
    capabilities: NotRequired[list[str]]
    inputSchema: JsonSchema
    outputSchema: NotRequired[JsonSchema]
    pricing: NotRequired[dict[str, Any]]
    fault: NotRequired[str]
    unavailable: NotRequired[MissingPart]


class EffectiveConfiguration(TypedDict):
    """How the calls of a tool are run, with what nobody has set; `timeout` in milliseconds."""

    timeout: int
    retries: int
    cache: bool
    cacheTtl: float
    idempotent: bool
    concurrency: int
    rateLimit: int
    maxOutput: int


class ToolDetails(ToolSummary):
    """The whole definition of a tool."""

    revision: int
    handler: dict[str, Any]
    owner: NotRequired[str]
    longDescription: NotRequired[str]
    author: NotRequired[str]
    examples: NotRequired[list[dict[str, Any]]]
    configuration: NotRequired[dict[str, Any]]
    effectiveConfiguration: EffectiveConfiguration
    requirements: NotRequired[dict[str, Any]]
    permissions: NotRequired[dict[str, Any]]
    rights: NotRequired[dict[str, Any]]
    pending: NotRequired[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class ToolRefusal(TypedDict, total=False):
    """Why a tool can be seen and not called: the operator allows no more, or a secret is missing.

    `suspendedSecrets` were granted to the handler that it had before.
    """

    callable: bool
    refusal: str
    suspendedSecrets: list[str]


class SecretGrant(TypedDict):
    """A secret that a tool or an upstream server may send to one origin.

    A `suspended` one does nothing until a person grants it again; `reason` says why.
    """

    tool: str
    name: str
    origin: str
    state: Literal["active", "suspended"]
    grantedAt: str
    grantedBy: str
    reason: NotRequired[str]


class NewGrant(TypedDict):
    """A secret that was granted."""

    tool: str
    name: str
    origin: str
    granted: bool
    note: NotRequired[str]


class WithdrawnGrants(TypedDict):
    """A secret that was taken away; `withdrawn`: for how many origins it was granted."""

    tool: str
    name: str
    withdrawn: int


class SecretEntry(TypedDict):
    """A secret, without its value: where it comes from, and who set it."""

    name: str
    source: Literal["stored", "file", "command", "environment"]
    setAt: NotRequired[str]
    setBy: NotRequired[str]


class SecretList(TypedDict):
    """Which secrets there are, and to which tools they were granted."""

    secrets: list[SecretEntry]
    grants: list[SecretGrant]


class KeptSecret(TypedDict):
    """A secret that was set; `key` is where the key is by which it is encrypted."""

    name: str
    source: Literal["stored", "file", "command"]
    key: str


class RemovedSecret(TypedDict):
    """A secret that was removed."""

    name: str
    removed: bool


class GuardrailCheck(TypedDict):
    """What a guardrail does: a rule by itself, or what is run to decide."""

    type: Literal["mask", "block", "ask", "python", "tool"]
    level: NotRequired[Literal["basic", "strict"]]
    reason: NotRequired[str]
    callable: NotRequired[str]
    name: NotRequired[str]
    tool: NotRequired[str]
    timeout: NotRequired[int]


class GuardrailDocument(TypedDict):
    """A guardrail: when it is run, which calls it is about, and what it does."""

    name: str
    when: Literal["before", "after"]
    order: int
    check: GuardrailCheck
    match: dict[str, list[str]]
    description: str
    builtIn: NotRequired[bool]


class GuardrailList(TypedDict):
    """The guardrails, in the order in which they are run."""

    guardrails: list[GuardrailDocument]


class RemovedGuardrail(TypedDict):
    """A guardrail that was removed."""

    name: str
    removed: bool


class ConnectionDocument(TypedDict):
    """A named connection of the standard tools; secrets are references."""

    name: str
    kind: str
    settings: dict[str, Any]


class ConnectionList(TypedDict):
    """The connections there are."""

    connections: list[ConnectionDocument]


class RemovedConnection(TypedDict):
    """A connection that was removed."""

    name: str
    removed: bool


class ToolGuardrail(TypedDict):
    """A guardrail of a tool's calls; `callers`: of those by some only."""

    name: str
    when: Literal["before", "after"]
    action: str
    builtIn: NotRequired[bool]
    callers: NotRequired[list[str]]


class SignInAnswer(TypedDict):
    """A sign-in that a user goes on with at an address; `state` is what it is finished by."""

    server: str
    user: str
    address: str
    state: str
    expiresAt: str


class SignedIn(TypedDict):
    """A user who has signed in to a server, or given it what it asks for."""

    server: str
    user: str
    signedIn: bool


class SignedOut(TypedDict):
    """A user whose credentials for a server were forgotten; `removed`: whether there were any."""

    server: str
    user: str
    removed: bool


class CredentialEntry(TypedDict):
    """That a user has credentials for a server, without them: `values`, `oauth` or both."""

    server: str
    user: str
    origin: str
    kinds: list[str]
    setAt: str


class CredentialList(TypedDict):
    """Who has credentials for which server."""

    credentials: list[CredentialEntry]


class Resource(TypedDict):
    """A prompt, a template or data, at one revision."""

    id: str
    version: str
    type: ResourceType
    name: str
    content: str
    variables: list[str]
    revision: int
    description: NotRequired[str]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class ResourceVersion(Resource):
    """A resource as it was; `timestamp`: since when."""

    timestamp: str


class ResourceAnswer(TypedDict):
    """A resource; `rendered` where values for its variables were given."""

    resource: Resource
    rendered: NotRequired[str]


class ResourceList(TypedDict):
    """A page of resources; `total` counts those of all pages."""

    resources: list[Resource]
    total: int


class ResourceVersions(TypedDict):
    """The versions of a resource, newest first."""

    versions: list[ResourceVersion]


class SourceTools(TypedDict):
    """The results of registering the tools of a source, by name."""

    registered: list[str]
    updated: list[str]
    quarantined: list[str]
    warnings: list[str]


class ServerTools(SourceTools):
    """The tools of an upstream server.

    `needs`: the server was added and cannot be asked yet, because of an error with what to do.
    """

    server: str
    needs: NotRequired[dict[str, Any]]


class OpenApiTools(SourceTools):
    """The tools of an OpenAPI document; `secrets` says of each name what it must hold."""

    source: str
    secrets: dict[str, str]


class RemovedServer(TypedDict):
    """An upstream server that was removed, with its tools."""

    name: str
    removed: list[str]


class ServerTool(TypedDict):
    """A tool of an upstream server."""

    name: str
    status: Status


class ServerEntry(ServerDocument):
    """An upstream server with its tools."""

    tools: list[ServerTool]


class ServerList(TypedDict):
    """The upstream servers."""

    servers: list[ServerEntry]


class UpstreamPrompt(TypedDict):
    """A prompt of an upstream server; `name` is that under which it is served."""

    server: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    arguments: NotRequired[list[dict[str, Any]]]
    icons: NotRequired[list[dict[str, Any]]]
    _meta: NotRequired[dict[str, Any]]


class UpstreamResource(TypedDict):
    """A resource of an upstream server; `uri` is that under which it is served."""

    server: str
    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    annotations: NotRequired[dict[str, Any]]
    icons: NotRequired[list[dict[str, Any]]]
    _meta: NotRequired[dict[str, Any]]


class UpstreamTemplate(TypedDict):
    """A template for addresses of resources of an upstream server."""

    server: str
    uriTemplate: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    annotations: NotRequired[dict[str, Any]]
    icons: NotRequired[list[dict[str, Any]]]
    _meta: NotRequired[dict[str, Any]]


class UpstreamState(TypedDict):
    """Whether the lists of a server are there; `reason`: why not."""

    server: str
    available: bool
    reason: NotRequired[str]


class UpstreamListing(TypedDict):
    """What upstream servers have besides tools."""

    prompts: list[UpstreamPrompt]
    resources: list[UpstreamResource]
    templates: list[UpstreamTemplate]
    servers: list[UpstreamState]


class UpstreamMessages(TypedDict):
    """A prompt as its server says it; `result` has its `messages`."""

    server: str
    result: dict[str, Any]


class UpstreamContents(TypedDict):
    """A resource as its server sends it; `result` has its `contents`, binary ones as base64."""

    server: str
    result: dict[str, Any]


class UpstreamCompletion(TypedDict):
    """Completions of an argument; `result.completion` has the `values`."""

    server: str
    result: dict[str, Any]


class ProviderConfiguration(TypedDict):
    """The settings of a provider, as they are kept."""

    provider: str
    config: dict[str, Any]


class ProviderEntry(TypedDict):
    """A provider and its settings; null where it was never configured."""

    provider: str
    config: dict[str, Any] | None


class ProviderList(TypedDict):
    """The providers whose formats are known."""

    providers: list[ProviderEntry]


class ProviderTools(TypedDict):
    """The tools that are enabled for a provider, in its format."""

    provider: str
    tools: list[ProviderJson]


class ProviderResults(TypedDict):
    """The results of a provider's calls, in its format."""

    provider: str
    calls: int
    failed: int
    results: list[ProviderJson]


class BudgetDocument(TypedDict):
    """How often something may be called, and what that may cost, in a stretch of time."""

    per: NotRequired[Literal["hour", "day", "month"]]
    calls: NotRequired[int]
    cost: NotRequired[float]


class ToolSetDocument(TypedDict):
    """A named set of tools, as it is kept and shown; names and patterns of tools."""

    name: str
    description: str
    allow: list[str]
    deny: list[str]
    approve: list[str]
    readOnly: bool
    budget: BudgetDocument | None


class ToolSetList(TypedDict):
    """The named sets of tools."""

    toolsets: list[ToolSetDocument]


class RemovedToolSet(TypedDict):
    """A set that was removed: tokens that name it may call none of its tools."""

    name: str
    removed: bool


class Approval(TypedDict):
    """Something that waits for a person: a call, or a changed definition of a tool.

    `branch` and `namespace` are where a call works that names no others. Of a definition
    `differences` has what was approved beside what the server says now.
    """

    id: str
    kind: Literal["call", "definition"]
    tool: str
    state: Literal["waiting", "approved", "rejected"]
    caller: NotRequired[str]
    arguments: NotRequired[Any]
    branch: NotRequired[str]
    namespace: NotRequired[str]
    askedAt: NotRequired[str]
    server: NotRequired[str]
    isNew: NotRequired[bool]
    differences: NotRequired[list[dict[str, Any]]]
    definition: NotRequired[dict[str, Any]]
    warnings: NotRequired[list[str]]


class ApprovalList(TypedDict):
    """What waits for a person."""

    approvals: list[Approval]


class DecidedApproval(TypedDict):
    """What was decided."""

    id: str
    tool: str
    state: Literal["approved", "rejected"]
