"""What of the gateway takes a person's word: each with the command by which a person gives it.

Whatever runs outside of the sandbox, starts a process, hands out a secret or erases for good is
in the hands of people: a model may have been talked into it by what it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import orjson
from pydantic import BaseModel

from stratagem.gateway import inputs
from stratagem.operation import PersonNeeded

__all__ = [
    "ADD_SERVER",
    "APPROVE_SERVER",
    "ERASE",
    "GRANT",
    "REGISTER",
    "UPDATE",
    "call_command",
    "runs_outside",
]

# Handlers that run code, or hand calls to a process, outside of the sandbox.
_OUTSIDE: Final = frozenset({"python", "mcp"})


def runs_outside(handler: Mapping[str, Any] | None) -> bool:
    """Whether a handler runs outside of the sandbox."""
    return handler is not None and handler.get("type") in _OUTSIDE


def call_command(operation: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command that runs an operation with arguments."""
    return ["call", operation, orjson.dumps(arguments).decode()]


def _call(operation: str) -> Callable[[BaseModel], list[str]]:
    def command(given: BaseModel) -> list[str]:
        said = given.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return call_command(operation, said)

    return command


def _has_handler_outside(given: BaseModel) -> bool:
    return runs_outside(cast("inputs.RegisterInput | inputs.UpdateInput", given).handler)


def _grant(given: BaseModel) -> Sequence[str]:
    granted = cast("inputs.GrantInput", given)
    return ["tools", "grant", granted.tool, granted.name, granted.host]


def _approve(given: BaseModel) -> Sequence[str]:
    return ["tools", "refresh", cast("inputs.ServerNameInput", given).name, "--approve"]


def _erase(given: BaseModel) -> Sequence[str]:
    return ["tools", "retention", "--days", f"{cast('inputs.RetentionInput', given).days:g}"]


REGISTER: Final = PersonNeeded(
    "with this handler runs code outside of the sandbox",
    _call("tool_register"),
    applies=_has_handler_outside,
    of_host=_has_handler_outside,
)
UPDATE: Final = PersonNeeded(
    "with this handler runs code outside of the sandbox",
    _call("tool_update"),
    applies=_has_handler_outside,
    of_host=_has_handler_outside,
)
ADD_SERVER: Final = PersonNeeded(
    "starts a program, or lets another server's tools in",
    _call("server_add"),
    of_host=lambda given: cast("inputs.ServerInput", given).url is None,
)
APPROVE_SERVER: Final = PersonNeeded(
    "approves tools that have changed",
    _approve,
    applies=lambda given: cast("inputs.ServerNameInput", given).approve,
)
# The secrets are those of the server's environment: of every workspace, and of the machine.
GRANT: Final = PersonNeeded(
    "gives a tool a secret of the server", _grant, of_host=lambda _given: True
)
ERASE: Final = PersonNeeded(
    "erases for good",
    _erase,
    applies=lambda given: not cast("inputs.RetentionInput", given).preview,
)
