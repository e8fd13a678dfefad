"""Progress of tools, for clients that ask for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.context import ServerRequestContext

__all__ = ["forward_progress"]


@asynccontextmanager
async def forward_progress(context: ServerRequestContext[Any, Any]) -> AsyncIterator[None]:
    """Forward the progress of tools that are called in this context to the client, if it asked."""
    from stratagem.gateway.calls.call import report_progress_to

    forwarder = _ProgressForwarder(context)
    try:
        with report_progress_to(forwarder.report):
            yield
    finally:
        await forwarder.end()


class _ProgressForwarder:
    """Sends the newest report as fast as the client takes it; progress only increases."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._session = context.session
        self._loop = asyncio.get_running_loop()
        self._newest: tuple[float | None, str | None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._last = -1.0
        self._begun = False
        self._ended = False

    def report(self, fraction: float | None, message: str | None) -> None:
        """Take a report, from any thread."""
        self._begun = True
        # The loop may be closed when a tool goes on after the server has ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, fraction, message)

    async def end(self) -> None:
        """Send what is left, and nothing that comes later: the answer follows."""
        try:
            if self._begun:
                # What was reported from another thread is taken first.
                await asyncio.sleep(0)
        finally:
            self._ended = True
        if self._sending is not None:
            # A client that no longer listens takes nothing from the answer.
            await asyncio.gather(self._sending, return_exceptions=True)

    def _take(self, fraction: float | None, message: str | None) -> None:
        if self._ended:
            return
        self._newest = fraction, message
        if self._sending is None:
            self._sending = self._loop.create_task(self._send_newest())

    async def _send_newest(self) -> None:
        while self._newest is not None:
            (fraction, message), self._newest = self._newest, None
            # Without a known total the reports are counted.
            step = fraction if fraction is not None else max(0, math.floor(self._last)) + 1
            if math.isfinite(step) and step > self._last:
                self._last = step
                total = 1.0 if fraction is not None else None
                await self._session.report_progress(step, total, message)
        self._sending = None
