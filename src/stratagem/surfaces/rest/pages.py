"""The page for people with a browser who want to see every route.

It holds nothing of a database and loads nothing from elsewhere, so a browser, which cannot send
a token with an address that is typed in, gets to see it with the 401 as well: it then asks for a
token and reads the list of routes with that.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from stratagem.version import VERSION

__all__ = ["docs", "page_instead"]

_DOCS: Final = "docs.html"
_PAGES: Final = {"/api/docs": _DOCS}
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
    """Return the page that a browser sees where a program is refused, if there is one."""
    name = _PAGES.get(scope["path"])
    asked = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
    if name is None or not asked or not _is_browser(Headers(scope=scope)):
        return None
    return _page(name, status)


def _is_browser(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "")


def _page(name: str, status: int = 200) -> Response:
    text, policy = _read(name)
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
