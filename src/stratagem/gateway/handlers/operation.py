"""Runs the operations of the other systems as tools.

They come from the table of operations, through a function that bootstrap provides: the gateway
itself does not import the other systems.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.operation import Caller

__all__ = ["CallOperation", "CheckOperation", "OperationRunner"]

# Refuses an operation, or arguments of it, that a tool may not run on a caller's behalf.
CheckOperation = Callable[[str, Any, Caller], None]
CallOperation = Callable[[str, dict[str, Any], Caller], Awaitable[dict[str, Any]]]


class OperationRunner:
    """Hands a call to the operation that the handler names."""

    def __init__(self, call: CallOperation) -> None:
        self._call = call

    def check(self, handler: Handler) -> list[str]:  # noqa: ARG002 -- the contract's parameter
        """Accept: only the table itself makes such handlers."""
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return the operation's answer."""
        arguments = dict(run.arguments)
        place = handler.get("context")
        if place is not None and run.context:
            # The labels of the call, where the operation has a place for them.
            arguments.setdefault(place, dict(run.context))
        if handler.get("takesBranch") and run.branch != run.caller.branch:
            # The call names a branch, and the operation none of its own.
            arguments.setdefault("branch", run.branch)
        return await self._call(handler["operation"], arguments, run.caller)

    async def close(self) -> None:
        """Do nothing: the runtime closes what it opened."""
