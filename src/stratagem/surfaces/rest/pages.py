"""The pages for people with a browser: every route, and what an address of nothing shows.

The first holds nothing of a database and loads nothing from elsewhere, so a browser, which cannot
send a token with an address that is typed in, gets to see it with the 401 as well: it then asks for
a token and reads the list of routes with that.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from stratagem.version import VERSION

__all__ = ["docs", "missing_page", "page_instead"]

_DOCS: Final = "docs.html"
_MISSING: Final = "missing.html"
_PAGES: Final = {"/api/docs": _DOCS}
# How the paths begin that the server answers besides those of the console; anybody may know them.
_ANSWERED: Final = frozenset(
    {".well-known", "api", "health", "mcp", "metrics", "oauth", "ready", "socket.io", "stratagem"}
)
_CLOSED: Final = (
    "default-src 'none'",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


async def docs(_request: Request) -> Response:
    """Show every route."""
    return _page(_DOCS)


def page_instead(scope: Scope, status: int) -> Response | None:
    """Return the page that a browser sees where a program is refused, if there is one.

    Who has signed in to the console sends no token elsewhere, and must not be asked for one at an
    address of nothing.
    """
    path = scope["path"]
    if not _is_browser(scope):
        return None
    if path.removeprefix("/").partition("/")[0] not in _ANSWERED:
        return missing_page(scope, f"There is nothing at {path}.", HTTPStatus.NOT_FOUND)
    name = _PAGES.get(path)
    return None if name is None else _page(name, status)


def missing_page(scope: Scope, message: str, status: int) -> Response | None:
    """Return what a browser is shown at an address of nothing; None for a program."""
    return _page(_MISSING, status, message) if _is_browser(scope) else None


def _is_browser(scope: Scope) -> bool:
    asked = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
    return asked and "text/html" in Headers(scope=scope).get("accept", "")


def _page(name: str, status: int = 200, message: str = "") -> Response:
    text, policy = _read(name)
    text = text.replace("{{message}}", html.escape(message))
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "vary": "accept, authorization",
    }
    return HTMLResponse(text, status, headers)


@cache
def _read(name: str) -> tuple[str, str]:
    """Return a page, and the policy by which a browser runs nothing but what was written for it."""
    text = (resources.files(__package__) / name).read_text("utf-8").replace("{{version}}", VERSION)
    allowed: dict[str, list[str]] = {"script": [], "style": []}
    for kind, hashes in allowed.items():
        for part in text.split(f"<{kind}>")[1:]:
            content = part.partition(f"</{kind}>")[0]
            hashed = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            hashes.append(f"'sha256-{hashed}'")
    sources = [f"{kind}-src {' '.join(hashes)}" for kind, hashes in allowed.items() if hashes]
    return text, "; ".join((*_CLOSED, *sources))
