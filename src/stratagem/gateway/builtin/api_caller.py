"""`api_caller`: any request to any public service, through the guard.

It answers with whatever status the service gave: an error of the service is an answer here, for
whoever called to read. With a named connection the address is a path below the connection's own,
and its headers, which may hold secrets, are sent along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import orjson

from stratagem import limits
from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.outbound.client import METHODS, Outbound
from stratagem.gateway.outbound.guard import check_url
from stratagem.gateway.outbound.results import body_of
from stratagem.gateway.outbound.service_requests import percent_encode
from stratagem.gateway.outbound.templates import text_of
from stratagem.gateway.secret_grants import origin_of

__all__ = ["TOOL", "run"]

_MILLISECONDS_MAX: Final = int(limits.OUTBOUND_SECONDS_MAX * 1000)

TOOL: Final[dict[str, Any]] = {
    "name": "api_caller",
    "description": (
        "Call an HTTP API and return its status, headers and body. Only public addresses, unless "
        "an administrator allowed the host."
    ),
    "longDescription": (
        "Makes one HTTP request and returns the answer whatever its status: JSON as it is, text "
        "as text, anything else as base64. With `connection` the address is a path below "
        "that of a named API, which adds its own headers, including keys. Private addresses "
        "are refused, "
        "also behind redirects, and so are answers that are too large or too slow. Nothing "
        "is retried: only the caller knows whether a request can be repeated."
    ),
    "requirements": {"permissions": ["internet_access"], "resources": []},
    "category": "integration",
    # Whether it can be reached says something about that host alone.
    "target": "url",
    "inputSchema": {
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "description": "Address, http or https; with a connection a path below its own.",
            },
            "connection": {
                "type": "string",
                "description": "A named API that an administrator set, with its headers.",
            },
            "method": {"type": "string", "enum": list(METHODS), "default": "GET"},
            "headers": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Headers to send.",
            },
            "query": {
                "type": "object",
                "description": "Added to the query of the address; a list gives several values.",
            },
            "body": {"description": "Sent as JSON; a text is sent as it is."},
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MILLISECONDS_MAX,
                "description": "Milliseconds.",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "body": {
                "description": (
                    "JSON as it is; text as {text, content_type}; anything else as "
                    "{base64, content_type, bytes}; null if there is none."
                )
            },
            "url": {"type": "string", "description": "Where the answer came from."},
        },
        "required": ["status", "headers", "body", "url"],
    },
    "tags": ["http", "api", "rest", "web"],
    "examples": [
        {
            "description": "Read something",
            "input": {"url": "https://api.example.com/items", "query": {"limit": 10}},
        },
        {
            "description": "Create something",
            "input": {
                "url": "https://api.example.com/items",
                "method": "POST",
                "body": {"name": "lamp"},
            },
        },
    ],
}


async def run(
    arguments: Mapping[str, Any],
    run: Run,
    outbound: Outbound,
    connections: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Make the request and return the answer, whatever its status.

    Raises:
        ValidationFailed: The request cannot be sent.
        PermissionDenied: The address is not public.
        ExecutionFailed: The service cannot be reached, or its answer cannot be read.
    """
    method = str(arguments.get("method", "GET")).upper()
    arguments = _with_connection(arguments, run, connections or {})
    headers = dict(arguments.get("headers") or {})
    body = _body(arguments.get("body"), method, headers)
    present = {name.lower() for name in headers}
    if run.request_key and method not in {"GET", "HEAD", "OPTIONS"}:
        headers |= {} if "idempotency-key" in present else {"Idempotency-Key": run.request_key}
    seconds = min(run.seconds, arguments.get("timeout", _MILLISECONDS_MAX) / 1000)
    response = await outbound.request(
        method, _url(arguments), headers=headers, body=body, seconds=seconds
    )
    try:
        content = body_of(response)
    except ExecutionFailed as error:
        # It says JSON and is not: the caller should see what it is instead.
        content = {"text": error.details["body"], "content_type": response.content_type}
    return {
        "status": response.status,
        "headers": dict(response.headers),
        "body": content,
        "url": response.url,
    }


def _with_connection(
    arguments: Mapping[str, Any], run: Run, connections: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the arguments with the address, headers and query of a named connection."""
    name = arguments.get("connection")
    if name is None:
        return arguments
    if name not in connections:
        raise ValidationFailed(
            f"There is no connection {name!r} of the kind api.",
            field="connection",
            allowed=sorted(connections),
            hint="An administrator sets one: stratagem tools connect NAME api SETTINGS",
        )
    settings = connections[name]
    origin = origin_of(settings["url"]) or ""

    def resolve_secrets(place: str) -> dict[str, str]:
        given = settings.get(place) or {}
        return {key: run.secrets.resolve(text, origin=origin) for key, text in given.items()}

    own = resolve_secrets("headers")
    named = {key.lower() for key in own}
    others = arguments.get("headers") or {}
    return {
        **arguments,
        "url": _below(settings["url"], arguments["url"]),
        # Those of the connection stand: whoever calls cannot put others in their place.
        "headers": {key: text for key, text in others.items() if key.lower() not in named} | own,
        "query": {**(arguments.get("query") or {}), **resolve_secrets("query")},
    }


def _below(base: str, path: str) -> str:
    """Return an address below that of a connection.

    Raises:
        PermissionDenied: It leads elsewhere.
    """
    root = base.rstrip("/")
    if path == root or path.startswith((f"{root}/", f"{root}?")):
        path = path[len(root) :]
    place = unquote(path.partition("?")[0])
    if "://" in place or place.startswith("//") or ".." in place.replace("\\", "/").split("/"):
        raise PermissionDenied(
            "The address is not below that of the connection.",
            reason="outside",
            field="url",
            hint=f"Give a path below {root}.",
        )
    return f"{root}{path}" if path.startswith("?") else f"{root}/{path.lstrip('/')}"


def _url(arguments: Mapping[str, Any]) -> str:
    url = str(check_url(arguments["url"]))
    pairs = [
        f"{percent_encode(name)}={percent_encode(text_of(each))}"
        for name, value in (arguments.get("query") or {}).items()
        for each in (value if isinstance(value, list) else [value])
        if each is not None
    ]
    if not pairs:
        return url
    before, _, _ = url.partition("#")
    return before + ("&" if "?" in before else "?") + "&".join(pairs)


def _body(value: Any, method: str, headers: dict[str, str]) -> bytes | None:
    """Return the body, and add its media type to headers that have none."""
    if value is None:
        return None
    if method in {"GET", "HEAD"}:
        raise ValidationFailed(f"A {method} request has no body.", field="body")
    is_typed = any(name.lower() == "content-type" for name in headers)
    if not is_typed:
        kind = "text/plain; charset=utf-8" if isinstance(value, str) else "application/json"
        headers["Content-Type"] = kind
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
