"""The console as an ASGI application: each page in two forms, and the forms that it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem import limits
from stratagem.errors import (
    TABLE,
    InternalFault,
    PermissionDenied,
    RequestTooLarge,
    RouteNotFound,
    StratagemError,
    ValidationFailed,
)
from stratagem.surfaces.admission.authenticator import Authenticator
from stratagem.surfaces.admission.middleware import cookie_name, session_cookie
from stratagem.surfaces.console import sign_in
from stratagem.surfaces.console.branch_pages import BRANCH_PAGES
from stratagem.surfaces.console.debugging_pages import DEBUGGING_PAGES
from stratagem.surfaces.console.knowledge_pages import KNOWLEDGE_PAGES
from stratagem.surfaces.console.live_updates import live_updates
from stratagem.surfaces.console.memory_pages import MEMORY_PAGES
from stratagem.surfaces.console.overview_pages import OVERVIEW_PAGES
from stratagem.surfaces.console.pages import ConsolePage, PageRoute
from stratagem.surfaces.console.rendering import (
    error_page,
    keep_note,
    render,
    static_file,
    wants_json,
)
from stratagem.surfaces.console.review_pages import REVIEW_PAGES
from stratagem.surfaces.console.system_pages import SYSTEM_PAGES
from stratagem.surfaces.console.tool_pages import TOOL_PAGES
from stratagem.surfaces.console.visits import Console, Visit
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.methods import wrong_methods
from stratagem.surfaces.serving.responses import error_response
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["application"]

Endpoint = Callable[[Request], Awaitable[Response]]
ROUTES: Final = (
    *OVERVIEW_PAGES,
    *MEMORY_PAGES,
    *BRANCH_PAGES,
    *DEBUGGING_PAGES,
    *KNOWLEDGE_PAGES,
    *TOOL_PAGES,
    *REVIEW_PAGES,
    *SYSTEM_PAGES,
)


def application(
    settings: ServerSettings, database: Database, authenticator: Authenticator
) -> ASGIApp:
    """Return the console of a server."""
    console = Console(settings, database, authenticator)
    paths = [
        Route("/signin", sign_in.endpoint(console), methods=["GET", "POST"]),
        Route("/signout", sign_in.sign_out, methods=["POST"]),
        Route("/theme", sign_in.choose_theme, methods=["POST"]),
        Route("/static/{name:path}", static_file, methods=["GET"]),
        Route("/live", live_updates(console), methods=["GET"]),
    ]
    for route in ROUTES:
        endpoint = _endpoint(console, route)
        methods = ["GET", "POST"] if route.acts else ["GET"]
        also = "/index.json" if route.path == "/" else f"{route.path}.json"
        paths += [
            Route(route.path, endpoint, methods=methods),
            Route(also, endpoint, methods=["GET"]),
        ]
    return Router([*paths, *wrong_methods(paths)], default=_NotFound(console))


def _endpoint(console: Console, route: PageRoute) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        visit, begun = _visit(console, request)
        try:
            response = await (
                _act(visit, route) if request.method == "POST" else _show(visit, route)
            )
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            response = await _refuse(visit, error)
        if begun:
            sign_in.set_cookie(request, response, cookie_name(request.scope["server"]), begun)
        return response

    return endpoint


def _visit(console: Console, request: Request) -> tuple[Visit, str]:
    """Return a visit, and the cookie of a session that begins with it."""
    cookie = session_cookie(request.scope)
    sessions = console.authenticator.sessions
    if sessions.read(cookie) is not None:
        return Visit(console, request, cookie or ""), ""
    begun = sessions.issue("visitor")
    return Visit(console, request, begun), begun


async def _show(visit: Visit, route: PageRoute) -> Response:
    return await render(visit, await route.view(visit))


async def _act(visit: Visit, route: PageRoute) -> Response:
    fields = await _fields(visit)
    act = route.acts.get(fields.get("act", ""))
    if act is None:
        raise RouteNotFound("This form does not exist here.", hint="Load the page again.")
    done = await act(visit, fields)
    if isinstance(done, ConsolePage):
        return await render(visit, done)
    response = RedirectResponse(done.path, HTTPStatus.SEE_OTHER)
    return keep_note(visit, response, done)


async def _fields(visit: Visit) -> dict[str, str]:
    """Return the fields of a form, once it is known that a page of ours sent it.

    Raises:
        PermissionDenied: It may be another page's.
        RequestTooLarge: It has more than a form may have.
        ValidationFailed: It is not text.
    """
    request = visit.request
    try:
        fields = dict(parse_qsl((await _body(request)).decode(), keep_blank_values=True))
    except UnicodeDecodeError as error:
        raise ValidationFailed("The form must be sent in UTF-8.", field="form") from error
    sessions = visit.console.authenticator.sessions
    bearer = "authorization" in request.headers
    if not bearer and not sessions.is_form_token(visit.cookie, fields.pop("form_token", "")):
        raise PermissionDenied(
            "This form was not made for your session.",
            hint="Load the page again, and send the form once more.",
        )
    return fields


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.CONSOLE_FORM_BYTES_MAX:
            raise RequestTooLarge(
                "The form is larger than the limit.", limit=limits.CONSOLE_FORM_BYTES_MAX
            )
    return bytes(body)


async def _refuse(visit: Visit, error: Exception) -> Response:
    if not isinstance(error, StratagemError):
        # Says in the log what happened.
        error_response(error, enveloped=False)
        error = InternalFault("The page failed; the server's log says how.")
    if wants_json(visit.request):
        return error_response(error, enveloped=False)
    return await error_page(visit, error, TABLE[error.code].http_status)


class _NotFound:
    """Answers what no page is at."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        visit, _ = _visit(self._console, request)
        error = RouteNotFound(f"There is no page at {request.url.path}.", hint="Begin at /.")
        response = await asyncio.shield(_refuse(visit, error))
        await response(scope, receive, send)
