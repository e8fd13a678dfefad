"""Protection against requests of foreign web pages, by their `Host` and `Origin` headers.

A page in the user's browser can send requests to a loopback address, and by resolving its own name
to that address (DNS rebinding) it can read the answers. These headers reveal it, so both are
checked before anything else of a request is read. Requests for embedded scripts, images and frames
have no `Origin`; for these the `Sec-Fetch` headers of browsers are checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem.errors import HostNotAllowed, OriginNotAllowed, StratagemError
from stratagem.surfaces.serving.responses import error_response, is_of_gateway, send_refusal

__all__ = ["TrustedHosts", "allowed_hosts", "origins_of"]

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
# What browsers call a request of another page's; another port of this machine is such a page.
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
# Those of http and https, which clients leave out.
_USUAL_PORTS = frozenset({"80", "443"})
# So much of a foreign header is shown.
_SHOWN_CHARS = 200
_ALLOWS_NAME = "stratagem serve --server-name NAME:PORT"


def allowed_hosts(host: str, port: int, more: Iterable[str]) -> list[str]:
    """Return the `Host` headers that are let in.

    Names without a port get the server's; those of `more` may come without one as well, as they do
    from a proxy that answers on the usual port.
    """
    own = f"[{host}]" if ":" in host else host
    given = [form for name in more for form in _with_and_without_port(name, port)]
    names = [*(f"{name}:{port}" for name in (*_LOOPBACK, own)), *given]
    return list(dict.fromkeys(name.lower() for name in names))


def _with_and_without_port(name: str, port: int) -> tuple[str, ...]:
    """Return how clients write a name that the operator gave."""
    if not _has_port(name):
        return name, f"{name}:{port}"
    bare, _, given = name.rpartition(":")
    return (bare, name) if given in _USUAL_PORTS else (name,)


def origins_of(hosts: Iterable[str]) -> list[str]:
    """Return the `Origin` headers of pages that some hosts themselves serve."""
    return [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]


class TrustedHosts:
    """Refuses requests that name a foreign host or come from a foreign page."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins_of(self._hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it with 403."""
        checked = scope["type"] in {"http", "websocket"}
        refusal = self._refusal(Headers(scope=scope)) if checked else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            response = error_response(refusal, enveloped=is_of_gateway(scope["path"]))
            await send_refusal(response, scope, receive, send)

    def _refusal(self, headers: Headers) -> StratagemError | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _foreign_host(hosts)
        origins = headers.getlist("origin")
        foreign = [origin for origin in origins if origin.lower() not in self._origins]
        if foreign:
            return _foreign_page("Origin", foreign[0])
        if not origins and _is_embedded(headers):
            return _foreign_page("Sec-Fetch-Site", headers["sec-fetch-site"])
        return None


def _foreign_host(hosts: list[str]) -> HostNotAllowed:
    shown = [host[:_SHOWN_CHARS] for host in hosts[:2]]
    if len(shown) == 1:
        words = f"The host {shown[0]!r} is not allowed."
    else:
        words = "A request must have one header `Host`: this is not allowed."
    hint = f"Call the server by its own address. If the name is yours, allow it: {_ALLOWS_NAME}"
    return HostNotAllowed(words, field="Host", given=shown, hint=hint)


def _foreign_page(header: str, given: str) -> OriginNotAllowed:
    shown = given[:_SHOWN_CHARS]
    return OriginNotAllowed(
        f"A page of another site sent this, which is not allowed ({header}: {shown}).",
        field=header,
        given=shown,
        hint="Call from a page of this server, or from a program, without the header `Origin`. "
        f"If the page is yours, allow the name of its host: {_ALLOWS_NAME}",
    )


def _is_embedded(headers: Headers) -> bool:
    """Whether another page asks for a part of itself; following a link is the user's own act."""
    follows_link = headers.get("sec-fetch-dest") == "document"
    return headers.get("sec-fetch-site") in _FOREIGN_SITES and not follows_link


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]
