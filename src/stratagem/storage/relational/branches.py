"""Branches, in any database that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from stratagem.engine.ancestry import Vector
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, Branch, Lineage, trace
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Appended
from stratagem.storage.relational.cache import NameCache, WriterCache
from stratagem.storage.relational.session import Queries, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BRANCH_CREATED",
    "BRANCH_DELETED",
    "BRANCH_MERGED",
    "BRANCH_RESTORED",
    "SqlBranchWriter",
    "SqlBranches",
]

BRANCH_CREATED: Final = "BranchCreated"
BRANCH_DELETED: Final = "BranchDeleted"
BRANCH_RESTORED: Final = "BranchRestored"
BRANCH_MERGED: Final = "BranchMerged"

# The columns of `Branch`.
_TWO_NUMBERS = Shape[tuple[int, int]]()
_BRANCH_ROW = Shape[tuple[int, str, int | None, int | None, int | None]]()
# The branch that was merged into, and the sequence of the event that says so.
_MERGE_ROW = Shape[tuple[int, int]]()


class SqlBranches:
    """See `stratagem.storage.contract.BranchReader`."""

    __slots__ = ("_cache", "_queries")

    def __init__(self, queries: Queries, cache: NameCache) -> None:
        self._queries = queries
        self._cache = cache

    def by_name(self, name: str) -> Branch | None:
        if name == DEFAULT_BRANCH and self._cache.default_branch is not None:
            return self._cache.default_branch
        row = self._queries.row(_BRANCH_ROW, "branch_by_name", name)
        branch = Branch(*row) if row else None
        if name == DEFAULT_BRANCH:
            self._cache.default_branch = branch
        return branch

    def by_id(self, branch: int) -> Branch:
        """Return a branch as it was first read: only whether it is deleted may be stale."""
        known = self._cache.branches.get(branch)
        if known is None:
            row = self._queries.row(_BRANCH_ROW, "branch_by_id", branch)
            if row is None:
                raise DatabaseCorrupt(f"The branch {branch} is referred to, but missing.")
            known = self._cache.branches[branch] = Branch(*row)
        return known

    def deleted_by_name(self, name: str) -> Branch | None:
        row = self._queries.row(_BRANCH_ROW, "branch_deleted", name)
        return Branch(*row) if row else None

    def all(self) -> list[Branch]:
        return [Branch(*row) for row in self._queries.rows(_BRANCH_ROW, "branches")]

    def transactions(self) -> list[Branch]:
        return [Branch(*row) for row in self._queries.rows(_BRANCH_ROW, "branch_transactions")]

    def transaction_versions(self) -> list[tuple[int, int]]:
        return self._queries.rows(_TWO_NUMBERS, "transaction_versions")

    def live_count(self) -> int:
        return self._queries.number("branch_count")

    def lineage(self, branch: Branch, limit: int = OPEN_END) -> Lineage:
        return trace(branch, self.by_id, limit)

    def knowledge(self, branch: int, sequence: int) -> Vector:
        # The last merge recorded all that the branch knew by then. Before its first merge it knew
        # what its parent knew at the fork.
        merged = self._queries.value(str, "knows", branch, sequence)
        known: Vector = {}
        if merged is not None:
            known = {int(of): upto for of, upto in orjson.loads(merged).items()}
        else:
            begun = self.by_id(branch)
            if begun.parent is not None:
                known = self.knowledge(begun.parent, min(begun.fork_sequence or 0, sequence))
        return {**known, branch: sequence}

    def merges(self, limit: int) -> list[tuple[int, int]]:
        return self._queries.rows(_MERGE_ROW, "merges", limit)


class SqlBranchWriter(SqlBranches):
    """See `stratagem.storage.contract.BranchWriter`.

    Everything about a branch is an event on it; `append` writes one (branch, drafts), and the
    projector brings the table of branches up to date.
    """

    __slots__ = ("_append", "_next_sequence", "_writer_cache")

    def __init__(
        self,
        queries: Queries,
        cache: WriterCache,
        *,
        append: Callable[[int, Sequence[Draft]], list[Appended]],
        next_sequence: Callable[[], int],
    ) -> None:
        super().__init__(queries, cache)
        self._writer_cache = cache
        self._append = append
        self._next_sequence = next_sequence

    def by_name(self, name: str) -> Branch | None:
        known = self._writer_cache.branches_by_name.get(name)
        if known is None:
            known = super().by_name(name)
            if known is not None:
                self._writer_cache.branches_by_name[name] = known
        return known

    def create(self, name: str, *, parent: Branch | None, fork_sequence: int) -> Branch:
        content = {
            "name": name,
            "parent": parent.id if parent else None,
            "fork_sequence": fork_sequence if parent else None,
        }
        # The id of a branch is the sequence of the event that creates it, and it owns that event.
        branch = self._next_sequence()
        self._append(branch, [Draft(BRANCH_CREATED, content)])
        return self.by_id(branch)

    def delete(self, branch: Branch) -> None:
        self._append(branch.id, [Draft(BRANCH_DELETED, {"name": branch.name})])

    def restore(self, branch: Branch) -> None:
        self._append(branch.id, [Draft(BRANCH_RESTORED, {"name": branch.name})])

    def record_merge(self, target: Branch, source: Branch, vector: Vector) -> int:
        known = {str(branch): sequence for branch, sequence in sorted(vector.items())}
        content = {"source": source.name, "source_id": source.id, "knows": known}
        return self._append(target.id, [Draft(BRANCH_MERGED, content)])[0].sequence
