"""HTTP responses: the gateway's envelope, and the plain form of the other systems."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stratagem.errors import TABLE, InternalFault, StratagemError
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = [
    "error_response",
    "is_of_gateway",
    "send_refusal",
    "success_response",
    "with_gateway_codes",
]

logger = logging.getLogger(__name__)

# An answer is for one caller, whom a cookie may have named, and it is data, whatever it looks like.
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def is_of_gateway(path: str) -> bool:
    """Whether a path lies where answers and errors have the gateway's form."""
    return path.startswith(("/api/mcp", "/api/auto-correction")) or path == "/metrics"


def success_response(data: Any, *, enveloped: bool, status: int = 200) -> Response:
    """Return the response with an answer."""
    body = {"success": True, "data": data} if enveloped else data
    return _json(body, status)


def with_gateway_codes(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a pipeline ended, its errors named as on the gateway's own routes and events."""
    steps = [_with_gateway_code(each) for each in run.get("steps", ())]
    return {**_with_gateway_code(run), **({"steps": steps} if "steps" in run else {})}


def _with_gateway_code(report: Mapping[str, Any]) -> dict[str, Any]:
    error = report.get("error")
    row = TABLE.get(error.get("code", "")) if isinstance(error, dict) else None
    named = {"error": {**error, "code": row.gateway_code}} if row and error else {}
    return {**report, **named}


def error_response(error: Exception, *, enveloped: bool, status: int | None = None) -> Response:
    """Return the response with an error, in the form of the surface that was asked."""
    if not isinstance(error, StratagemError):
        # Internals are for the log, not for clients.
        logger.error("a request failed", exc_info=error)
        error = InternalFault("The request failed; the server's log says how.")
    body = _error_body(error, enveloped=enveloped)
    response = _json(escape_surrogates(body), status or TABLE[error.code].http_status)
    wait = error.details.get("retry_after")
    if isinstance(wait, int | float):
        response.headers["retry-after"] = str(max(1, math.ceil(wait)))
    if error.code == "unauthenticated":
        response.headers["www-authenticate"] = "Bearer"
    elif error.code == "permission_denied" and (scope := error.details.get("required")):
        words = f'Bearer realm="stratagem", error="insufficient_scope", scope="{scope}"'
        response.headers["www-authenticate"] = words
    return response


async def send_refusal(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send what refuses a request, or a websocket before it is accepted."""
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        # Before it is accepted, closing is answered with 403.
        await send({"type": "websocket.close", "code": 1008})


def _error_body(error: StratagemError, *, enveloped: bool) -> dict[str, Any]:
    """Return an error in the form of its route; either has code, message and hint at its top."""
    if not enveloped:
        return {"code": error.code, **error.envelope()}
    inner = error.gateway_body()
    top = {"code": inner["code"], "message": inner["message"], "hint": inner["hint"]}
    return {"success": False, "error": inner, **top}


def _json(body: Any, status: int) -> Response:
    return Response(orjson.dumps(body), status, dict(_HEADERS), "application/json")
