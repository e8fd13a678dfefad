"""What the runners of services have in common: secrets for one host, one request, one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx2

from stratagem import limits
from stratagem.engine.paths import Steps
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.outbound.client import Outbound
from stratagem.gateway.outbound.guarding import port_of
from stratagem.gateway.outbound.results import result_of

__all__ = ["Call", "handler_seconds", "percent", "place_of", "secrets_for", "send"]

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is ready to be sent, secrets and all: it must not be kept."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    seconds: float = limits.OUTBOUND_SECONDS_DEFAULT
    path: Steps | None = None


def percent(text: str) -> str:
    """Encode a text so that it stays one piece of a path or query."""
    return quote(text, safe="")


def place_of(url: httpx2.URL) -> str:
    """Return the host that secrets are bound to, with its port where that is not the usual one."""
    port = port_of(url)
    return url.host if port == _DEFAULT_PORTS[url.scheme] else f"{url.host}:{port}"


def secrets_for(run: Run, url: httpx2.URL) -> Callable[[str], str]:
    """Return what gives a secret by its name, for this one host."""
    place = place_of(url)
    return lambda name: run.secrets.resolve(f"${{{name}}}", host=place)


async def send(outbound: Outbound, call: Call, run: Run) -> Any:
    """Make the request and return its result.

    The key of the request goes along with whatever may change something, so that a service that
    knows such keys does it once however often it is asked.
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
    """Return how long a handler's service may take, given in milliseconds.

    Raises:
        ValidationFailed: It is no such time.
    """
    given = handler.get("timeout")
    if given is None:
        return limits.OUTBOUND_SECONDS_MAX
    high = limits.OUTBOUND_SECONDS_MAX * 1000
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= high:
        raise ValidationFailed(
            f"`handler.timeout` is a time in milliseconds, up to {high:.0f}.",
            field="handler.timeout",
            limit=high,
        )
    return given / 1000


def text_fields(value: Any, *, name: str) -> Mapping[str, str]:
    """Return an object of texts.

    Raises:
        ValidationFailed: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise ValidationFailed(f"`{name}` is an object of texts.", field=name)
    return value
