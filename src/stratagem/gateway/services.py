"""The services of the gateway, each with the parts it needs and its caller."""

from __future__ import annotations

from stratagem.gateway.advice.advice_service import AdviceParts
from stratagem.gateway.advice.error_recovery import ErrorRecoveryService
from stratagem.gateway.advice.recommendations import RecommendationService
from stratagem.gateway.advice.tool_inspection import ToolInspection
from stratagem.gateway.advice.workflow_planner import WorkflowPlanner
from stratagem.gateway.calls.approval_service import ApprovalService
from stratagem.gateway.calls.guardrail_service import GuardrailService
from stratagem.gateway.calls.retention import Retention
from stratagem.gateway.calls.secret_service import SecretService
from stratagem.gateway.calls.work_service import WorkService
from stratagem.gateway.learning.service import (
    CorrectionAnalysis,
    CorrectionService,
    LearningParts,
    PatternAdministration,
)
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.providers.service import ProviderService
from stratagem.gateway.registry.connection_service import ConnectionService
from stratagem.gateway.registry.credential_service import CredentialService
from stratagem.gateway.registry.primitive_service import PrimitiveService
from stratagem.gateway.registry.resource_service import ResourceService
from stratagem.gateway.registry.sources import Sources
from stratagem.gateway.registry.tool_set_service import ToolSetService
from stratagem.gateway.service import Gateway
from stratagem.operation import Caller

__all__ = [
    "approvals",
    "connections",
    "correction_analysis",
    "corrections",
    "credentials",
    "error_recovery",
    "gateway",
    "guardrails",
    "pattern_administration",
    "primitives",
    "providers",
    "recommendations",
    "resources",
    "retention",
    "secrets",
    "sources",
    "tool_inspection",
    "tool_sets",
    "work",
    "workflow_planner",
]


def gateway(parts: GatewayParts, caller: Caller) -> Gateway:
    """Return the registry and calls, for a caller."""
    return Gateway(parts, caller)


def sources(parts: GatewayParts, caller: Caller) -> Sources:
    """Return the upstream servers and documents, for a caller."""
    return Sources(
        parts.foundation,
        caller,
        registry=parts.registry,
        runners=parts.runners,
        outbound=parts.outbound,
        home=parts.home,
        publish=parts.events.publish,
        new_id=parts.new_id,
        credentials=parts.secrets.credentials,
    )


def primitives(parts: GatewayParts, caller: Caller) -> PrimitiveService:
    """Return prompts and resources of upstream servers, for a caller."""
    return PrimitiveService(
        parts.foundation,
        caller,
        registry=parts.registry,
        runners=parts.runners,
        home=parts.home,
        publish=parts.events.publish,
    )


def credentials(parts: GatewayParts, caller: Caller) -> CredentialService:
    """Return the credentials of users for upstream servers, for a caller."""
    return CredentialService(caller, runners=parts.runners, home=parts.home)


def resources(parts: GatewayParts, caller: Caller) -> ResourceService:
    """Return prompts, templates and data, for a caller."""
    return ResourceService(
        parts.foundation, caller, new_id=parts.new_id, publish=parts.events.publish
    )


def retention(parts: GatewayParts, caller: Caller) -> Retention:
    """Return the erasure of old executions, for a caller."""
    return Retention(parts.foundation, caller, recorder=parts.recorder)


def secrets(parts: GatewayParts, caller: Caller) -> SecretService:
    """Return the secrets and what they are granted to, for a caller."""
    return SecretService(
        parts.foundation,
        caller,
        registry=parts.registry,
        values=parts.secrets.values,
        cache=parts.cache,
    )


def guardrails(parts: GatewayParts, caller: Caller) -> GuardrailService:
    """Return the guardrails, for a caller."""
    return GuardrailService(
        parts.foundation, caller, registry=parts.registry, runners=parts.runners
    )


def tool_sets(parts: GatewayParts, caller: Caller) -> ToolSetService:
    """Return the named sets of tools, for a caller."""
    return ToolSetService(parts.foundation, caller)


def connections(parts: GatewayParts, caller: Caller) -> ConnectionService:
    """Return the named connections of the standard tools, for a caller."""
    return ConnectionService(parts.foundation, caller)


def approvals(parts: GatewayParts, caller: Caller) -> ApprovalService:
    """Return what waits for a person, for a caller."""
    return ApprovalService(
        parts.foundation, caller, registry=parts.registry, publish=parts.events.publish
    )


def work(parts: GatewayParts, caller: Caller) -> WorkService:
    """Return what finds and stops work in progress, for a caller."""
    return WorkService(
        parts.foundation, caller, work=parts.work, recorder=parts.recorder, home=parts.home
    )


def providers(parts: GatewayParts, caller: Caller) -> ProviderService:
    """Return the formats of model providers, for a caller."""
    return ProviderService(
        parts.foundation,
        caller,
        registry=parts.registry.limited_to(caller, parts.foundation),
        home=parts.home,
        execute=parts.executor.execute,
    )


def _learning(parts: GatewayParts, caller: Caller) -> LearningParts:
    registry = parts.registry.limited_to(caller, parts.foundation)
    return LearningParts(parts.foundation, registry, parts.recorder, parts.home, parts.corrector)


def corrections(parts: GatewayParts, caller: Caller) -> CorrectionService:
    """Return status, configuration and tests of corrections, for a caller."""
    return CorrectionService(_learning(parts, caller), caller)


def correction_analysis(parts: GatewayParts, caller: Caller) -> CorrectionAnalysis:
    """Return diagnosis and insights, for a caller."""
    return CorrectionAnalysis(_learning(parts, caller), caller)


def pattern_administration(parts: GatewayParts, caller: Caller) -> PatternAdministration:
    """Return patterns and breakers of corrections, for a caller."""
    return PatternAdministration(_learning(parts, caller), caller)


def _advice(parts: GatewayParts, caller: Caller) -> AdviceParts:
    return AdviceParts(
        parts.foundation,
        parts.registry.limited_to(caller, parts.foundation),
        parts.recorder,
        parts.recommender(),
        parts.breakers,
        parts.runners,
    )


def recommendations(parts: GatewayParts, caller: Caller) -> RecommendationService:
    """Return tools_recommend, for a caller."""
    return RecommendationService(_advice(parts, caller), caller)


def error_recovery(parts: GatewayParts, caller: Caller) -> ErrorRecoveryService:
    """Return tools_recommend_on_error, for a caller."""
    return ErrorRecoveryService(_advice(parts, caller), caller)


def tool_inspection(parts: GatewayParts, caller: Caller) -> ToolInspection:
    """Return tools_validate, tools_discover and tools_compare, for a caller."""
    return ToolInspection(_advice(parts, caller), caller)


def workflow_planner(parts: GatewayParts, caller: Caller) -> WorkflowPlanner:
    """Return workflow_plan, for a caller."""
    return WorkflowPlanner(_advice(parts, caller), caller)
