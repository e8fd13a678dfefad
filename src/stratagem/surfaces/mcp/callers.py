"""The callers of requests, and their current branches.

Switching a branch applies to the process on stdio, to the protocol session on HTTP, or to the token
if there is no session (the protocol of 2026 has none). A client that has neither names the branch
with each call instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from stratagem import limits
from stratagem.operation import Caller
from stratagem.surfaces.mcp.client_identity import client_actor
from stratagem.surfaces.serving.request_scope import PRINCIPAL

if TYPE_CHECKING:
    from stratagem.surfaces.admission import Authenticator, Principal

__all__ = ["SESSION_HEADER", "Callers", "ProcessCaller", "SessionCallers"]

SESSION_HEADER: Final = "mcp-session-id"
Context = ServerRequestContext[Any, Any]


class Callers(Protocol):
    """Tells who sent a request."""

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        ...

    def on_end(self, listener: Callable[[str], None]) -> None:
        """Call a listener with each session that ends."""
        ...


class ProcessCaller:
    """One client, whose own the process is."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        self._caller.actor = _actor(context.session)
        return self._caller

    def on_end(self, listener: Callable[[str], None]) -> None:
        """Do nothing: the one session ends with the process."""


class SessionCallers:
    """Many clients, each known by its protocol session where it has one, else by its token."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        # From the one that was used longest ago to the one used last, each with whose it is.
        self._sessions: OrderedDict[str, tuple[Caller, tuple[str, ...] | None]] = OrderedDict()
        self._end_listeners: list[Callable[[str], None]] = []

    def of(self, context: Context) -> Caller:
        """Return the caller of a request."""
        request = context.request
        session = request.headers.get(SESSION_HEADER) if request is not None else None
        known = self._sessions.get(session or "")
        principal = request.scope.get(PRINCIPAL) if request is not None else None
        caller = known[0] if known is not None else self._authenticator.caller(principal, "mcp")
        if principal is None:
            caller.actor = _actor(context.session)
        return caller

    def begin(self, session: str, principal: Principal | None) -> None:
        """Remember a session from now on."""
        caller = self._authenticator.new_caller(principal, "mcp", can_switch=True)
        self._sessions[session] = (caller, self._owner(principal))

    def belongs(self, session: str, principal: Principal | None) -> bool:
        """Whether a session belongs to the principal that names it, or is not known."""
        known = self._sessions.get(session)
        return known is None or known[1] == self._owner(principal)

    def use(self, session: str) -> None:
        """Note that a session is in use."""
        if session in self._sessions:
            self._sessions.move_to_end(session)

    def end(self, session: str) -> None:
        """Forget a session."""
        self._sessions.pop(session, None)
        for listener in self._end_listeners:
            listener(session)

    def on_end(self, listener: Callable[[str], None]) -> None:
        """Call a listener with each session that ends."""
        self._end_listeners.append(listener)

    def _owner(self, principal: Principal | None) -> tuple[str, ...] | None:
        return None if principal is None else self._authenticator.holder_key(principal)

    def surplus(self) -> str | None:
        """Return the session that has to end because there are too many, if any."""
        return next(iter(self._sessions)) if len(self._sessions) > limits.SESSIONS_MAX else None


def _actor(session: ServerSession) -> str:
    """Return the name under which events are written: the client's, as far as it can be shown."""
    client = session.client_params
    return client_actor(client.client_info.name if client else "")
