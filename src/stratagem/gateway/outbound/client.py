"""The client for all outbound HTTP.

`request` makes a complete request: it checks the URL, pins the resolved address, follows
redirects, and bounds bytes and time. `client` returns an httpx client with the same guard and
bounds, for the remote MCP client, which streams. Neither reads proxies or passwords from the
environment, and `request` keeps no cookies, so that calls share no state.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx2

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    PermissionDenied,
    ValidationFailed,
)
from stratagem.gateway.outbound.addresses import Address, is_public
from stratagem.gateway.outbound.allowed_hosts import parse_allowed_hosts
from stratagem.gateway.outbound.guard import (
    Guard,
    Resolver,
    check_url,
    port_of,
    system_resolver,
)
from stratagem.gateway.outbound.redirects import Hop, next_hop
from stratagem.gateway.outbound.responses import Response
from stratagem.gateway.outbound.transport import BYTES_MAX, GuardedTransport
from stratagem.spans import is_tracing

__all__ = ["METHODS", "Outbound", "check_headers"]

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Baggage is left out: it is anything, and whose it is cannot be told.
_TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate"})
_DEFAULT_HEADERS: Final = (
    ("accept", "*/*"),
    ("accept-encoding", "gzip, deflate"),
    ("user-agent", "stratagem"),
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_FORBIDDEN_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
# They frame the request or belong to the connection: only the client itself may set them.
_FRAMING: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te"}
    | {"trailer", "expect", "proxy-authorization", "proxy-connection", "accept-encoding"}
)


class Outbound:
    """Guarded HTTP.

    `allow` names what may be called although it is not public: `("localhost:8000", "host:*")`.
    """

    def __init__(
        self,
        allow: str | Iterable[str] | None = (),
        *,
        resolver: Resolver = system_resolver,
        public: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = Guard(parse_allowed_hosts(allow), resolver, public)
        self._tls = tls
        self._transport: GuardedTransport | None = None

    def warnings(self, url: str, *, field: str = "url") -> list[str]:
        """Check a URL without touching the network.

        Returns a warning if a call would be refused unless an administrator allows the host.

        Raises:
            ValidationFailed: The URL can never be called.
        """
        try:
            self._guard.check(check_url(url, field=field))
        except PermissionDenied as error:
            return [f"`{field}`: {error.message} {error.hint}"]
        return []

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = limits.OUTBOUND_SECONDS_DEFAULT,
        bytes_max: int = limits.OUTBOUND_BYTES_DEFAULT,
    ) -> Response:
        """Make a request, follow its redirects, and read the response, whatever its status.

        Raises:
            ValidationFailed: The address, the method or a header cannot be sent.
            PermissionDenied: It, or where it redirects to, is not public.
            ExecutionFailed: The service cannot be reached (`safe`), or its answer cannot be read.
            ExecutionTimeout: It took too long.
        """
        if method not in METHODS:
            raise ValidationFailed(
                f"`method` cannot be {method[:20]!r}.", field="method", hint=", ".join(METHODS)
            )
        given = check_headers(headers or {})
        names = {name.lower() for name, _ in given}
        usual = (*_DEFAULT_HEADERS, *_trace_headers())
        defaults = tuple(pair for pair in usual if pair[0] not in names)
        hop = Hop(method, check_url(url), (*defaults, *given), body)
        seconds = min(seconds, limits.OUTBOUND_SECONDS_MAX)
        bytes_max = min(bytes_max, limits.OUTBOUND_BYTES_MAX)
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(hop, seconds, bytes_max)
        except TimeoutError:
            raise ExecutionTimeout(
                f"{hop.url.host} did not answer in {seconds:g} seconds.", seconds=seconds
            ) from None

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host that may be connected to, for what is not HTTP.

        Raises:
            PermissionDenied: One of them is not public, and the host is not allowed by name.
            ExecutionFailed: The name has no address.
        """
        return await self._guard.addresses(host, port)

    def transport(
        self, *, bytes_max: int = limits.OUTBOUND_BYTES_DEFAULT
    ) -> httpx2.AsyncBaseTransport:
        """Return a new transport with its own connections, for an `httpx2.AsyncClient`."""
        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        return GuardedTransport(self._guard, tls=self._tls, bytes_max=bytes_max)

    def client(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        bytes_max: int = limits.OUTBOUND_BYTES_DEFAULT,
    ) -> httpx2.AsyncClient:
        """Return a client that may stream; the caller closes it.

        It follows no redirects. An event stream may be endless; each line of it is bounded.
        """
        return httpx2.AsyncClient(
            transport=self.transport(bytes_max=bytes_max),
            headers={"accept-encoding": "gzip, deflate", **(headers or {})},
            timeout=timeout or httpx2.Timeout(None, connect=limits.OUTBOUND_CONNECT_SECONDS),
            auth=auth,
            trust_env=False,
            follow_redirects=False,
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float,
        bytes_max: int = limits.OUTBOUND_BYTES_DEFAULT,
    ) -> AsyncIterator[httpx2.Response]:
        """Make a request whose answer is read as it arrives; no redirect is followed.

        Raises:
            PermissionDenied: The address is not public.
            ExecutionFailed: The service cannot be reached (`safe`), or the connection broke.
            ExecutionTimeout: It took too long.
        """
        target = check_url(url)
        check_headers(headers)
        try:
            async with asyncio.timeout(min(seconds, limits.OUTBOUND_SECONDS_MAX)):
                with _translate_errors(target, redirected=False):
                    async with (
                        self.client(headers=headers, bytes_max=bytes_max) as client,
                        client.stream(method, target, content=body) as response,
                    ):
                        yield response
        except TimeoutError:
            raise ExecutionTimeout(
                f"{target.host} did not answer in {seconds:g} seconds.", seconds=seconds
            ) from None

    async def close(self) -> None:
        """Close every connection of `request`."""
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def _follow(self, hop: Hop, seconds: float, bytes_max: int) -> Response:
        for count in range(limits.OUTBOUND_REDIRECTS_MAX + 1):
            response = await self._send(hop, seconds, bytes_max, redirected=count > 0)
            following = next_hop(hop, response.status, response.headers.get("location"))
            if following is None:
                return response
            hop = following
        raise ExecutionFailed(
            f"The service redirects more than {limits.OUTBOUND_REDIRECTS_MAX} times.",
            reason="redirect",
            limit=limits.OUTBOUND_REDIRECTS_MAX,
        )

    async def _send(
        self, hop: Hop, seconds: float, bytes_max: int, *, redirected: bool
    ) -> Response:
        if self._transport is None:
            transport = self.transport()
            assert isinstance(transport, GuardedTransport)
            self._transport = transport
        wait = min(seconds, limits.OUTBOUND_CONNECT_SECONDS)
        timeout = {"connect": wait, "pool": wait, "read": None, "write": None}
        request = httpx2.Request(
            hop.method,
            hop.url,
            headers=[(name.encode(), value.encode()) for name, value in hop.headers],
            content=hop.body,
            extensions={"timeout": timeout, BYTES_MAX: bytes_max},
        )
        with _translate_errors(hop.url, redirected=redirected):
            answer = await self._transport.handle_async_request(request)
            try:
                body = await answer.aread()
            finally:
                await answer.aclose()
        return Response(answer.status_code, _join_headers(answer.headers), body, str(hop.url))


