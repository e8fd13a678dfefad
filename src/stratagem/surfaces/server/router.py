"""Routing of requests to the surfaces, by the beginning of the path."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["SurfaceRouter"]


class SurfaceRouter:
    """Routes to MCP, Socket.IO or REST.

    MCP's application has the lifespan: its sessions live in it.
    """

    def __init__(self, protocol: ASGIApp, rest: ASGIApp, sockets: ASGIApp) -> None:
        self._protocol = protocol
        self._rest = rest
        self._sockets = sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._surface_for(scope)(scope, receive, send)

    def _surface_for(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        if scope["type"] == "websocket" or path.startswith("/socket.io"):
            return self._sockets
        if scope["type"] == "http" and path != "/mcp" and not path.startswith("/mcp/"):
            return self._rest
        return self._protocol
