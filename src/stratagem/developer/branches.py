"""Branches, an operation for each thing that can be done with one."""

from __future__ import annotations

from typing import Annotated

from stratagem import limits
from stratagem.developer.models import BranchCurrent, BranchPresence
from stratagem.engine.values import check_text
from stratagem.memory.models import Branches, BranchInfo, Diff, MergeResult
from stratagem.memory.parameters import Decisions, MergeStrategy
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.parameters import AsOf, BranchName, Param, RequestId
from stratagem.search.foundation import Foundation

__all__ = ["BranchTools"]

_Name = Annotated[str, Param("The branch", quiet=True, aliases=("branch_name",))]
_NewName = Annotated[str | None, Param("Its name; one is made up by default", quiet=True)]


class BranchTools:
    """Branches, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._memory = Memory(foundation, caller)
        self._caller = caller

    def create(self, name: _NewName = None, *, request_id: RequestId = None) -> BranchInfo:
        """Start an empty branch."""
        return self._memory.create(name, request_id=request_id)

    def get(self, name: _Name) -> BranchInfo | None:
        """Return a branch by its name; None where there is none."""
        check_text(name, field="name", chars_max=limits.BRANCH_NAME_CHARS_MAX)
        return next((each for each in self._memory.branches() if each.name == name), None)

    def list(self) -> Branches:
        """Return every branch that is not deleted."""
        return self._memory.branches()

    def exists(self, name: _Name) -> BranchPresence:
        """Return whether there is a branch of that name."""
        return BranchPresence(name, self.get(name) is not None)

    def delete(self, name: _Name, *, request_id: RequestId = None) -> BranchInfo:
        """Hide a branch; strata_branch restores it."""
        return self._memory.delete(name, request_id=request_id)

    def fork(
        self,
        name: _NewName = None,
        *,
        source: Annotated[
            str | None,
            Param("The branch that is forked; the current one by default", aliases=("branch",)),
        ] = None,
        as_of: AsOf = None,
        request_id: RequestId = None,
    ) -> BranchInfo:
        """Start a branch from what another shows, now or at a past moment; nothing is copied."""
        return self._memory.fork(name, branch=source, as_of=as_of, request_id=request_id)

    def diff(
        self,
        compare: Annotated[str, Param("The branch to compare with", aliases=("branch_b", "with"))],
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Diff:
        """Return how another branch differs from this one, and which of them made each change."""
        return self._memory.diff(compare, branch=branch, as_of=as_of)

    def merge(
        self,
        source: Annotated[str, Param("The branch whose changes are merged")],
        *,
        branch: Annotated[
            str | None,
            Param("The branch merged into; the current one by default", aliases=("target",)),
        ] = None,
        strategy: MergeStrategy = None,
        decisions: Decisions = None,
        preview: Annotated[bool, Param("Say what would change, and change nothing")] = False,
        request_id: RequestId = None,
    ) -> MergeResult:
        """Merge a branch into another, or say what that would do.

        Raises:
            MergeConflict: Both changed the same place; nothing was merged.
        """
        return self._memory.merge(
            source,
            branch=branch,
            strategy=strategy,
            decisions=decisions,
            preview=preview,
            request_id=request_id,
        )

    def use(self, name: _Name) -> BranchInfo:
        """Make a branch the current one."""
        return self._memory.switch(name)

    def current(self) -> BranchCurrent:
        """Return the current branch."""
        return BranchCurrent(str(self._caller.shown_branch))
