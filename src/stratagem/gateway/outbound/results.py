"""Converts the response of a web service into the result of a tool."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.engine.paths import Steps, get, render
from stratagem.errors import ExecutionFailed
from stratagem.gateway.outbound.responses import Response

__all__ = ["body_of", "decode_base64", "is_json", "result_of", "retry_after"]

# These statuses show that the service works: the request or the caller was wrong. 429 is among
# them: the service protects itself, and says itself when to retry.
_SERVICE_WORKS: Final = range(400, 500)
_TIMED_OUT: Final = 408
# Too many requests, unavailable: the service did nothing, so a retry is safe.
_NOTHING_DONE: Final = frozenset({429, 503})
_CHARSET: Final = re.compile(r"charset=\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_TEXTUAL: Final = re.compile(
    r"text/.*|application/(.*\+)?(xml|yaml|x-yaml|javascript|ecmascript|graphql|sql|toml|csv"
    r"|x-www-form-urlencoded|x-ndjson|ndjson|jsonl|x-sh)|image/svg\+xml"
)
_DELAY_SECONDS_MAX: Final = 7 * 24 * 3600


def is_json(content_type: str) -> bool:
    """Tell whether a media type is JSON."""
    return content_type in {"application/json", "text/json"} or content_type.endswith("+json")


def result_of(response: Response, path: Steps | None = None) -> Any:
    """Return the body of a response, or the part of it that the handler selects by `path`.

    Raises:
        ExecutionFailed: The status is an error, the body is malformed, or `path` is missing in it.
    """
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _status_error(response)
    body = body_of(response, as_json=path is not None)
    if path is None:
        return body
    found, picked = get(body, path)
    if not found:
        raise ExecutionFailed(
            f"The answer has nothing at {render(path)}.",
            reason="path_missing",
            status=response.status,
            body=_excerpt(response),
        )
    return picked


def body_of(response: Response, *, as_json: bool = False) -> Any:
    """Return the body as JSON: parsed, or as text, or as base64, with its media type.

    Raises:
        ExecutionFailed: It is declared as JSON and cannot be parsed.
    """
    kind = response.content_type
    if not response.body:
        return None
    if as_json or is_json(kind):
        return _parse_json(response)
    if not kind:
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError:
            pass
    text = _decode_text(response)
    if text is not None:
        return {"text": text, "content_type": kind or "text/plain"}
    return {
        "base64": base64.b64encode(response.body).decode(),
        "content_type": kind or "application/octet-stream",
        "bytes": len(response.body),
    }


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the Retry-After header, or None if there is none.

    A date is compared with the Date header of the response, so that our clock does not matter.
    """
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdecimal():
        return float(min(int(given[:9]), _DELAY_SECONDS_MAX))
    until, now = _parse_date(given), _parse_date(headers.get("date", ""))
    if until is None or now is None:
        return None
    return min(max((until - now).total_seconds(), 0.0), _DELAY_SECONDS_MAX)


def decode_base64(text: str) -> bytes | None:
    """Return the bytes that a text encodes, or None if it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _parse_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


def _parse_json(response: Response) -> Any:
    try:
        return orjson.loads(response.body.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        raise ExecutionFailed(
            "The answer is not JSON.",
            reason="not_json",
            status=response.status,
            body=_excerpt(response),
        ) from None


def _decode_text(response: Response) -> str | None:
    """Return the body as text, or None if it is binary or empty."""
    kind = response.content_type
    if kind and not _TEXTUAL.fullmatch(kind):
        return None
    found = _CHARSET.search(response.headers.get("content-type", ""))
    try:
        text = response.body.decode(found[1] if found else "utf-8")
    except (UnicodeDecodeError, LookupError):
        text = response.body.decode("latin-1") if kind else ""
    return None if "\x00" in text or not text else text


def _status_error(response: Response) -> ExecutionFailed:
    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    details: dict[str, Any] = {"status": response.status, "body": _excerpt(response)}
    delay = retry_after(response.headers)
    if delay is not None:
        details["retry_after"] = delay
    return ExecutionFailed(
        f"The service answered {response.status}{phrase}.",
        safe=response.status in _NOTHING_DONE,
        answered=response.status in _SERVICE_WORKS and response.status != _TIMED_OUT,
        reason="status",
        **details,
    )


def _excerpt(response: Response) -> str:
    """Return the printable beginning of the body, for an error message."""
    if response.content_type and not (
        is_json(response.content_type) or _TEXTUAL.fullmatch(response.content_type)
    ):
        return f"({len(response.body)} bytes of {response.content_type[:100]})"
    # UTF-8 takes at most four bytes a character, so a long body need not be decoded whole.
    head = response.body[: 4 * limits.OUTBOUND_EXCERPT_CHARS].decode("utf-8", "replace")
    head = "".join(char if char.isprintable() or char in "\n\t" else "�" for char in head)
    if len(head) > limits.OUTBOUND_EXCERPT_CHARS:
        return head[: limits.OUTBOUND_EXCERPT_CHARS] + "…"
    return head
