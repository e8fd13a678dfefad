"""Routing of requests to the surfaces, by the beginning of the path."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.surfaces.serving.console_paths import is_console_path

__all__ = ["SurfaceRouter"]


class SurfaceRouter:
    """Routes to MCP, Socket.IO, the console or REST.

    MCP's application has the lifespan: its sessions live in it.
    """

    def __init__(
        self, protocol: ASGIApp, rest: ASGIApp, sockets: ASGIApp, console: ASGIApp
    ) -> None:
        self._protocol = protocol
        self._rest = rest
        self._sockets = sockets
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._surface_for(scope)(scope, receive, send)

    def _surface_for(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        if scope["type"] == "websocket" or path.startswith("/socket.io"):
            return self._sockets
        if scope["type"] == "http" and is_console_path(path):
            return self._console
        if scope["type"] == "http" and path != "/mcp" and not path.startswith("/mcp/"):
            return self._rest
        return self._protocol
