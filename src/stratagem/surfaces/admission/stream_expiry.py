"""Ending answers that go on for longer than the token they were asked for with.

A stream of the protocol may stay open for days. Whoever opened it is looked up again as long as
it lasts, which costs a look in memory, and it is cut when the token is no longer good.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem import limits
from stratagem.errors import StratagemError, Unauthenticated
from stratagem.surfaces.admission.authenticator import Admission, Admitted

__all__ = ["watched"]


async def watched(
    app: ASGIApp,
    admission: Admission,
    admitted: Admitted | None,
    *,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a request, for as long as whoever sent it would still be let in."""
    answering = asyncio.ensure_future(app(scope, receive, send))
    try:
        while True:
            await asyncio.wait({answering}, timeout=limits.TOKEN_CHECK_SECONDS)
            if answering.done():
                break
            if not await _still_good(admission, admitted):
                # The connection is closed under an answer that was never finished.
                answering.cancel()
                await asyncio.wait({answering})
                return
    except asyncio.CancelledError:
        answering.cancel()
        await asyncio.wait({answering})
        raise
    answering.result()


async def _still_good(admission: Admission, admitted: Admitted | None) -> bool:
    try:
        await admission.confirm(admitted)
    except Unauthenticated:
        return False
    except StratagemError:
        # A database that does not answer for a moment ends nobody's stream.
        return True
    return True
