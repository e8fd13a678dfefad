"""The protocol sessions of HTTP clients: which are open, and which is ended first."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem.surfaces.mcp.callers import SESSION_HEADER, SessionCallers
from stratagem.surfaces.serving.request_scope import PRINCIPAL

__all__ = ["SessionTracking"]

_BAD_REQUEST = 400
_NOT_FOUND = 404


class SessionTracking:
    """Follows sessions from their first answer to their end.

    Many clients never end theirs. When there are too many, the one that was used longest ago is
    ended as its client would end it: it is told so with its next request, and begins a new one.
    Nothing is forgotten of a session that goes on.
    """

    def __init__(self, app: ASGIApp, callers: SessionCallers) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, noting what it means for its session."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        session = Headers(scope=scope).get(SESSION_HEADER)
        principal = scope.get(PRINCIPAL)
        if session is not None:
            if not self._callers.belongs(session, principal):
                # To anybody else it does not exist: its own client would begin a new one.
                await PlainTextResponse("Session not found\n", _NOT_FOUND)(scope, receive, send)
                return
            self._callers.use(session)

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, session, message)
            await send(message)

        await self._app(scope, receive, watch)
        while (surplus := self._callers.surplus()) is not None:
            self._callers.end(surplus)
            await self._end(surplus, scope)

    def _note(self, scope: Scope, session: str | None, start: Message) -> None:
        begun = Headers(raw=start["headers"]).get(SESSION_HEADER)
        status = start["status"]
        if session is None and begun is not None and status < _BAD_REQUEST:
            self._callers.begin(begun, scope.get(PRINCIPAL))
        elif session is not None and (status == _NOT_FOUND or scope["method"] == "DELETE"):
            self._callers.end(session)

    async def _end(self, session: str, scope: Scope) -> None:
        """Send the request by which a client ends its session."""
        host = Headers(scope=scope)["host"]
        headers = [(b"host", host.encode()), (SESSION_HEADER.encode(), session.encode())]
        await self._app({**scope, "method": "DELETE", "headers": headers}, _no_body, _ignore)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(_message: Message) -> None:
    """Drop the answer to a request of our own."""
