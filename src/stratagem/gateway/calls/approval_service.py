"""What waits for a person: calls that need an approval, and tools whose definition is new.

For one caller. Definitions are approved one by one, each as it was shown: an id names the very
definition, so that one that has changed since is not approved by it.
"""

from __future__ import annotations

from typing import Any, Literal

from stratagem.errors import ResourceNotFound
from stratagem.gateway import inputs
from stratagem.gateway.calls.approvals import CallApprovals
from stratagem.gateway.events import Publish
from stratagem.gateway.registry.answers import ApprovalList, DecidedApproval
from stratagem.gateway.registry.pending_definitions import approval_of
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["ApprovalService"]

Decision = Literal["approved", "rejected"]


class ApprovalService:
    """Lists what waits, and decides about it."""

    def __init__(
        self, foundation: Foundation, caller: Caller, *, registry: Registry, publish: Publish
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._registry = registry
        self._publish = publish
        self._calls = CallApprovals(foundation)

    def list(self, _given: inputs.NothingInput) -> ApprovalList:
        """Return what waits: calls of the caller's own, to administrators all, and definitions."""
        waiting = self._calls.visible_to(self._caller)
        if self._caller.may("gateway", "admin"):
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, "default")
                tools = self._registry.all(reader, view)
            asked = (approval_of(tool) for tool in tools)
            waiting += [each for each in asked if each is not None]
        return {"approvals": waiting}

    def decide(self, given: inputs.ApprovalInput) -> DecidedApproval:
        """Approve or reject one of them."""
        state: Decision = "approved" if given.decision == "approve" else "rejected"
        if "@" in given.id:
            tool = self._decide_definition(given.id, state)
        else:
            tool = self._calls.decide(given.id, state, given.reason, self._caller)
        return {"id": given.id, "tool": tool, "state": state}

    def _decide_definition(self, id_: str, state: Decision) -> str:
        name = id_.rpartition("@")[0]

        def work(transaction: Transaction) -> dict[str, Any]:
            view = self._foundation.views.view(transaction, "default")
            tool = self._registry.get(transaction, view, name)
            asked = approval_of(tool) if tool is not None else None
            if tool is None or asked is None or asked["id"] != id_:
                raise ResourceNotFound(
                    f"Nothing with the id {id_!r} is waiting.",
                    field="id",
                    hint="It may have changed since it was listed: see approvals_list.",
                )
            definition = tool.content["pending"]["definition"]
            if state == "approved":
                changes = {**definition, "status": "active", "pending": None}
            else:
                rejected = {"rejected": definition["handler"].get("fingerprint")}
                changes = {"status": "disabled", "pending": rejected}
            self._registry.update(transaction, view, name, changes)
            shown = {"status": changes["status"]}
            return {"toolId": tool.id, "name": name, "changes": shown}

        changed = self._foundation.write(self._caller, work)
        self._publish("updated", changed)
        if state == "approved":
            self._publish("available", {"name": name, "reason": "approved"})
        return name
