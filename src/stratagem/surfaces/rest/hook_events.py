"""Hooks of clients that call a running server: the client's event in, its answer out.

Only clients of this machine are answered: an event names a folder of theirs, whose settings and git
branch are read here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from stratagem.clients.hook_lists import HOOKS_PATH
from stratagem.errors import PermissionDenied, RouteNotFound
from stratagem.hooks.clients import CLIENTS
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.json_bodies import check_depth, read_body
from stratagem.surfaces.serving.responses import error_response

__all__ = ["ROUTE", "hook_endpoint"]

ROUTE: Final = f"{HOOKS_PATH}/{{client}}"
_SCOPE: Final = "memory"
_SCOPE_OF_FIXES: Final = "debugging"


def hook_endpoint(
    database: Database, caller_of: Callable[[Request], Caller]
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers an event with what `stratagem hook` would print."""

    async def endpoint(request: Request) -> Response:
        try:
            client = _client_of(request)
            caller = caller_of(request)
            _check_reach(request, caller)
            body = await read_body(request)
            check_depth(body)
            async with database.calls.track("hook", {}, caller):
                answer = await asyncio.to_thread(_answer, database, client, body, caller)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return error_response(error, enveloped=False)
        return Response(answer, media_type="application/json")

    return endpoint


def _answer(database: Database, client: str, body: bytes, caller: Caller) -> str:
    # Imported when the first event comes: most servers are sent none.
    from stratagem.hooks.server_answers import answer_event

    text = body.decode("utf-8", "replace")
    runtime = database.runtime(caller.workspace)
    knows_fixes = caller.may(_SCOPE_OF_FIXES, "write")
    return answer_event(client, text, runtime, knows_fixes=knows_fixes) or "{}"


def _client_of(request: Request) -> str:
    client: str = request.path_params["client"]
    if client not in CLIENTS:
        raise RouteNotFound(f"There is no client {client[:100]!r}.", allowed=list(CLIENTS))
    return client


def _check_reach(request: Request, caller: Caller) -> None:
    """Refuse whom the memory is not open to, and who is not on this machine.

    Raises:
        PermissionDenied: The token does not let its bearer write, or the caller is elsewhere.
    """
    if request.client is None or not _is_loopback(request.client.host):
        raise PermissionDenied(
            "Hooks are answered on this machine only.",
            hint="Set up the command where the agent runs: stratagem init.",
        )
    if caller.read_only or not caller.may(_SCOPE, "write"):
        raise PermissionDenied(
            "Hooks store what was said, and this token does not allow writing.",
            required=f"{_SCOPE}:write",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
