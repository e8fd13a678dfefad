"""How a client learns to authenticate: RFC 9728 metadata, and the challenge that names it."""

from __future__ import annotations

from typing import Any, Final

from stratagem.access.oauth.settings import OAuthSettings
from stratagem.access.scopes import RIGHTS, TOOLSETS

__all__ = ["METADATA_PATH", "challenge", "resource_metadata"]

METADATA_PATH: Final = "/.well-known/oauth-protected-resource"


def resource_metadata(settings: OAuthSettings, resource: str) -> dict[str, Any]:
    """Return the metadata of a protected resource."""
    return {
        "resource": resource,
        "authorization_servers": [settings.issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": [f"{each}:{right}" for each in ("*", *TOOLSETS) for right in RIGHTS],
        "resource_name": "Stratagem",
    }


def challenge(metadata: str | None, error: str | None = None, scope: str | None = None) -> str:
    """Return a `WWW-Authenticate` header: where to learn more, and what was wrong."""
    parts = ['realm="stratagem"']
    parts += [f'error="{error}"'] if error else []
    parts += [f'scope="{scope}"'] if scope else []
    parts += [f'resource_metadata="{metadata}"'] if metadata else []
    return f"Bearer {', '.join(parts)}"
