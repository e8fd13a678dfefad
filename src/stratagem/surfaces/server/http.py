"""The HTTP server: MCP, REST and Socket.IO on one address, for any number of clients."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import logging
import multiprocessing
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from stratagem import limits
from stratagem.access.oauth.jwt_verifier import check_installed
from stratagem.access.token_cache import TokenCache
from stratagem.errors import ServiceUnavailable, StratagemError, ValidationFailed
from stratagem.places import is_address
from stratagem.surfaces import rest
from stratagem.surfaces.admission import AuthenticationMiddleware, Authenticator
from stratagem.surfaces.admission.issuer_client import issuer_fetch
from stratagem.surfaces.cluster.local import (
    LocalChannel,
    PeerRequests,
    WorkerSlot,
    unix_sockets_fit,
)
from stratagem.surfaces.cluster.redis import RedisChannel, check_redis
from stratagem.surfaces.cluster.relay import SocketRelay
from stratagem.surfaces.mcp import http as protocol
from stratagem.surfaces.rest.pages import page_instead as docs_instead
from stratagem.surfaces.server.connections import (
    Connections,
    TrustedProxies,
    connection_capacity,
    counted_http,
    counted_websocket,
)
from stratagem.surfaces.server.deadlines import Deadlines
from stratagem.surfaces.server.lifecycle import GracefulServer
from stratagem.surfaces.server.repeated_warnings import RepeatedWarnings
from stratagem.surfaces.server.request_log import RequestLog, log_to_stderr
from stratagem.surfaces.server.retention import ExecutionRetention
from stratagem.surfaces.server.router import SurfaceRouter
from stratagem.surfaces.server.startup_message import (
    DatabaseState,
    console_address,
    startup_message,
)
from stratagem.surfaces.server.trusted_hosts import TrustedHosts, allowed_hosts, origins_of
from stratagem.surfaces.server.workers import end_with_parent, listen_for_each, supervise
from stratagem.surfaces.serving.console_paths import is_console_path
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.serving.span_export import export_spans
from stratagem.surfaces.serving.trace_context import TraceContext
from stratagem.surfaces.socket import Sockets

__all__ = ["application", "build", "run"]

logger = logging.getLogger(__name__)

# How many ports are tried after the usual one.
PORTS_TRIED: Final = 20
# How long a database is waited for before the server listens all the same.
OPENING_SECONDS: Final = 3.0


def run(
    settings: ServerSettings,
    message: Callable[[ServerSettings, int, DatabaseState], str] = startup_message,
    listening: Callable[[str], object] | None = None,
) -> None:
    """Listen, say where, and serve until a signal.

    `message` is what is printed; `listening` is then told the address that opens the console.
    """
    settings.check_toolsets()
    settings.check_public_url()
    TrustedProxies(settings.trusted_proxies)
    _log(settings)
    if settings.redis is not None:
        check_redis(settings.redis)
    database = Database(settings)
    try:
        check_exposure(settings, database)
        listeners = _listen(settings)
    except BaseException:
        database.close()
        raise
    port = listeners[0].getsockname()[1]
    state = _database_state(database)
    settings = _with_console_code(settings, database, state)
    _end_well_before_serving()
    print(message(settings, port, state), flush=True)  # noqa: T201 -- awaited
    if listening is not None:
        listening(console_address(settings, port))
    if settings.workers > 1:
        database.close()
        with tempfile.TemporaryDirectory(prefix="stratagem-") as folder:
            if settings.redis is None and not unix_sockets_fit(folder):
                logger.warning(
                    "without --redis each process sends events only to its own Socket.IO clients"
                )
            marker = f"{folder}/console-code-used"
            keys = replace(settings.console_keys, marker=marker)
            settings = replace(settings, console_keys=keys)
            supervise(_run_worker, (settings, folder), listeners)
    else:
        _serve(settings, listeners[0], database)


def _end_well_before_serving() -> None:
    """Have a signal end the process with status 0 from now on, as it does once it serves.

    A service manager may send it as soon as the message is printed, and until uvicorn handles
    signals the process would be killed by it.
    """

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)


def _with_console_code(
    settings: ServerSettings, database: Database, state: DatabaseState
) -> ServerSettings:
    """Return the settings with a code that opens the console, where only the operator sees it."""
    if settings.reached_by_others or state.error is not None or not state.opened:
        return settings
    ends_at = database.runtime().foundation.store.now() + limits.CONSOLE_CODE_SECONDS * 1_000_000
    keys = replace(settings.console_keys, code_ends_at=ends_at)
    return replace(settings, console_keys=keys)


def _run_worker(given: tuple[ServerSettings, str], listener: socket.socket, number: int) -> None:
    """Serve in a process of its own, beside others."""
    settings, folder = given
    end_with_parent()
    _log(settings)
    # With Redis the workers of this machine are reached as servers of other machines are.
    alone = settings.redis is None and unix_sockets_fit(folder)
    slot = WorkerSlot(number, settings.workers, folder) if alone else None
    try:
        _serve(settings, listener, Database(settings), slot)
    finally:
        if slot is not None:
            parent = multiprocessing.parent_process()
            slot.remove_socket(and_folder=parent is not None and not parent.is_alive())


def _log(settings: ServerSettings) -> None:
    log_to_stderr(settings.log_format)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)
        handler.addFilter(RepeatedWarnings(time.monotonic))


def _serve(
    settings: ServerSettings,
    listener: socket.socket,
    database: Database,
    slot: WorkerSlot | None = None,
) -> None:
    export_spans()
    server = build(settings, database, listener.getsockname()[1], slot)
    database.open_in_background()
    retention = ExecutionRetention(settings, database)
    retention.start()
    # What is there by now stays: a collection that looked through it would hold up every call.
    gc.freeze()
    try:
        server.run(sockets=[listener] if slot is None else [listener, slot.listen()])
    finally:
        retention.stop()
        database.close()


def build(
    settings: ServerSettings, database: Database, port: int, slot: WorkerSlot | None = None
) -> GracefulServer:
    """Return the server for a port, to be run with the sockets that it listens on."""
    authenticator = _authenticator(settings, database)
    local = LocalChannel(slot) if slot is not None else None
    channel = local if settings.redis is None else RedisChannel(settings.redis)
    sockets = Sockets(
        database, authenticator, channel=channel, number=slot.number if slot else None
    )
    deadlines = Deadlines()
    connections = Connections(
        connection_capacity(settings.max_connections),
        TrustedProxies(settings.trusted_proxies),
        time.monotonic,
    )
    config = uvicorn.Config(
        application(
            settings,
            database,
            port,
            authenticator,
            sockets=sockets,
            local=local,
            deadlines=deadlines,
        ),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
        http=counted_http(AutoHTTPProtocol, connections),
        ws=counted_websocket(WebSocketsSansIOProtocol, connections),
        ws_max_size=limits.REQUEST_BYTES_MAX,
        forwarded_allow_ips=["127.0.0.1", "::1", *settings.trusted_proxies],
    )
    return GracefulServer(
        config,
        database,
        authenticator,
        sockets,
        connections=connections,
        deadlines=deadlines,
        channel=channel,
    )


def application(
    settings: ServerSettings,
    database: Database,
    port: int,
    authenticator: Authenticator | None = None,
    *,
    sockets: Sockets | None = None,
    local: LocalChannel | None = None,
    deadlines: Deadlines | None = None,
) -> ASGIApp:
    """Return the server as an ASGI application for a port."""
    database.address = settings.public_url or f"http://{_url_host(settings.host)}:{port}"
    deadlines = deadlines or Deadlines()
    authenticator = authenticator or _authenticator(settings, database)
    hosts = allowed_hosts(settings.host, port, settings.known_names)
    mcp = protocol.application(
        settings, database, authenticator, hosts=hosts, origins=origins_of(hosts)
    )
    sockets = sockets or Sockets(database, authenticator)
    surfaces = SurfaceRouter(
        mcp,
        rest.application(database, authenticator),
        sockets.application(),
        _LazyConsole(settings, database, authenticator),
    )
    authenticated = TraceContext(
        AuthenticationMiddleware(surfaces, settings, authenticator, page_instead)
    )
    if local is None:
        return RequestLog(deadlines.wrap(TrustedHosts(authenticated, hosts)))
    trusted = TrustedHosts(SocketRelay(authenticated, local), hosts)
    return PeerRequests(RequestLog(deadlines.wrap(trusted)), local)


def _url_host(host: str) -> str:
    """Return a host as an address has it; whoever listens everywhere is reached on loopback."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 -- compared, not listened on
        host = "127.0.0.1"
    return f"[{host}]" if ":" in host else host


