"""Named sets of tools, and what waits for a person's approval, for one caller."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.errors import ResourceNotFound, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.registry.answers import (
    BudgetDocument,
    RemovedToolSet,
    ToolSetDocument,
    ToolSetList,
)
from stratagem.gateway.registry.tool_sets import read_tool_sets
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["ToolSetService"]

# The name would be read as that of a group of operations.
_OPERATIONS = frozenset({"memory", "debugging", "knowledge", "gateway", "registry", "admin"})


class ToolSetService:
    """Defines, removes and lists sets of tools."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._foundation = foundation
        self._caller = caller

    def define(self, given: inputs.ToolSetInput) -> ToolSetDocument:
        """Define a set, or replace it: tokens that name it follow within the next call."""
        if given.name in _OPERATIONS:
            raise ValidationFailed(
                f"{given.name!r} is a group of operations.",
                field="name",
                hint="Choose another name.",
            )
        document: ToolSetDocument = {
            "name": given.name,
            "description": given.description,
            "allow": given.allow,
            "deny": given.deny,
            "approve": given.approve,
            "readOnly": given.read_only,
            "budget": _budget(given.budget),
        }

        def work(transaction: Transaction) -> ToolSetDocument:
            known = read_tool_sets(self._foundation, transaction)
            if given.name not in known and len(known) >= limits.TOOL_SETS_MAX:
                raise ValidationFailed(
                    f"There are {len(known)} sets of tools already; that is the limit.",
                    field="name",
                    limit=limits.TOOL_SETS_MAX,
                    hint="Remove an unused one: toolset_remove.",
                )
            self._append(transaction, names.TOOL_SET_DEFINED, document, given.name)
            return document

        return self._foundation.write(self._caller, work)

    def remove(self, given: inputs.ToolSetNameInput) -> RemovedToolSet:
        """Remove a set: tokens that name no other may call nothing."""

        def work(transaction: Transaction) -> RemovedToolSet:
            known = read_tool_sets(self._foundation, transaction)
            if given.name not in known:
                near = get_close_matches(given.name, known, n=3)
                raise ResourceNotFound(
                    f"There is no set of tools named {given.name!r}.",
                    field="name",
                    similar=near,
                    hint=f"Did you mean {' or '.join(near)}?" if near else "See toolsets_list.",
                )
            self._append(transaction, names.TOOL_SET_REMOVED, {"name": given.name}, given.name)
            return {"name": given.name, "removed": True}

        return self._foundation.write(self._caller, work)

    def list(self, _given: inputs.NothingInput) -> ToolSetList:
        """Return the sets there are; to a token that names some, those."""
        with self._foundation.store.snapshot() as reader:
            found = read_tool_sets(self._foundation, reader, self._caller.tool_sets)
        return {"toolsets": [found[name].document for name in sorted(found)]}

    def _append(
        self,
        transaction: Transaction,
        kind: str,
        content: ToolSetDocument | dict[str, str],
        name: str,
    ) -> None:
        view = self._foundation.views.view(transaction, "default")
        transaction.append(view.branch, [Draft(kind, content, names.TOOL_SETS, name)])


def _budget(given: inputs.BudgetInput | None) -> BudgetDocument | None:
    if given is None:
        return None
    per: Literal["hour", "day", "month"] = given.per
    budget: BudgetDocument = {"per": per}
    if given.calls is not None:
        budget["calls"] = given.calls
    if given.cost is not None:
        budget["cost"] = given.cost
    if len(budget) == 1:
        raise ValidationFailed("A budget needs `calls` or `cost`.", field="budget")
    return budget
