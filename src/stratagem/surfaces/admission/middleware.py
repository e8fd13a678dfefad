"""The door of a server: nothing behind it is reached by somebody who may not.

It stands before every surface, so that no route and no event can be added that it does not
guard. Sockets may say who they are in their first message instead, as browsers have to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.access.oauth import challenge, resource_metadata
from stratagem.access.oauth.metadata import METADATA_PATH
from stratagem.errors import PermissionDenied, RateLimited, StratagemError
from stratagem.surfaces.admission.authenticator import Admission, Admitted
from stratagem.surfaces.admission.stream_expiry import watched
from stratagem.surfaces.serving.request_scope import ADMITTED, NOTED
from stratagem.surfaces.serving.responses import refused
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["OPEN", "WORKSPACE_HEADER", "Door"]

# Whether the server is there is no secret; everything else is.
OPEN: Final = frozenset({"/health", "/ready"})
WORKSPACE_HEADER: Final = "x-stratagem-workspace"
_WORKSPACE_QUERY: Final = "workspace"
_SOCKETS: Final = "/socket.io"
_PROTOCOL: Final = "/mcp"
_METRICS: Final = "/metrics"


# For a request and the status of its refusal.
PageInstead = Callable[[Scope, int], Response | None]


class Door:
    """Lets requests in, each with a note of who sent it."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        admission: Admission,
        page_instead: PageInstead | None = None,
    ) -> None:
        """Stand before an application.

        `page_instead`: the page that a browser without a token is shown in place of an error.
        """
        self._app = app
        self._page_instead = page_instead
        self._settings = settings
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] not in {"http", "websocket"} or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        if self._settings.oauth is not None and scope["path"].startswith(METADATA_PATH):
            await self._metadata(scope)(scope, receive, send)
            return
        with ExitStack() as held:
            try:
                held.enter_context(self._admission.measures.open())
                scope = await self._admitted(scope, held)
            except StratagemError as error:
                if isinstance(error, RateLimited):
                    await self._admission.measures.pause()
                await self._refuse(error, scope, receive, send)
                return
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != _PROTOCOL:
            await self._app(scope, receive, send)
            return
        await watched(
            self._app,
            self._admission,
            scope[ADMITTED],
            scope=scope,
            receive=receive,
            send=send,
        )

    async def _admitted(self, scope: Scope, held: ExitStack) -> Scope:
        """Return the scope of a request with who sent it, holding what they may use."""
        headers = Headers(scope=scope)
        shown = headers.getlist("authorization")
        if not shown and scope["path"].startswith(_SOCKETS):
            return {**scope, ADMITTED: None}
        client = scope.get("client")
        admitted = await self._admission.admit(
            shown,
            workspace=headers.get(WORKSPACE_HEADER) or _asked(scope),
            address=client[0] if client else "",
            way=f"{scope.get('method', 'socket')} {scope['path']}"[:100],
        )
        if admitted is None:
            return {**_without_workspace(scope), ADMITTED: None}
        noted = {"by": admitted.identity.actor, "workspace": admitted.workspace}
        scope.get(NOTED, {}).update(noted)
        self._measure(scope, admitted, held)
        return {**_without_workspace(scope), ADMITTED: admitted}

    def _measure(self, scope: Scope, admitted: Admitted, held: ExitStack) -> None:
        measures, identity = self._admission.measures, admitted.identity
        if scope["path"] == _METRICS:
            self._check_metrics(admitted)
        if scope["path"].startswith(_SOCKETS) or (
            scope["path"] == _PROTOCOL and scope.get("method") == "GET"
        ):
            held.enter_context(measures.stream(identity))
            return
        held.enter_context(measures.request(identity))
        measures.count(identity)

    def _check_metrics(self, admitted: Admitted) -> None:
        caller = self._admission.new_caller(admitted, "rest")
        caller.require("gateway", "read", "reading the metrics")
        if caller.workspace is not None:
            raise PermissionDenied("The metrics are those of the server's own workspace.")

    def _metadata(self, scope: Scope) -> Response:
        assert self._settings.oauth is not None
        resource = self._own_address(scope) + scope["path"].removeprefix(METADATA_PATH)
        return JSONResponse(
            resource_metadata(self._settings.oauth, resource),
            headers={"cache-control": "max-age=300"},
        )

    def _own_address(self, scope: Scope) -> str:
        """Return the address by which clients reach the server; its host was checked before."""
        host = Headers(scope=scope).get("host", "")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        return self._settings.public_url or f"{scheme}://{host}"

    def _page(self, scope: Scope, status: int) -> Response | None:
        return None if self._page_instead is None else self._page_instead(scope, status)

    async def _refuse(
        self, error: StratagemError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        path = scope["path"]
        response = refused(error, enveloped=path.startswith("/api/mcp") or path == _METRICS)
        if error.details.get("reason") == "missing":
            response = self._page(scope, response.status_code) or response
        if error.code == "unauthenticated":
            where = None
            if self._settings.oauth is not None:
                place = _PROTOCOL if path.startswith(_PROTOCOL) else ""
                where = f"{self._own_address(scope)}{METADATA_PATH}{place}"
            missing = error.details.get("reason") == "missing"
            words = challenge(where, None if missing else "invalid_token")
            response.headers["www-authenticate"] = words
        if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
            await response(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})


def _asked(scope: Scope) -> str | None:
    """Return the workspace that a request's query asks for."""
    found = parse_qs(scope.get("query_string", b"").decode("latin-1")).get(_WORKSPACE_QUERY)
    return found[0] if found else None


def _without_workspace(scope: Scope) -> Scope:
    """Return a scope whose query no longer names the workspace: routes do not know it."""
    query = scope.get("query_string", b"")
    if _WORKSPACE_QUERY.encode() not in query:
        return scope
    kept = [
        each for each in query.split(b"&") if each.partition(b"=")[0] != _WORKSPACE_QUERY.encode()
    ]
    return {**scope, "query_string": b"&".join(kept)}
