"""Whether a server can do its work: what a load balancer asks, and may ask often."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from stratagem.errors import StorageUnavailable, StratagemError
from stratagem.surfaces.serving.database import Database

__all__ = ["Readiness"]

# A database that takes longer counts as unavailable.
_SECONDS: Final = 2.0


class Readiness:
    """Answers whether the database can be read; all who ask at once wait for one look at it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looking: asyncio.Task[str | None] | None = None

    async def answer(self, _request: Request) -> Response:
        """Answer 200, or 503 with the code of what is wrong."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(_SECONDS):
                wrong = await asyncio.shield(self._looking)
        except TimeoutError:
            wrong = StorageUnavailable.code
        if wrong is not None:
            return JSONResponse({"status": "unready", "error": wrong}, 503)
        return JSONResponse({"status": "ready"})

    async def _look(self) -> str | None:
        try:
            await self._database.check()
        except StratagemError as error:
            return error.code
        return None