class _LazyConsole:
    """The console, imported when somebody first asks for a page of it."""

    def __init__(
        self, settings: ServerSettings, database: Database, authenticator: Authenticator
    ) -> None:
        self._given = (settings, database, authenticator)
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await asyncio.to_thread(self._load)
        await self._app(scope, receive, send)

    def _load(self) -> ASGIApp:
        from stratagem.surfaces.console.app import application as console

        return console(*self._given)


def page_instead(scope: Scope, status: int, said: str) -> Response | None:
    """Return what a browser is shown that has no token, or one that does not open the workspace.

    That is a page to sign in, or the list of routes.
    """
    if is_console_path(scope["path"]):
        from stratagem.surfaces.console.sign_in import page_instead as sign_in_instead

        return sign_in_instead(scope, status, said)
    return None if said else docs_instead(scope, status)


def _authenticator(settings: ServerSettings, database: Database) -> Authenticator:
    return Authenticator(settings, database, issuer_fetch(settings) if settings.oauth else None)


# What uvicorn says about answers that we have ended ourselves, and websockets that we have refused.
_NO_NEWS: Final = (
    "without completing response",
    "without completing handshake",
    "graceful shutdown exceeded",
)


def _is_news(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, ClientDisconnect | asyncio.CancelledError):
        return False
    return not any(each in record.getMessage() for each in _NO_NEWS)


