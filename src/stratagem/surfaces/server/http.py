"""The HTTP server: MCP, REST and Socket.IO on one address, for any number of clients."""

from __future__ import annotations

import errno
import ipaddress
import logging
import multiprocessing
import socket
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.access.lookup import TokenBook
from stratagem.access.oauth.verifying import check_installed
from stratagem.errors import ServiceUnavailable, StratagemError, ValidationFailed
from stratagem.places import is_address
from stratagem.surfaces import rest
from stratagem.surfaces.admission import Admission, Door
from stratagem.surfaces.admission.fetching import fetching
from stratagem.surfaces.mcp import http as protocol
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.server.crossroads import Crossroads
from stratagem.surfaces.server.forgetting import Forgetting
from stratagem.surfaces.server.gate import Gate, allowed_hosts, origins_of
from stratagem.surfaces.server.greeting import Found, greeting
from stratagem.surfaces.server.requests import RequestIds, log_to_stderr
from stratagem.surfaces.server.workers import end_with_parent, watch
from stratagem.surfaces.socket import Sockets
from stratagem.surfaces.together.channel import Channel
from stratagem.surfaces.together.neighbours import Neighbours, Seat, Threshold, can_neighbour
from stratagem.surfaces.together.rates import SharedRates
from stratagem.surfaces.together.redis import RedisChannel, check_redis
from stratagem.surfaces.together.relaying import Relaying

__all__ = ["application", "run"]

logger = logging.getLogger(__name__)

# How many ports are tried after the usual one.
PORTS_TRIED: Final = 20
# Requests end within this time of a signal, streams that would stay open are cut.
STOPPING_SECONDS: Final = 3
# How long a database is waited for before the server listens all the same.
OPENING_SECONDS: Final = 3.0


def run(settings: ServerSettings) -> None:
    """Listen, say where, and serve until a signal."""
    settings.check_toolsets()
    settings.check_public_url()
    _log(settings)
    if settings.redis is not None:
        check_redis(settings.redis)
    database = Database(settings)
    try:
        check_reach(settings, database)
        listener = _listen(settings)
    except BaseException:
        database.close()
        raise
    port = listener.getsockname()[1]
    print(greeting(settings, port, _found(database)), flush=True)  # noqa: T201 -- awaited
    if settings.workers > 1:
        database.close()
        with tempfile.TemporaryDirectory(prefix="stratagem-") as folder:
            if settings.redis is None and not can_neighbour(folder):
                logger.warning("without --redis each process tells its own Socket.IO clients only")
            watch(settings.workers, _work, (settings, folder), listener)
    else:
        _serve(settings, listener, database)


def _work(given: tuple[ServerSettings, str], listener: socket.socket, number: int) -> None:
    """Serve in a process of its own, beside others."""
    settings, folder = given
    end_with_parent()
    _log(settings)
    # Servers of other machines are told through Redis, and these with them.
    alone = settings.redis is None and can_neighbour(folder)
    seat = Seat(number, settings.workers, folder) if alone else None
    try:
        _serve(settings, listener, Database(settings), seat)
    finally:
        if seat is not None:
            parent = multiprocessing.parent_process()
            seat.leave(last=parent is not None and not parent.is_alive())


def _log(settings: ServerSettings) -> None:
    log_to_stderr(settings.log_format)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)


def _serve(
    settings: ServerSettings, listener: socket.socket, database: Database, seat: Seat | None = None
) -> None:
    admission = _admission(settings, database)
    neighbours = Neighbours(seat) if seat is not None else None
    channel = neighbours if settings.redis is None else RedisChannel(settings.redis)
    sockets = Sockets(database, admission, channel=channel, number=seat.number if seat else None)
    config = uvicorn.Config(
        application(
            settings,
            database,
            listener.getsockname()[1],
            admission,
            sockets=sockets,
            neighbours=neighbours,
        ),
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
        listeners = [listener] if seat is None else [listener, seat.listener()]
        _Server(config, database, admission, sockets, channel).run(sockets=listeners)
    finally:
        forgetting.stop()
        database.close()


def application(
    settings: ServerSettings,
    database: Database,
    port: int,
    admission: Admission | None = None,
    *,
    sockets: Sockets | None = None,
    neighbours: Neighbours | None = None,
) -> ASGIApp:
    """Return the server as an ASGI application for a port."""
    admission = admission or _admission(settings, database)
    hosts = allowed_hosts(settings.host, port, settings.known_names)
    mcp = protocol.application(
        settings, database, admission, hosts=hosts, origins=origins_of(hosts)
    )
    sockets = sockets or Sockets(database, admission)
    ways = Crossroads(mcp, rest.application(database, admission), sockets.application())
    door = Door(ways, settings, admission)
    if neighbours is None:
        return RequestIds(Gate(door, hosts))
    return Threshold(RequestIds(Gate(Relaying(door, neighbours), hosts)), neighbours)


def _admission(settings: ServerSettings, database: Database) -> Admission:
    return Admission(settings, database, fetching(settings) if settings.oauth else None)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        database: Database,
        admission: Admission,
        sockets: Sockets,
        channel: Channel | None = None,
    ) -> None:
        super().__init__(config)
        self._database = database
        self._admission = admission
        self._sockets = sockets
        self._channel = channel
        measures = admission.measures
        counted = {"requests": measures.rates, "wrong": measures.wrong}
        self._rates = (
            [SharedRates(channel, each, what) for what, each in counted.items()] if channel else []
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin what runs on this loop."""
        await super().startup(sockets)
        self._sockets.start()
        if self._channel is not None:
            self._channel.start()
        for rates in self._rates:
            rates.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what runs on this loop before the loop ends."""
        await super().shutdown(sockets)
        for rates in self._rates:
            await rates.close()
        if self._channel is not None:
            await self._channel.close()
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
    return _in_use(database)


def _in_use(database: Database) -> bool:
    book = TokenBook(database.runtime().foundation, time.monotonic)
    book.check()
    return book.in_use


def _found(database: Database) -> Found:
    """Open the database, so that whoever starts a server is told at once what is amiss."""
    try:
        opened = database.open_within(OPENING_SECONDS)
        return Found(tokens=opened and _in_use(database))
    except StratagemError as error:
        return Found(error)


def _unusable(host: str, reason: str) -> ValidationFailed:
    return ValidationFailed(
        f"The server cannot listen on {host!r}: {reason}.",
        field="host",
        hint="Make a token first (stratagem token create NAME), or use 127.0.0.1.",
    )
