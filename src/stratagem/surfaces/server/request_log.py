"""The log of requests, and their ids.

A request keeps the id that it names (`X-Request-Id`), any other is given one; it is in the response
and in every line that is logged meanwhile.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stratagem.redaction import mask
from stratagem.surfaces.serving.request_ids import CURRENT, HEADER, request_id
from stratagem.surfaces.serving.request_scope import LOG_FIELDS

__all__ = ["RequestLog", "log_to_stderr"]

logger = logging.getLogger("stratagem.requests")

_ACCEPTED: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")
# Of a path that is logged: no path of ours is longer.
_PATH_CHARS_MAX: Final = 1_000
# What is logged of a request whose client was gone before its answer began, as proxies do: without
# a status of its own it is no failure of the server.
_CLIENT_LEFT: Final = 499
_UNANSWERED: Final = frozenset({0, 500})


class RequestLog:
    """Gives each request an id, and logs how it was answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        # One that looks like a secret is a mistake, and would stay in the log.
        fine = _ACCEPTED.fullmatch(given) and mask(given) == given
        current = given if fine else secrets.token_hex(8)
        token = CURRENT.set(current)
        began = time.perf_counter()
        status = 0
        left = False
        fields: dict[str, str] = {}

        async def note_disconnect() -> Message:
            nonlocal left
            message = await receive()
            left = left or (message["type"] == "http.disconnect" and not status)
            return message

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = current
            await send(message)

        try:
            await self._app({**scope, LOG_FIELDS: fields}, note_disconnect, note_status)
        finally:
            if left and status in _UNANSWERED:
                status = _CLIENT_LEFT
            if logger.isEnabledFor(logging.INFO):
                _log_answer(scope, status, time.perf_counter() - began, fields)
            CURRENT.reset(token)


def _log_answer(scope: Scope, status: int, seconds: float, fields: dict[str, str]) -> None:
    method, path = scope["method"], mask(scope["path"][:_PATH_CHARS_MAX])
    line = {"method": method, "path": path, "status": status}
    line["milliseconds"] = round(1000 * seconds, 1)
    line |= {name: _mask_name(text) for name, text in fields.items()}
    logger.info("%s %s %s", method, path, status, extra=line)


def _mask_name(actor: str) -> str:
    """Mask what may be secret in a name; `token:ada` says what ada has, and shows none of it."""
    kind, colon, name = actor.partition(":")
    return f"{kind}{colon}{mask(name)}"


class _JsonFormatter(logging.Formatter):
    """One line of JSON for each record; what may be secret is masked."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if current := request_id():
            line["requestId"] = current
        for name in ("method", "path", "status", "milliseconds", "by", "workspace"):
            if hasattr(record, name):
                line[name] = getattr(record, name)
        if record.exc_info:
            line["error"] = mask(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        current = request_id()
        text = mask(super().format(record))
        return f"{text} [{current}]" if current else text


def log_to_stderr(form: str) -> None:
    """Log what the operator should know: problems as text, each request too as JSON."""
    handler = logging.StreamHandler()
    if form == "json":
        formatter: logging.Formatter = _JsonFormatter()
        formatter.converter = time.gmtime
        logger.setLevel(logging.INFO)
    else:
        formatter = _TextFormatter("stratagem: %(message)s")
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("mcp").setLevel(logging.ERROR)