def _listen(settings: ServerSettings) -> list[socket.socket]:
    """Take the port that was asked for, or else the first free one from the usual one on.

    Return a socket for each worker.
    """
    family = _family_of(settings.host)
    tried = 1 if settings.port_given else PORTS_TRIED
    for port in range(settings.port, settings.port + tried):
        # The protocol is named so that asyncio knows it and sends small answers at once.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, port))
            listeners = listen_for_each(listener, settings.workers)
        except OSError as error:
            listener.close()
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise _unusable_address(settings.host, str(error)) from error
        else:
            return listeners
    last = f" to {settings.port + tried - 1}" if tried > 1 else ""
    raise ServiceUnavailable(
        f"Port {settings.port}{last} on {settings.host} is used by another program.",
        port=settings.port,
        hint="It may be another `stratagem serve`: use that one, or choose a port with --port.",
    )


def _family_of(host: str) -> socket.AddressFamily:
    """Return the kind of an address.

    Raises:
        ValidationFailed: It is no address.
    """
    return socket.AF_INET if _address_of(host).version == 4 else socket.AF_INET6  # noqa: PLR2004


def _address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise _unusable_address(host, "it is not an IP address") from error


def check_exposure(settings: ServerSettings, database: Database) -> None:
    """Refuse an address that other machines reach, where no client would need a token.

    Raises:
        ValidationFailed: It is no address, or there is no token yet.
    """
    if settings.oauth is not None:
        settings.oauth.check()
        check_installed()
    if _address_of(settings.host).is_loopback or settings.needs_auth:
        return
    if not _has_tokens(settings, database):
        raise _unusable_address(
            settings.host, "other machines could reach it, and there is no token yet"
        )


def _has_tokens(settings: ServerSettings, database: Database) -> bool:
    if not is_address(settings.database) and not Path(settings.database).exists():
        # Only to look, nothing is made.
        return False
    return _has_any_token(database)


def _has_any_token(database: Database) -> bool:
    book = TokenCache(database.runtime().foundation, time.monotonic)
    book.check()
    return book.in_use


def _database_state(database: Database) -> DatabaseState:
    """Open the database, so that the startup message can say what is wrong with it."""
    try:
        opened = database.open_within(OPENING_SECONDS)
        return DatabaseState(tokens=opened and _has_any_token(database), opened=opened)
    except StratagemError as error:
        return DatabaseState(error)


def _unusable_address(host: str, reason: str) -> ValidationFailed:
    return ValidationFailed(
        f"The server cannot listen on {host!r}: {reason}.",
        field="host",
        hint="Make a token first (stratagem token create NAME), or use 127.0.0.1.",
    )
