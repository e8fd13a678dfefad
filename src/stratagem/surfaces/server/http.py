"""The HTTP server: MCP, REST and Socket.IO on one address, for any number of clients."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import socket
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.errors import ServiceUnavailable, ValidationFailed
from stratagem.surfaces import rest
from stratagem.surfaces.mcp import http as protocol
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.server.crossroads import Crossroads
from stratagem.surfaces.server.gate import Gate, allowed_hosts, origins_of
from stratagem.surfaces.socket import Sockets

__all__ = ["application", "run"]

# How many ports are tried after the usual one.
PORTS_TRIED: Final = 20
# Requests end within this time of a signal, streams that would stay open are cut.
STOPPING_SECONDS: Final = 3


def run(settings: ServerSettings) -> None:
    """Listen, say where, and serve until a signal."""
    settings.check_toolsets()
    _log_to_stderr()
    listener = _listen(settings)
    port = listener.getsockname()[1]
    database = Database(settings)
    config = uvicorn.Config(
        application(settings, database, port),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOPPING_SECONDS,
        ws="websockets-sansio",
        ws_max_size=limits.REQUEST_BYTES_MAX,
    )
    print(_greeting(settings, port), flush=True)  # noqa: T201 -- what the user waits for
    database.open_in_background()
    try:
        _Server(config, database).run(sockets=[listener])
    finally:
        database.close()


def application(settings: ServerSettings, database: Database, port: int) -> ASGIApp:
    """Return the server as an ASGI application for a port."""
    hosts = allowed_hosts(settings.host, port, settings.server_names)
    mcp = protocol.application(settings, database, hosts=hosts, origins=origins_of(hosts))
    sockets = Sockets(settings, database)
    ways = Crossroads(mcp, rest.application(settings, database), sockets.application())
    return Gate(ways, hosts)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, database: Database) -> None:
        super().__init__(config)
        self._database = database

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what runs on this loop before the loop ends."""
        await super().shutdown(sockets)
        await self._database.leave_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop in good order; a second signal stops at once.

        Unlike its parent it does not send the signal on afterwards: the process has done what
        it was asked to, and its status says so.
        """
        self.force_exit = self.should_exit
        self.should_exit = True


def _log_to_stderr() -> None:
    """Log what the user should know of; not that clients were refused, or hung up."""
    logging.basicConfig(level=logging.WARNING, format="stratagem: %(message)s")
    logging.getLogger("mcp").setLevel(logging.ERROR)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)


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
    """Return the kind of a loopback address.

    Raises:
        ValidationFailed: It is no loopback address.
    """
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise _unusable(host, "it is no IP address") from error
    if not address.is_loopback:
        raise _unusable(host, "other machines could reach it, and there is no login yet")
    return socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004


def _unusable(host: str, reason: str) -> ValidationFailed:
    return ValidationFailed(
        f"The server cannot listen on {host!r}: {reason}.",
        field="host",
        hint="Use 127.0.0.1, and a tunnel (ssh -L) to reach it from elsewhere.",
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
        f"Database: {settings.database}\n\n"
        "Connect an agent:\n"
        f"  Claude Code   claude mcp add --transport http stratagem {address}\n"
        f"  Cursor        .cursor/mcp.json: {json.dumps(snippet)}\n"
        f"  VS Code       .vscode/mcp.json: {json.dumps({'servers': snippet['mcpServers']})}\n\n"
        "Stop with Ctrl-C."
    )
