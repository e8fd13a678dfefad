"""HTTP bodies before and after the protocol's parser, which holds the event loop.

Each body is scanned for its depth, as on the other surfaces. Of a large one the arguments of the
tool are read here, in a thread and in turn (`serving/large_bodies.py`), and only the small rest is
left to the parser. What cannot be read is answered under the request's own id.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from anyio import to_thread
from mcp_types import PARSE_ERROR, JSONRPCResponse
from pydantic_core import from_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import RequestTooLarge, StratagemError
from stratagem.surfaces.mcp.malformed_requests import answer_malformed
from stratagem.surfaces.serving.json_bodies import is_deeper
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.surfaces.serving.request_scope import LARGE_ARGUMENTS, sender_of

__all__ = ["RequestBodies"]

_OK: Final = 200
_BAD_REQUEST: Final = 400
# The arguments of a call lie in the parameters of a message.
_DEPTH_MAX: Final = limits.VALUE_DEPTH_MAX + 3
# What the parser is given of a body that it would not read, or not soon: it then makes all its
# other checks, and refuses it as no JSON.
_UNREADABLE: Final = b"{"
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"


class _ReadBody(NamedTuple):
    """What the protocol's parser is given, what is kept from it, and what is wrong.

    `head` is what has to be known of a message to refuse it, where that was read already.
    """

    body: bytes
    arguments: dict[str, Any] | None = None
    fault: StratagemError | None = None
    head: bytes | None = None


class RequestBodies:
    """Reads large bodies for the protocol, and looks again at what it refused as no JSON."""

    def __init__(self, app: ASGIApp, large_bodies: LargeBodyQueue) -> None:
        self._app = app
        self._large_bodies = large_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or answer what could not be read of it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, fault = b"", None
        refusal: list[Message] = []
        arguments = scope[LARGE_ARGUMENTS] = dict[str, Any]()

        async def note(message: Message) -> None:
            if message.get("status") == _BAD_REQUEST or refusal:
                refusal.append(message)
            else:
                await send(message)

        async def listen() -> Message:
            nonlocal body, fault
            message = await _whole_body(receive)
            body = message.get("body", body)
            if message["type"] != "http.request" or len(body) > limits.REQUEST_BYTES_MAX:
                return message
            if len(body) > limits.REQUEST_INLINE_BYTES:
                reading = await self._large_bodies.run(sender_of(scope), partial(_read_large, body))
            else:
                reading = _ReadBody(_UNREADABLE if is_deeper(body, _DEPTH_MAX) else body)
            fault, body = reading.fault, reading.head or body
            arguments.update(reading.arguments or {})
            return {**message, "body": reading.body}

        await self._app(scope, listen, note)
        if refusal and _is_parse_error(b"".join(each.get("body", b"") for each in refusal)):
            work = partial(_answer, body, fault)
            large = len(body) > limits.REQUEST_INLINE_BYTES
            answer = await (
                self._large_bodies.run(sender_of(scope), work)
                if large
                else to_thread.run_sync(work)
            )
            if answer is not None:
                await answer(scope, receive, send)
                return
        for message in refusal:
            await send(message)


async def _whole_body(receive: Receive) -> Message:
    """Return the body in one message, or as much as is needed to refuse one that is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = bool(message.get("more_body"))
        if not more or size > limits.REQUEST_BYTES_MAX:
            return {"type": "http.request", "body": b"".join(parts), "more_body": more}


def _read_large(body: bytes) -> _ReadBody:
    """Take the arguments of a tool out of a message."""
    if is_deeper(body, _DEPTH_MAX):
        return _ReadBody(_UNREADABLE)
    try:
        message = from_json(body)
    except ValueError:
        return _ReadBody(_UNREADABLE)
    params = message.get("params") if isinstance(message, dict) else None
    arguments = params.get("arguments") if isinstance(params, dict) else None
    if params and message.get("method") == "tools/call" and arguments:
        # Of the same type, which is all that is said of arguments that are no object.
        params["arguments"] = type(arguments)()
    most = limits.REQUEST_INLINE_BYTES
    rest = json.dumps(message).encode() if _is_small(message, most) else None
    if rest is None or len(rest) > most:
        words = f"A message may have {most:,} bytes in addition to the arguments of a tool."
        fault = RequestTooLarge(words, limit=most)
        return _ReadBody(_UNREADABLE, fault=fault, head=_head(message))
    return _ReadBody(rest, arguments if isinstance(arguments, dict) else None)


def _is_small(value: Any, most: int) -> bool:
    """Whether a document may fit so many bytes; found without writing a large one."""
    left, open_values = most, [value]
    while open_values and left > 0:
        each = open_values.pop()
        left -= len(each) if isinstance(each, str) else 1
        if isinstance(each, dict):
            left -= sum(map(len, each)) if len(each) <= left else left
            open_values.extend(each.values() if left > 0 else ())
        elif isinstance(each, list):
            left -= len(each)
            open_values.extend(each if left > 0 else ())
    return left > 0


def _head(message: Any) -> bytes | None:
    """Return a message without what makes it large: enough to say whose it is, and to whom."""
    if not isinstance(message, dict):
        return None
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    kept = {"id": message.get("id"), "method": message.get("method")}
    shown = {**kept, "params": {"_meta": {_VERSION: version}}}
    return json.dumps(shown).encode() if _is_small(shown, limits.REQUEST_INLINE_BYTES) else None


def _answer(body: bytes, fault: StratagemError | None) -> Response | None:
    answer = answer_malformed(body, fault)
    if answer is None:
        return None
    status = _OK if isinstance(answer, JSONRPCResponse) else _BAD_REQUEST
    text = answer.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(text, status, media_type="application/json")


def _is_parse_error(body: bytes) -> bool:
    try:
        message: Any = json.loads(body)
    except ValueError:
        return False
    error = message.get("error") if isinstance(message, dict) else None
    return isinstance(error, dict) and error.get("code") == PARSE_ERROR
