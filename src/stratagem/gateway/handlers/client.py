"""Tools that a connected client hosts: the server calls them through the client's connection.

A surface adds a host when a client registers a tool, and removes it when the client disconnects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from stratagem.errors import ExecutionFailed, ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run

__all__ = ["ClientRunner", "Host", "not_connected_error"]

# Called with the tool's name, the arguments, and what identifies the call.
Host = Callable[[str, Mapping[str, Any], Run], Awaitable[Any]]


class ClientRunner:
    """Forwards calls to the client that hosts the tool."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        # Calls a client that is connected to another process of this server, if there are several.
        self.call_other_process: Callable[[Handler, Run], Awaitable[Any]] | None = None

    def host(self, client: str, host: Host) -> None:
        """Register the host of a client."""
        self._hosts[client] = host

    def leave(self, client: str) -> None:
        """Remove the host of a client."""
        self._hosts.pop(client, None)

    def hosts(self, client: str) -> bool:
        """Whether a client is connected."""
        return client in self._hosts

    def check(self, handler: Handler) -> list[str]:
        """Check that the handler names its client."""
        if not isinstance(handler.get("client"), str):
            raise ValidationFailed(
                "A handler of type client must name its `client`; only a connection can "
                "register one.",
                field="handler.client",
            )
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Call the client and return its answer."""
        host = self._hosts.get(handler["client"])
        if host is None and self.call_other_process is not None:
            return await self.call_other_process(handler, run)
        if host is None:
            raise not_connected_error(run.tool)
        return await host(handler.get("tool", run.tool), run.arguments, run)

    async def close(self) -> None:
        """Remove all hosts."""
        self._hosts.clear()


def not_connected_error(tool: str) -> ExecutionFailed:
    """Return the error for a tool whose client is not connected."""
    return ExecutionFailed(
        f"The client that hosts {tool} is not connected.",
        safe=True,
        hint="It has to connect and register the tool again.",
    )
