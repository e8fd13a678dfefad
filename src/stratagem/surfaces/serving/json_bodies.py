"""Reading the body of a request, within limits that are checked before it is parsed.

The depth is found without parsing, by a scanner that looks at each byte a fixed number of times
and holds a fixed amount besides the body: nothing that a caller writes makes it slower. Where a
text does not end, or backslashes stand outside of texts, it may count wrongly; the parser
refuses such a body.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import orjson
from starlette.requests import Request

from stratagem import limits
from stratagem.engine import values
from stratagem.errors import InvalidInput, RequestTooLarge
from stratagem.surfaces.serving.large_bodies import LargeBodyQueue
from stratagem.surfaces.serving.request_scope import sender_of

__all__ = ["check_depth", "is_deeper", "read_body", "read_json"]

_QUOTE: Final = ord('"')
_SLICE_BYTES: Final = 64 * 1024
# Of a length that a caller announces; Python reads no number of thousands of them.
_LENGTH_DIGITS: Final = 20
# What each byte adds to the depth.
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


async def read_json(request: Request, large_bodies: LargeBodyQueue) -> Any:
    """Return the body of a request; a large one is read when it is its sender's turn.

    Raises:
        RequestTooLarge: It is too long or too deep.
        InvalidInput: It is no JSON.
    """
    body = await read_body(request)
    if not body:
        return {}
    if len(body) <= limits.REQUEST_INLINE_BYTES:
        return _parse(body)
    return await large_bodies.run(sender_of(request.scope), partial(_parse, body))


def check_depth(body: bytes) -> None:
    """Refuse a document that is nested too deeply, without parsing it.

    Raises:
        RequestTooLarge: It is.
    """
    most = limits.VALUE_DEPTH_MAX
    if is_deeper(body, most):
        raise RequestTooLarge(f"The body is nested more than {most} levels deep.", limit=most)


def is_deeper(body: bytes, most: int) -> bool:
    """Whether a document has more than so many levels; found without parsing it."""
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    # Pairs of backslashes first: what is then left before a quote escapes it.
    plain = np.frombuffer(body.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    depth, in_text = 0, False
    for begin in range(0, len(plain), _SLICE_BYTES):
        piece = plain[begin : begin + _SLICE_BYTES]
        texts = np.logical_xor.accumulate(piece == _QUOTE) ^ in_text
        in_text = bool(texts[-1])
        steps = _STEPS[piece]
        steps[texts] = 0
        depths = np.cumsum(steps, dtype=np.int32)
        if depth + int(depths.max()) > most:
            return True
        depth += int(depths[-1])
    return False


def _parse(body: bytes) -> Any:
    check_depth(body)
    try:
        return values.read(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error}.") from error


async def read_body(request: Request) -> bytes:
    """Return the body of a request as it came.

    Raises:
        RequestTooLarge: It is too long.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:_LENGTH_DIGITS]) > limits.REQUEST_BYTES_MAX:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limits.REQUEST_BYTES_MAX:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(
        f"The body is larger than {limits.REQUEST_BYTES_MAX:,} bytes.",
        limit=limits.REQUEST_BYTES_MAX,
    )
