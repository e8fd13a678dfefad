"""What a server says when it starts: where it listens, how agents connect, and what is amiss."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from typing import Any, Final

from stratagem.errors import StratagemError
from stratagem.places import shown_place
from stratagem.surfaces.mcp.http import PATH
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["Found", "greeting"]

# Stands in for what only its holder knows.
_TOKEN: Final = "TOKEN"  # noqa: S105 -- a placeholder


@dataclass(frozen=True, slots=True)
class Found:
    """What a server found when it opened its database.

    `trouble`: why it could not be opened. `tokens`: whether there are any.
    """

    trouble: StratagemError | None = None
    tokens: bool = False


def greeting(settings: ServerSettings, port: int, found: Found) -> str:
    """Return what is printed when a server listens."""
    own = _address(settings.host, port)
    taken = (
        "" if port == settings.port or not settings.port else f" (port {settings.port} is taken)"
    )
    lines = [
        f"Stratagem is listening on {own}{PATH}{taken}",
        f"REST: {own}/api/docs",
        f"Database: {shown_place(settings.database)}",
        *_troubles(settings, found),
        "",
        *_ways_to_connect(settings, _reached_at(settings, port), found),
        "",
        "Stop with Ctrl-C.",
    ]
    return "\n".join(lines)


def _troubles(settings: ServerSettings, found: Found) -> list[str]:
    """Return what the operator has to see to."""
    told = []
    if found.trouble is not None:
        told = [
            "",
            f"NOT READY: {found.trouble.message}",
            f"Hint: {found.trouble.hint}",
            "It is tried again with every request; GET /ready says when it is mended.",
        ]
    if _is_everywhere(settings.host) and not settings.known_names:
        told += [
            "",
            "Clients of other machines are refused until the name that they use is known:",
            "--server-name NAME, or --public-url https://NAME behind a proxy.",
        ]
    return told


def _ways_to_connect(settings: ServerSettings, base: str, found: Found) -> list[str]:
    address = f"{base}{PATH}"
    entry: dict[str, Any] = {"type": "http", "url": address}
    # With OAuth a client is told by the server where to get one.
    needed = found.tokens or (settings.needs_auth and settings.oauth is None)
    header = ""
    if needed:
        entry["headers"] = {"Authorization": f"Bearer {_TOKEN}"}
        header = f' --header "Authorization: Bearer {_TOKEN}"'
    cursor = json.dumps({"mcpServers": {"stratagem": entry}})
    vscode = json.dumps({"servers": {"stratagem": entry}})
    return [
        "Connect an agent:",
        f"  Claude Code   claude mcp add --transport http stratagem {address}{header}",
        f"  Cursor        .cursor/mcp.json: {cursor}",
        f"  VS Code       .vscode/mcp.json: {vscode}",
        *([f"{_TOKEN} is one that `stratagem token create NAME` showed."] if needed else []),
    ]


def _reached_at(settings: ServerSettings, port: int) -> str:
    """Return the address that clients use, as far as it is known."""
    if settings.public_url is not None:
        return settings.public_url
    if not _is_everywhere(settings.host):
        return _address(settings.host, port)
    named = settings.server_names[:1]
    if not named:
        return _address("127.0.0.1", port)
    return f"http://{named[0]}" if ":" in named[0] else f"http://{named[0]}:{port}"


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_everywhere(host: str) -> bool:
    """Whether a server listens on all addresses of its machine, so that none is its own."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
