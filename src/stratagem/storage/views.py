"""From a branch's name and words for a time to the view that a read goes through.

The time of a view is clock time, not recorded time, because expiry is counted from the clock of a
write. A view of the present has the present clock time; a view of the past has the clock time of
the last event that it shows (docs/adr/0011).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import cached_property

from stratagem import limits
from stratagem.deferred_modules import difflib
from stratagem.engine import moments
from stratagem.engine.lineage import (
    DEFAULT_BRANCH,
    OPEN_END,
    Branch,
    CurrentBranch,
    Lineage,
    View,
    is_transaction,
)
from stratagem.engine.values import check_text
from stratagem.errors import BranchNotFound, TransactionEnded, ValidationFailed
from stratagem.storage.contract import BranchReader, LogReader, Reader, Store

__all__ = ["Views", "find_branch", "is_another", "other_branches"]

_RESOLVED_MAX = 10_000


class Views:
    """Resolves views, and caches what can never change.

    A branch keeps its lineage for as long as it lives, and a moment that lies in the past
    keeps its place in the log.
    """

    def __init__(self, store: Store, find_zone: Callable[[], tzinfo]) -> None:
        self._store = store
        self._find_zone = find_zone
        self._lineages: dict[str, tuple[Branch, Lineage]] = {}
        self._pasts: dict[tuple[str, str | int], tuple[Lineage, int]] = {}

    @cached_property
    def zone(self) -> tzinfo:
        """The time zone of words for times; found when the first such word is read."""
        return self._find_zone()

    def present(self, branch: str) -> Lineage:
        """Return the lineage of a view of a branch's present.

        The branch may have been deleted since it was last looked up; reads of single
        records notice that, and `confirm` says what became of it.
        """
        known = self._lineages.get(branch)
        return known[1] if known and not is_another(known[0], branch) else self.confirm(branch)

    def confirm(self, branch: str) -> Lineage:
        """Look a branch up again and return the lineage of a view of its present."""
        self.forget(branch)
        with self._store.snapshot() as reader:
            found = find_branch(reader.branches, branch)
            lineage = reader.branches.lineage(found)
        if len(self._lineages) >= _RESOLVED_MAX:
            # Mostly of transactions that another process has ended.
            self._lineages.clear()
        self._lineages[branch] = (found, lineage)
        return lineage

    def past(self, branch: str, as_of: str | int) -> tuple[Lineage, int]:
        """Return the lineage of a view of a branch at a past moment, and its time."""
        known = self._pasts.get((branch, as_of))
        if known is not None and not _is_other_id(known[0][0].branch, branch):
            return known
        with self._store.snapshot() as reader:
            head = reader.log.head()
            now = self._store.now()
            moment = self._moment(now, head.at, as_of)
            view = self._at(reader, find_branch(reader.branches, branch), moment, now)
        # Where the log is ahead of the clock, the clock may yet show the same time again.
        settled = head.at <= now and view.limit < head.sequence
        if settled and not _is_relative(moment):
            if len(self._pasts) >= _RESOLVED_MAX:
                self._pasts.clear()
            self._pasts[branch, as_of] = (view.lineage, view.time)
        return view.lineage, view.time

    def forget(self, branch: str) -> None:
        """Drop everything cached about a branch."""
        self._lineages.pop(branch, None)
        # A copy first, in one step: other threads go on adding moments.
        for known in list(self._pasts):
            if known[0] == branch:
                self._pasts.pop(known, None)

    def bind(self, branch: str) -> str:
        """Return the name of a branch bound to the one that has it now, if there is one."""
        if branch == DEFAULT_BRANCH or isinstance(branch, CurrentBranch) or is_transaction(branch):
            # The first branch cannot be deleted, and no name of a transaction comes again.
            return branch
        with self._store.snapshot() as reader:
            found = reader.branches.by_name(branch)
        return CurrentBranch(branch, found.id) if found else branch

    def view(self, reader: Reader, branch: str, as_of: str | int | None = None) -> View:
        """Return the view of a branch at a moment, or of its present.

        Raises:
            BranchNotFound: No live branch has that name.
            ValidationFailed: The moment is unclear, or lies in the future.
        """
        found = find_branch(reader.branches, branch)
        now = self._store.now()
        if as_of is None:
            return View(found, reader.branches.lineage(found), now)
        return self._at(reader, found, self._moment(now, reader.log.head().at, as_of), now)

    def _at(self, reader: Reader, branch: Branch, moment: moments.Moment, now: int) -> View:
        if isinstance(moment, moments.Latest):
            return View(branch, reader.branches.lineage(branch), now)
        if isinstance(moment, moments.AtTime):
            limit, time = _at_time(reader.log, moment.at, now)
        else:
            limit, time = _at_sequence(reader.log, moment.sequence)
        return View(branch, reader.branches.lineage(branch, limit), time)

    def _moment(self, now: int, latest: int, as_of: str | int) -> moments.Moment:
        return moments.parse(as_of, now=now, zone=self.zone, latest=latest)


def _is_relative(moment: moments.Moment) -> bool:
    """Whether the same words will mean another moment later."""
    return isinstance(moment, moments.Latest) or (
        isinstance(moment, moments.AtTime) and moment.relative
    )


def is_another(branch: Branch, name: str) -> bool:
    """Whether a branch of a name is not the one that a client works on under that name."""
    return _is_other_id(branch.id, name)


def _is_other_id(branch: int, name: str) -> bool:
    return isinstance(name, CurrentBranch) and branch != name.id


def other_branches(branches: BranchReader, branch: Branch) -> list[Branch]:
    """Return the live branches beside one, the newest first."""
    return [
        each
        for each in reversed(branches.all())
        if each.deleted_sequence is None and each.id != branch.id
    ]


def find_branch(branches: BranchReader, name: str, *, field: str = "branch") -> Branch:
    """Return the live branch of a name.

    Raises:
        BranchNotFound: There is none; branches with a similar name are suggested.
        ValidationFailed: No branch can have that name.
    """
    # Nearly every call is about the first branch, which cannot be deleted.
    if type(name) is str and name == DEFAULT_BRANCH and (first := branches.by_name(name)):
        return first
    is_hidden = isinstance(name, str) and is_transaction(name)
    if not is_hidden:
        check_text(name, field=field, chars_max=limits.BRANCH_NAME_CHARS_MAX)
    branch = branches.by_name(str(name))
    if branch is not None:
        if not is_another(branch, name):
            return branch
        raise BranchNotFound(
            f"Your current branch {name!r} was deleted, and another branch has its name now.",
            hint=f'strata_branch with action "switch" and name {name!r} switches to that one; '
            f'strata_branch with action "restore" and source {name!r}, under a free name, '
            "restores yours.",
            field=field,
            branch=str(name),
        )
    if is_hidden:
        raise TransactionEnded("The transaction has ended.")
    live = [each.name for each in branches.all() if each.deleted_sequence is None]
    near = difflib.get_close_matches(name, live, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else None
    if branches.deleted_by_name(name) is not None:
        hint = (
            f'It was deleted; strata_branch with action "restore" and name {name!r} restores it, '
            'and strata_branch with action "switch" chooses another.'
        )
    raise BranchNotFound(
        f"There is no branch named {name!r}.", hint=hint, field=field, branch=name, similar=near
    )


def _at_time(log: LogReader, time: int, now: int) -> tuple[int, int]:
    """Return the sequence of the log at a time, and the clock time of that moment.

    The recorded time of a write names that write. Any other time is one of the clock: between two
    recorded times the two are the same, and while the log was ahead of the clock only the clock
    has shown it.
    """
    limit = log.sequence_at(time)
    if log.time_of(limit) == time:
        return limit, log.wall_of(limit) or 0
    if time <= now and (ahead := log.sequence_ahead(time)) is not None:
        return ahead, time
    return limit, time


def _at_sequence(log: LogReader, sequence: int) -> tuple[int, int]:
    """Return the last sequence of the transaction that wrote an event, and its clock time."""
    end = log.end_of(sequence)
    if end is None:
        head = log.head().sequence
        raise ValidationFailed(
            f"The log has no sequence {sequence}; the latest is {head}.",
            field="as_of",
            limit=head,
            hint=f"Pass as_of '@{head}' or an earlier one, or a time such as \"1h ago\".",
        )
    return min(end, OPEN_END), log.wall_of(end) or 0
