"""The operations on model providers, for one caller: tools in their formats, and their calls."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from stratagem.engine.events import Draft
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.calls.call import Execute, call_of
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.providers import (
    PROVIDERS,
    Format,
    ProviderCall,
    ResultOrError,
    enabled_tools,
)
from stratagem.gateway.registry.answers import (
    ProviderConfiguration,
    ProviderList,
    ProviderResults,
    ProviderTools,
)
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool, summary_of
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["ProviderService"]


class ProviderService:
    """Lists tools in the formats of providers, and runs the calls that providers return."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        registry: Registry,
        home: HomeLoop,
        execute: Execute,
    ) -> None:
        self._foundation = foundation
        self._registry = registry
        self._home = home
        self._execute = execute
        self._caller = caller

    def configure(self, given: inputs.ProviderConfigureInput) -> ProviderConfiguration:
        """Store the settings of a provider; its API key is given as a reference to a secret."""
        format_ = _find_format(given.provider)
        config = format_.configure(given.config)
        configuration: ProviderConfiguration = {"provider": given.provider, "config": config}

        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, self._branch(given.branch))
            draft = Draft(names.PROVIDER_CONFIGURED, configuration, names.PROVIDERS, given.provider)
            transaction.append(view.branch, [draft])

        self._foundation.write(self._caller, work)
        return configuration

    def providers(self, given: inputs.ProvidersInput) -> ProviderList:
        """Return the providers whose formats are known, and how each is configured."""
        return {
            "providers": [
                {"provider": name, "config": self._config(name, given.branch)} for name in PROVIDERS
            ]
        }

    def tools(self, given: inputs.ProviderToolsInput) -> ProviderTools:
        """Return the tools in a provider's format: those that are named or enabled for it.

        Where neither is said, Stratagem's own operations are left out: there are more of them than
        most providers take.
        """
        format_ = _find_format(given.provider)
        enabled = self._find_enabled(given.provider, given.branch, given.tools)
        config = self._config(given.provider, given.branch) or {}
        if given.tools is None and config.get("enabledTools") is None:
            enabled = [tool for tool in enabled if not tool.is_own]
        return {
            "provider": given.provider,
            "tools": format_.tools([summary_of(tool) for tool in enabled]),
        }

    async def answer(self, given: inputs.ProviderCallInput) -> ProviderResults:
        """Run the calls in a provider's payload; return results that can be sent back to it."""
        format_ = _find_format(given.provider)
        enabled = await asyncio.to_thread(self._find_enabled, given.provider, given.branch, None)
        calls = format_.calls(given.payload, [tool.name for tool in enabled])
        allowed = {tool.name for tool in enabled}

        async def run() -> list[tuple[ProviderCall, ResultOrError]]:
            outcomes = await asyncio.gather(
                *(self._run_call(each, given, allowed) for each in calls)
            )
            return list(zip(calls, outcomes, strict=True))

        outcomes = await self._home.join(run)
        failed = sum(isinstance(outcome, Exception) for _call, outcome in outcomes)
        return {
            "provider": given.provider,
            "calls": len(calls),
            "failed": failed,
            "results": format_.results(outcomes),
        }

    async def _run_call(
        self, call: ProviderCall, given: inputs.ProviderCallInput, allowed: set[str]
    ) -> ResultOrError:
        try:
            if call.name not in allowed:
                raise ValidationFailed(
                    f"{call.name} is not enabled for {given.provider}.", field="enabledTools"
                )
            asked = inputs.ExecuteInput(
                tool_name=call.name,
                arguments=call.arguments,
                context=given.context,
                branch=given.branch,
            )
            # The model made the call, so it does not carry a person's approval.
            finished = await self._execute(call_of(asked, self._caller.without_person()))
        except StratagemError as error:
            return error
        return finished.result

    def _find_enabled(
        self, provider: str, branch: str | None, wanted: list[str] | None
    ) -> list[Tool]:
        config = self._config(provider, branch)
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, self._branch(branch))
            every = self._registry.all(reader, view)
        active = {tool.name: tool for tool in every if _is_callable(tool)}
        enabled = enabled_tools(config or {}, [tool.content for tool in active.values()])
        chosen = [active[each["name"]] for each in enabled]
        if wanted is None:
            return chosen
        unknown = [name for name in wanted if name not in active]
        if unknown:
            raise ValidationFailed(f"There are no tools named {', '.join(unknown)}.", field="tools")
        return [tool for tool in chosen if tool.name in wanted]

    def _config(self, provider: str, branch: str | None) -> dict[str, Any] | None:
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, self._branch(branch))
        version = reader.records.current(view.lineage, names.PROVIDERS, provider)
        if version is None or version.payload is None:
            return None
        config: dict[str, Any] = orjson.loads(version.payload)["config"]
        return config

    def _branch(self, branch: str | None) -> str:
        return branch or self._caller.branch


def _is_callable(tool: Tool) -> bool:
    return tool.status in {"active", "deprecated"} and tool.unavailable is None


def _find_format(name: str) -> Format:
    found = PROVIDERS.get(name)
    if found is None:
        raise ValidationFailed(
            f"There is no provider {name!r}.",
            field="provider",
            allowed=list(PROVIDERS),
            hint=f"Choose one of: {', '.join(PROVIDERS)}.",
        )
    return found