def _trace_headers() -> tuple[tuple[str, str], ...]:
    """Return the trace that the call belongs to; none where nobody traces anything."""
    if not is_tracing():
        return ()
    # Whoever makes spans need not have imported this part of OpenTelemetry.
    from opentelemetry.propagate import inject

    carrier: dict[str, str] = {}
    inject(carrier)
    return tuple((name, value) for name, value in carrier.items() if name in _TRACE_HEADERS)


def check_headers(
    headers: Mapping[str, Any], *, field: str = "headers"
) -> tuple[tuple[str, str], ...]:
    """Check the headers of a caller and return them as pairs.

    Raises:
        ValidationFailed: One is malformed, too long, or reserved for the client.
    """
    if len(headers) > limits.OUTBOUND_HEADERS_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(headers)} headers; the limit is {limits.OUTBOUND_HEADERS_MAX}.",
            field=field,
            limit=limits.OUTBOUND_HEADERS_MAX,
        )
    return tuple(_check_header(name, value, field) for name, value in headers.items())


def _check_header(name: str, value: Any, field: str) -> tuple[str, str]:
    where = f"{field}.{name[:100]}"
    if not _NAME.fullmatch(name):
        raise ValidationFailed(f"`{where}` is not the name of a header.", field=field)
    if name.lower() in _FRAMING:
        raise ValidationFailed(
            f"`{where}` is set by the client itself.", field=where, hint="Leave it out."
        )
    if not isinstance(value, str) or _FORBIDDEN_VALUE.search(value):
        raise ValidationFailed(f"`{where}` must be one line of text.", field=where)
    if len(value) > limits.OUTBOUND_HEADER_CHARS_MAX:
        raise ValidationFailed(
            f"`{where}` is longer than {limits.OUTBOUND_HEADER_CHARS_MAX} characters.",
            field=where,
            limit=limits.OUTBOUND_HEADER_CHARS_MAX,
        )
    return name, value.strip()


def _join_headers(headers: httpx2.Headers) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


@contextmanager
def _translate_errors(url: httpx2.URL, *, redirected: bool) -> Iterator[None]:
    """Raise errors of httpx as errors of the gateway, which name the host but no IP address."""
    place = f"{url.host}:{port_of(url)}"
    # After a redirect something has answered already: it may have done its work.
    safe = not redirected
    try:
        yield
    except PermissionDenied as error:
        if not redirected:
            raise
        raise PermissionDenied(
            f"The service redirects to an address that may not be called: {error.message}",
            hint=error.hint,
            **error.details,
            redirected=True,
        ) from None
    except ExecutionFailed as error:
        error.safe = error.safe and safe
        raise
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise ExecutionFailed(
            f"Cannot connect to {place}{_certificate_fault(error)}.",
            safe=safe,
            reason="connect",
            host=url.host,
            hint="Check that the service is running and can be reached from here.",
        ) from None
    except httpx2.PoolTimeout:
        raise ExecutionFailed(
            "Too many calls to services are running.", safe=safe, reason="connections"
        ) from None
    except httpx2.LocalProtocolError as error:
        raise ValidationFailed(f"The request cannot be sent: {error}.", field="headers") from None
    except httpx2.TransportError:
        raise ExecutionFailed(
            f"The connection to {place} broke before the answer was complete.",
            reason="connection_lost",
            host=url.host,
        ) from None


def _certificate_fault(error: BaseException) -> str:
    """Return the words that blame TLS if it caused the error; further details help no caller."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return ": its certificate or encryption is not accepted"
        cause = cause.__cause__ or cause.__context__
    return ""
