"""Which paths belong to the console, and which of them need no token.

A browser's session is accepted only there: programs send their token with every request.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LIVE_PATH", "SIGN_IN_PATH", "STATIC_PATH", "is_console_path", "is_open_path"]

SIGN_IN_PATH: Final = "/signin"
STATIC_PATH: Final = "/static/"
# A stream of what happens, for as long as a page is open.
LIVE_PATH: Final = "/live"
# The first part of each address.
_PARTS: Final = frozenset(
    {
        "branches",
        "debugging",
        "index.json",
        "knowledge",
        "live",
        "memory",
        "review",
        "search",
        "sessions",
        "signin",
        "signout",
        "static",
        "system",
        "theme",
        "tools",
    }
)


def is_console_path(path: str) -> bool:
    """Whether a path is answered by the console."""
    first = path.removeprefix("/").partition("/")[0]
    return path == "/" or first in _PARTS or first.removesuffix(".json") in _PARTS


def is_open_path(path: str) -> bool:
    """Whether a path of the console needs no token: signing in, and what that page looks like."""
    return path == SIGN_IN_PATH or path.startswith(STATIC_PATH)
