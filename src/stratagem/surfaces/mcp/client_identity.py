"""The client of a process: what it may do, and the name under which its events are written."""

from __future__ import annotations

from stratagem import limits
from stratagem.operation import Caller
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["client_actor", "process_caller"]


def process_caller(settings: ServerSettings) -> Caller:
    """Return the one caller of a process that is its client's own."""
    return Caller(
        "mcp",
        settings.namespace,
        settings.branch,
        read_only=settings.read_only,
        authority="agent",
        toolsets=frozenset(settings.toolsets),
    )


def client_actor(name: str) -> str:
    """Return the name under which events are written: the client's, as far as it can be shown."""
    shown = "".join(filter(str.isprintable, name)).strip()
    return f"mcp:{shown}"[: limits.ACTOR_CHARS_MAX] if shown else "mcp"
