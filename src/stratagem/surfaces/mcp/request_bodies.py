"""HTTP bodies before and after the protocol's parser.

Large ones wait for their turn, for the parser holds the event loop; those that it gives up on are
answered under the request's own id.
"""

from __future__ import annotations

import json
from typing import Any, Final

from anyio import to_thread
from mcp_types import PARSE_ERROR, JSONRPCResponse
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem import limits
from stratagem.surfaces.mcp.malformed_requests import answer_to
from stratagem.surfaces.serving.large_bodies import Turns
from stratagem.surfaces.serving.request_scope import sender_of

__all__ = ["UnreadBodies"]

_OK: Final = 200
_BAD_REQUEST: Final = 400


class UnreadBodies:
    """Looks again at what was refused as no JSON, after every other check has been passed."""

    def __init__(self, app: ASGIApp, turns: Turns) -> None:
        self._app = app
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or answer what could not be read of it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        asked: list[bytes] = []
        refusal: list[Message] = []

        async def note(message: Message) -> None:
            if message.get("status") == _BAD_REQUEST or refusal:
                refusal.append(message)
            else:
                await send(message)

        size = 0

        async def listen() -> Message:
            nonlocal size
            message = await receive()
            asked.append(message.get("body", b""))
            size += len(asked[-1])
            if size > limits.REQUEST_INLINE_BYTES and not message.get("more_body"):
                takes = size / limits.PROTOCOL_BYTES_PER_SECOND
                await self._turns.wait(sender_of(scope), takes)
            return message

        await self._app(scope, listen, note)
        answer = await _answer(asked, refusal) if refusal else None
        if answer is not None:
            await answer(scope, receive, send)
            return
        for message in refusal:
            await send(message)


async def _answer(asked: list[bytes], refusal: list[Message]) -> Response | None:
    if not _is_parse_error(b"".join(message.get("body", b"") for message in refusal)):
        return None
    # A long body takes a while.
    answer = await to_thread.run_sync(answer_to, b"".join(asked))
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
