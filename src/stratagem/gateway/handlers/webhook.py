"""Webhooks: tools that send one HTTP request for each call.

A handler says where the arguments go:

`url`       with `{name}` in its path or query; a pair of the query whose argument is missing is
            left out. The host is fixed unless `hostFromArguments` is true.
`method`    POST unless said otherwise.
`headers`, `query`   texts with `{name}` and `${SECRET}` in them.
`body`      JSON in which `"{{name}}"` stands for an argument, of whatever type.
`timeout`   milliseconds.
`response`  `{"path": "$.data"}` picks a part of the answer.
`idempotent`  doing it twice is the same as doing it once.

Arguments that are named nowhere go into the body as JSON (POST, PUT, PATCH) or into the query
(GET, DELETE and the others), unless there is a `body`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlencode

import httpx2
import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.paths import Steps, parse
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run
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
from stratagem.gateway.outbound.templates import (
    ABSENT,
    Template,
    fill_json,
    json_arguments,
    text_of,
)

__all__ = ["WebhookRunner"]

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[^/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE,
)
_HOST_PART: Final = re.compile(r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
_FORM: Final = "application/x-www-form-urlencoded"
_KNOWN: Final = frozenset(
    {"type", "url", "method", "headers", "query", "body", "timeout", "response", "idempotent"}
    | {"hostFromArguments"}
)

_Secret = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Webhook:
    """A parsed handler."""

    scheme: str
    host: Template
    path: Template
    pairs: tuple[tuple[Template, Template | None], ...]
    method: str
    headers: Mapping[str, Template]
    body: Any
    seconds: float
    response_path: Steps | None

    def used_arguments(self) -> set[str]:
        """Return the names of the arguments that occur in a template."""
        templates = [self.host, self.path, *self.headers.values()]
        for name, value in self.pairs:
            templates += [name] if value is None else [name, value]
        used = {name for template in templates for name in template.names("argument")}
        return used if self.body is ABSENT else used | set(json_arguments(self.body))


class WebhookRunner:
    """Runs handlers of the type `webhook`."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered, without touching the network."""
        webhook = _parse_handler(handler)
        warnings = [
            f"`handler.{name}` is not known and has no effect."
            for name in sorted(set(handler) - _KNOWN)
        ]
        if not webhook.host.names("argument"):
            warnings += self._outbound.warnings(_host_url(webhook), field="handler.url")
        secret = any(template.names("secret") for template in webhook.headers.values())
        if webhook.scheme == "http" and secret:
            warnings.append("`handler.url` is not https: secrets in its headers can be read.")
        return warnings

    async def run(self, handler: Handler, run: Run) -> Any:
        """Send the arguments to where the handler says and return the answer."""
        webhook = _parse_handler(handler)
        base = check_url(f"{webhook.scheme}://{_fill_host(webhook, run.arguments)}/")
        secret = secrets_for(run, base)
        rest = _unused_arguments(webhook, run.arguments)
        body, body_headers = _build_body(webhook, run.arguments, rest, secret)
        filled = {
            name: template.fill(run.arguments, secret) for name, template in webhook.headers.items()
        }
        given = {name.lower() for name in filled}
        defaults = {name: value for name, value in body_headers.items() if name not in given}
        call = ServiceRequest(
            webhook.method,
            _build_url(webhook, base, run.arguments, rest, secret),
            {**defaults, **filled},
            body,
            webhook.seconds,
            webhook.response_path,
        )
        return await send(self._outbound, call, run)

    async def close(self) -> None:
        """Leave the connections to whoever gave them."""


def _parse_handler(handler: Handler) -> _Webhook:
    scheme, host, path, query = _split_url(handler)
    method = handler.get("method", "POST")
    method = method.upper() if isinstance(method, str) else ""
    if method not in METHODS:
        raise ValidationFailed(
            "`handler.method` must be one of " + ", ".join(METHODS) + ".", field="handler.method"
        )
    body = handler.get("body", ABSENT)
    if body is not ABSENT and body is not None and method in {"GET", "HEAD"}:
        raise ValidationFailed(f"A {method} request has no body.", field="handler.body")
    headers = text_fields(handler.get("headers"), name="handler.headers")
    check_headers(headers, field="handler.headers")
    return _Webhook(
        scheme=scheme,
        host=host,
        path=path,
        pairs=(*_query_pairs(query), *_query_fields(handler.get("query"))),
        method=method,
        headers={name: Template.parse(value) for name, value in headers.items()},
        body=body,
        seconds=handler_seconds(handler),
        response_path=_response_path(handler.get("response")),
    )


def _split_url(handler: Handler) -> tuple[str, Template, Template, str]:
    url = handler.get("url")
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        raise ValidationFailed(
            "`handler.url` must be an http or https address.",
            field="handler.url",
            hint="Write an address such as https://api.example.com/users/{id}.",
        )
    host = Template.parse(found["host"])
    if host.names("secret"):
        raise ValidationFailed("`handler.url` has a secret in its host.", field="handler.url")
    if host.names("argument") and handler.get("hostFromArguments") is not True:
        raise ValidationFailed(
            "`handler.url` takes its host from an argument.",
            field="handler.url",
            hint="Write the host out, or set handler.hostFromArguments to true.",
        )
    return found["scheme"].lower(), host, Template.parse(found["path"] or "/"), found["query"] or ""


