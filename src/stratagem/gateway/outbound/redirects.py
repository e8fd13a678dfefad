"""Redirects: the next request, and which headers it may carry.

A redirect to another origin keeps only headers that identify nobody, and is not followed if it
would send a body. A redirect from https to http is never followed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import httpx2

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed, StratagemError
from stratagem.gateway.outbound.guard import check_url, port_of

__all__ = ["Hop", "next_hop", "origin_of"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD: Final = frozenset({307, 308})
_CROSSING_HEADERS: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
_BODY_HEADERS: Final = frozenset({"content-type", "content-encoding", "content-language"})


@dataclass(frozen=True, slots=True)
class Hop:
    """One request in a chain of redirects."""

    method: str
    url: httpx2.URL
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None


def origin_of(url: httpx2.URL) -> tuple[str, bytes, int]:
    """Return the origin of a URL: two URLs with the same one may share credentials."""
    return url.scheme, url.raw_host, port_of(url)


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """Return the request to make next, or None if the response is no redirect.

    Raises:
        ExecutionFailed: The redirect may not be followed.
    """
    if status not in _REDIRECTS or not location:
        return None
    url = _redirect_target(hop.url, location)
    following = replace(hop, url=url)
    if status not in _KEEP_METHOD and hop.method != "HEAD":
        headers = tuple(pair for pair in hop.headers if pair[0].lower() not in _BODY_HEADERS)
        following = replace(following, method="GET", body=None, headers=headers)
    if origin_of(url) == origin_of(hop.url):
        return following
    if hop.url.scheme == "https" and url.scheme != "https":
        raise _redirect_refusal("from https to http", url)
    if following.body is not None:
        raise _redirect_refusal("with its body to another origin", url)
    kept = tuple(pair for pair in following.headers if pair[0].lower() in _CROSSING_HEADERS)
    return replace(following, headers=kept)


def _redirect_target(base: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return check_url(base.join(location).copy_with(fragment=None), field="location")
    except (StratagemError, httpx2.InvalidURL, ValueError) as error:
        why = error.message if isinstance(error, StratagemError) else "its address is malformed."
        raise ExecutionFailed(
            f"The service redirects to an address that is not followed: {why}", reason="redirect"
        ) from None


def _redirect_refusal(how: str, url: httpx2.URL) -> ExecutionFailed:
    return ExecutionFailed(
        f"The service redirects {how}; that is not followed.",
        reason="redirect",
        host=url.host,
        hint="Register the address that it redirects to, if that is the one meant.",
    )
