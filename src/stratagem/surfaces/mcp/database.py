"""A database that is opened when it is first needed."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from stratagem.errors import StorageUnavailable, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp.settings import ServerSettings

if TYPE_CHECKING:
    from stratagem.bootstrap import Runtime

__all__ = ["Database"]

logger = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 2.0


class Database:
    """The database of a server. Safe to use from several threads.

    Opening may take a migration, so no handshake waits for it. An opening that failed is tried
    again with the next call: the disk may have been freed, the other process may be gone.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._runtime: Runtime | None = None
        self._closed = False

    def call(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation, opening the database first where that is still to be done."""
        return self.runtime().call(name, arguments, caller)

    async def call_async(self, name: str, arguments: Any, caller: Caller) -> dict[str, Any]:
        """Run an operation without holding up the event loop."""
        opened = self._runtime
        runtime = opened if opened is not None else await asyncio.to_thread(self.runtime)
        return await runtime.call_async(name, arguments, caller)

    def runtime(self) -> Runtime:
        """Return the open database.

        Raises:
            StratagemError: It cannot be opened.
        """
        if self._runtime is None:
            with self._opening:
                if self._closed:
                    raise StorageUnavailable("The server is stopping.", hint="Start it again.")
                self._runtime = self._runtime or self._open()
        return self._runtime

    async def leave_loop(self) -> None:
        """End the connections that live on this event loop."""
        if self._runtime is not None:
            await self._runtime.leave_loop()

    def open_in_background(self) -> None:
        """Begin to open the database; a failure is logged, and met again by the next call."""
        threading.Thread(target=self._try_to_open, name="stratagem-opening", daemon=True).start()

    def close(self) -> None:
        """Let go of the database.

        A migration that goes on for long is left behind: it is undone when the process ends.
        """
        self._closed = True
        if self._opening.acquire(timeout=CLOSING_SECONDS):
            if self._runtime is not None:
                self._runtime.close()
            self._opening.release()

    def _open(self) -> Runtime:
        from stratagem.bootstrap import Settings, start

        given = self._settings
        return start(
            Settings(
                given.database,
                durability=cast("Literal['full', 'fast']", given.durability),
                embedder=given.embedder,
                read_only=given.read_only,
                redaction=cast("Literal['none', 'basic', 'strict']", given.redaction),
                allow_hosts=given.allow_hosts,
            )
        )

    def _try_to_open(self) -> None:
        try:
            self.runtime()
        except StratagemError as error:
            logger.warning("%s %s", error.message, error.hint)
