"""Putting the gateway together: which runner runs which handler, and which tools are built in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.calls.answers import ExecutionRecord
from stratagem.gateway.calls.breakers import BreakerNotes, Breakers
from stratagem.gateway.calls.concurrency import ConcurrencyLimits
from stratagem.gateway.calls.executor import Executor, ExecutorParts
from stratagem.gateway.calls.guardrails import CheckRunner, Guardrails
from stratagem.gateway.calls.idempotency import IdempotentCalls
from stratagem.gateway.calls.metrics import Metrics
from stratagem.gateway.calls.pipelines import PipelineRunner, Pipelines
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.result_cache import Cache, CacheSettings
from stratagem.gateway.calls.rights import ToolRights
from stratagem.gateway.calls.work import WorkInProgress
from stratagem.gateway.catalogue.standard_tool import CatalogueParts
from stratagem.gateway.catalogue.standard_tools import CatalogueTools
from stratagem.gateway.definitions.contract import Runner, Runners
from stratagem.gateway.events import GatewayEvents
from stratagem.gateway.handlers.client import ClientRunner
from stratagem.gateway.handlers.operation import CallOperation, CheckOperation, OperationRunner
from stratagem.gateway.handlers.threads import Threads
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.learning.corrector import Advisor, LearningCorrector
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.registry.credentials import CredentialStore
from stratagem.gateway.registry.encryption import SecretCipher
from stratagem.gateway.registry.secret_values import SecretValues
from stratagem.gateway.registry.secrets import SecretGrants
from stratagem.gateway.registry.sign_ins import SignIns
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.settings import GatewaySettings
from stratagem.operation import Operation
from stratagem.search.foundation import Foundation

if TYPE_CHECKING:
    from stratagem.gateway.advice.recommender import Recommender
    from stratagem.gateway.handlers.upstream.oauth import OAuthClient
    from stratagem.gateway.outbound import Outbound
    from stratagem.gateway.sandbox.sandbox import Sandbox

__all__ = ["assemble"]

# A call inside a call is a step of a pipeline; these would only hide what is called.
_NOT_TOOLS: Final = frozenset({"tool_execute", "tools_batch", "tools_pipeline"})
_CATEGORIES: Final = {"registry": "gateway", "admin": "administration"}


def assemble(
    foundation: Foundation,
    table: Mapping[str, Operation],
    call_operation: CallOperation,
    *,
    schema_of: Callable[[str], dict[str, Any]],
    check_operation: CheckOperation,
    settings: GatewaySettings,
    random: Callable[[int], bytes],
    advisor: Advisor | None = None,
) -> GatewayParts:
    """Return the gateway of a database."""
    home, new_id = HomeLoop(), partial(_new_id, random)
    events = GatewayEvents(home)
    secrets = _secrets(foundation, settings, random)
    makers = _runner_makers(lambda: parts, lambda: standard, settings, secrets, call_operation)
    runners = Runners(makers)
    standard = _standard_tools(foundation, lambda: parts)
    own = [*_builtin(foundation), *_operations(table, schema_of)]
    registry = Registry(own, runners.check, standard=standard, reserved=table)
    shared = _share(foundation, events, new_id, advisor)
    executor = _executor(
        foundation,
        registry,
        runners,
        events,
        shared,
        secrets=secrets,
        new_id=new_id,
        check_operation=check_operation,
        guardrails=Guardrails(
            foundation, CheckRunner(lambda: runners, lambda: parts.executor.execute)
        ),
    )
    pipelines = partial(Pipelines, foundation, registry, executor.execute, events.publish)
    parts = GatewayParts(
        foundation,
        home,
        events,
        new_id,
        registry,
        runners,
        executor,
        idempotency=IdempotentCalls(foundation, shared.recorder, executor.execute),
        pipelines=pipelines(new_id=new_id, work=shared.work),
        **shared._asdict(),
        secrets=secrets,
        outbound=cache(partial(_outbound, settings, runners)),
        sandbox=cache(partial(_sandbox, settings)),
        sign_ins=cache(lambda: _sign_ins(parts, settings, random)),
        recommender=cache(lambda: _recommender(parts, advisor)),
    )
    return parts


def _secrets(
    foundation: Foundation, settings: GatewaySettings, random: Callable[[int], bytes]
) -> SecretGrants:
    cipher = SecretCipher(settings.environment, random)
    values = SecretValues(foundation, cipher, settings.environment)
    return SecretGrants(foundation, values, CredentialStore(foundation, cipher))


class _SharedParts(NamedTuple):
    """What calls have in common, and others look at."""

    recorder: Recorder
    work: WorkInProgress
    cache: Cache
    breakers: Breakers
    breaker_notes: BreakerNotes
    lanes: ConcurrencyLimits
    metrics: Metrics
    corrector: LearningCorrector


def _share(
    foundation: Foundation,
    events: GatewayEvents,
    new_id: Callable[[str], str],
    advisor: Advisor | None,
) -> _SharedParts:
    recorder, process = Recorder(foundation), new_id("process")
    breakers = Breakers(time.monotonic)
    notes = BreakerNotes(foundation, recorder, breakers, process)
    breakers.listener = partial(_tell_breaker, events, notes)
    shared = _SharedParts(
        recorder,
        WorkInProgress(foundation, recorder, process),
        Cache(time.monotonic),
        breakers,
        notes,
        ConcurrencyLimits(),
        Metrics(),
        LearningCorrector(foundation, recorder, events.publish, advisor),
    )
    _follow_purges(foundation, recorder, shared.cache, shared.corrector)
    return shared


def _executor(
    foundation: Foundation,
    registry: Registry,
    runners: Runners,
    events: GatewayEvents,
    shared: _SharedParts,
    *,
    secrets: SecretGrants,
    new_id: Callable[[str], str],
    check_operation: CheckOperation,
    guardrails: Guardrails,
) -> Executor:
    return Executor(
        ExecutorParts(
            resolve=partial(registry.resolve, foundation),
            secrets=secrets.for_tool,
            runners=runners,
            cache=shared.cache,
            forgotten=CacheSettings(foundation, shared.cache).last_clear,
            breakers=shared.breakers,
            apply_reset=shared.breaker_notes.apply_reset,
            lanes=shared.lanes,
            work=shared.work,
            record=shared.recorder.add,
            publish_progress=partial(events.publish, "progress"),
            publish_end=partial(_count_and_publish, shared.metrics, events),
            microseconds=foundation.store.now,
            new_id=new_id,
            check_operation=check_operation,
            rights=ToolRights(foundation),
            guardrails=guardrails,
            corrector=shared.corrector,
        )
    )


def _follow_purges(
    foundation: Foundation, recorder: Recorder, results: Cache, corrector: LearningCorrector
) -> None:
    """Have a purge find every record of a call, and leave no copy in memory."""
    foundation.purge_listeners.before.append(recorder.settle)
    foundation.purge_listeners.after += (results.clear, corrector.forget_copies)


def _new_id(random: Callable[[int], bytes], kind: str) -> str:
    return f"{kind}_{random(8).hex()}"


def _count_and_publish(metrics: Metrics, events: GatewayEvents, record: ExecutionRecord) -> None:
    metrics.count(record)
    events.publish("finished", record)


def _tell_breaker(
    events: GatewayEvents, notes: BreakerNotes, tool: str, state: str, reason: str
) -> None:
    notes.follow(tool, state)
    events.publish("breaker", {"toolName": tool, "state": state, "reason": reason})


def _outbound(settings: GatewaySettings, runners: Runners) -> Outbound:
    from stratagem.gateway.outbound import Outbound

    outbound = Outbound(settings.allow_hosts)
    runners.close_after(outbound.close)
    return outbound


def _sandbox(settings: GatewaySettings) -> Sandbox:
    from stratagem.gateway.sandbox.sandbox import Sandbox

    return Sandbox(network=settings.sandbox_network)


def _recommender(parts: GatewayParts, advisor: Advisor | None) -> Recommender:
    from stratagem.gateway.advice.recommender import Recommender

    return Recommender(
        parts.foundation,
        parts.registry,
        parts.recorder,
        parts.new_id,
        advisor=advisor,
        correct_arguments=parts.corrector.evaluator.evaluate,
    )


def _standard_tools(
    foundation: Foundation, get_parts: Callable[[], GatewayParts]
) -> CatalogueTools:
    """Return the standard tools; their modules are imported when they are first asked for."""
    return CatalogueTools(
        foundation,
        CatalogueParts(
            outbound=lambda: get_parts().outbound(),
            embedder=foundation.index.embedder,
            clock=foundation.store.now,
            threads=Threads(),
        ),
    )


def _runner_makers(
    get_parts: Callable[[], GatewayParts],
    get_standard: Callable[[], CatalogueTools],
    settings: GatewaySettings,
    secrets: SecretGrants,
    call_operation: CallOperation,
) -> dict[str, Callable[[], Runner]]:
    """Return what makes the runner of each type of handler.

    A runner is made when it is first needed: it imports what it needs then, and by then the
    record of the parts is complete.
    """
    return {
        "operation": lambda: OperationRunner(call_operation),
        "webhook": lambda: _webhook(get_parts()),
        "openapi": lambda: _openapi(get_parts()),
        "mcp": lambda: _upstream(get_parts(), secrets),
        "pipeline": lambda: PipelineRunner(get_parts().pipelines),
        "python": lambda: _python(settings),
        "client": ClientRunner,
        "code": lambda: _code(get_parts()),
        "builtin": lambda: _builtin_runner(get_parts(), get_standard()),
    }


def _webhook(parts: GatewayParts) -> Runner:
    from stratagem.gateway.handlers.webhook import WebhookRunner

    return WebhookRunner(parts.outbound())


def _openapi(parts: GatewayParts) -> Runner:
    from stratagem.gateway.handlers.openapi import OpenApiRunner

    return OpenApiRunner(parts.outbound())


def _upstream(parts: GatewayParts, secrets: SecretGrants) -> Runner:
    from stratagem.gateway.handlers.upstream import Upstreams
    from stratagem.gateway.registry.upstream_runner import UpstreamRunner

    return UpstreamRunner(
        parts.foundation,
        parts.registry,
        parts.events.publish,
        lambda changed, primitives: Upstreams(
            http_client=parts.outbound().client,
            secrets=secrets.for_server,
            token=parts.sign_ins().token,
            on_change=changed,
            on_primitives=primitives,
        ),
        stamp=secrets.stamp,
        sign_ins=parts.sign_ins(),
    )


def _sign_ins(
    parts: GatewayParts, settings: GatewaySettings, random: Callable[[int], bytes]
) -> SignIns:
    def oauth() -> OAuthClient:
        from stratagem.gateway.handlers.upstream.oauth import OAuthClient

        return OAuthClient(parts.outbound().client, random, parts.foundation.store.now)

    return SignIns(
        parts.foundation,
        parts.secrets,
        oauth=oauth,
        random=random,
        place=settings.sign_in_place,
    )


def _python(settings: GatewaySettings) -> Runner:
    from stratagem.gateway.handlers.python import PythonRunner

    return PythonRunner(allowed=settings.allow_callables)


def _code(parts: GatewayParts) -> Runner:
    from stratagem.gateway.handlers.code import CodeRunner

    return CodeRunner(parts.sandbox())


def _builtin_runner(parts: GatewayParts, standard: CatalogueTools) -> Runner:
    from stratagem.gateway.builtin import BuiltinRunner

    return BuiltinRunner(
        clock=parts.foundation.store.now,
        sandbox=parts.sandbox,
        outbound=parts.outbound,
        standard=standard,
    )


def _builtin(foundation: Foundation) -> list[Tool]:
    """Return the tools that need no account."""
    from stratagem.gateway.builtin import DEFINITIONS

    return [
        Tool(
            {
                "id": f"tool_{definition['name']}",
                "provider": "stratagem",
                "version": foundation.version,
                "status": "active",
                "handler": {"type": "builtin", "name": definition["name"]},
                **definition,
            },
            0,
        )
        for definition in DEFINITIONS
        # It has connections, and so is one of the standard tools.
        if definition["name"] != "api_caller"
    ]


def _operations(
    table: Mapping[str, Operation], schema_of: Callable[[str], dict[str, Any]]
) -> list[Tool]:
    """Return the operations of all systems as tools, so that a pipeline can use them."""
    return [
        Tool(
            {
                "id": f"tool_{each.name}",
                "name": each.name,
                "description": each.description,
                "category": _CATEGORIES.get(each.toolset, each.toolset),
                "provider": "stratagem",
                "version": "1.0.0",
                "status": "active",
                "inputSchema": schema_of(each.name),
                "handler": {
                    "type": "operation",
                    "operation": each.name,
                    "erases": each.irreversible,
                    "context": _context_place(schema_of(each.name)),
                    "takesBranch": "branch" in schema_of(each.name).get("properties", {}),
                },
                "configuration": {"idempotent": each.read_only or each.idempotent},
            },
            0,
            correction_schema=each.parameters,
        )
        for each in table.values()
        if each.name not in _NOT_TOOLS and not each.confidential
    ]


def _context_place(schema: Mapping[str, Any]) -> str | None:
    """Return the parameter that takes the labels of a call, if an operation has one."""
    for name in ("agentContext", "context"):
        described = schema.get("properties", {}).get(name, {})
        choices = [described, *described.get("anyOf", ())]
        if any("$ref" in each or each.get("type") == "object" for each in choices):
            return name
    return None
