"""Parts of stored definitions that answers have too, as types: at run time they are plain JSON."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = ["ServerDocument", "Status"]

# Of a registered tool.
Status = Literal["active", "deprecated", "disabled", "quarantined"]


class ServerDocument(TypedDict):
    """The stored definition of an upstream server: a command to start, or an address to call."""

    name: str
    transport: Literal["stdio", "http"]
    command: NotRequired[str]
    args: NotRequired[list[str]]
    env: NotRequired[dict[str, str]]
    url: NotRequired[str]
    headers: NotRequired[dict[str, str]]
    auth: NotRequired[dict[str, Any]]
