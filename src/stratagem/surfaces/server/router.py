"""Which application answers a request: by the beginning of its path."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Crossroads"]


class Crossroads:
    """Sends the protocol's requests to the protocol, sockets to sockets, the rest to REST.

    The protocol's application has the lifespan: its sessions live in it.
    """

    def __init__(self, protocol: ASGIApp, rest: ASGIApp, sockets: ASGIApp) -> None:
        self._protocol = protocol
        self._rest = rest
        self._sockets = sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        await self._chosen(scope)(scope, receive, send)

    def _chosen(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        if scope["type"] == "websocket" or path.startswith("/socket.io"):
            return self._sockets
        if scope["type"] == "http" and path != "/mcp" and not path.startswith("/mcp/"):
            return self._rest
        return self._protocol
