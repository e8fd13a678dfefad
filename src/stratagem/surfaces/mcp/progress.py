"""How far a tool has come, told to a client that asked for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.context import ServerRequestContext

__all__ = ["told"]


@asynccontextmanager
async def told(context: ServerRequestContext[Any, Any]) -> AsyncIterator[None]:
    """Pass on what a tool that is called meanwhile reports; only who asked for it hears it."""
    from stratagem.gateway.calls.call import reporting

    teller = _Teller(context)
    try:
        with reporting(teller.report):
            yield
    finally:
        await teller.end()


class _Teller:
    """Tells a client the newest report, as fast as it can be told, and always of more progress."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._session = context.session
        self._loop = asyncio.get_running_loop()
        self._newest: tuple[float | None, str | None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._last = -1.0
        self._begun = False
        self._ended = False

    def report(self, fraction: float | None, message: str | None) -> None:
        """Take a report, from any thread."""
        self._begun = True
        # A tool that goes on when the server has ended is told nothing of it.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, fraction, message)

    async def end(self) -> None:
        """Tell what there is to tell, and nothing that comes later: the answer follows."""
        try:
            if self._begun:
                # What was reported from another thread is taken first.
                await asyncio.sleep(0)
        finally:
            self._ended = True
        if self._telling is not None:
            # A client that no longer listens takes nothing from the answer.
            await asyncio.gather(self._telling, return_exceptions=True)

    def _take(self, fraction: float | None, message: str | None) -> None:
        if self._ended:
            return
        self._newest = fraction, message
        if self._telling is None:
            self._telling = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while self._newest is not None:
            (fraction, message), self._newest = self._newest, None
            # Where nobody knows how much is to be done, the reports are counted.
            step = fraction if fraction is not None else max(0, math.floor(self._last)) + 1
            if math.isfinite(step) and step > self._last:
                self._last = step
                total = 1.0 if fraction is not None else None
                await self._session.report_progress(step, total, message)
        self._telling = None
