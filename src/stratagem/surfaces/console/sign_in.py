"""Signing in with a token, or by the address that the server printed; signing out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from stratagem.errors import StratagemError, Unauthenticated
from stratagem.surfaces.admission.middleware import cookie_name
from stratagem.surfaces.console.visits import Console
from stratagem.surfaces.serving.console_paths import is_console_path

__all__ = [
    "choose_theme",
    "endpoint",
    "page_instead",
    "set_cookie",
    "sign_out",
]

_BODY_BYTES_MAX: Final = 16 * 1024
_YEAR: Final = 365 * 86_400
_THEMES: Final = frozenset({"light", "dark", "auto"})
_CODE_USED: Final = (
    "This address has been used, or is too old. Run `stratagem console` for a new one, or sign in "
    "with a token."
)
Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint(console: Console) -> Endpoint:
    """Return what answers at the address of signing in."""

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            return await _with_token(console, request)
        code = request.query_params.get("code")
        if code is None:
            return _page(next_path=request.query_params.get("next", "/"))
        # The clock is the database's.
        await console.authenticator.is_required()
        if not console.authenticator.sessions.redeem(code):
            return _page(403, said=_CODE_USED)
        return _signed_in(request, console.authenticator.sessions.issue("operator"), "/")

    return answer


async def sign_out(request: Request) -> Response:
    """End a session."""
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    response.delete_cookie(cookie_name(request.scope["server"]))
    return response


async def choose_theme(request: Request) -> Response:
    """Remember whether somebody wants it light or dark, and show the page they came from."""
    chosen = (await _form(request)).get("theme", "")
    response = RedirectResponse(
        _own_path(request.headers.get("referer", "/")), HTTPStatus.SEE_OTHER
    )
    if chosen in _THEMES:
        response.set_cookie(
            "stratagem_theme", chosen, max_age=_YEAR, httponly=True, samesite="strict"
        )
    return response


def page_instead(scope: Scope, status: int, said: str) -> Response | None:
    """Return the page that a browser sees where a program is refused: to sign in, or otherwise."""
    from stratagem.surfaces.console.rendering import wants_json

    asked = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
    if not asked or not is_console_path(scope["path"]):
        return None
    request = Request(scope)
    if wants_json(request):
        return None
    return _page(status, said=said, next_path=str(request.url))


def set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    """Give a browser a cookie that no script reads and no other site can have sent."""
    response.set_cookie(
        name, value, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )


async def _with_token(console: Console, request: Request) -> Response:
    fields = await _form(request)
    secret, next_path = fields.get("token", "").strip(), _own_path(fields.get("next", "/"))
    client = request.client
    try:
        principal = await console.authenticator.authenticate(
            [f"Bearer {secret}"],
            address=client.host if client else "",
            route="POST /signin",
            any_workspace=True,
        )
    except Unauthenticated as error:
        said = error.message if secret else "Paste a token."
        return _page(401, said=said, next_path=next_path)
    except StratagemError as error:
        return _page(400, said=error.message, next_path=next_path)
    if principal is None:
        said = "This server has no tokens yet, so no token is needed."
        return _page(400, said=said, next_path=next_path)
    return _signed_in(request, console.authenticator.session_for(principal, secret), next_path)


def _signed_in(request: Request, cookie: str, path: str) -> Response:
    response = RedirectResponse(path, HTTPStatus.SEE_OTHER)
    set_cookie(request, response, cookie_name(request.scope["server"]), cookie)
    response.headers["cache-control"] = "no-store"
    return response


def _page(status: int = 200, *, said: str = "", next_path: str = "/") -> Response:
    from stratagem.surfaces.console.rendering import html, plain_page

    own = status == HTTPStatus.FORBIDDEN and next_path != "/"
    return html(plain_page("signin.html", said=said, own=own, next=_own_path(next_path)), status)


async def _form(request: Request) -> dict[str, str]:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_BYTES_MAX:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace")))


def _own_path(address: str) -> str:
    """Return the path of an address, so that nobody is sent elsewhere."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/"
    if not parts.path.startswith("/") or not is_console_path(parts.path):
        return "/"
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
