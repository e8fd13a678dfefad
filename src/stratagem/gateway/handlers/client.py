"""Tools that a connected client hosts: the server calls them back on the client's own socket.

A surface adds a host when a client registers a tool and takes it away when the client leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from stratagem.errors import ExecutionFailed, ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run

__all__ = ["ClientRunner", "Host", "not_connected"]

# Called with the tool's name, the arguments, and what identifies the call.
Host = Callable[[str, Mapping[str, Any], Run], Awaitable[Any]]


class ClientRunner:
    """Hands calls to whichever client hosts the tool."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        # How a client is asked that is connected to another process of this server, if there are.
        self.elsewhere: Callable[[Handler, Run], Awaitable[Any]] | None = None

    def host(self, client: str, host: Host) -> None:
        """Take calls for a client."""
        self._hosts[client] = host

    def leave(self, client: str) -> None:
        """Note that a client is gone."""
        self._hosts.pop(client, None)

    def hosts(self, client: str) -> bool:
        """Whether a client is there."""
        return client in self._hosts

    def check(self, handler: Handler) -> list[str]:
        """Check that the handler says whose it is."""
        if not isinstance(handler.get("client"), str):
            raise ValidationFailed(
                "A handler of type client names its `client`; only a connection can register one.",
                field="handler.client",
            )
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Ask the client, and return what it answers."""
        host = self._hosts.get(handler["client"])
        if host is None and self.elsewhere is not None:
            return await self.elsewhere(handler, run)
        if host is None:
            raise not_connected(run.tool)
        return await host(handler.get("tool", run.tool), run.arguments, run)

    async def close(self) -> None:
        """Forget everybody."""
        self._hosts.clear()


def not_connected(tool: str) -> ExecutionFailed:
    """Return the error for a tool whose client is gone."""
    return ExecutionFailed(
        f"The client that hosts {tool} is not connected.",
        safe=True,
        hint="It has to connect and register the tool again.",
    )
