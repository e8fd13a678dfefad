"""The services of the gateway, each handed the parts it needs and the one who calls it."""

from __future__ import annotations

from stratagem.gateway.advice.bound import AdviceParts
from stratagem.gateway.advice.looking import Looking
from stratagem.gateway.advice.planning import Planning
from stratagem.gateway.advice.recommending import Recommending
from stratagem.gateway.advice.recovering import Recovering
from stratagem.gateway.calls.retention import Retention
from stratagem.gateway.learning.service import Analysis, Corrections, Curating, LearningParts
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.providers.service import ProviderService
from stratagem.gateway.registry.resource_service import ResourceService
from stratagem.gateway.registry.sources import Sources
from stratagem.gateway.service import Gateway
from stratagem.operation import Caller

__all__ = [
    "analysis",
    "corrections",
    "curating",
    "gateway",
    "looking",
    "planning",
    "providers",
    "recommending",
    "recovering",
    "resources",
    "retention",
    "sources",
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
    )


def resources(parts: GatewayParts, caller: Caller) -> ResourceService:
    """Return prompts, templates and data, for a caller."""
    return ResourceService(parts.foundation, caller, new_id=parts.new_id)


def retention(parts: GatewayParts, caller: Caller) -> Retention:
    """Return the erasure of old executions, for a caller."""
    return Retention(parts.foundation, caller, recorder=parts.recorder)


def providers(parts: GatewayParts, caller: Caller) -> ProviderService:
    """Return the formats of model providers, for a caller."""
    return ProviderService(
        parts.foundation,
        caller,
        registry=parts.registry,
        home=parts.home,
        execute=parts.executor.execute,
    )


def _learning(parts: GatewayParts) -> LearningParts:
    return LearningParts(
        parts.foundation, parts.registry, parts.recorder, parts.home, parts.corrector
    )


def corrections(parts: GatewayParts, caller: Caller) -> Corrections:
    """Return status, configuration and tests of corrections, for a caller."""
    return Corrections(_learning(parts), caller)


def analysis(parts: GatewayParts, caller: Caller) -> Analysis:
    """Return diagnosis and insights, for a caller."""
    return Analysis(_learning(parts), caller)


def curating(parts: GatewayParts, caller: Caller) -> Curating:
    """Return patterns and breakers of corrections, for a caller."""
    return Curating(_learning(parts), caller)


def _advice(parts: GatewayParts) -> AdviceParts:
    return AdviceParts(
        parts.foundation,
        parts.registry,
        parts.recorder,
        parts.recommender(),
        parts.breakers,
        parts.runners,
    )


def recommending(parts: GatewayParts, caller: Caller) -> Recommending:
    """Return tools_recommend, for a caller."""
    return Recommending(_advice(parts), caller)


def recovering(parts: GatewayParts, caller: Caller) -> Recovering:
    """Return tools_recommend_on_error, for a caller."""
    return Recovering(_advice(parts), caller)


def looking(parts: GatewayParts, caller: Caller) -> Looking:
    """Return tools_validate, tools_discover and tools_compare, for a caller."""
    return Looking(_advice(parts), caller)


def planning(parts: GatewayParts, caller: Caller) -> Planning:
    """Return workflow_plan, for a caller."""
    return Planning(_advice(parts), caller)
