"""Startup and graceful shutdown of a server.

A signal ends it within `STOPPING_SECONDS`, whatever is connected:

1. No more connections are taken; idle ones are closed, half-sent requests and waiting streams
   answered.
2. Calls under way have `STOPPING_CALL_SECONDS` to be answered.
3. The rest is answered with `shutting_down`, on each surface in its own way.
4. Work that has not ended by then, such as a computing thread, ends with the process: an
  unacknowledged write is stored whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import uvicorn

from stratagem import limits
from stratagem.surfaces.admission import Authenticator
from stratagem.surfaces.cluster.channel import Channel
from stratagem.surfaces.cluster.rates import SharedRates
from stratagem.surfaces.server.acceptor import Acceptor
from stratagem.surfaces.server.connections import Connections
from stratagem.surfaces.server.deadlines import Deadlines
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.socket import Sockets

__all__ = ["GracefulServer"]

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.02
# Enough for an answer that is ready to be sent.
_ANSWER_SECONDS: Final = 0.3


class GracefulServer(uvicorn.Server):
    """uvicorn, with bounded connections and a shutdown that answers every call."""

    def __init__(
        self,
        config: uvicorn.Config,
        database: Database,
        authenticator: Authenticator,
        sockets: Sockets,
        *,
        connections: Connections,
        deadlines: Deadlines,
        channel: Channel | None = None,
    ) -> None:
        super().__init__(config)
        # What was to be answered has been by then; uvicorn asks for no whole number.
        config.timeout_graceful_shutdown = _ANSWER_SECONDS  # type: ignore[assignment]
        self._database = database
        self._authenticator = authenticator
        self._sockets = sockets
        self._connections = connections
        self._deadlines = deadlines
        self._channel = channel
        self._acceptors: list[Acceptor] = []
        self._checking: asyncio.Task[None] | None = None
        quotas = authenticator.quotas
        counted = {"requests": quotas.rates, "wrong": quotas.wrong_tokens}
        self._rates = (
            [SharedRates(channel, each, what) for what, each in counted.items()] if channel else []
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin what runs on this loop, then take connections."""
        await super().startup([])
        self._sockets.start()
        if self._channel is not None:
            self._channel.start()
        for rates in self._rates:
            rates.start()
        self._checking = asyncio.get_running_loop().create_task(self._check_connections())
        self._acceptors = [
            Acceptor(each, self._connections, self._protocol) for each in sockets or ()
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, then end what runs on this loop before the loop ends."""
        for acceptor in self._acceptors:
            await acceptor.close()
        await self._answer_open_calls()
        if self._checking is not None:
            self._checking.cancel()
        await super().shutdown(sockets)
        # At a second signal uvicorn leaves it out, and the loop would end it with a traceback.
        await self.lifespan.shutdown()
        for rates in self._rates:
            await rates.close()
        if self._channel is not None:
            await self._channel.close()
        await self._authenticator.close()
        await self._database.leave_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop gracefully; a second signal stops at once, unless this is a worker.

        A service manager and the supervisor both send a worker the signal; the supervisor kills in
        time what does not end.

        Unlike its parent it does not send the signal on afterwards: the process has done what
        it was asked to, and its status says so.
        """
        if not self.should_exit:
            _end_process_after(limits.STOPPING_SECONDS)
        self.force_exit = self.should_exit and multiprocessing.parent_process() is None
        self.should_exit = True

    def _protocol(self) -> asyncio.BaseProtocol:
        make: Callable[..., asyncio.BaseProtocol] = self.config.http_protocol_class
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def _check_connections(self) -> None:
        while True:
            await asyncio.sleep(limits.CONNECTIONS_CHECK_SECONDS)
            self._connections.close_late()

    async def _answer_open_calls(self) -> None:
        """Have every call answered: by its end, or by an error when that takes too long."""
        calls = self._database.calls
        calls.stop()
        await self._deadlines.stop()
        for connection in list(self.server_state.connections):
            # Sockets stay open until the answers to their events are sent.
            if not _is_websocket(connection):
                connection.shutdown()
        await self._wait(lambda: not calls and not self._deadlines.busy, self._calls_seconds)
        calls.cut_off()
        await self._wait(lambda: not calls and not self._deadlines.busy, _ANSWER_SECONDS)
        await self._deadlines.cut_off()

    @property
    def _calls_seconds(self) -> float:
        return 0.0 if self.force_exit else limits.STOPPING_CALL_SECONDS

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        # A second signal comes from outside, and a call may end on any surface.
        while not condition() and loop.time() < until and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)


def _is_websocket(connection: Any) -> bool:
    return hasattr(connection, "handshake_complete")


def _end_process_after(seconds: float) -> None:
    """End this process whatever it does then: threads cannot be stopped, and would be waited for.

    Nothing that was acknowledged is lost by that.
    """

    def end() -> None:
        logger.warning("calls that did not end in time were abandoned")
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
