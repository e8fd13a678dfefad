"""The branches that entries and logged events live on, as a caller works with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import orjson

from stratagem import limits
from stratagem.answers import plain
from stratagem.deferred_modules import defer
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments, values
from stratagem.engine.events import Space
from stratagem.engine.lineage import DEFAULT_BRANCH, Branch, CurrentBranch, View
from stratagem.errors import (
    BranchExists,
    BranchNotFound,
    BranchProtected,
    MergeConflict,
    MissingRequired,
    PermissionDenied,
    SwitchUnavailable,
    ValidationFailed,
)
from stratagem.memory.kinds import ENTRY, EVENT
from stratagem.memory.models import (
    Branches,
    BranchGraph,
    BranchInfo,
    BranchMerge,
    Change,
    Conflict,
    Diff,
    MergeResult,
)
from stratagem.memory.parameters import Decisions, MergeStrategy, NewName
from stratagem.parameters import AsOf, BranchName, Param, RequestId
from stratagem.search.foundation import BoundSystem
from stratagem.storage.collection_pause import CollectionPause
from stratagem.storage.contract import Reader, Transaction, Version
from stratagem.storage.views import find_branch, is_another

if TYPE_CHECKING:
    from stratagem.engine import merge as record_merge
    from stratagem.memory import changes as branch_changes
    from stratagem.memory.changes import Changes
    from stratagem.storage import branch_merge
    from stratagem.storage.branch_merge import BranchComparison, DifferenceGroup, RecordDifference
else:
    # Most callers compare no branches.
    record_merge = defer("stratagem.engine.merge")
    branch_changes = defer("stratagem.memory.changes")
    branch_merge = defer("stratagem.storage.branch_merge")

__all__ = ["BranchOperations"]

Side = Literal["source", "target"]
ListedSide = Literal["all", "theirs", "ours"]


class _ListedChanges(NamedTuple):
    """Which changes of a comparison are listed."""

    side: ListedSide = "all"
    limit: int | None = None
    offset: int = 0

    def read(
        self, reader: Reader, comparison: BranchComparison, groups: Iterable[DifferenceGroup]
    ) -> list[RecordDifference]:
        """Return the changes that are listed, of some groups."""
        sides = {self.side, "both"} if self.side != "all" else get_args(record_merge.ChangedBy)
        end = None if self.limit is None else self.offset + self.limit
        chosen = [each for each in groups if each.side in sides]
        return comparison.read(reader, chosen, self.offset, end)


_ALL_CHANGES: Final = _ListedChanges()
# How many deleted branches of the same name are told of.
_TIMES_SHOWN: Final = 5


class BranchOperations(BoundSystem):
    """Creating, comparing and merging branches for one caller."""

    def create(self, name: NewName = None, *, request_id: RequestId = None) -> BranchInfo:
        """Start an empty branch."""
        return self._begin(name, None, None, request_id, "create")

    def fork(
        self,
        name: NewName = None,
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
        request_id: RequestId = None,
    ) -> BranchInfo:
        """Start a branch from what another shows, now or at a past moment; nothing is copied."""
        return self._begin(name, branch or self._caller.branch, as_of, request_id, "fork")

    def _begin(
        self,
        name: str | None,
        parent: str | None,
        as_of: str | int | None,
        request_id: str | None,
        action: str,
    ) -> BranchInfo:
        self._caller.refuse_in_transaction("Starting a branch")
        _check_name(name)

        def work(transaction: Transaction) -> dict[str, Any]:
            chosen = name or _free_name(transaction)
            if transaction.branches.by_name(chosen) is not None:
                raise BranchExists(
                    f"There is a branch named {chosen!r} already.", field="name", branch=chosen
                )
            origin, sequence, note = None, 0, None
            if parent is not None:
                view = self._views.view(transaction, parent, as_of)
                origin, note = view.branch, _note_unborn(transaction, view)
                sequence = min(view.limit, transaction.log.head().sequence)
            made = transaction.branches.create(chosen, parent=origin, fork_sequence=sequence)
            transaction.branches.lineage(made)
            return {
                "name": chosen,
                "current": False,
                "created": moments.iso(transaction.at),
                "parent": parent,
                "forked_at": sequence if origin else None,
            } | ({"note": note} if note else {})

        arguments = {"name": name, "parent": parent, "as_of": as_of}
        answer = self._foundation.write(
            self._caller, work, request_id=request_id, operation=action, arguments=arguments
        )
        self._views.forget(answer["name"])
        return BranchInfo(**answer)

    def switch(self, name: NewName) -> BranchInfo:
        """Make a branch the caller's current one."""
        self._caller.refuse_in_transaction("Switching to a branch")
        wanted = _require_branch_name(name, "switch")
        if not self._caller.can_switch:
            raise SwitchUnavailable("This connection cannot remember a current branch.")
        with self._store.snapshot() as reader:
            branch = find_branch(reader.branches, wanted, field="name")
            info = self._info(reader, branch)
        self._caller.switch_to(CurrentBranch(wanted, branch.id))
        info.current = True
        return info

    def branches(self) -> Branches:
        """Return every branch that is not deleted."""
        with self._store.snapshot() as reader:
            live = [each for each in reader.branches.all() if each.deleted_sequence is None]
            return Branches([self._info(reader, each) for each in live], self._caller.shown_branch)

    def branch_graph(self) -> BranchGraph:
        """Return how the branches came from each other, deleted ones too, and were merged."""
        with self._store.snapshot() as reader:
            every = reader.branches.all()
            live = {each.id for each in every}
            found = reader.branches.merges(limits.MERGES_SHOWN_MAX)
            merges = [(target, at) for target, at in found if target in live]
            versions = reader.log.versions([at for _, at in merges])
            return BranchGraph(
                [self._graph_info(reader, each) for each in every],
                [
                    self._merge_info(reader.branches.by_id(target).name, versions[at])
                    for target, at in merges
                ],
                reader.log.head().sequence,
                self._caller.shown_branch,
            )

    def _graph_info(self, reader: Reader, branch: Branch) -> BranchInfo:
        info = self._info(reader, branch)
        info.deleted = branch.deleted_sequence is not None or None
        return info

    @staticmethod
    def _merge_info(target: str, version: Version) -> BranchMerge:
        content = orjson.loads(version.payload or b"{}")
        return BranchMerge(
            str(content.get("source", "")),
            target,
            version.sequence,
            moments.iso(version.at),
            version.actor,
        )

    def delete(self, name: NewName, *, request_id: RequestId = None) -> BranchInfo:
        """Hide a branch. Its children keep what they borrowed, and it can be restored."""
        self._caller.refuse_in_transaction("Deleting a branch")
        wanted = _require_branch_name(name, "delete")
        if wanted == DEFAULT_BRANCH:
            raise BranchProtected(
                f"The branch {DEFAULT_BRANCH!r} cannot be deleted.", field="name", branch=wanted
            )

        def work(transaction: Transaction) -> dict[str, Any]:
            branch = find_branch(transaction.branches, wanted, field="name")
            transaction.branches.delete(branch)
            return _as_answer(self._info(transaction, branch), deleted=True)

        answer = self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="delete",
            arguments={"name": wanted},
        )
        self._views.forget(wanted)
        info = BranchInfo(**answer)
        if self._caller.branch == wanted:
            self._leave_deleted(wanted)
            info.note = f"You are on the branch {DEFAULT_BRANCH!r} now."
        return info

    def _leave_deleted(self, name: str) -> None:
        """Go back to the first branch, unless it was another one of the name that was deleted."""
        with self._store.snapshot() as reader:
            deleted = reader.branches.deleted_by_name(name)
        if deleted is not None and not is_another(deleted, self._caller.branch):
            self._caller.switch_to(DEFAULT_BRANCH)

    def restore(
        self,
        name: NewName,
        *,
        source: Annotated[
            str | None, Param("The deleted branch, if it should get another name")
        ] = None,
        as_of: Annotated[
            str | int | None,
            Param(
                "Of several deleted ones: the last one created before this moment", time="moment"
            ),
        ] = None,
        request_id: RequestId = None,
    ) -> BranchInfo:
        """Bring back the branch of a name that was deleted last.

        Where its name was used again, give it another: `name` is the new one, `source` the old.
        Where several branches of the name were deleted, `as_of` chooses an earlier one.
        """
        self._caller.refuse_in_transaction("Restoring a branch")
        wanted = _require_branch_name(name, "restore")
        deleted = _require_branch_name(source or wanted, "restore", field="source")

        def work(transaction: Transaction) -> dict[str, Any]:
            branches = transaction.branches
            namesakes = [
                each
                for each in branches.all()
                if each.name == deleted and each.deleted_sequence is not None
            ]
            if branches.by_name(wanted) is not None:
                raise _name_taken(wanted, deleted, any_deleted=bool(namesakes))
            if not namesakes:
                raise BranchNotFound(
                    f"No branch named {deleted!r} was deleted.",
                    field="name" if source is None else "source",
                    branch=deleted,
                )
            branch = self._deleted_branch(transaction, namesakes, as_of)
            others = [self._info(transaction, each).created for each in namesakes if each != branch]
            if deleted == wanted:
                branches.restore(branch)
            else:
                # It stays what it is for those that descend from it; a fork shows the same.
                end = transaction.log.head().sequence
                branch = branches.create(wanted, parent=branch, fork_sequence=end)
                branches.lineage(branch)
            answer = _as_answer(self._info(transaction, branch), deleted=None)
            return answer | ({"note": _say_namesakes(deleted, others)} if others else {})

        arguments = {"name": wanted} | ({"source": deleted} if source is not None else {})
        answer = self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="restore",
            arguments=arguments | ({"as_of": as_of} if as_of is not None else {}),
        )
        self._views.forget(wanted)
        return BranchInfo(**answer)

    def _deleted_branch(
        self, reader: Reader, namesakes: Sequence[Branch], as_of: str | int | None
    ) -> Branch:
        """Return which of some deleted branches of one name is meant.

        It is the one that was deleted last or, with a moment, the last that was made by then: each
        of them can be named by the time it was made at.
        """
        if as_of is None:
            return max(namesakes, key=lambda each: each.deleted_sequence or 0)
        limit = self._views.view(reader, DEFAULT_BRANCH, as_of).limit
        made = [each for each in namesakes if each.id <= limit]
        if not made:
            name, first = namesakes[0].name, min(namesakes, key=lambda each: each.id)
            raise BranchNotFound(
                f"No deleted branch named {name!r} was created before that.",
                field="as_of",
                branch=name,
                hint=f"The first was created at {self._info(reader, first).created}.",
            )
        return max(made, key=lambda each: each.id)

    def diff(
        self,
        compare: Annotated[str | None, Param("The branch to compare with")],
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Diff:
        """Return how another branch differs from this one, and which of them made each change."""
        other = _require_branch_name(compare, "diff", field="compare")
        return self._diff(branch, as_of, other, as_of)

    def compare(
        self,
        compare: Annotated[str, Param("The branch to compare with")],
        *,
        compare_as_of: Annotated[
            str | int | None, Param("The other branch as it was at this moment", time="moment")
        ] = None,
        branch: BranchName = None,
        as_of: AsOf = None,
        side: Annotated[
            ListedSide, Param("Whose changes are listed; the counts are of all")
        ] = "all",
        limit: Annotated[int | None, Param("How many changes to list; else all", ge=1)] = None,
        offset: Annotated[int, Param("How many changes to skip first", ge=0)] = 0,
    ) -> Diff:
        """Return how two branches, or one and its past, differ: each at a moment of its own."""
        return self._diff(
            branch, as_of, compare, compare_as_of, _ListedChanges(side, limit, offset)
        )

    def _diff(
        self,
        branch: str | None,
        as_of: AsOf,
        other: str,
        other_as_of: str | int | None,
        listed: _ListedChanges = _ALL_CHANGES,
    ) -> Diff:
        name = branch or self._caller.branch
        views = self._views
        with self._store.snapshot() as reader, CollectionPause():
            here, there = views.view(reader, name, as_of), views.view(reader, other, other_as_of)
            comparison = self._compare(reader, here, there)
            counts = {
                group: len(found)
                for group, found in comparison.groups.items()
                if self._may_see(group.space)
            }
            described = branch_changes.Changes(reader, here.lineage, there.lineage)
            changes = [
                described.describe(change, sided=True)
                for change in listed.read(reader, comparison, counts)
            ]
            own_events, events = branch_merge.count_events(reader, here, there)
            note = _note_itself(here, there) or _note_unborn(reader, here, there)
        theirs, sides = Counter[str](), Counter[str]()
        for group, count in counts.items():
            sides[group.side] += count
            theirs[group.change] += count if group.side == "theirs" else 0
        return Diff(
            branch=branch or self._caller.shown_branch,
            compare=other,
            added=theirs["added"],
            removed=theirs["removed"],
            changed=theirs["changed"],
            ours=sides["ours"],
            both=sides["both"],
            events=events,
            ours_events=own_events,
            results=changes,
            note=note,
        )

    def _compare(self, reader: Reader, here: View, there: View) -> BranchComparison:
        """Compare two views, or return the last comparison if it was of the same.

        Of the same log, two moments show the same where nothing expires between them.
        """
        last_expiry = reader.changes.last_expiry
        state = (
            reader.log.head(),
            *((view.branch.id, view.limit, last_expiry(view.time)) for view in (here, there)),
        )
        return self._foundation.cache.renew(
            "comparison", state, lambda last: branch_merge.compare(reader, here, there, last)
        )

    def merge(
        self,
        source: Annotated[str | None, Param("The branch whose changes are merged")],
        *,
        branch: BranchName = None,
        strategy: MergeStrategy = None,
        decisions: Decisions = None,
        preview: Annotated[bool, Param("Only show what would change")] = False,
        request_id: RequestId = None,
    ) -> MergeResult:
        """Merge a branch into the current one, or say what that would do.

        Raises:
            MergeConflict: Both changed the same place; nothing was merged.
        """
        self._caller.refuse_in_transaction("A merge")
        name = _require_branch_name(source, "merge", field="source")
        target = branch or self._caller.branch
        chosen = _check_decisions(decisions)

        def plan(reader: Reader) -> tuple[Branch, Branch, branch_merge.MergePlan]:
            into, other = (
                find_branch(reader.branches, target),
                find_branch(reader.branches, name, field="source"),
            )
            found = branch_merge.plan(reader, into, other, strategy=strategy, decisions=chosen)
            return into, other, found

        def work(transaction: Transaction) -> dict[str, Any]:
            into, other, found = plan(transaction)
            changes = _changes_between(transaction, into, other)
            report = self._merge_report(transaction, changes, into, found)
            self._check_owners(transaction, other, found)
            self._check_guarded(transaction, other, into, found)
            try:
                version = branch_merge.carry_out(transaction, into, other, found)
            except MergeConflict as error:
                for told, each in zip(error.details["conflicts"], found.conflicts, strict=False):
                    # A null on one side is distinguished from an absent value.
                    shown = plain(_conflict(changes, each))
                    told.update({name: shown.get(name) for name in told} | shown)
                raise
            results = report["results"]
            if request_id is not None:
                # What is kept for a repeat is JSON.
                results = [plain(each) for each in results]
            return {**report, "results": results, "version": version}

        if preview:
            with self._store.snapshot() as reader, CollectionPause():
                into, other, found = plan(reader)
                changes = _changes_between(reader, into, other)
                report = self._merge_report(reader, changes, into, found)
                conflicts = [_conflict(changes, each) for each in found.conflicts]
            return _result(name, target, report, conflicts, preview=True)
        arguments = {
            "source": name,
            "target": target,
            "strategy": strategy,
            "decisions": chosen,
        }
        answer = self._foundation.write(
            self._caller, work, request_id=request_id, operation="merge", arguments=arguments
        )
        return _result(name, target, answer, [], preview=False)

    def _check_owners(self, reader: Reader, other: Branch, found: branch_merge.MergePlan) -> None:
        """Refuse a merge that would replace one caller's record by that of another.

        Otherwise a caller who may not change a tool could register it again on a branch that lacks
        it, and merge.
        """
        if self._caller.may("gateway", "admin"):
            return
        lineage = reader.branches.lineage(other)
        for each in found.changes:
            field = reader.kinds.record(each.space.kind).owned_by
            if field is None or each.before is record_merge.ABSENT:
                continue
            version = reader.records.current(lineage, each.space, each.key)
            theirs = values.decode(version.payload) if version and version.payload else None
            if isinstance(theirs, Mapping) and theirs.get(field) != each.before.get(field):
                raise PermissionDenied(
                    f"The {each.space.kind} {each.key!r} belongs to a different caller on "
                    "each branch.",
                    field="source",
                    required="gateway:admin",
                    hint="Remove yours from the source, or ask an administrator to merge.",
                )

    def _check_guarded(
        self, reader: Reader, other: Branch, into: Branch, found: branch_merge.MergePlan
    ) -> None:
        """Refuse a merge that changes what only a person may, such as the rights of a tool."""
        for each in found.changes:
            for field in reader.kinds.record(each.space.kind).guarded:
                before = {} if each.before is record_merge.ABSENT else each.before
                after = {} if each.after is record_merge.ABSENT else each.after
                if before.get(field) and after.get(field) != before[field]:
                    self._caller.require_person(
                        each.space.namespace,
                        "This merge",
                        f"changes the {field} of the {each.space.kind} {each.key!r}",
                        ["branch", "merge", other.name, "--branch", into.name],
                    )

    def _merge_report(
        self, reader: Reader, described: Changes, into: Branch, found: branch_merge.MergePlan
    ) -> dict[str, Any]:
        """Return the changes of a merge as they are visible now, without expired records."""
        now = self._store.now()
        spaces = {each.space for each in found.changes}
        kinds = {space: reader.kinds.record(space.kind) for space in spaces}
        shown = [
            seen
            for each in found.changes
            if (seen := each.visible_at(kinds[each.space], now)) is not None
        ]
        may_see = {space: self._may_see(space) for space in {each.space for each in shown}}
        return {
            "merged": len(shown),
            "events": found.carried,
            "resolved": found.resolved,
            "results": [described.describe(each) for each in shown if may_see[each.space]],
            "version": None,
            "notices": self._notices(reader, View(into, reader.branches.lineage(into), now), found),
        }

    def _notices(
        self, reader: Reader, view: View, found: branch_merge.MergePlan
    ) -> list[str] | None:
        """Return the notices of a merge from the systems that the caller may read."""
        namespaces = {draft.space.kind: draft.space for draft in found.drafts if draft.space}
        told = [
            sentence
            for name, space in namespaces.items()
            if (notice := reader.kinds.record(name).notice) is not None and self._may_see(space)
            for sentence in notice(reader, view, found.drafts)
        ]
        return told or None

    def _is_current(self, branch: Branch) -> bool:
        current = self._caller.shown_branch
        return branch.name == current and not is_another(branch, current)

    def _may_see(self, space: Space) -> bool:
        """Whether the caller may read the system that a record is of: branches carry them all."""
        if space.kind in {ENTRY, EVENT}:
            return True
        kind = self._store.kinds.record(space.kind)
        if kind.quoting and not self._caller.sees_every_call:
            # Records of calls hold arguments and results of other callers.
            return False
        return self._caller.may(kind.toolset or space.namespace, "read")

    def _info(self, reader: Reader, branch: Branch) -> BranchInfo:
        parent = reader.branches.by_id(branch.parent) if branch.parent is not None else None
        return BranchInfo(
            name=branch.name,
            current=self._is_current(branch),
            created=moments.iso(reader.log.time_of(branch.id) or 0),
            parent=parent.name if parent else None,
            forked_at=branch.fork_sequence,
        )


def _note_itself(here: View, there: View) -> str | None:
    """Say that both sides of a comparison are the same, so that it tells nothing."""
    if here.branch.id != there.branch.id or here.limit != there.limit:
        return None
    return (
        f"{here.branch.name!r} was compared with itself: give another branch as `branch` or as "
        "`compare`."
    )


def _note_unborn(reader: Reader, *views: View) -> str | None:
    """Say of views that are older than their branches what they show in place of these."""
    said = []
    for branch in {view.branch: None for view in views if view.limit < view.branch.id}:
        begun = f"it was begun at {moments.iso(reader.log.time_of(branch.id) or 0)} (@{branch.id})"
        parent = None if branch.parent is None else reader.branches.by_id(branch.parent)
        shown = f"as what {parent.name!r} was then" if parent else "as empty"
        said.append(f"There was no branch {branch.name!r} yet: {begun} and is shown {shown}.")
    return " ".join(said) or None


def _as_answer(info: BranchInfo, *, deleted: bool | None) -> dict[str, Any]:
    return {
        "name": info.name,
        "current": False if deleted else info.current,
        "created": info.created,
        "parent": info.parent,
        "forked_at": info.forked_at,
        "deleted": deleted,
    }


def _name_taken(name: str, deleted: str, *, any_deleted: bool) -> BranchExists:
    """Return the error for a branch that cannot be restored under a name."""
    return BranchExists(
        f"There is a live branch named {name!r}.",
        field="name",
        branch=name,
        hint=f"To restore the deleted one, give `source` {deleted!r} and a free `name`."
        if any_deleted
        else "There is nothing to restore.",
    )


def _say_namesakes(name: str, created: Sequence[str]) -> str:
    """Say how to bring back the other deleted branches of a name."""
    times = ", ".join(created[-_TIMES_SHOWN:])
    return (
        f"Other branches named {name!r} were deleted too, created at {times}. To restore "
        f"one, give `source` {name!r}, its time as `as_of`, and a free `name`."
    )


def _free_name(transaction: Transaction) -> str:
    number = transaction.log.head().sequence + 1
    while transaction.branches.by_name(f"branch-{number}") is not None:
        number += 1
    return f"branch-{number}"


def _check_name(name: str | None) -> None:
    if name is not None:
        values.check_text(name, field="name", chars_max=limits.BRANCH_NAME_CHARS_MAX)


def _require_branch_name(value: str | None, action: str, *, field: str = "name") -> str:
    if value is None or value == "":
        raise MissingRequired(
            f"The action {action!r} needs `{field}`.",
            field=field,
            hint=f"Add `{field}`: the name of a branch.",
        )
    return values.check_text(value, field=field, chars_max=limits.BRANCH_NAME_CHARS_MAX)


def _check_decisions(decisions: Mapping[str, Any] | None) -> dict[str, Any]:
    chosen = dict(decisions or {})
    if len(chosen) > limits.DECISIONS_MAX:
        raise ValidationFailed(
            f"At most {limits.DECISIONS_MAX} decisions can be given at once.",
            field="decisions",
            limit=limits.DECISIONS_MAX,
        )
    for conflict, decision in chosen.items():
        value_given = isinstance(decision, Mapping) and set(decision) == {"value"}
        if not value_given and decision not in get_args(Side):
            raise ValidationFailed(
                f"The decision for {conflict!r} is neither a side nor a value.",
                field="decisions",
                hint='Decide with "source", "target" or {"value": …}.',
            )
        if value_given:
            values.encode(decision["value"], field="decisions")
    return chosen


def _result(
    source: str,
    target: str,
    answer: Mapping[str, Any],
    conflicts: list[Conflict],
    *,
    preview: bool,
) -> MergeResult:
    return MergeResult(
        source=source,
        target=target,
        merged=answer["merged"],
        events=answer["events"],
        resolved=answer["resolved"],
        preview=preview,
        results=[
            change if isinstance(change, Change) else Change(**change)
            for change in answer["results"]
        ],
        conflicts=conflicts,
        version=answer["version"],
        notices=answer.get("notices"),
    )


def _changes_between(reader: Reader, *branches: Branch) -> Changes:
    return branch_changes.Changes(reader, *(reader.branches.lineage(each) for each in branches))


def _conflict(changes: Changes, conflict: branch_merge.RecordConflict) -> Conflict:
    """Return a conflict in the caller's words: of a place its path, of a record its title."""
    space, path = conflict.space, conflict.path
    return Conflict(
        id=conflict.id,
        key=conflict.key,
        namespace=space.namespace,
        path=branch_merge.place_of(path),
        base=changes.show_place(space, path, conflict.base),
        ours=changes.show_place(space, path, conflict.ours),
        theirs=changes.show_place(space, path, conflict.theirs),
        kind=None if space.kind == ENTRY else space.kind,
        title=changes.title_of(space, conflict.key),
    )
