"""The pages by which a user's browser signs in to an upstream server.

An attacker who began a sign-in may send its address to somebody else, whose tokens the attacker
would then use. So the first page says for which user tokens will be stored, and for what;
continuing needs a click on it, and only the same browser may come back (checked by a cookie).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from stratagem.errors import ResourceNotFound, StratagemError
from stratagem.surfaces.serving.database import Database

if TYPE_CHECKING:
    from stratagem.gateway.parts import GatewayParts
    from stratagem.gateway.registry.sign_ins import SignIns

__all__ = ["sign_in_routes"]

_COOKIE: Final = "stratagem_sign_in"
_COOKIE_SECONDS: Final = 900
_CODE_CHARS_MAX: Final = 4096
T = TypeVar("T")


def sign_in_routes(database: Database) -> list[Route]:
    """Return the routes of sign-ins; none of them takes a token."""
    pages = _SignInPages(database)
    return [
        Route("/oauth/client.json", pages.client, methods=["GET"]),
        Route("/oauth/sign-in/{state}", pages.begin, methods=["GET"]),
        Route("/oauth/continue/{state}", pages.go_on, methods=["GET"]),
        Route("/oauth/callback", pages.come_back, methods=["GET"]),
    ]


class _SignInPages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def client(self, _request: Request) -> Response:
        """Give the document by which authorization servers know us."""
        from stratagem.gateway.handlers.upstream.oauth import client_metadata
        from stratagem.gateway.settings import SignInPlace

        place = SignInPlace(self._database.address or "")
        said = client_metadata([place.callback], place.metadata_url)
        return JSONResponse(said, headers={"cache-control": "max-age=300"})

    async def begin(self, request: Request) -> Response:
        """Say who is to be let in where; go on only from here."""
        state = request.path_params["state"]
        try:
            waiting = await self._run(state, lambda each: asyncio.to_thread(each.find, state))
        except StratagemError as error:
            return _page("Nothing to sign in to", error, 404)
        mark = secrets.token_urlsafe(16)
        where = urlsplit(waiting.address).hostname or ""
        page = _page(
            f"Sign in to {waiting.server}",
            f"You continue at {where}. What you allow Stratagem there is then done for the "
            f"user {waiting.user} of this server. Continue only if that is you and you started "
            "this sign-in.",
            link=(f"/oauth/continue/{state}?mark={mark}", f"Continue as {waiting.user}"),
        )
        self._set_cookie(page, mark)
        return page

    async def go_on(self, request: Request) -> Response:
        """Send the browser to the authorization server, if it has seen the page before."""
        state = request.path_params["state"]
        mark = request.query_params.get("mark", "")
        if not mark or not secrets.compare_digest(request.cookies.get(_COOKIE, ""), mark):
            return RedirectResponse(f"/oauth/sign-in/{state}", 303)
        try:
            waiting = await self._run(state, lambda each: asyncio.to_thread(each.find, state))
        except StratagemError as error:
            return _page("Nothing to sign in to", error, 404)
        response = RedirectResponse(waiting.address, 303, {"cache-control": "no-store"})
        self._set_cookie(response, f"{mark}.{_bind(mark, state)}")
        return response

    async def come_back(self, request: Request) -> Response:
        """Take the answer of an authorization server, from the browser that was sent to it."""
        given = request.query_params
        state, code = given.get("state", ""), given.get("code", "")[:_CODE_CHARS_MAX]
        mark, _, bound = request.cookies.get(_COOKIE, "").partition(".")
        if not bound or not secrets.compare_digest(bound, _bind(mark, state)):
            return _page("Not signed in", "This sign-in was started in another browser.", 403)
        try:
            if not code:
                await self._run(state, lambda each: each.end(state))
                reason = given.get("error", "nothing was given")[:100]
                return _page("Not signed in", f"It was refused: {reason}.", 403)
            done = await self._run(state, lambda each: each.finish(state, code, given.get("iss")))
        except StratagemError as error:
            return _page("Not signed in", error, 403)
        page = _page(
            f"Signed in to {done['server']}",
            f"Its tools can be called for {done['user']} now. You may close this page.",
        )
        page.delete_cookie(_COOKIE, path="/oauth")
        return page

    def _set_cookie(self, response: Response, value: str) -> None:
        secure = (self._database.address or "").startswith("https://")
        response.set_cookie(
            _COOKIE,
            value,
            max_age=_COOKIE_SECONDS,
            path="/oauth",
            httponly=True,
            secure=secure,
            samesite="lax",
        )

    async def _run(self, state: str, work: Callable[[SignIns], Awaitable[T]]) -> T:
        """Run work on the sign-ins of the workspace that a state names."""
        workspace = state.partition(".")[2] or None
        if workspace is not None:
            await asyncio.to_thread(self._look_for, state, workspace)
        gateway: GatewayParts = await asyncio.to_thread(
            lambda: self._database.runtime(workspace).gateway
        )
        gateway.home.adopt()

        async def run() -> T:
            return await work(gateway.sign_ins())

        return await gateway.home.join(run)

    def _look_for(self, state: str, workspace: str) -> None:
        """Refuse a state that no workspace knows before one is opened, and held open, for it."""
        if workspace not in self._database.workspaces():
            raise ResourceNotFound("This sign-in does not exist or has expired.", field="state")
        with self._database.borrow(workspace) as runtime:
            runtime.gateway.sign_ins().find(state)


def _bind(mark: str, state: str) -> str:
    return hashlib.sha256(f"{mark}\0{state}".encode()).hexdigest()


def _page(
    title: str,
    words: str | StratagemError,
    status: int = 200,
    *,
    link: tuple[str, str] | None = None,
) -> HTMLResponse:
    if isinstance(words, StratagemError):
        words = f"{words.message} {words.hint}"
    text, policy = _template()
    button = f'<p><a class="go" href="{escape(link[0])}">{escape(link[1])}</a></p>' if link else ""
    filled = text.substitute(title=escape(title), words=escape(words), link=button)
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    return HTMLResponse(filled, status, headers)


@cache
def _template() -> tuple[Template, str]:
    text = (resources.files(__package__) / "sign_in.html").read_text("utf-8")
    style = text.partition("<style>")[2].partition("</style>")[0]
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = [f"{each} 'none'" for each in ("default-src", "base-uri", "form-action")]
    rules += ["frame-ancestors 'none'", "img-src data:", f"style-src 'sha256-{hashed}'"]
    return Template(text), "; ".join(rules)