def _query_pairs(query: str) -> Iterator[tuple[Template, Template | None]]:
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        yield Template.parse(name), Template.parse(value) if equals else None


def _query_fields(given: Any) -> Iterator[tuple[Template, Template | None]]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise ValidationFailed("`handler.query` must be an object.", field="handler.query")
    for name, value in given.items():
        if value is None or isinstance(value, Mapping | list):
            raise ValidationFailed(
                f"`handler.query.{name}` must be text or a number.", field=f"handler.query.{name}"
            )
        template = Template.parse(text_of(value))
        # Plain text here is not part of a URL yet, so it is percent-encoded now.
        plain = tuple(
            type(part)(part.kind, percent_encode(part.value)) if part.kind == "text" else part
            for part in template.segments
        )
        yield Template.parse(percent_encode(name)), Template(plain)


def _response_path(response: Any) -> Steps | None:
    if response is None:
        return None
    if not isinstance(response, Mapping) or set(response) - {"path"}:
        raise ValidationFailed(
            '`handler.response` must be an object such as {"path": "$.data"}.',
            field="handler.response",
        )
    path = response.get("path")
    return None if path is None else parse(path, field="handler.response.path")


def _fill_host(webhook: _Webhook, arguments: Mapping[str, Any]) -> str:
    def check_host(text: str) -> str:
        if not _HOST_PART.fullmatch(text):
            raise ValidationFailed("An argument cannot be part of a host.", value=text[:100])
        return text

    return webhook.host.fill(arguments, _no_secret, check_host)


def _no_secret(name: str) -> str:
    raise ValidationFailed(f"A host cannot hold the secret {name}.", field="handler.url")


def _build_url(
    webhook: _Webhook,
    base: httpx2.URL,
    arguments: Mapping[str, Any],
    rest: Mapping[str, Any],
    secret: _Secret,
) -> str:
    path = "/".join(_fill_path(webhook.path, arguments, secret))
    pairs = list(_fill_query(webhook, arguments, secret))
    if webhook.body is ABSENT and webhook.method not in _BODY_METHODS:
        pairs += [
            f"{percent_encode(name)}={percent_encode(text)}"
            for name, value in rest.items()
            for text in _query_values(value)
        ]
    url = f"{base.scheme}://{base.netloc.decode('ascii')}{path}"
    return f"{url}?{'&'.join(pairs)}" if pairs else url


def _fill_path(path: Template, arguments: Mapping[str, Any], secret: _Secret) -> Iterator[str]:
    """Yield the filled segments of a path; no argument may turn one into `..` or the like."""
    templates: list[list[Any]] = [[]]
    for part in path.segments:
        if part.kind != "text":
            templates[-1].append(part)
            continue
        first, *others = part.value.split("/")
        templates[-1].append(type(part)("text", first))
        templates += [[type(part)("text", other)] for other in others]
    for parts in templates:
        segment = Template(tuple(parts)).fill(arguments, secret, percent_encode)
        names = Template(tuple(parts)).names("argument")
        if names and unquote(segment) in {"", ".", ".."}:
            raise ValidationFailed(
                f"`{names[0]}` cannot be a part of a path.", field=names[0], value=segment
            )
        yield segment


def _fill_query(webhook: _Webhook, arguments: Mapping[str, Any], secret: _Secret) -> Iterator[str]:
    for name, value in webhook.pairs:
        filled_name = name.fill(arguments, secret, percent_encode)
        if value is None:
            yield filled_name
            continue
        only = value.only_argument
        if only is None:
            yield f"{filled_name}={value.fill(arguments, secret, percent_encode)}"
        else:
            for text in _query_values(arguments.get(only)):
                yield f"{filled_name}={percent_encode(text)}"


def _query_values(value: Any) -> list[str]:
    """Return an argument as the values of a query: a list as several, None as none."""
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    return [text_of(each) for each in values if each is not None]


def _unused_arguments(webhook: _Webhook, arguments: Mapping[str, Any]) -> dict[str, Any]:
    used = webhook.used_arguments()
    return {name: value for name, value in arguments.items() if name not in used}


def _build_body(
    webhook: _Webhook, arguments: Mapping[str, Any], rest: Mapping[str, Any], secret: _Secret
) -> tuple[bytes | None, dict[str, str]]:
    """Return the body and the headers that go with it."""
    if webhook.body is ABSENT:
        if webhook.method not in _BODY_METHODS:
            return None, {}
        filled: Any = dict(rest)
    else:
        filled = None if webhook.body is None else fill_json(webhook.body, arguments, secret)
    if filled is None or filled is ABSENT:
        return None, {}
    kind = next(
        (
            template.fill(arguments, secret).partition(";")[0].strip().lower()
            for name, template in webhook.headers.items()
            if name.lower() == "content-type"
        ),
        "application/json",
    )
    headers = {"content-type": kind}
    if kind == _FORM and isinstance(filled, Mapping):
        pairs = [(name, text) for name, value in filled.items() for text in _query_values(value)]
        return urlencode(pairs).encode(), headers
    if isinstance(filled, str) and not kind.endswith("json"):
        return filled.encode(), headers
    return orjson.dumps(filled), headers


def _host_url(webhook: _Webhook) -> str:
    host = "".join(part.value for part in webhook.host.segments)
    return f"{webhook.scheme}://{host}/"
