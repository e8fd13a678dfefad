"""The message at the start of a server: its address, how agents connect, and what is wrong."""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError
from stratagem.places import display_place, typed_command
from stratagem.surfaces.mcp.http import PATH
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["DatabaseState", "console_address", "console_message", "startup_message"]

# Stands in for what only its holder knows.
_TOKEN: Final = "TOKEN"  # noqa: S105 -- a placeholder


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The state of the database at the start of a server.

    `error`: why it could not be opened. `tokens`: whether there are any. `opened`: it is open.
    """

    error: StratagemError | None = None
    tokens: bool = False
    opened: bool = False


def startup_message(settings: ServerSettings, port: int, state: DatabaseState) -> str:
    """Return what is printed when a server listens."""
    own = _address(settings.host, port)
    taken = (
        "" if port == settings.port or not settings.port else f" (port {settings.port} is in use)"
    )
    lines = [
        f"Stratagem is listening on {own}{PATH}{taken}",
        f"REST: {own}/api/docs",
        f"Console: {console_address(settings, port)}",
        *_console_lines(settings),
        f"Database: {display_place(settings.database)}",
        *_command_lines(),
        *_warnings(settings, state),
        "",
        *_connection_lines(settings, _client_address(settings, port), state),
        "",
        "Stop with Ctrl-C.",
    ]
    return "\n".join(lines)


def console_message(settings: ServerSettings, port: int, state: DatabaseState) -> str:
    """Return what is printed when a server was started for the console alone."""
    lines = [
        f"The console of {display_place(settings.database)}:",
        f"  {console_address(settings, port)}",
        *_console_lines(settings),
        *_warnings(settings, state),
        "Stop with Ctrl-C.",
    ]
    return "\n".join(lines)


def console_address(settings: ServerSettings, port: int) -> str:
    """Return the address of the console; one that opens it without a token, where there is one."""
    keys = settings.console_keys
    base = _client_address(settings, port)
    return f"{base}/signin?code={keys.code}" if keys.code_ends_at else f"{base}/"


def _console_lines(settings: ServerSettings) -> list[str]:
    if not settings.console_keys.code_ends_at:
        return []
    minutes = limits.CONSOLE_CODE_SECONDS // 60
    return [f"  (opens once, with all rights, within {minutes} minutes)"]


def _command_lines() -> list[str]:
    """Say where the command is, for a person whose shell would not find it."""
    command = typed_command()
    return [] if command == "stratagem" else [f"Command: {command} (not on your PATH)"]


def _warnings(settings: ServerSettings, state: DatabaseState) -> list[str]:
    """Return what the operator has to fix."""
    lines = []
    if state.error is not None:
        lines = [
            "",
            f"NOT READY: {state.error.message}",
            f"Hint: {state.error.hint}",
            "It is tried again with every request; GET /ready shows when it works.",
        ]
    if _is_unspecified(settings.host) and not settings.known_names:
        lines += [
            "",
            "Clients on other machines are refused until you set the host name that they use:",
            "--server-name NAME, or --public-url https://NAME behind a proxy.",
        ]
    return lines


def _connection_lines(settings: ServerSettings, base: str, state: DatabaseState) -> list[str]:
    address = f"{base}{PATH}"
    entry: dict[str, Any] = {"type": "http", "url": address}
    # With OAuth a client is told by the server where to get one.
    needed = state.tokens or (settings.needs_auth and settings.oauth is None)
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
        *([f"{_TOKEN} is what `{typed_command()} token create NAME` showed."] if needed else []),
    ]


def _client_address(settings: ServerSettings, port: int) -> str:
    """Return the address that clients use, as far as it is known."""
    if settings.public_url is not None:
        return settings.public_url
    if not _is_unspecified(settings.host):
        return _address(settings.host, port)
    named = settings.server_names[:1]
    if not named:
        return _address("127.0.0.1", port)
    return f"http://{named[0]}" if ":" in named[0] else f"http://{named[0]}:{port}"


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_unspecified(host: str) -> bool:
    """Whether a server listens on all addresses of its machine, so that none is its own."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
