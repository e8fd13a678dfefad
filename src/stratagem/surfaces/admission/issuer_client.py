"""Fetching the keys of an OAuth issuer, through the guarded HTTP client."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from stratagem import limits
from stratagem.access.oauth import Fetch
from stratagem.errors import ServiceUnavailable
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["issuer_fetch"]

_OK: Final = 200


def issuer_fetch(settings: ServerSettings) -> Fetch:
    """Return a function that fetches addresses of the issuer.

    The issuer's own host, and that of its keys, may be private: an administrator named them.
    """
    from stratagem.gateway.outbound import Outbound

    assert settings.oauth is not None
    named = [settings.oauth.issuer, *([settings.oauth.keys] if settings.oauth.keys else [])]
    outbound = Outbound([*settings.allow_hosts, *map(_host_and_port, named)])

    async def fetch(address: str) -> bytes:
        try:
            response = await outbound.request(
                "GET",
                address,
                headers={"accept": "application/json"},
                seconds=limits.OAUTH_FETCH_SECONDS,
                bytes_max=limits.OAUTH_KEYS_BYTES_MAX,
            )
        finally:
            # Keys are read every few minutes at most: no connection is kept for them.
            await outbound.close()
        if response.status != _OK:
            raise ServiceUnavailable(f"{address} answers with {response.status}.")
        return response.body

    return fetch


def _host_and_port(address: str) -> str:
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
