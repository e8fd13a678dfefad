"""Clients that disconnect: their calls are cancelled, unless they can ask for the result again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request

from stratagem.operations import find

__all__ = ["run_for_client"]

T = TypeVar("T")
# Most calls are over before a client can have changed its mind.
_PATIENCE_SECONDS: Final = 0.1


async def run_for_client(
    request: Request, operation: str, arguments: Any, work: Coroutine[Any, Any, T]
) -> T:
    """Run an operation that may call tools for as long as its client waits.

    One under a request id goes on: the client may ask again what came of it.

    Raises:
        ClientDisconnect: The client has gone, and the work was ended.
    """
    if not find(operation).calls_tools or _is_repeatable(arguments):
        return await work
    running = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({running}, timeout=_PATIENCE_SECONDS)
        if not done:
            await _wait_for_either(request, running)
        if not running.done():
            raise ClientDisconnect
        return running.result()
    finally:
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _wait_for_either(request: Request, running: asyncio.Future[Any]) -> None:
    leaving = asyncio.ensure_future(_wait_for_departure(request))
    try:
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


async def _wait_for_departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _is_repeatable(arguments: Any) -> bool:
    return isinstance(arguments, Mapping) and arguments.get("requestId") is not None
