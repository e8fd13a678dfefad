"""ASGI middleware that authenticates every request and holds its quotas.

It wraps every surface, so that no route and no event can be added that it does not guard. Sockets
may authenticate in their first message instead, as browsers have to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.access.oauth import challenge, resource_metadata
from stratagem.access.oauth.metadata import METADATA_PATH
from stratagem.errors import PermissionDenied, RateLimited, StratagemError
from stratagem.gateway.registry.tool_sets import refuse_limited
from stratagem.surfaces.admission.authenticator import Authenticator, Principal
from stratagem.surfaces.admission.stream_expiry import serve_while_authenticated
from stratagem.surfaces.serving.console_paths import LIVE_PATH, is_console_path, is_open_path
from stratagem.surfaces.serving.request_scope import LOG_FIELDS, PRINCIPAL, is_of_sockets
from stratagem.surfaces.serving.responses import error_response, is_of_gateway, send_refusal
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = [
    "PUBLIC_PATHS",
    "WORKSPACE_HEADER",
    "AuthenticationMiddleware",
    "cookie_name",
    "session_cookie",
]

# Whether the server is up is no secret; everything else is.
PUBLIC_PATHS: Final = frozenset({"/health", "/ready"})
# A browser that signs a user in to an upstream server has no token; it has the state of a sign-in.
_SIGN_IN_PATH: Final = "/oauth/"
WORKSPACE_HEADER: Final = "x-stratagem-workspace"
_WORKSPACE_QUERY: Final = "workspace"
_MCP_PATH: Final = "/mcp"
_METRICS_PATH: Final = "/metrics"


def _is_of_mcp(path: str) -> bool:
    """Whether a path is that of the protocol's server, or of one of its virtual servers."""
    return path == _MCP_PATH or path.startswith(f"{_MCP_PATH}/")


def _is_public(path: str) -> bool:
    return path in PUBLIC_PATHS or is_open_path(path)


def session_cookie(scope: Scope) -> str | None:
    """Return the cookie that a browser presents as its session with this server."""
    server = scope.get("server")
    return cookie_parser(Headers(scope=scope).get("cookie", "")).get(cookie_name(server))


def cookie_name(server: tuple[str, int | None] | None) -> str:
    """Return the name of the session's cookie: cookies do not tell the ports of a host apart."""
    return f"stratagem_{server[1] if server else 0}"


# For a request, the status of its refusal, and the reason; empty where it has no token.
PageInstead = Callable[[Scope, int, str], Response | None]


class AuthenticationMiddleware:
    """Passes requests on with their principal in the scope, or refuses them."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        authenticator: Authenticator,
        page_instead: PageInstead | None = None,
    ) -> None:
        """Wrap an application.

        `page_instead`: the page that a browser is shown in place of an error where it has no token,
        or one that does not open the workspace.
        """
        self._app = app
        self._page_instead = page_instead
        self._settings = settings
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in {"http", "websocket"} or _is_public(scope["path"]):
            await self._app(scope, receive, send)
            return
        if self._settings.oauth is not None and scope["path"].startswith(METADATA_PATH):
            await self._metadata(scope)(scope, receive, send)
            return
        with ExitStack() as held:
            try:
                held.enter_context(self._authenticator.quotas.server_slot())
                if scope["path"].startswith(_SIGN_IN_PATH):
                    await self._app(scope, receive, send)
                    return
                scope = await self._with_principal(scope, held)
            except StratagemError as error:
                if isinstance(error, RateLimited):
                    await self._authenticator.quotas.delay_refusal()
                await self._refuse(error, scope, receive, send)
                return
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not (_is_of_mcp(scope["path"]) or scope["path"] == LIVE_PATH):
            await self._app(scope, receive, send)
            return
        await serve_while_authenticated(
            self._app,
            self._authenticator,
            scope[PRINCIPAL],
            scope=scope,
            receive=receive,
            send=send,
        )

    async def _with_principal(self, scope: Scope, held: ExitStack) -> Scope:
        """Return the scope of a request with its principal, holding its quotas."""
        headers = Headers(scope=scope)
        authorization = headers.getlist("authorization")
        if not authorization and is_of_sockets(scope):
            return {**scope, PRINCIPAL: None}
        principal = await self._principal(scope, headers, authorization)
        if principal is None:
            return {**_without_workspace(scope), PRINCIPAL: None}
        fields = {"by": principal.identity.actor, "workspace": principal.workspace}
        scope.get(LOG_FIELDS, {}).update(fields)
        self._enter_quotas(scope, principal, held)
        return {**_without_workspace(scope), PRINCIPAL: principal}

    async def _principal(
        self, scope: Scope, headers: Headers, authorization: list[str]
    ) -> Principal | None:
        client = scope.get("client")
        workspace = headers.get(WORKSPACE_HEADER) or _workspace_in_query(scope)
        address = client[0] if client else ""
        route = f"{scope.get('method', 'socket')} {scope['path']}"[:100]
        if not authorization and scope["type"] == "http" and is_console_path(scope["path"]):
            return await self._authenticator.authenticate_browser(
                session_cookie(scope), workspace=workspace, address=address, route=route
            )
        return await self._authenticator.authenticate(
            authorization, workspace=workspace, address=address, route=route
        )

    def _enter_quotas(self, scope: Scope, principal: Principal, held: ExitStack) -> None:
        quotas, identity = self._authenticator.quotas, principal.identity
        if scope["path"] == _METRICS_PATH:
            self._check_metrics(principal)
        if is_of_sockets(scope) or (
            (_is_of_mcp(scope["path"]) and scope.get("method") == "GET")
            or scope["path"] == LIVE_PATH
        ):
            held.enter_context(quotas.stream_slot(identity))
            return
        held.enter_context(quotas.request_slot(identity))
        quotas.count_request(identity)

    def _check_metrics(self, principal: Principal) -> None:
        caller = self._authenticator.new_caller(principal, "rest")
        caller.require("gateway", "read", "reading the metrics")
        refuse_limited(caller, "reading the metrics, which are those of all tools")
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

    def _page(self, scope: Scope, status: int, error: StratagemError) -> Response | None:
        if self._page_instead is None:
            return None
        if error.details.get("reason") == "missing":
            return self._page_instead(scope, status, "")
        if isinstance(error, PermissionDenied):
            return self._page_instead(scope, status, f"{error.message} {error.hint}")
        return None

    async def _refuse(
        self, error: StratagemError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        path = scope["path"]
        response = error_response(error, enveloped=is_of_gateway(path))
        response = self._page(scope, response.status_code, error) or response
        if error.code == "unauthenticated":
            where = None
            if self._settings.oauth is not None:
                place = _MCP_PATH if path.startswith(_MCP_PATH) else ""
                where = f"{self._own_address(scope)}{METADATA_PATH}{place}"
            missing = error.details.get("reason") == "missing"
            words = challenge(where, None if missing else "invalid_token")
            response.headers["www-authenticate"] = words
        await send_refusal(response, scope, receive, send)


def _workspace_in_query(scope: Scope) -> str | None:
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
