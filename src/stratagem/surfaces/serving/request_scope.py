"""What is attached to an ASGI request on its way through the server, or put back into it."""

from __future__ import annotations

from typing import Final

from starlette.types import Message, Receive, Scope

__all__ = [
    "LARGE_ARGUMENTS",
    "LOG_FIELDS",
    "PRINCIPAL",
    "SOCKETS_PATH",
    "is_of_sockets",
    "prepend_message",
    "sender_of",
]

# Who sent the request; None where no authentication is needed.
PRINCIPAL: Final = "stratagem.principal"
# A dict of fields for the line of the request in the log.
LOG_FIELDS: Final = "stratagem.log_fields"
# The arguments of a tool that were taken out of a large message before it was parsed: a dict.
LARGE_ARGUMENTS: Final = "stratagem.large_arguments"
# Where Socket.IO is.
SOCKETS_PATH: Final = "/socket.io"


def is_of_sockets(scope: Scope) -> bool:
    """Whether a request is one of Socket.IO."""
    path: str = scope["path"]
    return path == SOCKETS_PATH or path.startswith(f"{SOCKETS_PATH}/")


def sender_of(scope: Scope) -> str:
    """Return what tells the senders of requests apart: the identity, or else the address."""
    principal = scope.get(PRINCIPAL)
    if principal is not None:
        return str(principal.identity.key)
    return str((scope.get("client") or ("",))[0])


def prepend_message(first: Message, receive: Receive) -> Receive:
    """Return what receives a message once more that was read already, and then what follows it."""
    waiting = [first]

    async def receive_next() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_next
