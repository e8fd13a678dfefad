"""Ending sockets whose token is no longer good.

A socket that only listens asks for nothing, so that nothing would notice: what is known of each
is checked again and again, which costs a look-up in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from stratagem import limits
from stratagem.errors import StratagemError, Unauthenticated
from stratagem.surfaces.admission.authenticator import Admission, Admitted

__all__ = ["Sweeping"]

# Ends a socket, which is told why.
Dismiss = Callable[[str, Unauthenticated], Awaitable[None]]


class Sweeping:
    """Who is connected, for as long as they may be. Runs on the server's event loop."""

    def __init__(self, admission: Admission, dismiss: Dismiss) -> None:
        self._admission = admission
        self._dismiss = dismiss
        self._connected: dict[str, Admitted | None] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, client: str, admitted: Admitted | None) -> None:
        """Look after a socket from now on."""
        self._connected[client] = admitted
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._sweep())

    def drop(self, client: str) -> None:
        """Look after a socket no longer."""
        self._connected.pop(client, None)

    async def _sweep(self) -> None:
        while self._connected:
            await asyncio.sleep(limits.TOKEN_CHECK_SECONDS)
            for client, admitted in list(self._connected.items()):
                # A database that does not answer for a moment ends nobody's socket.
                with suppress(StratagemError):
                    await self._check(client, admitted)

    async def _check(self, client: str, admitted: Admitted | None) -> None:
        try:
            await self._admission.confirm(admitted)
        except Unauthenticated as error:
            self.drop(client)
            await self._dismiss(client, error)
