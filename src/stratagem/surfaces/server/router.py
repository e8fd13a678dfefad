"""Routing of requests to the surfaces, by the beginning of the path."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.errors import RouteNotFound
from stratagem.surfaces.serving.console_paths import is_console_path
from stratagem.surfaces.serving.request_scope import SOCKETS_PATH, is_of_sockets
from stratagem.surfaces.serving.responses import error_response, is_of_gateway, send_refusal

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
        if scope["type"] == "lifespan":
            return self._protocol
        path = scope["path"]
        if is_of_sockets(scope):
            return self._sockets
        if scope["type"] == "websocket":
            return _refuse_websocket
        if is_console_path(path):
            return self._console
        return self._protocol if path == "/mcp" or path.startswith("/mcp/") else self._rest


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["path"]
    error = RouteNotFound(
        f"There is no websocket at {path}.",
        hint=f"Socket.IO is at {SOCKETS_PATH}; the others use HTTP.",
    )
    await send_refusal(error_response(error, enveloped=is_of_gateway(path)), scope, receive, send)
