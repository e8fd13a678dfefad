"""The HTTP server: MCP, REST and Socket.IO on one address, for any number of clients."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import multiprocessing
import socket
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.access.lookup import TokenBook
from stratagem.access.oauth.verifying import check_installed
from stratagem.errors import ServiceUnavailable, ValidationFailed
from stratagem.places import is_address, shown_place
from stratagem.surfaces import rest
from stratagem.surfaces.admission import Admission, Door
from stratagem.surfaces.admission.fetching import fetching
from stratagem.surfaces.admission.sharing import SharedRates, check_redis
from stratagem.surfaces.mcp import http as protocol
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.server.crossroads import Crossroads
from stratagem.surfaces.server.forgetting import Forgetting
from stratagem.surfaces.server.gate import Gate, allowed_hosts, origins_of
from stratagem.surfaces.server.requests import RequestIds, log_to_stderr
from stratagem.surfaces.server.workers import end_with_parent, watch
from stratagem.surfaces.socket import Sockets

__all__ = ["application", "run"]

logger = logging.getLogger(__name__)

# How many ports are tried after the usual one.
PORTS_TRIED: Final = 20
# Requests end within this time of a signal, streams that would stay open are cut.
STOPPING_SECONDS: Final = 3


def run(settings: ServerSettings) -> None:
    """Listen, say where, and serve until a signal."""
    settings.check_toolsets()
    _log(settings)
    if settings.redis is not None:
        check_redis(settings.redis)
    elif settings.workers > 1:
        logger.warning("without --redis each process tells its own Socket.IO clients only")
    database = Database(settings)
    try:
        check_reach(settings, database)
        listener = _listen(settings)
    except BaseException:
        database.close()
        raise
    print(_greeting(settings, listener.getsockname()[1]), flush=True)  # noqa: T201 -- awaited
    if settings.workers > 1:
        database.close()
        watch(settings.workers, _work, settings, listener)
    else:
        _serve(settings, listener, database)


def _work(settings: ServerSettings, listener: socket.socket) -> None:
    """Serve in a process of its own, beside others."""
    end_with_parent()
    _log(settings)
    _serve(settings, listener, Database(settings))


def _log(settings: ServerSettings) -> None:
    log_to_stderr(settings.log_format)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)


def _serve(settings: ServerSettings, listener: socket.socket, database: Database) -> None:
    admission = _admission(settings, database)
    config = uvicorn.Config(
        application(settings, database, listener.getsockname()[1], admission),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOPPING_SECONDS,
        ws="websockets-sansio",
        ws_max_size=limits.REQUEST_BYTES_MAX,
    )
    database.open_in_background()
    forgetting = Forgetting(settings, database)
    forgetting.start()
    try:
        _Server(config, database, admission, settings.redis).run(sockets=[listener])
    finally:
        forgetting.stop()
        database.close()


def application(
    settings: ServerSettings, database: Database, port: int, admission: Admission | None = None
) -> ASGIApp:
    """Return the server as an ASGI application for a port."""
    admission = admission or _admission(settings, database)
    hosts = allowed_hosts(settings.host, port, settings.server_names)
    mcp = protocol.application(
        settings, database, admission, hosts=hosts, origins=origins_of(hosts)
    )
    sockets = Sockets(database, admission, redis=settings.redis, several=settings.several)
    ways = Crossroads(mcp, rest.application(database, admission), sockets.application())
    return RequestIds(Gate(Door(ways, settings, admission), hosts))


def _admission(settings: ServerSettings, database: Database) -> Admission:
    return Admission(settings, database, fetching(settings) if settings.oauth else None)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        database: Database,
        admission: Admission,
        redis: str | None = None,
    ) -> None:
        super().__init__(config)
        self._database = database
        self._admission = admission
        self._shared = SharedRates(redis, admission.measures.rates) if redis else None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin what runs on this loop."""
        await super().startup(sockets)
        if self._shared is not None:
            self._shared.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what runs on this loop before the loop ends."""
        await super().shutdown(sockets)
        if self._shared is not None:
            await self._shared.close()
        await self._admission.close()
        await self._database.leave_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop in good order; a second signal stops at once, where nobody watches over this one.

        A service manager and the process that watches both tell a worker to end; whoever watches
        ends in time what does not.

        Unlike its parent it does not send the signal on afterwards: the process has done what
        it was asked to, and its status says so.
        """
        self.force_exit = self.should_exit and multiprocessing.parent_process() is None
        self.should_exit = True


def _is_news(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    cut_off = "without completing response" in record.getMessage()
    return not cut_off and not isinstance(error, ClientDisconnect)


def _listen(settings: ServerSettings) -> socket.socket:
    """Take the port that was asked for, or else the first free one from the usual one on."""
    family = _family_of(settings.host)
    tried = 1 if settings.port_given else PORTS_TRIED
    for port in range(settings.port, settings.port + tried):
        # The protocol is named so that asyncio knows it and sends small answers at once.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, port))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise _unusable(settings.host, str(error)) from error
        else:
            return listener
    last = f" to {settings.port + tried - 1}" if tried > 1 else ""
    raise ServiceUnavailable(
        f"Port {settings.port}{last} on {settings.host} is taken by another program.",
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
        raise _unusable(host, "it is no IP address") from error


def check_reach(settings: ServerSettings, database: Database) -> None:
    """Refuse an address that other machines reach, where nobody would have to say who they are.

    Raises:
        ValidationFailed: It is no address, or there is no token yet.
    """
    if settings.oauth is not None:
        settings.oauth.check()
        check_installed()
    if _address_of(settings.host).is_loopback or settings.needs_auth:
        return
    if not _has_tokens(settings, database):
        raise _unusable(settings.host, "other machines could reach it, and there is no token yet")


def _has_tokens(settings: ServerSettings, database: Database) -> bool:
    if not is_address(settings.database) and not Path(settings.database).exists():
        # Only to look, nothing is made.
        return False
    book = TokenBook(database.runtime().foundation, time.monotonic)
    book.check()
    return book.in_use


def _unusable(host: str, reason: str) -> ValidationFailed:
    return ValidationFailed(
        f"The server cannot listen on {host!r}: {reason}.",
        field="host",
        hint="Make a token first (stratagem token create NAME), or use 127.0.0.1.",
    )


def _greeting(settings: ServerSettings, port: int) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{port}{protocol.PATH}"
    snippet: dict[str, Any] = {"mcpServers": {"stratagem": {"type": "http", "url": address}}}
    taken = (
        "" if port == settings.port or not settings.port else f" (port {settings.port} is taken)"
    )
    return (
        f"Stratagem is listening on {address}{taken}\n"
        f"REST: http://{host}:{port}/api/docs\n"
        f"Database: {shown_place(settings.database)}\n\n"
        "Connect an agent:\n"
        f"  Claude Code   claude mcp add --transport http stratagem {address}\n"
        f"  Cursor        .cursor/mcp.json: {json.dumps(snippet)}\n"
        f"  VS Code       .vscode/mcp.json: {json.dumps({'servers': snippet['mcpServers']})}\n\n"
        "Stop with Ctrl-C."
    )
