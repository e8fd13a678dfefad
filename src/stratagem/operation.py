"""What an operation is.

Each system describes its operations once, as rows of this type; every surface is a
translation of the gathered table (`stratagem.operations`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from stratagem.errors import PermissionDenied, ReadOnly

__all__ = ["DEFAULT_TOOLSETS", "MADE_UP", "Caller", "Operation", "Right", "object_schema"]

# What a token may do with the operations of a toolset. An administrator may do all of it, and
# whoever may write may read.
Right = Literal["read", "write", "execute", "admin"]
_INCLUDED: dict[Right, tuple[Right, ...]] = {
    "read": ("read", "write", "admin"),
    "write": ("write", "admin"),
    "execute": ("execute", "admin"),
    "admin": ("admin",),
}

# How a request id begins that a client made up by itself: whoever called does not know it.
MADE_UP = "made-up:"

# Few on purpose: a model chooses worse the more tools it is shown.
DEFAULT_TOOLSETS: tuple[str, ...] = ("memory", "debugging")


@dataclass(slots=True)
class Caller:
    """Who calls, and from where: the defaults of one client.

    `branch` changes when the client switches; `can_switch` is False for clients that
    have nothing to remember a branch by. `local`: it runs where the database is, so that its
    environment can be looked at. `read_only`: nothing may be written in its name. `scopes` are
    what its token allows, such as "memory:write" or "*:read"; None is everything, for callers
    whose own the database is. `workspace` says which of a server's databases it works on; None is
    the server's own.
    """

    actor: str = "sdk"
    namespace: str = "default"
    branch: str = "default"
    can_switch: bool = True
    local: bool = True
    read_only: bool = False
    scopes: frozenset[str] | None = None
    workspace: str | None = None

    def may(self, toolset: str, right: Right) -> bool:
        """Whether the caller's token allows something."""
        if self.scopes is None:
            return True
        wanted = {f"{place}:{each}" for place in (toolset, "*") for each in _INCLUDED[right]}
        return not wanted.isdisjoint(self.scopes)

    def require(self, toolset: str, right: Right, what: str) -> None:
        """Refuse what the caller may not do.

        Raises:
            PermissionDenied: The token does not allow it.
            ReadOnly: Nothing may be written in the caller's name.
        """
        if not self.may(toolset, right):
            raise PermissionDenied(
                f"Your token does not allow {what}: it needs the scope {toolset}:{right}.",
                required=f"{toolset}:{right}",
            )
        if self.read_only and right != "read":
            raise ReadOnly(f"This server only reads; {what} writes.")

    def require_trust(self, what: str, means: str = "runs code on the server") -> None:
        """Refuse what runs code of the caller's choice or the like, unless it is known who that is.

        Raises:
            PermissionDenied: The caller is somebody on the network without a token for it.
        """
        known = self.local or self.scopes is not None
        if not known or not self.may("gateway", "admin"):
            raise PermissionDenied(
                f"{what} {means}; that takes an administrator's token, the command line or "
                "the SDK.",
                required="gateway:admin",
            )


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a caller can ask for, alike on every surface.

    `reading_actions`: of an operation that takes an `action`, those that write nothing.
    `part` is the part of the runtime that it runs on. `run_async` is there where waiting is
    most of the work; `run` then does the same for callers that have no event loop. `right` is
    what it takes to call it, where that does not follow from what it does.
    """

    name: str
    toolset: str
    title: str
    description: str
    input_model: type[BaseModel]
    output_schema: dict[str, Any]
    run: Callable[[Any, BaseModel, Caller], dict[str, Any]]
    summarise: Callable[[dict[str, Any]], str]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    reading_actions: tuple[str, ...] = ()
    part: Literal["foundation", "switchboard"] = "foundation"
    run_async: Callable[[Any, BaseModel, Caller], Awaitable[dict[str, Any]]] | None = None
    right: Right | None = None

    def right_for(self, arguments: Mapping[str, Any]) -> Right:
        """Return what it takes to call the operation with these arguments."""
        if self.right is not None:
            return self.right
        if self.read_only or arguments.get("action") in self.reading_actions:
            return "read"
        return "admin" if self.toolset == "admin" else "write"


def object_schema(*, required: tuple[str, ...] = (), **properties: str | None) -> dict[str, Any]:
    """Return a short JSON Schema of an object; None is any JSON.

    Every character of a tool list is paid for in each conversation, so schemas say what a
    caller needs and no more.
    """
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": kind} if kind else {} for name, kind in properties.items()},
    }
    return schema | ({"required": list(required)} if required else {})
