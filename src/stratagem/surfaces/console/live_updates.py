"""A stream that tells open pages that the log has grown, so that they reload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from stratagem import limits
from stratagem.errors import StratagemError
from stratagem.surfaces.console.visits import Console, Visit

__all__ = ["live_updates"]

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def live_updates(console: Console) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of the stream."""

    async def endpoint(request: Request) -> Response:
        visit = Visit(console, request, "")
        return StreamingResponse(
            _heads(visit), media_type="text/event-stream", headers=dict(_HEADERS)
        )

    return endpoint


async def _heads(visit: Visit) -> AsyncIterator[str]:
    """Yield the head of the log, whenever it is another one; a comment now and then in between."""
    told, quiet = -1, 0.0
    yield "retry: 2000\n\n"
    while not visit.console.database.calls.stopping:
        head = told
        # A database that does not answer for a moment ends no stream.
        with suppress(StratagemError):
            head = (await visit.call("strata_activity", buckets=1))["head"]
        if head != told:
            told, quiet = head, 0.0
            yield f"event: head\ndata: {head}\n\n"
        elif quiet >= limits.CONSOLE_SILENCE_SECONDS:
            quiet = 0.0
            # Says whether somebody still listens.
            yield ": still here\n\n"
        await asyncio.sleep(limits.CONSOLE_LIVE_SECONDS)
        quiet += limits.CONSOLE_LIVE_SECONDS
