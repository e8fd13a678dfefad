"""What waits for a person: calls that need an approval. For one caller."""

from __future__ import annotations

from typing import Literal

from stratagem.gateway import inputs
from stratagem.gateway.calls.approvals import CallApprovals
from stratagem.gateway.registry.answers import ApprovalList, DecidedApproval
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation

__all__ = ["ApprovalService"]

Decision = Literal["approved", "rejected"]


class ApprovalService:
    """Lists what waits, and decides about it."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._caller = caller
        self._calls = CallApprovals(foundation)

    def list(self, _given: inputs.NothingInput) -> ApprovalList:
        """Return what waits or was decided lately: a caller's own, an administrator's all."""
        return {"approvals": self._calls.visible_to(self._caller)}

    def decide(self, given: inputs.ApprovalInput) -> DecidedApproval:
        """Approve or reject one of them."""
        state: Decision = "approved" if given.decision == "approve" else "rejected"
        tool = self._calls.decide(given.id, state, given.reason, self._caller)
        return {"id": given.id, "tool": tool, "state": state}
