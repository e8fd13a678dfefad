"""The names that the gateway's records and events go by."""

from __future__ import annotations

from typing import Final

from stratagem.engine.events import Space

__all__ = [
    "APPROVALS",
    "AUDITED",
    "BREAKER",
    "BREAKERS",
    "BREAKER_CLOSED",
    "BREAKER_OPENED",
    "CONNECTION",
    "CONNECTIONS",
    "CONNECTION_REMOVED",
    "CONNECTION_SET",
    "CORRECTIONS_FAILED",
    "CORRECTIONS_OK",
    "CORRECTIONS_OPEN",
    "CORRECTIONS_REFUSED",
    "CREDENTIALS",
    "EXECUTIONS_FAILED",
    "EXECUTIONS_OK",
    "FACET_CORRECTION",
    "FACET_EXECUTION",
    "FACET_RECOMMENDATION",
    "GRANTS",
    "GUARDRAILS",
    "LESSONS_AGAINST",
    "LESSONS_FOR",
    "OAUTH_CLIENTS",
    "PART",
    "PIPELINE_RUNS",
    "PROVIDERS",
    "RECOMMENDATIONS",
    "RESOURCES",
    "RESULTS",
    "SECRETS",
    "SERVERS",
    "SETTINGS",
    "SIGN_INS",
    "STEPS",
    "TOOLS",
    "TOOL_SETS",
    "WORK",
    "facet_agent",
    "facet_corrected",
    "facet_correction",
    "facet_execution",
    "facet_fix",
    "facet_id",
    "facet_request",
    "facet_run",
    "facet_tool",
    "task_key",
]

_NAMESPACE: Final = "gateway"

# Every execution has the one, every correction the other.
FACET_EXECUTION: Final = "execution"
# Every recommendation of tools.
FACET_RECOMMENDATION: Final = "recommendation"
FACET_CORRECTION: Final = "correction"
# Parts the names of a group from each other; no name can have it.
PART: Final = "\x1f"

TOOL: Final = "tool"
RESOURCE: Final = "resource"
EXECUTION_OK: Final = "execution_ok"
EXECUTION_FAILED: Final = "execution_failed"
RESULT: Final = "result"
GRANT: Final = "grant"
SECRET: Final = "secret"  # noqa: S105 -- the name of a kind
CREDENTIAL: Final = "credential"
SIGN_IN: Final = "sign_in"
OAUTH_CLIENT: Final = "oauth_client"
GUARDRAIL: Final = "guardrail"
SERVER: Final = "server"
PROVIDER: Final = "provider"
SETTING: Final = "gateway_setting"
CONNECTION: Final = "connection"
PIPELINE_RUN: Final = "pipeline_run"
STEP: Final = "pipeline_step"
CORRECTION_OK: Final = "correction_ok"
CORRECTION_FAILED: Final = "correction_failed"
CORRECTION_REFUSED: Final = "correction_refused"
CORRECTION_OPEN: Final = "correction_open"
LESSON_FOR: Final = "lesson_for"
LESSON_AGAINST: Final = "lesson_against"
RECOMMENDATION: Final = "recommendation"
WORK_IN_PROGRESS: Final = "gateway_work"
TOOL_SET: Final = "tool_set"
APPROVAL: Final = "approval"
BREAKER: Final = "gateway_breaker"

TOOLS: Final = Space(TOOL, _NAMESPACE)
RESOURCES: Final = Space(RESOURCE, _NAMESPACE)
EXECUTIONS_OK: Final = Space(EXECUTION_OK, _NAMESPACE)
EXECUTIONS_FAILED: Final = Space(EXECUTION_FAILED, _NAMESPACE)
RESULTS: Final = Space(RESULT, _NAMESPACE)
GRANTS: Final = Space(GRANT, _NAMESPACE)
SECRETS: Final = Space(SECRET, _NAMESPACE)
# What users of upstream servers are let in by: each user's own.
CREDENTIALS: Final = Space(CREDENTIAL, _NAMESPACE)
# Sign-ins that were begun, and as which client we are known to an authorization server.
SIGN_INS: Final = Space(SIGN_IN, _NAMESPACE)
OAUTH_CLIENTS: Final = Space(OAUTH_CLIENT, _NAMESPACE)
GUARDRAILS: Final = Space(GUARDRAIL, _NAMESPACE)
SERVERS: Final = Space(SERVER, _NAMESPACE)
PROVIDERS: Final = Space(PROVIDER, _NAMESPACE)
SETTINGS: Final = Space(SETTING, _NAMESPACE)
CONNECTIONS: Final = Space(CONNECTION, _NAMESPACE)
PIPELINE_RUNS: Final = Space(PIPELINE_RUN, _NAMESPACE)
STEPS: Final = Space(STEP, _NAMESPACE)
CORRECTIONS_OK: Final = Space(CORRECTION_OK, _NAMESPACE)
CORRECTIONS_FAILED: Final = Space(CORRECTION_FAILED, _NAMESPACE)
CORRECTIONS_REFUSED: Final = Space(CORRECTION_REFUSED, _NAMESPACE)
CORRECTIONS_OPEN: Final = Space(CORRECTION_OPEN, _NAMESPACE)
LESSONS_FOR: Final = Space(LESSON_FOR, _NAMESPACE)
LESSONS_AGAINST: Final = Space(LESSON_AGAINST, _NAMESPACE)
RECOMMENDATIONS: Final = Space(RECOMMENDATION, _NAMESPACE)
WORK: Final = Space(WORK_IN_PROGRESS, _NAMESPACE)
TOOL_SETS: Final = Space(TOOL_SET, _NAMESPACE)
APPROVALS: Final = Space(APPROVAL, _NAMESPACE)
BREAKERS: Final = Space(BREAKER, _NAMESPACE)
# Records that say who may do what, and what may be sent where: the audit shows their events.
AUDITED: Final = (GRANTS, SECRETS, CREDENTIALS, GUARDRAILS, TOOL_SETS)

