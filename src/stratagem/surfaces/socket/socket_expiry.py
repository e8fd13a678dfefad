"""Ending sockets whose token expires or is revoked.

A socket that only listens sends nothing that would be checked: the principal of each is
authenticated again and again, which costs a look-up in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from stratagem import limits
from stratagem.errors import StratagemError, Unauthenticated
from stratagem.surfaces.admission.authenticator import Authenticator, Principal

__all__ = ["SocketExpiry"]

# Disconnects a socket, which is told why.
Disconnect = Callable[[str, Unauthenticated], Awaitable[None]]


class SocketExpiry:
    """Checks the principals of connected sockets. Runs on the server's event loop."""

    def __init__(self, authenticator: Authenticator, disconnect: Disconnect) -> None:
        self._authenticator = authenticator
        self._disconnect = disconnect
        self._connected: dict[str, Principal | None] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, client: str, principal: Principal | None) -> None:
        """Check a socket from now on."""
        self._connected[client] = principal
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._check_all())

    def drop(self, client: str) -> None:
        """Check a socket no longer."""
        self._connected.pop(client, None)

    async def _check_all(self) -> None:
        while self._connected:
            await asyncio.sleep(limits.TOKEN_CHECK_SECONDS)
            for client, principal in list(self._connected.items()):
                # A database that does not answer for a moment ends no socket.
                with suppress(StratagemError):
                    await self._check(client, principal)

    async def _check(self, client: str, principal: Principal | None) -> None:
        try:
            await self._authenticator.reauthenticate(principal)
        except Unauthenticated as error:
            self.drop(client)
            await self._disconnect(client, error)
