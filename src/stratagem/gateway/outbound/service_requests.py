"""Requests to web services, sent by the webhook and OpenAPI runners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import quote

import httpx2

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.paths import Steps
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.outbound.client import Outbound
from stratagem.gateway.outbound.guard import port_of
from stratagem.gateway.outbound.results import result_of

__all__ = [
    "ServiceRequest",
    "handler_seconds",
    "percent_encode",
    "secrets_for",
    "send",
]

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request that is ready to be sent. It contains secrets and must not be stored."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    seconds: float = limits.OUTBOUND_SECONDS_DEFAULT
    path: Steps | None = None


def percent_encode(text: str) -> str:
    """Percent-encode a text so that it stays one segment of a path or one value of a query."""
    return quote(text, safe="")


def secrets_for(run: Run, url: httpx2.URL) -> Callable[[str], str]:
    """Return a function that resolves a secret by its name, for the origin of this URL only."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    origin = f"{url.scheme}://{host}:{port_of(url)}"
    return lambda name: run.secrets.resolve(f"${{{name}}}", origin=origin)


async def send(outbound: Outbound, call: ServiceRequest, run: Run) -> Any:
    """Send the request and return its result.

    Requests that may change something carry the idempotency key of the call, so that a service
    that supports such keys performs a repeated request once.
    """
    headers = dict(call.headers)
    present = {name.lower() for name in headers}
    if run.request_key and call.method not in _READING and "idempotency-key" not in present:
        headers["Idempotency-Key"] = run.request_key
    response = await outbound.request(
        call.method,
        call.url,
        headers=headers,
        body=call.body,
        seconds=min(run.seconds, call.seconds),
    )
    return result_of(response, call.path)


def handler_seconds(handler: Handler) -> float:
    """Return a handler's timeout in seconds; the handler gives it in milliseconds.

    Raises:
        ValidationFailed: It is not a number, or out of range.
    """
    given = handler.get("timeout")
    if given is None:
        return limits.OUTBOUND_SECONDS_MAX
    high = limits.OUTBOUND_SECONDS_MAX * 1000
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= high:
        raise ValidationFailed(
            f"`handler.timeout` must be a time in milliseconds, up to {high:.0f}.",
            field="handler.timeout",
            limit=high,
        )
    return given / 1000


def text_fields(value: Any, *, name: str) -> Mapping[str, str]:
    """Return a mapping of texts, empty for None.

    Raises:
        ValidationFailed: The value is not an object whose values are all texts.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise ValidationFailed(f"`{name}` must be an object of texts.", field=name)
    return value
