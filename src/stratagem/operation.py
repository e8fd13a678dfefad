"""What an operation is.

Each system describes its operations once, as rows of this type; every surface is a
translation of the gathered table (`stratagem.operations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

__all__ = ["Caller", "Operation"]


@dataclass(slots=True)
class Caller:
    """Who calls, and from where: the defaults of one client.

    `branch` changes when the client switches; `can_switch` is False for clients that
    have nothing to remember a branch by.
    """

    actor: str = "sdk"
    namespace: str = "default"
    branch: str = "default"
    can_switch: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a caller can ask for, alike on every surface."""

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
