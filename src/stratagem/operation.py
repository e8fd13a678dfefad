"""What an operation is.

Each system describes its operations once, as rows of this type; every surface is a
translation of the gathered table (`stratagem.operations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

__all__ = ["DEFAULT_TOOLSETS", "Caller", "Operation", "object_schema"]

# Few on purpose: a model chooses worse the more tools it is shown.
DEFAULT_TOOLSETS: tuple[str, ...] = ("memory", "debugging")


@dataclass(slots=True)
class Caller:
    """Who calls, and from where: the defaults of one client.

    `branch` changes when the client switches; `can_switch` is False for clients that
    have nothing to remember a branch by. `local`: it runs where the database is, so that its
    environment can be looked at. `read_only`: nothing may be written in its name.
    """

    actor: str = "sdk"
    namespace: str = "default"
    branch: str = "default"
    can_switch: bool = True
    local: bool = True
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a caller can ask for, alike on every surface.

    `reading_actions`: of an operation that takes an `action`, those that write nothing.
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
