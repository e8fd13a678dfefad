"""Requests of the standard tools to web services, and what is made of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem import limits
from stratagem.errors import ExecutionFailed
from stratagem.gateway.catalogue.standard_tool import ToolRun
from stratagem.gateway.outbound.responses import Response
from stratagem.gateway.outbound.results import result_of
from stratagem.gateway.outbound.service_requests import percent_encode

__all__ = ["get_json", "get_response", "with_query"]


def with_query(url: str, query: Mapping[str, Any]) -> str:
    """Return an address with a query; what is None is left out."""
    pairs = "&".join(
        f"{percent_encode(name)}={percent_encode(str(value))}"
        for name, value in query.items()
        if value is not None
    )
    return f"{url}{'&' if '?' in url else '?'}{pairs}"


async def get_response(
    run: ToolRun,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    bytes_max: int | None = None,
) -> Response:
    """Get an address, through the guard."""
    return await run.parts.outbound().request(
        "GET",
        url,
        headers=headers,
        seconds=min(run.seconds, limits.OUTBOUND_SECONDS_DEFAULT),
        bytes_max=bytes_max or limits.OUTBOUND_BYTES_DEFAULT,
    )


async def get_json(
    run: ToolRun,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    hints: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Get an address whose answer is an object of JSON.

    Raises:
        ExecutionFailed: It is none, or the status says that the service failed; `hints` says what
            to do about a status.
    """
    response = await get_response(run, url, headers=headers)
    try:
        found = result_of(response)
    except ExecutionFailed as error:
        error.hint = (hints or {}).get(response.status, error.hint)
        raise
    if not isinstance(found, dict) or "content_type" in found:
        raise ExecutionFailed(
            f"{response.url.split('?')[0]} did not answer with JSON.",
            status=response.status,
            content_type=response.content_type,
        )
    return found
