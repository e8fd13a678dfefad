"""Ending streams whose token expires or is revoked.

A stream of the protocol may stay open for days. Its principal is authenticated again and again,
which costs a look-up in memory, and the stream is closed when the token is no longer valid.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from stratagem import limits
from stratagem.errors import StratagemError, Unauthenticated
from stratagem.surfaces.admission.authenticator import Authenticator, Principal

__all__ = ["serve_while_authenticated"]


async def serve_while_authenticated(
    app: ASGIApp,
    authenticator: Authenticator,
    principal: Principal | None,
    *,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a request for as long as its principal is still authenticated."""
    answering = asyncio.ensure_future(app(scope, receive, send))
    try:
        while True:
            await asyncio.wait({answering}, timeout=limits.TOKEN_CHECK_SECONDS)
            if answering.done():
                break
            if not await _is_still_valid(authenticator, principal):
                # The connection is closed under an answer that was never finished.
                answering.cancel()
                await asyncio.wait({answering})
                return
    except asyncio.CancelledError:
        answering.cancel()
        await asyncio.wait({answering})
        raise
    answering.result()


async def _is_still_valid(authenticator: Authenticator, principal: Principal | None) -> bool:
    try:
        await authenticator.reauthenticate(principal)
    except Unauthenticated:
        return False
    except StratagemError:
        # A database that does not answer for a moment ends no stream.
        return True
    return True
