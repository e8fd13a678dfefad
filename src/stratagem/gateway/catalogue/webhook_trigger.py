"""`webhook_trigger`: an event for a target that an administrator named, signed and sent once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, ValidationFailed
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples
from stratagem.gateway.outbound.responses import Response
from stratagem.gateway.outbound.results import body_of, retry_after
from stratagem.gateway.secret_grants import origin_of

__all__ = ["TOOLS"]

_RETRIES: Final = 2
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_PAUSE_SECONDS: Final = 0.5
_PAUSE_SECONDS_MAX: Final = 10.0


async def _trigger(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    settings = run.connection(given.get("target"), field="target")
    url, origin = settings["url"], origin_of(settings["url"]) or ""
    key = given.get("idempotencyKey") or run.call.request_key or run.call.execution_id
    moment = run.parts.clock() // 1_000_000
    body = orjson.dumps(
        {
            "event": given.get("event", "message"),
            "id": key,
            "time": moment,
            "data": given.get("data"),
        }
    )
    if len(body) > limits.WEBHOOK_BYTES_MAX:
        raise ValidationFailed(
            f"The event has {len(body):,} bytes; the limit is {limits.WEBHOOK_BYTES_MAX:,}.",
            field="data",
            limit=limits.WEBHOOK_BYTES_MAX,
        )
    headers = {
        name: run.secret(value, origin) for name, value in (settings.get("headers") or {}).items()
    }
    headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
    if "secret" in settings:
        secret = run.secret(settings["secret"], origin)
        headers |= _sign(secret, key, moment, body)
    response, attempts = await _send(run, url, headers, body, settings.get("retries", _RETRIES))
    return {
        "delivered": True,
        "status": response.status,
        "attempts": attempts,
        "idempotencyKey": key,
        "response": _body_of(response),
    }


def _sign(secret: str, key: str, moment: int, body: bytes) -> dict[str, str]:
    """Return the signature over id, time and body, so that none of them can be replaced."""
    signed = f"{key}.{moment}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return {
        "X-Stratagem-Id": key,
        "X-Stratagem-Timestamp": str(moment),
        "X-Stratagem-Signature": f"sha256={digest}",
    }


async def _send(
    run: ToolRun, url: str, headers: dict[str, str], body: bytes, retries: int
) -> tuple[Response, int]:
    """Send until the target takes it; the key tells it that a repeat is one."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + run.seconds
    for attempt in range(1, retries + 2):
        wait = _PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 -- spreads load
        try:
            response = await run.parts.outbound().request(
                "POST", url, headers=headers, body=body, seconds=deadline - clock()
            )
        except (ExecutionFailed, ExecutionTimeout) as error:
            if attempt > retries or clock() + wait > deadline:
                raise
            failed: Any = error
        else:
            if response.status not in _RETRIED or attempt > retries:
                return _accepted_response(response, attempt), attempt
            failed = response
            wait = max(wait, retry_after(response.headers) or 0.0)
        if wait > _PAUSE_SECONDS_MAX or clock() + wait > deadline:
            return _accepted_response(failed, attempt), attempt
        run.call.progress(None, f"attempt {attempt} failed; trying again")
        await asyncio.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _accepted_response(response: Any, attempt: int) -> Response:
    if isinstance(response, Exception):
        raise response
    assert isinstance(response, Response)
    if not 200 <= response.status < 300:  # noqa: PLR2004 -- the statuses of success
        raise ExecutionFailed(
            f"The target answered with status {response.status} after {attempt} attempts.",
            status=response.status,
            attempts=attempt,
            body=str(_body_of(response))[: limits.OUTBOUND_EXCERPT_CHARS],
        )
    return response


def _body_of(response: Response) -> Any:
    try:
        found = body_of(response)
    except ExecutionFailed:
        return None
    return found if len(orjson.dumps(found)) <= limits.WEBHOOK_ANSWER_BYTES_MAX else None


TOOLS: Final = (
    StandardTool(
        define(
            "webhook_trigger",
            "Send an event to a named webhook target, signed, with an idempotency key and retries.",
            category="integration",
            details=(
                "Posts {event, id, time, data} as JSON to a target that an administrator set; you "
                "name it, its address stays with the server. With a secret the request carries "
                "X-Stratagem-Signature: sha256= and the HMAC-SHA256 of `id.timestamp.body`. "
                "Connection failures and the statuses 408, 425, 429 and 5xx are tried again with "
                "the same Idempotency-Key."
            ),
            takes={
                "target": {"type": "string", "description": "Which one, if there are several"},
                "event": {"type": "string", "minLength": 1, "maxLength": 200, "default": "message"},
                "data": {"description": "Any JSON"},
                "idempotencyKey": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9_.:-]{1,128}$",
                    "description": "Repeated keys mean the same event",
                },
            },
            gives={
                "delivered": {"type": "boolean"},
                "status": {"type": "integer"},
                "attempts": {"type": "integer"},
                "idempotencyKey": {"type": "string"},
                "response": {},
            },
            gives_always=("delivered", "status", "attempts", "idempotencyKey"),
            tags=("webhook", "event", "notify", "http"),
            shown=examples(
                ("An event", {"target": "deploy", "event": "release", "data": {"version": "2.1"}})
            ),
            internet=True,
            changes=True,
            permissions=(),
        ),
        _trigger,
        connection="webhook",
    ),
)
