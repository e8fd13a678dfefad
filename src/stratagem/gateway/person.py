"""Operations of the gateway that need a person, each with the command for a person to run.

Only people may run code outside of the sandbox, start a process, hand out a secret or erase for
good: a model may have been misled by a text it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem.gateway import inputs
from stratagem.operation import PersonNeeded
from stratagem.parameters import Input

__all__ = [
    "ADD_SERVER",
    "APPROVE_SERVER",
    "CONNECT",
    "DECIDE",
    "DEFINE_GUARDRAIL",
    "DEFINE_SET",
    "ERASE",
    "GRANT",
    "REGISTER",
    "REMOVE_GUARDRAIL",
    "REMOVE_SECRET",
    "SET_SECRET",
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


def _call(operation: str) -> Callable[[Input], list[str]]:
    def command(given: Input) -> list[str]:
        return call_command(operation, given.to_arguments())

    return command


def _has_handler_outside(given: inputs.RegisterInput | inputs.UpdateInput) -> bool:
    return runs_outside(given.handler)


def _grant(given: inputs.GrantInput) -> Sequence[str]:
    return ["tools", "grant", given.tool, given.name, *filter(None, [given.origin])]


def _approve(given: inputs.RefreshServerInput) -> Sequence[str]:
    return ["tools", "refresh", given.name, "--approve"]


def _erase(given: inputs.RetentionInput) -> Sequence[str]:
    return ["tools", "retention", "--days", f"{given.days:g}"]


REGISTER: Final[PersonNeeded[inputs.RegisterInput]] = PersonNeeded(
    "with this handler runs code outside of the sandbox",
    _call("tool_register"),
    applies=_has_handler_outside,
    of_host=_has_handler_outside,
)
UPDATE: Final[PersonNeeded[inputs.UpdateInput]] = PersonNeeded(
    "with this handler runs code outside of the sandbox",
    _call("tool_update"),
    applies=_has_handler_outside,
    of_host=_has_handler_outside,
)
ADD_SERVER: Final[PersonNeeded[inputs.ServerInput]] = PersonNeeded(
    "starts a program, or adds the tools of another server",
    _call("server_add"),
    of_host=lambda given: given.definition()["transport"] == "stdio",
)
APPROVE_SERVER: Final[PersonNeeded[inputs.RefreshServerInput]] = PersonNeeded(
    "approves tools that have changed",
    _approve,
    applies=lambda given: given.approve,
)
# Where the secret is one of the server's environment, which is of every workspace and of the
# machine, the service asks for more.
GRANT: Final[PersonNeeded[inputs.GrantInput]] = PersonNeeded("gives a tool a secret", _grant)
SET_SECRET: Final[PersonNeeded[inputs.SecretInput]] = PersonNeeded(
    "sets a secret",
    # The value of a secret is never repeated.
    lambda given: ["secrets", "set", given.name],
    of_host=lambda given: given.file is not None or given.command is not None,
)
REMOVE_SECRET: Final[PersonNeeded[inputs.SecretNameInput]] = PersonNeeded(
    "erases a secret for good", lambda given: ["secrets", "rm", given.name]
)
DECIDE: Final[PersonNeeded[inputs.ApprovalInput]] = PersonNeeded(
    "decides what a model may do",
    lambda given: ["tools", "approve" if given.decision == "approve" else "reject", given.id],
    # Rejecting needs no person: nothing was allowed yet.
    applies=lambda given: given.decision == "approve",
)
# Changing a set can let its tokens call anything.
DEFINE_SET: Final[PersonNeeded[inputs.ToolSetInput]] = PersonNeeded(
    "decides which tools tokens may call", _call("toolset_define")
)


def _runs_code(given: inputs.GuardrailInput) -> bool:
    return given.check.type == "python"


# Changing a guardrail can let everything pass, or reveal what passes.
DEFINE_GUARDRAIL: Final[PersonNeeded[inputs.GuardrailInput]] = PersonNeeded(
    "decides how calls are checked", _call("guardrail_define"), of_host=_runs_code
)
REMOVE_GUARDRAIL: Final[PersonNeeded[inputs.GuardrailNameInput]] = PersonNeeded(
    "removes a check of calls", lambda given: ["guardrails", "rm", given.name]
)
# Paths and hosts are those of the machine that the server runs on.
CONNECT: Final[PersonNeeded[inputs.ConnectionInput]] = PersonNeeded(
    "decides which databases, hosts and folders tools may reach",
    _call("connection_set"),
    of_host=lambda _given: True,
)
PURGE_TOOL: Final[PersonNeeded[inputs.ToolPurgeInput]] = PersonNeeded(
    "erases for good",
    lambda given: ["tools", "purge", "--", given.record_id],
    applies=lambda given: given.confirm,
)
ERASE: Final[PersonNeeded[inputs.RetentionInput]] = PersonNeeded(
    "erases for good",
    _erase,
    applies=lambda given: not given.preview,
)
