"""Who may call which tool: checked on the path of every call, before any other answer is given.

A call is checked against the sets of tools that the caller's token names, and against the rights of
the tool. Every step of a pipeline and every call of a batch is checked as a call of its own, so
that neither can be bypassed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END
from stratagem.errors import PermissionDenied
from stratagem.gateway import names
from stratagem.gateway.calls.approvals import CallApprovals
from stratagem.gateway.calls.budgets import Budget, charge
from stratagem.gateway.calls.call import Call
from stratagem.gateway.registry.answers import BudgetDocument
from stratagem.gateway.registry.requirements import (
    check_callers_rights,
    find_missing,
    named_resources,
)
from stratagem.gateway.registry.tool_sets import ToolSet, is_read_only, read_tool_sets
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation

__all__ = ["Admission", "ToolRights", "refuse_inactive"]


@dataclass(frozen=True, slots=True)
class Admission:
    """The terms on which a call is admitted."""

    read_only: bool = False
    approval: bool = False
    budgets: tuple[Budget, ...] = ()
    # Why a guardrail asks for the approval, where one does.
    why: str | None = None
    # The tool as the default branch has it, where the call is about another: what was decided about
    # it there holds on every branch.
    on_default: Tool | None = None

    def cost_of(self, arguments: Any) -> float:
        """Return what a call costs on the default branch."""
        return 0.0 if self.on_default is None else self.on_default.cost_of(arguments)


_FREE: Final = Admission()


@dataclass(frozen=True, slots=True)
class ToolRights:
    """See the module."""

    foundation: Foundation

    async def admit(self, tool: Tool, call: Call) -> Admission:
        """Return the terms of a call.

        Raises:
            PermissionDenied: The caller may not call the tool.
        """
        caller = call.caller
        if tool.requirements:
            await self._check_requirements(tool, call)
        first = await self._on_default_branch(tool, call)
        if first.revision > tool.revision:
            # The branch was forked before: what is switched off since is called nowhere.
            refuse_inactive(first)
        rights = _rights_of(first, tool)
        if caller.tool_sets is None and caller.budget is None and not rights:
            return _FREE if first is tool else Admission(on_default=first)
        for each in rights:
            _check_callers(tool, each, caller)
        chosen = None
        if caller.tool_sets is not None:
            sets = await self.foundation.read_async(lambda: self._sets_of(caller))
            chosen = _choose(sets, tool, caller)
        return Admission(
            read_only=chosen is not None and chosen.read_only,
            approval=any(each.get("approval") for each in rights)
            or (chosen is not None and chosen.asks(tool)),
            budgets=_budgets(tool, rights, caller, chosen),
            on_default=None if first is tool else first,
        )

    async def require_approval(
        self, admission: Admission, tool: Tool, arguments: Any, call: Call, *, uses: bool
    ) -> None:
        """Require the approval of a call that needs one, or ask for it.

        `uses` it up, when the call is answered: one that is refused all the same keeps it.

        Raises:
            PermissionDenied: No person has approved it.
        """
        if not admission.approval or call.caller.speaks_for_person("gateway"):
            return
        approvals = CallApprovals(self.foundation)
        await asyncio.to_thread(
            approvals.require, tool, arguments, call, why=admission.why, uses=uses
        )

    async def charge(self, admission: Admission, tool: Tool, arguments: Any) -> None:
        """Charge a call that is about to be run.

        Raises:
            BudgetExceeded: A budget does not allow it.
        """
        if admission.budgets:
            cost = max(tool.cost_of(arguments), admission.cost_of(arguments))
            await asyncio.to_thread(charge, self.foundation, admission.budgets, cost)

    async def _on_default_branch(self, tool: Tool, call: Call) -> Tool:
        """Return a tool as the default branch has or had it; where it never was there, as it is."""
        if call.branch == DEFAULT_BRANCH or tool.is_own:
            return tool
        return await self.foundation.read_async(lambda: self._read_default(tool)) or tool

    def _read_default(self, tool: Tool) -> Tool | None:
        reader = self.foundation.store.reader()
        view = self.foundation.views.view(reader, DEFAULT_BRANCH)
        versions = reader.records.history(
            view.lineage, names.TOOLS, tool.name, before=OPEN_END, limit=2
        )
        # The rights of one that was removed there still hold where it is not.
        for version in versions:
            if version.kind != names.TOOL_REMOVED and version.payload is not None:
                found = Tool(orjson.loads(version.payload), version.sequence)
                return found if found.id == tool.id else None
        return None

    async def _check_requirements(self, tool: Tool, call: Call) -> None:
        check_callers_rights(tool, call.caller)
        if not named_resources(tool):
            return
        missing = await self.foundation.read_async(lambda: self._find_missing(tool, call))
        if missing:
            raise PermissionDenied(
                f"{tool.name} requires {', '.join(missing)}, which does not exist.",
                reason="requirements",
                missing=missing,
                tool=tool.name,
                hint=f"Create it with resource_create, or grant a secret of that name: stratagem "
                f"tools grant {tool.name} {missing[0].upper()} ORIGIN",
            )

    def _find_missing(self, tool: Tool, call: Call) -> list[str]:
        reader, views = self.foundation.store.reader(), self.foundation.views
        own, default = views.view(reader, call.branch), views.view(reader, "default")
        return find_missing(reader, own, default, tool)

    def _sets_of(self, caller: Caller) -> dict[str, ToolSet]:
        return read_tool_sets(self.foundation, self.foundation.store.reader(), caller.tool_sets)


def refuse_inactive(tool: Tool) -> None:
    """Refuse a tool that was switched off, or waits for approval.

    Raises:
        PermissionDenied: It cannot be called now.
    """
    reasons = {
        "quarantined": "its definition changed and waits for approval",
        "disabled": "it was switched off",
    }
    if (reason := reasons.get(tool.status)) is not None:
        raise PermissionDenied(
            f"{tool.name} cannot be called: {reason}.", reason=tool.status, tool=tool.name
        )


def _rights_of(first: Tool, tool: Tool) -> list[Mapping[str, Any]]:
    """Return the rights of a tool on the default branch and on the call's branch.

    So a branch that was forked before rights were set cannot bypass them.
    """
    own: Mapping[str, Any] = tool.content.get("rights") or {}
    default: Mapping[str, Any] = first.content.get("rights") or own
    return [each for each in ((own,) if default == own else (default, own)) if each]


def _check_callers(tool: Tool, rights: Mapping[str, Any], caller: Caller) -> None:
    callers = rights.get("callers")
    if callers is None or caller.actor == tool.owner or caller.may("gateway", "admin"):
        return
    if caller.actor not in {*callers, *(f"token:{each}" for each in callers)}:
        raise PermissionDenied(
            f"Only some callers may call {tool.name}, and you are not one of them.",
            reason="callers",
            tool=tool.name,
            hint="Ask its owner or an administrator.",
        )


def _choose(sets: Mapping[str, ToolSet], tool: Tool, caller: Caller) -> ToolSet:
    """Return the set by which a caller may call a tool: the least restrictive one."""
    having = [each for each in sets.values() if each.has(tool)]
    fitting = [each for each in having if not each.read_only or is_read_only(tool)]
    if not fitting:
        named = ", ".join(sorted(caller.tool_sets or ()))
        why = (
            f"{named} allows only tools that change nothing, and this one may change something"
            if having
            else f"it is not in {named}"
        )
        raise PermissionDenied(
            f"Your token does not allow calling {tool.name}: {why}.",
            reason="toolset",
            tool=tool.name,
            toolsets=sorted(caller.tool_sets or ()),
            hint="tools_list shows what you may call; an administrator can add to the set.",
        )
    return min(fitting, key=lambda each: (each.asks(tool), each.read_only, each.name))


def _budgets(
    tool: Tool, rights: Sequence[Mapping[str, Any]], caller: Caller, chosen: ToolSet | None
) -> tuple[Budget, ...]:
    of_tool: BudgetDocument | None = next(
        (each["budget"] for each in rights if each.get("budget")), None
    )
    of_token: Any = caller.budget
    of_set = chosen.budget if chosen is not None else None
    found = [
        Budget(f"tool:{tool.id}", f"All calls of {tool.name}", of_tool) if of_tool else None,
        Budget(f"caller:{caller.actor}", "Your calls of tools", of_token) if of_token else None,
        Budget(f"set:{chosen.name}:{caller.actor}", f"Your calls of {chosen.name}", of_set)
        if chosen is not None and of_set
        else None,
    ]
    return tuple(each for each in found if each is not None)
