"""The guard itself: which address a connection may be opened to.

It stands where connections are opened, below everything that reads addresses (URLs), follows
redirects or keeps connections. Whatever goes on above it, no connection is opened to an address
it did not see: a name is resolved once, every answer is looked at, and one of those very answers
is dialled. TLS and the Host header go on with the name.
"""

from __future__ import annotations

import asyncio
import socket
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from stratagem import limits
from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.outbound.addresses import (
    Address,
    as_address,
    is_public,
    kind_of,
    needs_own_permission,
)
from stratagem.gateway.outbound.allowing import PORT_MAX, AllowedHost, host_fault, normal_host

__all__ = ["Guard", "GuardedBackend", "Resolver", "check_url", "port_of", "system_resolver"]

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
    """Read an address of http or https that names a host plainly.

    Raises:
        ValidationFailed: It is something else, or its host can be read in more than one way.
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
        raise _unusable(field, "it is malformed") from None
    if parsed.scheme not in _PORTS:
        raise _unusable(field, "only http and https are called")
    if parsed.userinfo or "@" in parsed.netloc.decode("ascii"):
        raise _unusable(field, "it must not hold a user or a password")
    if not 0 < port_of(parsed) <= PORT_MAX:
        raise _unusable(field, f"the port must be from 1 to {PORT_MAX}")
    if fault := host_fault(normal_host(parsed.raw_host.decode("ascii"))):
        raise _unusable(field, f"its host cannot be called: {fault}")
    return parsed


def port_of(url: httpx2.URL) -> int:
    """Return the port that an address is served on."""
    return _PORTS.get(url.scheme, 0) if url.port is None else url.port


def _unusable(field: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"`{field}` cannot be called: {why}.",
        field=field,
        hint="Write an address such as https://api.example.com/path.",
    )


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides where a connection may lead.

    `public` tells which addresses need no permission; tests on one machine let an address of the
    loopback network play a public one.
    """

    allow: tuple[AllowedHost, ...] = ()
    resolver: Resolver = system_resolver
    public: Callable[[Address], bool] = is_public

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses that a host may be dialled at, having looked at all of them.

        Raises:
            PermissionDenied: One of them is not public, and the host is not allowed by name.
            ExecutionFailed: The name has no address.
        """
        host = normal_host(host)
        if fault := host_fault(host):
            raise PermissionDenied(f"This host cannot be called: {fault}.", host=host[:100])
        allowed = any(entry.covers(host, port) for entry in self.allow)
        literal = as_address(host)
        if literal is not None:
            return [self._literal(literal, port, allowed=allowed)]
        found = await self._resolve(host, port)
        if allowed:
            refused = any(map(needs_own_permission, found))
        else:
            refused = not all(map(self.public, found))
        if refused:
            raise _refused(host, port, "an address that is not public")
        return list(dict.fromkeys(map(str, found)))

    def check(self, url: httpx2.URL) -> None:
        """Refuse at once what needs no resolving to be refused."""
        host = normal_host(url.raw_host.decode("ascii"))
        port = port_of(url)
        literal = as_address(host)
        if literal is not None:
            covered = any(entry.covers(host, port) for entry in self.allow)
            self._literal(literal, port, allowed=covered)

    def _literal(self, address: Address, port: int, *, allowed: bool) -> str:
        if not allowed and not self.public(address):
            raise _refused(str(address), port, kind_of(address) or "an address that is not public")
        return str(address)

    async def _resolve(self, host: str, port: int) -> list[Address]:
        try:
            texts = await self.resolver(host, port)
        except (OSError, UnicodeError):
            texts = ()
        found = [as_address(text) for text in texts]
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


def _refused(host: str, port: int, why: str) -> PermissionDenied:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return PermissionDenied(
        f"{place} may not be called: it is {why}."
        if as_address(host)
        else f"{place} may not be called: it leads to {why}.",
        host=host,
        port=port,
        reason="not_public",
        hint=_HINT.format(place),
    )


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections, only to addresses that the guard has passed."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        local_address: str | None = None,
        socket_options: typing.Iterable[typing.Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Open a connection to one of the addresses that the guard passed, in their order."""
        del local_address
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._guard.addresses(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the name was not resolved in time") from None
        failure: Exception = httpcore2.ConnectError("no address")
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, timeout=timeout, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        socket_options: typing.Iterable[typing.Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: a socket of this machine is no service of the internet."""
        del path, timeout, socket_options
        raise PermissionDenied("A unix socket may not be called.", reason="unix_socket")

    async def sleep(self, seconds: float) -> None:
        """Wait, on behalf of the library's own retries."""
        await asyncio.sleep(seconds)
