"""Reading what a request says, within bounds that are checked before it is parsed."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
from starlette.requests import Request

from stratagem import limits
from stratagem.errors import InvalidInput, RequestTooLarge

__all__ = ["check_depth", "read_json"]

_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_OPENING: Final = frozenset(b"[{")


async def read_json(request: Request) -> Any:
    """Return the body of a request.

    Raises:
        RequestTooLarge: It is too long or too deep.
        InvalidInput: It is no JSON.
    """
    body = await _read(request)
    if not body:
        return {}
    check_depth(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"The body is no JSON: {error}.") from error


async def _read(request: Request) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.REQUEST_BYTES_MAX:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limits.REQUEST_BYTES_MAX:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def check_depth(body: bytes) -> None:
    """Refuse a document that is nested too deeply, without parsing it.

    Raises:
        RequestTooLarge: It is.
    """
    most = limits.VALUE_DEPTH_MAX
    if body.count(b"[") + body.count(b"{") <= most:
        return
    depth = 0
    for token in _TOKENS.finditer(body):
        first = body[token.start()]
        if first in _OPENING:
            depth += 1
            if depth > most:
                raise RequestTooLarge(
                    f"The body is nested more than {most} levels deep.", limit=most
                )
        elif first != ord('"'):
            depth -= 1


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(
        f"The body is larger than {limits.REQUEST_BYTES_MAX:,} bytes.",
        limit=limits.REQUEST_BYTES_MAX,
    )