TOOL_REGISTERED: Final = "ToolRegistered"
TOOL_UPDATED: Final = "ToolUpdated"
TOOL_REMOVED: Final = "ToolRemoved"
RESOURCE_CREATED: Final = "ResourceCreated"
RESOURCE_UPDATED: Final = "ResourceUpdated"
RESOURCE_REMOVED: Final = "ResourceRemoved"
EXECUTION_SUCCEEDED: Final = "ExecutionSucceeded"
EXECUTION_FAILED_EVENT: Final = "ExecutionFailed"
RESULT_KEPT: Final = "ResultKept"
RESULT_DROPPED: Final = "ResultDropped"
SECRET_GRANTED: Final = "SecretGranted"  # noqa: S105 -- the name of an event
SECRET_SUSPENDED: Final = "SecretSuspended"  # noqa: S105 -- as above
SECRET_WITHDRAWN: Final = "SecretWithdrawn"  # noqa: S105 -- as above
SECRET_SET: Final = "SecretSet"  # noqa: S105 -- as above
SECRET_REMOVED: Final = "SecretRemoved"  # noqa: S105 -- as above
CREDENTIAL_SET: Final = "CredentialSet"
CREDENTIAL_REMOVED: Final = "CredentialRemoved"
SIGN_IN_BEGUN: Final = "SignInBegun"
SIGN_IN_ENDED: Final = "SignInEnded"
OAUTH_CLIENT_KEPT: Final = "OAuthClientKept"
OAUTH_CLIENT_REMOVED: Final = "OAuthClientRemoved"
GUARDRAIL_DEFINED: Final = "GuardrailDefined"
GUARDRAIL_REMOVED: Final = "GuardrailRemoved"
SERVER_ADDED: Final = "ServerAdded"
SERVER_REMOVED: Final = "ServerRemoved"
PROVIDER_CONFIGURED: Final = "ProviderConfigured"
PROVIDER_REMOVED: Final = "ProviderRemoved"
SETTING_CHANGED: Final = "GatewaySettingChanged"
SETTING_REMOVED: Final = "GatewaySettingRemoved"
CONNECTION_SET: Final = "ConnectionSet"
CONNECTION_REMOVED: Final = "ConnectionRemoved"
TOOLS_RECOMMENDED: Final = "ToolsRecommended"
TOOL_SET_DEFINED: Final = "ToolSetDefined"
TOOL_SET_REMOVED: Final = "ToolSetRemoved"
APPROVAL_ASKED: Final = "ApprovalAsked"
APPROVAL_DECIDED: Final = "ApprovalDecided"
APPROVAL_USED: Final = "ApprovalUsed"
BREAKER_OPENED: Final = "BreakerOpened"
BREAKER_CLOSED: Final = "BreakerClosed"
WORK_NOTED: Final = "WorkNoted"
WORK_CANCELLED: Final = "WorkCancelled"
WORK_ENDED: Final = "WorkEnded"
PIPELINE_STARTED: Final = "PipelineStarted"
PIPELINE_ENDED: Final = "PipelineEnded"
STEP_RECORDED: Final = "PipelineStepRecorded"
CORRECTION_HELD: Final = "CorrectionHeld"
CORRECTION_FELL: Final = "CorrectionFell"
CORRECTION_WITHHELD: Final = "CorrectionWithheld"
CORRECTION_LEFT_OPEN: Final = "CorrectionLeftOpen"
LESSON_CONFIRMED: Final = "LessonConfirmed"
LESSON_CONTRADICTED: Final = "LessonContradicted"


def facet_id(kind: str, id_: str) -> str:
    """Return the facet of a record when only its id is known."""
    return f"{kind}_id={id_}"


def facet_tool(name: str) -> str:
    """Return the facet of the executions of a tool."""
    return f"execution_tool={name}"


def facet_agent(agent: str) -> str:
    """Return the facet of the executions for an agent."""
    return f"execution_agent={agent}"


def facet_execution(execution_id: str) -> str:
    """Return the facet of an execution."""
    return f"execution={execution_id}"


def facet_fix(tool: str) -> str:
    """Return the facet of the executions of a tool that were told a known fix."""
    return f"execution_fix={tool}"


def facet_corrected(tool: str) -> str:
    """Return the facet of the corrections of a tool's calls."""
    return f"correction_tool={tool}"


def facet_correction(tool: str, pattern: str) -> str:
    """Return the facet of the corrections of a tool's calls by one pattern."""
    return f"correction_pattern={tool}{PART}{pattern}"


def facet_request(request_id: str) -> str:
    """Return the facet of the executions of a caller's request."""
    return f"execution_request={request_id}"


def facet_run(run_id: str) -> str:
    """Return the facet of the steps of a pipeline's run."""
    return f"pipeline_run={run_id}"


def task_key(execution_id: str) -> str:
    """Return the key of what came of a task of an MCP client, among the results."""
    return f"task:{execution_id}"
