"""Runs what decides for a guardrail: a Python function that the operator allows, or a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.gateway.calls.call import Call, Execute
from stratagem.gateway.calls.guardrails import GUARDRAIL_CALLER
from stratagem.gateway.definitions.contract import Run, Runner
from stratagem.gateway.registry.secrets import GrantedSecrets
from stratagem.gateway.sandbox.permissions import Permissions

__all__ = ["CheckRunner"]


@dataclass(frozen=True, slots=True)
class CheckRunner:
    """Runs checks. `execute` is the path of every call, which is put together after this."""

    runners: Callable[[], Mapping[str, Runner]]
    execute: Callable[[], Execute]

    async def __call__(
        self, check: Mapping[str, Any], about: Mapping[str, Any], seconds: float
    ) -> Any:
        """Return what a check says about a call.

        Raises:
            StratagemError: It failed.
        """
        arguments = {"call": about}
        if check["type"] == "tool":
            call = Call(
                check["tool"],
                arguments,
                GUARDRAIL_CALLER,
                DEFAULT_BRANCH,
                seconds=seconds,
                correct=False,
                depth=1,
            )
            return (await self.execute()(call)).result
        run = Run(
            execution_id="guardrail",
            tool="guardrail",
            arguments=arguments,
            seconds=seconds,
            permissions=Permissions(),
            secrets=GrantedSecrets("guardrail"),
            caller=GUARDRAIL_CALLER,
            progress=lambda _done, _words: None,
        )
        named = {key: check[key] for key in ("callable", "name") if key in check}
        return await self.runners()["python"].run({"type": "python", **named}, run)
