"""What is attached to the ASGI scope of a request on its way through the server."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

__all__ = ["ADMITTED", "LARGE_ARGUMENTS", "NOTED", "sender_of"]

# Who sent the request; None where nobody has to say.
ADMITTED: Final = "stratagem.admitted"
# A dict of fields that the log of requests adds to its line.
NOTED: Final = "stratagem.noted"
# The arguments of a tool that were taken out of a large message before it was parsed: a dict.
LARGE_ARGUMENTS: Final = "stratagem.large_arguments"


def sender_of(scope: Scope) -> str:
    """Return what tells the senders of requests apart: the identity, or else the address."""
    admitted = scope.get(ADMITTED)
    if admitted is not None:
        return str(admitted.identity.key)
    return str((scope.get("client") or ("",))[0])
