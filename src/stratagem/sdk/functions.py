"""Functions of this process as tools of its gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from stratagem.errors import ToolExists
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.client import ClientRunner
from stratagem.gateway.handlers.python import PythonRunner
from stratagem.gateway.parts import GatewayParts
from stratagem.gateway.providers import CustomProvider
from stratagem.sdk.generated.gateway import AsyncGatewayOperations, GatewayOperations
from stratagem.sdk.method_bases import Answer, AsyncCall, Call

__all__ = ["AsyncEmbeddedGateway", "EmbeddedGateway"]


class EmbeddedGateway(GatewayOperations):
    """The gateway of a database in this process: it can call this process's functions too."""

    def __init__(self, call: Call, gateway: Callable[[], GatewayParts]) -> None:
        super().__init__(call)
        self._gateway = gateway

    def add(self, function: Callable[..., Any], **definition: Any) -> Answer:
        """Register a function; its schema comes from its type hints.

        A function that was registered before under the same name takes its place again.

        Args:
            function: What the tool runs; its docstring describes the tool.
            definition: What the definition of the tool says otherwise, as its `name`.
        """
        runner = self._gateway().runners["python"]
        assert isinstance(runner, PythonRunner)
        made = runner.add(function, definition.get("name"))
        given = {
            "name": made.name,
            "description": made.description or made.name,
            "longDescription": made.long_description or None,
            "inputSchema": dict(made.input_schema),
            "outputSchema": dict(made.output_schema) if made.output_schema else None,
            "handler": {"type": "python", "name": made.name},
            **made.options,
            **definition,
        }
        return self._register_or_update(given)

    def add_provider(
        self, name: str, provider: CustomProvider, config: Mapping[str, Any] | None = None
    ) -> list[Answer]:
        """Add a custom provider: initialise it, and register the tools that it lists.

        Its tools can be called for as long as this database is open; adding it again, after a
        restart say, brings them back.

        Args:
            name: What the provider is called.
            provider: What lists the tools and runs them.
            config: What the provider is initialised with.
        """
        gateway = self._gateway()
        runner = gateway.runners["client"]
        assert isinstance(runner, ClientRunner)
        client = f"provider:{name}"

        async def host(tool: str, arguments: Mapping[str, Any], _run: Run) -> Any:
            return await provider.execute(tool, arguments)

        async def begin() -> list[Mapping[str, Any]]:
            await provider.initialise(config or {})
            runner.host(client, host)
            return list(await provider.list())

        handler = {"type": "client", "client": client}
        return [
            self._register_or_update(
                {"provider": name, **tool, "handler": {**handler, "tool": tool["name"]}}
            )
            for tool in gateway.home.run(begin)
        ]

    def _register_or_update(self, given: dict[str, Any]) -> Answer:
        """Register a tool, or put it in the place of the same one from before."""
        given = {name: each for name, each in given.items() if each is not None}
        try:
            return self._call("tool_register", given)
        except ToolExists:
            if self.get(given["name"])["handler"] != given["handler"]:
                raise
            return self._call("tool_update", {"toolId": given.pop("name"), **given})


class AsyncEmbeddedGateway(AsyncGatewayOperations):
    """The gateway of a database in this process, to be awaited."""

    def __init__(
        self,
        call: AsyncCall,
        gateway: Callable[[], GatewayParts],
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        call_in_thread: Call,
    ) -> None:
        super().__init__(call)
        self._run = run
        self._embedded = EmbeddedGateway(call_in_thread, gateway)

    async def add(self, function: Callable[..., Any], **definition: Any) -> Answer:
        """Register a function; see `EmbeddedGateway.add`."""
        answer: Answer = await self._run(lambda: self._embedded.add(function, **definition))
        return answer

    async def add_provider(
        self, name: str, provider: CustomProvider, config: Mapping[str, Any] | None = None
    ) -> list[Answer]:
        """Take a provider of one's own; see `EmbeddedGateway.add_provider`."""
        answers: list[Answer] = await self._run(
            lambda: self._embedded.add_provider(name, provider, config)
        )
        return answers
