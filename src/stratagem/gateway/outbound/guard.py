"""The guard against server-side request forgery: which IP address a connection may be opened to.

It works where connections are opened, below the code that parses URLs, follows redirects and
pools connections, so that none of these can bypass it. A name is resolved once, every resulting
address is checked, and the connection is opened to one of the checked addresses, which rules out
DNS rebinding. TLS and the Host header use the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import httpx2

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.outbound.addresses import (
    Address,
    is_public,
    needs_own_permission,
    non_public_kind,
    parse_address,
)
from stratagem.gateway.outbound.allowed_hosts import (
    PORT_MAX,
    AllowedHost,
    host_fault,
    normalize_host,
)

__all__ = ["Guard", "Resolver", "check_url", "port_of", "system_resolver"]

# From a name and a port to its addresses as text, in the order they should be tried.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_PORTS: Final = {"http": 80, "https": 443}
_HINT: Final = "To allow it: STRATAGEM_ALLOW_HOSTS={0}, or --allow-host {0} with serve and mcp."


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system for the addresses of a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def check_url(url: str | httpx2.URL, *, field: str = "url") -> httpx2.URL:
    """Parse an http or https URL whose host is unambiguous.

    Raises:
        ValidationFailed: It is not such a URL, or parsers disagree about its host.
    """
    if len(str(url)) > limits.OUTBOUND_URL_CHARS_MAX:
        raise ValidationFailed(
            f"`{field}` is longer than {limits.OUTBOUND_URL_CHARS_MAX} characters.",
            field=field,
            limit=limits.OUTBOUND_URL_CHARS_MAX,
        )
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise _url_error(field, "it is malformed") from None
    if parsed.scheme not in _PORTS:
        raise _url_error(field, "only http and https are allowed")
    if parsed.userinfo or "@" in parsed.netloc.decode("ascii"):
        raise _url_error(field, "it must not hold a user or a password")
    if not 0 < port_of(parsed) <= PORT_MAX:
        raise _url_error(field, f"the port must be from 1 to {PORT_MAX}")
    if fault := host_fault(normalize_host(parsed.raw_host.decode("ascii"))):
        raise _url_error(field, f"its host cannot be called: {fault}")
    return parsed


def port_of(url: httpx2.URL) -> int:
    """Return the port of a URL, by default that of its scheme."""
    return _PORTS.get(url.scheme, 0) if url.port is None else url.port


def _url_error(field: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"`{field}` cannot be called: {why}.",
        field=field,
        hint="Write an address such as https://api.example.com/path.",
    )


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides where a connection may lead.

    `public` tells which addresses need no entry in the allow list; tests replace it so that a
    loopback address counts as public.
    """

    allow: tuple[AllowedHost, ...] = ()
    resolver: Resolver = system_resolver
    public: Callable[[Address], bool] = is_public

    async def addresses(self, host: str, port: int) -> list[str]:
        """Resolve a host, check every address, and return them in the order to try.

        Raises:
            PermissionDenied: One of them is not public, and the host is not allowed by name.
            ExecutionFailed: The name has no address.
        """
        host = normalize_host(host)
        if fault := host_fault(host):
            raise PermissionDenied(f"This host cannot be called: {fault}.", host=host[:100])
        allowed = any(entry.covers(host, port) for entry in self.allow)
        literal = parse_address(host)
        if literal is not None:
            return [self._check_literal(literal, port, allowed=allowed)]
        found = await self._resolve(host, port)
        if allowed:
            refused = any(map(needs_own_permission, found))
        else:
            refused = not all(map(self.public, found))
        if refused:
            raise _refusal(host, port, "an address that is not public")
        return list(dict.fromkeys(map(str, found)))

    def check(self, url: httpx2.URL) -> None:
        """Refuse a URL whose host is an IP address that may not be called; names pass."""
        host = normalize_host(url.raw_host.decode("ascii"))
        port = port_of(url)
        literal = parse_address(host)
        if literal is not None:
            covered = any(entry.covers(host, port) for entry in self.allow)
            self._check_literal(literal, port, allowed=covered)

    def _check_literal(self, address: Address, port: int, *, allowed: bool) -> str:
        if not allowed and not self.public(address):
            raise _refusal(
                str(address), port, non_public_kind(address) or "an address that is not public"
            )
        return str(address)

    async def _resolve(self, host: str, port: int) -> list[Address]:
        try:
            texts = await self.resolver(host, port)
        except (OSError, UnicodeError):
            texts = ()
        found = [parse_address(text) for text in texts]
        addresses = [address for address in found if address is not None]
        if not found or len(addresses) < len(found) or len(found) > limits.OUTBOUND_ADDRESSES_MAX:
            raise ExecutionFailed(
                f"The host {host} cannot be found.",
                safe=True,
                reason="unresolved",
                host=host,
                hint="Check the name of the host, and that this machine can resolve it.",
            )
        return addresses


def _refusal(host: str, port: int, why: str) -> PermissionDenied:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return PermissionDenied(
        f"{place} may not be called: it is {why}."
        if parse_address(host)
        else f"{place} may not be called: it leads to {why}.",
        host=host,
        port=port,
        reason="not_public",
        hint=_HINT.format(place),
    )
