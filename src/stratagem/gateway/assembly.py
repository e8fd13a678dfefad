"""Putting the gateway together: which runner runs which handler, and which tools are built in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from stratagem.gateway.calls.pipelines import PipelineRunner
from stratagem.gateway.definitions.contract import Runner
from stratagem.gateway.handlers.client import ClientRunner
from stratagem.gateway.handlers.operation import CallOperation, CheckOperation, OperationRunner
from stratagem.gateway.learning.corrector import Advisor, LearningCorrector
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.switchboard import GatewaySettings, Runners, Switchboard
from stratagem.operation import Operation
from stratagem.search.foundation import Foundation

__all__ = ["assemble"]

# A call inside a call is a step of a pipeline; these would only hide what is called.
_NOT_TOOLS: Final = frozenset({"tool_execute", "tools_batch", "tools_pipeline"})
_CATEGORIES: Final = {"registry": "gateway", "admin": "administration"}


def assemble(
    foundation: Foundation,
    table: Mapping[str, Operation],
    call_operation: CallOperation,
    *,
    check_operation: CheckOperation,
    schema_of: Callable[[str], dict[str, Any]],
    allow_hosts: tuple[str, ...] = (),
    allow_callables: tuple[str, ...] | None = None,
    environment: Mapping[str, str] | None = None,
    random: Callable[[int], bytes] = os.urandom,
    advisor: Advisor | None = None,
) -> Switchboard:
    """Return the gateway of a database."""
    settings = GatewaySettings(
        allow_hosts=allow_hosts,
        allow_callables=allow_callables,
        environment=os.environ if environment is None else environment,
    )
    switchboard = Switchboard(
        foundation,
        runners=lambda switchboard: _runners(switchboard, call_operation),
        check_operation=check_operation,
        builtin=[*_builtin(foundation), *_operations(table, schema_of)],
        settings=settings,
        random=random,
        corrector=lambda switchboard: LearningCorrector(switchboard, advisor),
    )
    switchboard.recommender.advisor = advisor
    if isinstance(switchboard.corrector, LearningCorrector):
        switchboard.recommender.examine = switchboard.corrector.examiner.examine
    return switchboard


def _runners(switchboard: Switchboard, call_operation: CallOperation) -> Runners:
    """Return the runners, each imported when it is first needed."""
    return Runners(
        {
            "operation": lambda: OperationRunner(call_operation),
            "webhook": lambda: _webhook(switchboard),
            "openapi": lambda: _openapi(switchboard),
            "mcp": lambda: _upstream(switchboard),
            "pipeline": lambda: PipelineRunner(switchboard.pipelines),
            "python": lambda: _python(switchboard),
            "client": ClientRunner,
            "code": lambda: _code(switchboard),
            "builtin": lambda: _builtin_runner(switchboard),
        }
    )


def _webhook(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.handlers.webhook import WebhookRunner

    return WebhookRunner(switchboard.outbound)


def _openapi(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.handlers.openapi import OpenApiRunner

    return OpenApiRunner(switchboard.outbound)


def _upstream(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.handlers.upstream import Upstreams
    from stratagem.gateway.registry.sources import UpstreamRunner

    return UpstreamRunner(
        switchboard,
        lambda changed: Upstreams(
            http_client=switchboard.outbound.client,
            secrets=switchboard.secrets_of,
            on_change=changed,
        ),
    )


def _python(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.handlers.python import PythonRunner

    return PythonRunner(allowed=switchboard.settings.allow_callables)


def _code(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.handlers.code import CodeRunner

    return CodeRunner(switchboard.sandbox)


def _builtin_runner(switchboard: Switchboard) -> Runner:
    from stratagem.gateway.builtin import BuiltinRunner

    return BuiltinRunner(
        clock=switchboard.foundation.store.now,
        sandbox=lambda: switchboard.sandbox,
        outbound=lambda: switchboard.outbound,
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
                },
                "configuration": {"idempotent": each.read_only or each.idempotent},
            },
            0,
        )
        for each in table.values()
        if each.name not in _NOT_TOOLS
    ]


def _context_place(schema: Mapping[str, Any]) -> str | None:
    """Return the parameter that takes the labels of a call, if an operation has one."""
    for name in ("agentContext", "context"):
        described = schema.get("properties", {}).get(name, {})
        choices = [described, *described.get("anyOf", ())]
        if any("$ref" in each or each.get("type") == "object" for each in choices):
            return name
    return None
