"""Who calls, and what is remembered of them.

A branch that a client switched to holds for as long as the client does: for the process on
stdio, for the protocol session on HTTP. A client that has no session (the protocol of 2026 has
none) names the branch with each call instead.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from stratagem import limits
from stratagem.operation import Caller
from stratagem.surfaces.mcp.settings import ServerSettings

__all__ = ["SESSION_HEADER", "Callers", "ProcessCaller", "SessionCallers"]

SESSION_HEADER = "mcp-session-id"
Context = ServerRequestContext[Any, Any]


class Callers(Protocol):
    """Tells who sent a request."""

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        ...


class ProcessCaller:
    """One client, whose own the process is."""

    def __init__(self, settings: ServerSettings) -> None:
        self._caller = _caller(settings, can_switch=True, local=True)

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        self._caller.actor = _actor(context.session)
        return self._caller


class SessionCallers:
    """Many clients, each known by its protocol session where it has one."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        # From the one that was used longest ago to the one used last.
        self._sessions: OrderedDict[str, Caller] = OrderedDict()

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        request = context.request
        session = request.headers.get(SESSION_HEADER) if request is not None else None
        caller = self._sessions.get(session or "") or _caller(self._settings, can_switch=False)
        caller.actor = _actor(context.session)
        return caller

    def begin(self, session: str) -> None:
        """Remember a session from now on."""
        self._sessions[session] = _caller(self._settings, can_switch=True)

    def use(self, session: str) -> None:
        """Note that a session is in use."""
        if session in self._sessions:
            self._sessions.move_to_end(session)

    def end(self, session: str) -> None:
        """Forget a session."""
        self._sessions.pop(session, None)

    def surplus(self) -> str | None:
        """Return the session that has to end because there are too many, if any."""
        return next(iter(self._sessions)) if len(self._sessions) > limits.SESSIONS_MAX else None


def _caller(settings: ServerSettings, *, can_switch: bool, local: bool = False) -> Caller:
    return Caller(
        "mcp",
        settings.namespace,
        settings.branch,
        can_switch=can_switch,
        # Over HTTP the server's environment says nothing about the client's.
        local=local,
        read_only=settings.read_only,
    )


def _actor(session: ServerSession) -> str:
    """Return the name under which events are written: the client's, as far as it can be shown."""
    client = session.client_params
    name = "".join(filter(str.isprintable, client.client_info.name)).strip() if client else ""
    return f"mcp:{name}"[: limits.ACTOR_CHARS_MAX] if name else "mcp"
