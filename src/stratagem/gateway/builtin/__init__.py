"""The tools that come with Stratagem and need no account.

Each module has its definition, `TOOL`, and the function that runs it. External dependencies of a
tool (a clock, a sandbox, the guarded HTTP client) are passed to `tools`, or to the runner.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ToolNotFound, ValidationFailed
from stratagem.gateway.builtin import (
    api_caller,
    calculator,
    code_executor,
    data_transformer,
    date_time,
    file_converter,
)
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.handlers.threads import Threads

if TYPE_CHECKING:
    from stratagem.gateway.outbound import Outbound
    from stratagem.gateway.sandbox import Sandbox

__all__ = ["DEFINITIONS", "BuiltinRunner", "BuiltinTool", "StandardRunner", "tools"]

BuiltinRun = Callable[[Mapping[str, Any], Run], Awaitable[Any]]


class BuiltinTool(NamedTuple):
    """A tool's definition, and what runs it."""

    definition: Mapping[str, Any]
    run: BuiltinRun


def _definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as it is registered: how its calls are run is in its configuration."""
    cacheable, idempotent = tool.get("cacheable", False), tool.get("idempotent", False)
    kept = {key: tool[key] for key in tool if key not in {"cacheable", "idempotent"}}
    configuration = {"cache": cacheable, "idempotent": idempotent}
    return {**kept, "configuration": {**configuration, **kept.get("configuration", {})}}


DEFINITIONS: Final[tuple[dict[str, Any], ...]] = tuple(
    _definition(module.TOOL)
    for module in (
        calculator,
        date_time,
        data_transformer,
        file_converter,
        code_executor,
        api_caller,
    )
)


def tools(
    *,
    clock: Callable[[], int],
    sandbox: Callable[[], Sandbox] | None = None,
    outbound: Callable[[], Outbound] | None = None,
    threads: Threads | None = None,
) -> list[BuiltinTool]:
    """Return the tools with what they need; one that lacks its part is left out.

    `clock` gives microseconds since 1970. The sandbox and the way out are made when first needed.
    """
    threads = threads or Threads()
    found: list[tuple[Mapping[str, Any], BuiltinRun]] = [
        (calculator.TOOL, calculator.run),
        (date_time.TOOL, date_time.runner(clock)),
        (data_transformer.TOOL, partial(data_transformer.run, threads=threads)),
        (file_converter.TOOL, partial(file_converter.run, threads=threads)),
    ]
    if sandbox is not None:
        in_sandbox = sandbox

        async def execute_code(arguments: Mapping[str, Any], run: Run) -> Any:
            return await code_executor.run(arguments, run, in_sandbox())

        found.append((code_executor.TOOL, execute_code))
    if outbound is not None:
        way_out = outbound

        async def call_api(arguments: Mapping[str, Any], run: Run) -> Any:
            return await api_caller.run(arguments, run, way_out())

        found.append((api_caller.TOOL, call_api))
    return [BuiltinTool(_definition(tool), run) for tool, run in found]


class StandardRunner(Protocol):
    """Runs the standard tools, whose room is above this one."""

    def names(self) -> Collection[str]:
        """Return what they are called."""
        ...

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return what the tool gives that a handler names."""
        ...


class BuiltinRunner:
    """Runs the built-in tools: a handler is `{"type": "builtin", "name": NAME}`."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        sandbox: Callable[[], Sandbox] | None = None,
        outbound: Callable[[], Outbound] | None = None,
        standard: StandardRunner | None = None,
    ) -> None:
        made = tools(clock=clock, sandbox=sandbox, outbound=outbound)
        self._runs = {tool.definition["name"]: tool.run for tool in made}
        self._standard = standard

    def check(self, handler: Handler) -> list[str]:
        """Accept the name of a built-in tool."""
        if handler.get("name") not in self._runs and not self._is_standard(handler):
            raise ValidationFailed(
                f"`handler.name` must be one of {', '.join(self._runs)}.", field="handler.name"
            )
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return what the tool gives."""
        if self._standard is not None and self._is_standard(handler):
            return await self._standard.run(handler, run)
        found = self._runs.get(handler.get("name", ""))
        if found is None:
            raise ToolNotFound(f"There is no built-in tool named {handler.get('name')!r}.")
        return await found(run.arguments, run)

    def _is_standard(self, handler: Handler) -> bool:
        return self._standard is not None and handler.get("name") in self._standard.names()

    async def close(self) -> None:
        """End nothing: what the tools use belongs to others."""
