"""Runs tools that are operations of an OpenAPI document.

The handler contains everything that the request needs, so that a call never reads the document
again: the URL with the placeholders of its path, the location and style of each parameter, the
encoding of the body, and the credentials by the names of their secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.openapi.bodies import encode_body
from stratagem.gateway.openapi.inputs import placeholders
from stratagem.gateway.openapi.parameters import (
    serialize_cookie,
    serialize_header,
    serialize_path,
    serialize_query,
)
from stratagem.gateway.outbound.client import METHODS, Outbound, check_headers
from stratagem.gateway.outbound.guard import check_url
from stratagem.gateway.outbound.service_requests import (
    ServiceRequest,
    handler_seconds,
    percent_encode,
    secrets_for,
    send,
    text_fields,
)
from stratagem.gateway.outbound.templates import Template

__all__ = ["OpenApiRunner"]

_PLACES: Final = ("path", "query", "header", "cookie")
_URL: Final = re.compile(r"(?P<base>https?://[^/?#{}]+)(?P<path>/[^?#]*)", re.IGNORECASE)

_Secret = Callable[[str], str]


class OpenApiRunner:
    """Runs handlers of the type `openapi`."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered, without touching the network."""
        base, path = _split_url(handler)
        if handler.get("method") not in METHODS:
            raise _field_error("method", "is one of " + ", ".join(METHODS))
        parameters = _check_parameters(handler)
        filled = {each["name"] for each in parameters if each["in"] == "path"}
        if missing := set(placeholders(path)) - filled:
            raise _field_error(
                "url", f"has placeholders without a parameter: {', '.join(sorted(missing))}"
            )
        _check_body(handler.get("body"))
        handler_seconds(handler)
        for name in ("headers", "query", "cookies"):
            given = text_fields(handler.get(name), name=f"handler.{name}")
            if name == "headers":
                check_headers(given, field="handler.headers")
        warnings = self._outbound.warnings(f"{base}/", field="handler.url")
        if base.lower().startswith("http://") and any(map(handler.get, ("headers", "query"))):
            warnings.append("`handler.url` is not https: secrets sent to it can be read.")
        return warnings

    async def run(self, handler: Handler, run: Run) -> Any:
        """Make the request of the operation and return its result."""
        base, path = _split_url(handler)
        secret = secrets_for(run, check_url(f"{base}/"))
        given = {name: value for name, value in run.arguments.items() if value is not None}
        parameters = _check_parameters(handler)
        body, kind = (
            encode_body(handler["body"], run.arguments) if "body" in handler else (None, None)
        )
        headers = {"Accept": str(handler.get("accept", "*/*"))}
        headers |= {"Content-Type": kind} if kind else {}
        headers |= _build_headers(handler, parameters, given, secret)
        pairs = _query_pairs(handler, parameters, given, secret)
        url = base + _fill_path(path, parameters, given)
        call = ServiceRequest(
            handler["method"],
            f"{url}?{'&'.join(pairs)}" if pairs else url,
            headers,
            body,
            handler_seconds(handler),
        )
        return await send(self._outbound, call, run)

    async def close(self) -> None:
        """Do nothing: the connections belong to the shared client."""


def _field_error(name: str, what: str) -> ValidationFailed:
    return ValidationFailed(
        f"`handler.{name}` {what}.",
        field=f"handler.{name}",
        hint="Create the handler from the document: refresh its tools.",
    )


def _split_url(handler: Handler) -> tuple[str, str]:
    url = handler.get("url")
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        raise _field_error("url", "must be an http or https address with a fixed host")
    return found["base"], found["path"]


def _check_parameters(handler: Handler) -> list[Mapping[str, Any]]:
    parameters = handler.get("parameters", [])
    if not isinstance(parameters, list):
        raise _field_error("parameters", "is a list")
    for each in parameters:
        is_whole = isinstance(each, Mapping) and all(
            isinstance(each.get(name), str) for name in ("argument", "name", "in", "style")
        )
        if not is_whole or each["in"] not in _PLACES or not isinstance(each.get("explode"), bool):
            raise _field_error("parameters", "has one that is not complete")
    return parameters


def _check_body(body: Any) -> None:
    if body is None:
        return
    if not isinstance(body, Mapping) or not isinstance(body.get("contentType"), str):
        raise _field_error("body", "has a contentType")
    fields = body.get("fields")
    is_list = isinstance(fields, list) and all(
        isinstance(each, Mapping)
        and isinstance(each.get("argument"), str)
        and isinstance(each.get("name"), str)
        for each in fields
    )
    if not is_list and not isinstance(body.get("argument"), str):
        raise _field_error("body", "names an argument, or fields with an argument and a name each")


def _fill_path(path: str, parameters: list[Mapping[str, Any]], given: Mapping[str, Any]) -> str:
    """Return the path with its placeholders filled; no value may lead to another path."""
    places = {each["name"]: each for each in parameters if each["in"] == "path"}

    def value(found: re.Match[str]) -> str:
        parameter = places[found[1]]
        argument = parameter["argument"]
        if argument not in given:
            raise MissingRequired(f"`{argument}` is needed for this call.", field=argument)
        return serialize_path(parameter, given[argument])

    segments = []
    for segment in path.split("/"):
        names = placeholders(segment)
        filled = re.sub(r"\{([^{}/]+)\}", value, segment)
        if names and unquote(filled) in {"", ".", ".."}:
            argument = places[names[0]]["argument"]
            raise ValidationFailed(f"`{argument}` cannot be a part of a path.", field=argument)
        segments.append(filled)
    return "/".join(segments)


def _query_pairs(
    handler: Handler,
    parameters: list[Mapping[str, Any]],
    given: Mapping[str, Any],
    secret: _Secret,
) -> list[str]:
    pairs = [
        pair
        for each in parameters
        if each["in"] == "query" and each["argument"] in given
        for pair in serialize_query(each, given[each["argument"]])
    ]
    fixed = text_fields(handler.get("query"), name="handler.query")
    return pairs + [
        f"{percent_encode(name)}={percent_encode(Template.parse(text).fill({}, secret))}"
        for name, text in fixed.items()
    ]


def _build_headers(
    handler: Handler,
    parameters: list[Mapping[str, Any]],
    given: Mapping[str, Any],
    secret: _Secret,
) -> dict[str, str]:
    present = [each for each in parameters if each["argument"] in given]
    headers = {
        each["name"]: serialize_header(each, given[each["argument"]])
        for each in present
        if each["in"] == "header"
    }
    cookies = [
        serialize_cookie(each, given[each["argument"]])
        for each in present
        if each["in"] == "cookie"
    ]
    for name, text in text_fields(handler.get("cookies"), name="handler.cookies").items():
        cookies.append(f"{name}={Template.parse(text).fill({}, secret)}")
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    for name, text in text_fields(handler.get("headers"), name="handler.headers").items():
        # What shows who calls is never for an argument to replace.
        headers = {each: value for each, value in headers.items() if each.lower() != name.lower()}
        headers[name] = Template.parse(text).fill({}, secret)
    return headers
