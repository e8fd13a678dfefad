"""Diff and merge of two branches.

The algorithm, for a merge of a source into a target:

1. The knowledge of a branch is a vector of sequences, one for each branch that it knows
  (`engine.ancestry`). Common knowledge is the smaller of each entry. Only later changes can differ.
2. The subjects that the source's knowledge changed beyond it are the candidates. Where both
   branches hold the same version or value of one, there is nothing to merge.
3. Each of the others gets a base: the version in the common knowledge that no other one in it
   supersedes, or a virtual base made of several (`_Bases`).
4. The three versions are merged field by field (`engine.merge`). Where they conflict, a decision,
   the strategy or else the caller is asked, unless one of them expires: then the later stands.
5. Events that stand for themselves, which cannot conflict, are copied once each.

Its cost depends on the number of changes, not on the size of the database. It reads the expiry
times of versions and never the clock: an expired version is carried over like any other, and stays
hidden (docs/adr/0030). Only diffs and the reported changes of a merge leave out what is hidden.

The event that records the merge is appended before the merged records (`carry_out`): the target
then knows what the source knows, so that the merged versions count as knowing both sides. Merging
up, syncing down, editing and merging up again then meets no old conflicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import merge as three_way_merge
from stratagem.engine import moments, paths
from stratagem.engine.ancestry import Vector, intersection, maximal_versions, union
from stratagem.engine.events import Draft, Head, Space
from stratagem.engine.lineage import OPEN_END, Branch, Cut, Lineage, View, is_transaction
from stratagem.engine.merge import (
    ABSENT,
    Base,
    ChangedBy,
    Choice,
    Chosen,
    FieldConflict,
    Side,
    changed_by,
    expiry_of,
    virtual_base,
)
from stratagem.engine.paths import Steps
from stratagem.engine.records import RecordKind
from stratagem.engine.values import Json, same
from stratagem.errors import BranchProtected, MergeConflict, ValidationFailed
from stratagem.storage.contract import (
    ChangeReader,
    ComparedSubject,
    LogReader,
    Reader,
    RecordReader,
    ShownVersion,
    StreamEvent,
    Transaction,
    VersionOrigin,
)

__all__ = [
    "BranchComparison",
    "ChangeKind",
    "Decision",
    "Difference",
    "DifferenceGroup",
    "MergePlan",
    "RecordConflict",
    "RecordDifference",
    "Strategy",
    "carry_out",
    "compare",
    "count_events",
    "place_of",
    "plan",
]

Strategy = Literal["source_wins", "target_wins"]
Decision = Literal["source", "target"] | Mapping[str, Any]

# How many conflicts an error lists, because a model reads it; it also gives the full number.
_CONFLICTS_SHOWN_MAX = 100
# How many ids a hint lists.
_IDS_SHOWN = 5
# So many rows of a comparison are kept for the next one, a few megabytes.
_ROWS_KEPT_MAX = 20_000


@dataclass(slots=True)
class RecordConflict:
    """A place that both branches changed. Absent sides are `ABSENT`."""

    id: str
    space: Space
    key: str
    path: Steps
    base: Any
    ours: Any
    theirs: Any


ChangeKind = Literal["added", "removed", "changed"]


class RecordDifference(NamedTuple):
    """A changed record, `before` and `after` the change.

    Absent sides are `ABSENT`. If both branches changed it, `before` is the value on the first
    branch, `after` that on the other, and `base` their common base.
    """

    space: Space
    key: str
    before: Any
    after: Any
    side: ChangedBy = "theirs"
    base: Base = ABSENT

    def visible_at(self, kind: RecordKind, now: int) -> RecordDifference | None:
        """Return the change as it is visible at a time, where expired values are absent.

        None if nothing is.
        """
        expiry, (_space, _key, before, after, _side, _base) = kind.expiry, self
        gone, ended = _has_expired(before, expiry, now), _has_expired(after, expiry, now)
        before, after = ABSENT if gone else before, ABSENT if ended else after
        if before is ABSENT and after is ABSENT:
            return None
        return self._replace(before=before, after=after) if gone or ended else self


@dataclass(slots=True)
class MergePlan:
    """The changes that a merge would write, and its conflicts."""

    drafts: list[Draft] = field(default_factory=list)
    changes: list[RecordDifference] = field(default_factory=list)
    conflicts: list[RecordConflict] = field(default_factory=list)
    carried: int = 0
    resolved: int = 0
    vector: Vector = field(default_factory=dict)
    news: bool = False


def plan(
    reader: Reader,
    target: Branch,
    source: Branch,
    *,
    strategy: Strategy | None = None,
    decisions: Mapping[str, Decision] | None = None,
) -> MergePlan:
    """Plan a merge of one branch into another without writing anything."""
    if target.id == source.id:
        raise BranchProtected("A branch cannot be merged into itself.", branch=target.name)
    chosen = dict(decisions or {})
    return _Merger(reader, target, source, strategy=strategy, decisions=chosen).run()


def carry_out(
    transaction: Transaction, target: Branch, source: Branch, merge: MergePlan
) -> int | None:
    """Write a planned merge; return the sequence of the event that records it.

    Raises:
        MergeConflict: Something is left to decide. Nothing is written.
    """
    if merge.conflicts:
        count = len(merge.conflicts)
        raise MergeConflict(
            f"{count} {'place was' if count == 1 else 'places were'} changed on both branches; "
            "nothing was merged.",
            source=source.name,
            target=target.name,
            conflicts=[_describe(conflict) for conflict in merge.conflicts[:_CONFLICTS_SHOWN_MAX]],
            conflict_count=count,
        )
    if not merge.news:
        return None
    # Before the merged records, so that their versions count as knowing both sides.
    sequence = transaction.branches.record_merge(target, source, merge.vector)
    if merge.drafts:
        transaction.append(target, merge.drafts)
        for kind in transaction.kinds.records.values():
            if kind.settle is not None:
                kind.settle(transaction, target, merge.drafts)
    return sequence


# A record in which two views differ, before its contents are read: its subject, the versions that
# the views show, and what both branches changed where both did. There may be very many.
Difference: TypeAlias = tuple[int, int | None, int | None, Base]


class DifferenceGroup(NamedTuple):
    """What some differences have in common."""

    space: Space
    side: ChangedBy
    change: ChangeKind


class BranchComparison:
    """The records in which two views differ, in groups that are counted without any contents.

    It holds for as long as the state of the log that it was made from, whichever reader sees that.
    """

    def __init__(
        self,
        groups: dict[DifferenceGroup, list[Difference]],
        loaded: LoadedRecords,
        changed: ChangedRows | None = None,
    ) -> None:
        self.groups = groups
        # For the next comparison of the same branches.
        self.changed = changed
        # The contents that were read for the comparison, for its first reader only: they would be
        # too much to keep, and callers may modify the decoded objects.
        self._loaded = [loaded]
        if any(group.side == "both" for group in groups):
            # Kept bases may refer to these objects.
            loaded.decode_anew()
        # The last list that was read, in its order: its next page is often asked for.
        self._listed: tuple[frozenset[DifferenceGroup], list[_ListedDifference]] = frozenset(), []

    def read(
        self,
        reader: Reader,
        groups: Collection[DifferenceGroup],
        begin: int = 0,
        end: int | None = None,
    ) -> list[RecordDifference]:
        """Return the differences of some groups by namespace and key, or a part of them."""
        try:
            # Atomic: of two threads that read at the same time only one gets it.
            loaded = self._loaded.pop()
        except IndexError:
            loaded = LoadedRecords()
        listed = self._in_order(reader, groups, loaded)[begin:end]
        names = [each[:2] for each in listed]
        loaded.read(reader.log, names, [each[2] for each in listed], [each[3] for each in listed])
        contents = loaded.contents
        return [
            _new_tuple(
                RecordDifference, (space, key, contents[before], contents[after], side, base)
            )
            for space, key, before, after, side, base in listed
        ]

    def _in_order(
        self, reader: Reader, groups: Collection[DifferenceGroup], loaded: LoadedRecords
    ) -> list[_ListedDifference]:
        wanted = frozenset(groups)
        among, listed = self._listed
        if among != wanted:
            listed = []
            for space in sorted({group.space for group in wanted}):
                within = [group for group in wanted if group.space == space]
                keys = loaded.read_keys(
                    reader.records, [each[0] for group in within for each in self.groups[group]]
                )
                keyed = [
                    (space, keys[subject], theirs, ours, group.side, base)
                    if group.side == "ours"
                    else (space, keys[subject], ours, theirs, group.side, base)
                    for group in within
                    for subject, ours, theirs, base in self.groups[group]
                ]
                listed += sorted(keyed, key=_key_of)
            self._listed = wanted, listed
        return listed


# A difference that is listed: a `RecordDifference` with versions in place of their contents.
_ListedDifference: TypeAlias = tuple[Space, str, int | None, int | None, ChangedBy, Base]
_key_of = itemgetter(1)
# For a tuple that is at hand: calling the class would unpack it and pack it again.
_new_tuple = tuple.__new__


class LoadedRecords:
    """A cache of keys of records and contents of versions; nothing is read or decoded twice."""

    __slots__ = ("_payloads", "contents", "keys")

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        # By sequence; no version says nothing.
        self.contents: dict[int | None, Side] = {None: ABSENT}
        self._payloads: dict[int, bytes | None] = {}

    def read_keys(self, records: RecordReader, subjects: Sequence[int]) -> Mapping[int, str]:
        """Read the keys of some records; return all that are known."""
        missing = [each for each in subjects if each not in self.keys] if self.keys else subjects
        if missing:
            self.keys |= records.keys(missing)
        return self.keys

    def read(
        self, log: LogReader, names: Sequence[tuple[Space, str]], *sides: Sequence[int | None]
    ) -> None:
        """Read the contents of some versions: of each record one on each side, or none.

        None of them is a deletion.
        """
        known = self.contents
        missing = {
            at: name
            for versions in sides
            for at, name in zip(versions, names, strict=True)
            if at is not None and at not in known
        }
        if missing:
            self.add(log.payloads(missing))

    def read_any(self, reader: Reader, sequences: Iterable[int]) -> None:
        """Read the contents of some versions, which may include deletions."""
        missing = set(sequences).difference(self._payloads)
        if missing:
            deletions = reader.kinds.deletions
            versions = reader.log.versions(sorted(missing))
            self.add(
                {
                    at: None if version.kind in deletions else version.payload
                    for at, version in versions.items()
                }
            )

    def add(self, payloads: Mapping[int, bytes | None]) -> None:
        """Decode the contents of versions; deletions and purged versions have none."""
        self._payloads |= payloads
        decode = orjson.loads
        self.contents |= {
            at: ABSENT if payload is None else decode(payload) for at, payload in payloads.items()
        }

    def decode_anew(self) -> None:
        """Decode all contents again, so that they share no objects with earlier results."""
        self.add(self._payloads)

    def differ(self, ours: Iterable[int | None], theirs: Iterable[int | None]) -> list[bool]:
        """Return which versions differ in content from those beside them; None is an absent one."""
        payloads, contents = self._payloads, self.contents
        return [
            one != other
            and (
                one is None
                or other is None
                or (
                    payloads[one] != payloads[other]
                    # Python's comparison is faster than `same`, and everything that is the same is
                    # equal to it.
                    and (
                        contents[one] != contents[other] or not same(contents[one], contents[other])
                    )
                )
            )
            for one, other in zip(ours, theirs, strict=True)
        ]


def compare(
    reader: Reader, here: View, there: View, last: BranchComparison | None = None
) -> BranchComparison:
    """Compare two views; "ours" is what the branch of the first changed, "theirs" the other's.

    Which versions the views show is looked up first. Contents are read only of records that both
    show, each in another version, and of those that both branches changed. Where the `last`
    comparison was one of the same branches, only what changed since is looked up.
    """
    return _Comparer(reader, here, there, last.changed if last else None).run()


class ChangedRows(NamedTuple):
    """What two branches changed, as a comparison found it, and the keys of these records.

    `between` is what a later comparison must have in common with it, `head` the newest event then,
    and `ends` are those up to which the branches were read.
    """

    between: Hashable
    head: Head
    ends: tuple[int, int]
    ours: list[ComparedSubject]
    theirs: list[ComparedSubject]
    keys: dict[int, str]


class _ComparedView:
    """One of two views that are compared."""

    def __init__(self, reader: Reader, view: View) -> None:
        self.lineage = view.lineage
        self.time = view.time
        self.end = Cut(view.branch.id, view.limit)
        self.known = _knowledge(reader, view)
        # Whether the branch shows all that it knows of: it has learnt nothing by a merge.
        shown = dict(view.lineage)
        self.is_plain = all(shown.get(branch, 0) >= upto for branch, upto in self.known.items())
        # The subjects that were changed beyond what both know, by the branch itself or elsewhere.
        self.changed: set[int] = set()


# The subject and the space of a record, and the versions of it that two views hold.
_HeldVersions: TypeAlias = tuple[int, int, int, int]


class _Pair(NamedTuple):
    """The versions of a subject in two views, whether they are visible, and which are held.

    A held version is no deletion, but may have expired; 0 stands for none.
    """

    subject: int
    space: int
    ours: int | None
    theirs: int | None
    ours_seen: bool
    theirs_seen: bool
    ours_held: int
    theirs_held: int

    @property
    def held(self) -> _HeldVersions:
        """What is held of the record."""
        return self.subject, self.space, self.ours_held, self.theirs_held


# The base of a record that neither of two branches holds.
_ANOTHER_VERSION: Final = -1


class _Comparer:
    """Computes one comparison. "Ours" is the first of two views, "theirs" the second."""

    def __init__(
        self, reader: Reader, here: View, there: View, last: ChangedRows | None = None
    ) -> None:
        self.reader = reader
        self.here, self.there = _ComparedView(reader, here), _ComparedView(reader, there)
        self.known = intersection(self.here.known, self.there.known)
        self.last = last
        self.bases = _Bases(reader)
        self.spaces: dict[int, Space] = {}
        # What both views show in versions that never expire: most differences are such.
        self.lasting: list[_HeldVersions] = []
        self.found: defaultdict[tuple[int, ChangedBy, ChangeKind], list[Difference]] = defaultdict(
            list
        )

    def run(self) -> BranchComparison:
        changed = self.changed_rows()
        ours = self.own_changes(self.here, self.there, changed.ours)
        theirs = self.own_changes(self.there, self.here, changed.theirs)
        by_theirs = {row[0] for row in theirs}
        others = self.other_changes(by_theirs.union([row[0] for row in ours]))
        rows = [row for row in ours if row[0] not in by_theirs] + others
        pairs = self.pairs(rows) + self.pairs(theirs, swapped=True)
        # From cheap to costly: most bases follow from the versions at hand, others are confirmed by
        # a lookup for all of them, and only disputed ones have to be searched for.
        disputed = self.group_lasting()
        unclear = [
            pair
            for pair in self.pairs_apart(pairs)
            if not self.group_by_version(pair, self.plain_base(pair))
        ]
        likely = [self.likely_base(pair) for pair in unclear]
        is_known = self.find_undisputed(likely)
        disputed += [
            pair
            for pair, base in zip(unclear, likely, strict=True)
            if base not in is_known or not self.group_by_version(pair, _held_version(pair, base))
        ]
        if disputed:
            self.group_disputed(disputed)
        return self.comparison(changed)

    def changed_rows(self) -> ChangedRows:
        """Return the subjects that each branch changed itself, beside what the other view shows."""
        here, there = self.here, self.there
        known = self.known.get(here.end.branch, 0), self.known.get(there.end.branch, 0)
        ends = here.known[here.end.branch], there.known[there.end.branch]
        # A fork does not move, and what a purge or a repair has changed is another generation.
        between = (
            self.reader.settings.number("vector_generation"),
            *((view.end.branch, view.lineage[1:]) for view in (here, there)),
            known,
        )
        last, head = self.last, self.reader.log.head()
        if last is None or not self.goes_on(last, between, ends):
            ours, theirs = self.changed_since(known, ends)
            keys = self.bases.loaded.keys
        else:
            ours, theirs = self.changed_since(last.ends, ends)
            by_ours, by_theirs = ({row[0] for row in rows} for rows in (ours, theirs))
            ours += self.renew(last.ours, by_ours, by_theirs, here, there)
            theirs += self.renew(last.theirs, by_theirs, by_ours, there, here)
            keys = self.bases.loaded.keys = last.keys
        return ChangedRows(between, head, ends, ours, theirs, keys)

    def goes_on(self, last: ChangedRows, between: Hashable, ends: tuple[int, int]) -> bool:
        """Whether the rows of an earlier comparison are those of this one up to a point."""
        return (
            last.between == between
            and self.here.end.branch != self.there.end.branch
            and all(before <= now for before, now in zip(last.ends, ends, strict=True))
            and self.reader.log.hash_of(last.head.sequence) == last.head.hash
        )

    def changed_since(
        self, after: tuple[int, int], ends: tuple[int, int]
    ) -> tuple[list[ComparedSubject], list[ComparedSubject]]:
        """Return the subjects that each branch changed itself after a sequence of its own."""
        changes, here, there = self.reader.changes, self.here, self.there
        return (
            changes.compared_subjects(Cut(here.end.branch, ends[0]), after[0], there.lineage),
            changes.compared_subjects(Cut(there.end.branch, ends[1]), after[1], here.lineage),
        )

    def renew(
        self,
        rows: Sequence[ComparedSubject],
        by_own: Collection[int],
        by_other: Collection[int],
        view: _ComparedView,
        other: _ComparedView,
    ) -> list[ComparedSubject]:
        """Return the rows that a branch has not changed again, as the other view shows them now."""
        kept = [row for row in rows if row[0] not in by_own] if by_own else list(rows)
        if not by_other:
            return kept
        stale = {row[0] for row in kept if row[0] in by_other}
        kept = [row for row in kept if row[0] not in stale]
        return kept + _compared_versions(self.reader.changes, stale, view.lineage, other.lineage)

    def find_undisputed(self, versions: Sequence[int | None]) -> Collection[int | None]:
        """Return those of some versions that are the base of their record for certain."""
        lineages = self.here.lineage, self.there.lineage
        return self.bases.find_undisputed(versions, self.known, lineages)

    def group_disputed(self, pairs: Sequence[_Pair]) -> None:
        """Group the records whose base has to be looked for."""
        known = self.bases.newest_known([pair.subject for pair in pairs], self.known)
        for pair in pairs:
            common = known.get(pair.subject, [])
            if not self.group_by_version(pair, _base_version(pair, common)):
                self.group_by_content(pair, common)

    def comparison(self, changed: ChangedRows) -> BranchComparison:
        """Return the comparison, without records that are derived from others."""
        groups = {}
        for (number, side, change), differences in self.found.items():
            space = self.space(number)
            if not self.reader.kinds.record(space.kind).derived:
                groups[DifferenceGroup(space, side, change)] = differences
        few = len(changed.ours) + len(changed.theirs) <= _ROWS_KEPT_MAX
        return BranchComparison(groups, self.bases.loaded, changed if few else None)

    def space(self, number: int) -> Space:
        if not self.spaces:
            self.spaces = self.reader.records.spaces()
        return self.spaces[number]

    def own_changes(
        self, view: _ComparedView, other: _ComparedView, rows: list[ComparedSubject]
    ) -> list[ComparedSubject]:
        """Return the subjects that the branch of one view changed itself, beside the other view.

        What the other branch has never heard of was added, and is grouped at once.
        """
        if other.is_plain:
            self.group_additions(view, [row for row in rows if row[5] is None])
            rows = [row for row in rows if row[5] is not None]
        view.changed.update([row[0] for row in rows])
        return rows

    def group_additions(self, view: _ComparedView, rows: Sequence[ComparedSubject]) -> None:
        side: ChangedBy = "ours" if view is self.here else "theirs"
        for subject, space, sequence, deleted, expires_at, *_ in rows:
            if not deleted and (expires_at is None or expires_at > view.time):
                sides = (sequence, None) if side == "ours" else (None, sequence)
                self.found[space, side, "added"].append((subject, *sides, ABSENT))

    def other_changes(self, rows: Collection[int]) -> list[ComparedSubject]:
        """Return further subjects that may differ although neither branch changed them itself.

        A branch may have learnt of changes elsewhere by a merge, and between two moments a record
        may expire.
        """
        times = sorted((self.here.time, self.there.time))
        others = set(self.reader.changes.expired_subjects(*times))
        for view in (self.here, self.there):
            elsewhere = {at: upto for at, upto in view.known.items() if at != view.end.branch}
            changed = _changed_subjects(self.reader.changes, elsewhere, self.known)
            view.changed.update(changed)
            others.update(changed)
        others.difference_update(rows)
        if others:
            others.difference_update(each[0] for found in self.found.values() for each in found)
        return _compared_versions(
            self.reader.changes, others, self.here.lineage, self.there.lineage
        )

    def pairs(self, rows: Iterable[ComparedSubject], *, swapped: bool = False) -> list[_Pair]:
        """Return the pairs in which two views show different versions, or only one shows any.

        Those of versions that never expire are put aside. `swapped`: the second view stands first
        in the rows.
        """
        here_time, there_time = self.here.time, self.there.time
        if swapped:
            here_time, there_time = there_time, here_time
        pairs = []
        lasting = self.lasting.append
        for subject, space, ours, gone, ends, theirs, theirs_gone, theirs_ends in rows:
            if ours and theirs and not gone and not theirs_gone and ends is theirs_ends is None:
                if ours != theirs:
                    lasting(
                        (subject, space, theirs, ours)
                        if swapped
                        else (subject, space, ours, theirs)
                    )
                continue
            held = 0 if ours is None or gone else ours
            theirs_held = 0 if theirs is None or theirs_gone else theirs
            seen = bool(held) and (ends is None or ends > here_time)
            theirs_seen = bool(theirs_held) and (theirs_ends is None or theirs_ends > there_time)
            # Nothing to see on either side, or the same version on both.
            if not (seen or theirs_seen) or (seen and theirs_seen and ours == theirs):
                continue
            pairs.append(
                _Pair(subject, space, theirs, ours, theirs_seen, seen, theirs_held, held)
                if swapped
                else _Pair(subject, space, ours, theirs, seen, theirs_seen, held, theirs_held)
            )
        return pairs

    def group_lasting(self) -> list[_Pair]:
        """Group the lasting pairs that differ in content; return those whose base is disputed.

        The base is found as that of other pairs: by `plain_base`, or as the `likely_base`.
        """
        here, there, found = self.here, self.there, self.found
        unclear = []
        for pair in self.apart(self.lasting):
            subject, space, ours, theirs = pair
            if here.is_plain and subject not in here.changed:
                found[space, "theirs", "changed"].append((subject, ours, theirs, ABSENT))
            elif there.is_plain and subject not in there.changed:
                found[space, "ours", "changed"].append((subject, ours, theirs, ABSENT))
            else:
                unclear.append(pair)
        likely = [each[3] if each[0] in here.changed else each[2] for each in unclear]
        is_known, seen, disputed = self.find_undisputed(likely), True, []
        for (subject, space, ours, theirs), base in zip(unclear, likely, strict=True):
            if base in is_known:
                side: ChangedBy = "theirs" if base == ours else "ours"
                found[space, side, "changed"].append((subject, ours, theirs, ABSENT))
            else:
                disputed.append(_Pair(subject, space, ours, theirs, seen, seen, ours, theirs))
        return disputed

    def pairs_apart(self, pairs: Sequence[_Pair]) -> list[_Pair]:
        """Return the pairs whose two versions differ in content."""
        compared = [pair.held for pair in pairs if pair.ours_seen and pair.theirs_seen]
        apart = {each[0] for each in self.apart(compared)}
        return [
            pair
            for pair in pairs
            if pair.subject in apart or not (pair.ours_seen and pair.theirs_seen)
        ]

    def apart(self, pairs: Sequence[_HeldVersions]) -> Iterable[_HeldVersions]:
        """Return the records whose two versions differ in content."""
        self.load(pairs)
        differ = self.bases.loaded.differ([each[2] for each in pairs], [each[3] for each in pairs])
        return compress(pairs, differ)

    def load(self, pairs: Sequence[_HeldVersions]) -> None:
        """Read what is held of some records."""
        if pairs:
            loaded = self.bases.loaded
            keys = loaded.read_keys(self.reader.records, [each[0] for each in pairs])
            spaces = {number: self.space(number) for number in {each[1] for each in pairs}}
            loaded.read(
                self.reader.log,
                [(spaces[each[1]], keys[each[0]]) for each in pairs],
                [each[2] or None for each in pairs],
                [each[3] or None for each in pairs],
            )

    def plain_base(self, pair: _Pair) -> int:
        """Return the base of a record if it is known without a search.

        If one branch has not changed the record, its version is the base, provided the branch has
        never merged: in a merge it may have decided between several versions.
        """
        if self.here.is_plain and pair.subject not in self.here.changed:
            return pair.ours_held
        if self.there.is_plain and pair.subject not in self.there.changed:
            return pair.theirs_held
        return _ANOTHER_VERSION

    def likely_base(self, pair: _Pair) -> int | None:
        """Return the version that the branch shows which has not changed the record."""
        return pair.theirs if pair.subject in self.here.changed else pair.ours

    def group_by_version(self, pair: _Pair, base: int) -> bool:
        """Group a difference by its base, if one of the branches still holds that version.

        If both hold a version and only one of them shows it, their contents may be equal, which
        versions alone cannot tell.
        """
        if base == pair.ours_held:
            self.group(pair, "theirs")
        elif base == pair.theirs_held and (
            not (pair.ours_held and pair.theirs_held) or (pair.ours_seen and pair.theirs_seen)
        ):
            self.group(pair, "ours")
        else:
            return False
        return True

    def group_by_content(self, pair: _Pair, common: Sequence[Cut]) -> None:
        """Group a difference by what the base and the branches say."""
        space = self.space(pair.space)
        self.load([pair.held])
        self.bases.load([cut.limit for cut in common])
        ours = self.bases.side_of(pair.subject, self.here.end, pair.ours_held or None)
        theirs = self.bases.side_of(pair.subject, self.there.end, pair.theirs_held or None)
        base = self.bases.of(pair.subject, space, common, self.known)
        base = self.bases.alike(pair.subject, space, base, ours, theirs)
        side = changed_by(base, ours.content, theirs.content)
        self.group(pair, side, base if side == "both" else ABSENT)

    def group(self, pair: _Pair, side: ChangedBy, base: Base = ABSENT) -> None:
        ours = pair.ours if pair.ours_seen else None
        theirs = pair.theirs if pair.theirs_seen else None
        before, after = (theirs, ours) if side == "ours" else (ours, theirs)
        change: ChangeKind = "changed"
        if before is None or after is None:
            change = "added" if before is None else "removed"
        self.found[pair.space, side, change].append((pair.subject, ours, theirs, base))


def _held_version(pair: _Pair, version: int | None) -> int:
    """Return what a branch holds of a record by the version that it shows."""
    return pair.ours_held if version == pair.ours else pair.theirs_held


def _base_version(pair: _Pair, common: Sequence[Cut]) -> int:
    """Return what the base holds of a record, where one of two branches is at the same version."""
    if not common:
        return 0
    if len(common) == 1 and common[0].limit == pair.ours:
        return pair.ours_held
    if len(common) == 1 and common[0].limit == pair.theirs:
        return pair.theirs_held
    return _ANOTHER_VERSION


def count_events(reader: Reader, here: View, there: View) -> tuple[int, int]:
    """Return how many logged events only the first of two views shows, and only the second."""
    here_known, there_known = _knowledge(reader, here), _knowledge(reader, there)
    both = intersection(here_known, there_known)
    ours, theirs = (
        sum(1 for _ in _missing_events(reader, _gained_events(reader, lineage, both), known))
        for lineage, known in ((here.lineage, there_known), (there.lineage, here_known))
    )
    return ours, theirs


def place_of(path: Steps) -> str:
    """Return a place of a record as callers write it: of an entry, the place within its value."""
    return paths.render(path[1:] if path[:1] == ("value",) else path)


class _RecordName(NamedTuple):
    """The identity of a record."""

    space: Space
    key: str

    @property
    def id(self) -> str:
        """The id by which a decision refers to the record; it is unique."""
        # Up to the first slash it is the namespace, so that one of its own must not look like it.
        namespace = self.space.namespace.replace("%", "%25").replace("/", "%2F")
        place = f"{namespace}/{self.key}"
        return place if self.space.kind == "entry" else f"{self.space.kind}:{place}"

    def place_id(self, path: Steps) -> str:
        """Return what a decision about one place of the record is given for."""
        return f"{self.id}#{place_of(path)}"


class _RecordSides(NamedTuple):
    """The versions of a record: what the target shows, and what both sides hold.

    Held is a version that is no deletion.
    """

    shown: int | None
    ours: int | None
    theirs: int | None


class _OpenRecord(NamedTuple):
    """A record that both branches changed, waiting for a decision."""

    name: _RecordName
    conflicts: list[FieldConflict]
    base: Base
    ours: Side
    theirs: Side
    origin: int | None


class _Merger:
    """Plans one merge. "Ours" is the target, "theirs" the source."""

    def __init__(
        self,
        reader: Reader,
        target: Branch,
        source: Branch,
        *,
        strategy: Strategy | None,
        decisions: dict[str, Decision],
    ) -> None:
        self.reader = reader
        self.target = target
        self.source = source
        self.strategy = strategy
        self.decisions = decisions
        self.open: list[_OpenRecord] = []
        head = reader.log.head().sequence
        self.ours_known = reader.branches.knowledge(target.id, head)
        self.theirs_known = reader.branches.knowledge(source.id, head)
        self.base_known = intersection(self.ours_known, self.theirs_known)
        self.bases = _Bases(reader)
        self.kinds: dict[Space, RecordKind] = {}
        # The ids among the decisions that some conflict had; the others are mistakes.
        self.used: set[str] = set()
        self.merge = MergePlan()

    def run(self) -> MergePlan:
        vector = union(self.ours_known, self.theirs_known)
        # Of itself a branch always knows everything: that need not be recorded.
        vector.pop(self.target.id, None)
        self.merge.vector = vector
        self.merge_records()
        self.copy_stream()
        # Of itself the source always knows more than before, if only that time has passed.
        self.merge.news = self.merge.news or any(
            upto > self.ours_known.get(branch, 0)
            for branch, upto in vector.items()
            if branch != self.source.id
        )
        unused = sorted(set(self.decisions) - self.used)
        if unused:
            ids = [each.id for each in self.merge.conflicts]
            shown = ", ".join(ids[:_IDS_SHOWN]) + (", …" if len(ids) > _IDS_SHOWN else "")
            raise ValidationFailed(
                f"No conflict has the id {unused[0]!r}.",
                field="decisions",
                unknown=unused[:20],
                hint=f"Undecided: {shown}." if ids else "No other conflict is left to decide.",
            )
        return self.merge

    def merge_records(self) -> None:
        target, source = (
            self.reader.branches.lineage(branch) for branch in (self.target, self.source)
        )
        rows = self.changed_records(source, target)
        self.merge.news = bool(rows)
        if rows:
            self.merge_changed(rows, (target, source))
        self.decide()

    def changed_records(self, source: Lineage, target: Lineage) -> list[ComparedSubject]:
        """Return what both show of the records that the source has changed, or knows changes of.

        The version of the source stands first.
        """
        branch, changes = self.source.id, self.reader.changes
        own = Cut(branch, self.theirs_known[branch])
        rows = changes.compared_subjects(own, self.base_known.get(branch, 0), target)
        elsewhere = {at: upto for at, upto in self.theirs_known.items() if at != branch}
        others = set(_changed_subjects(changes, elsewhere, self.base_known))
        others.difference_update([row[0] for row in rows])
        # By the number of the subject: the order in which they are written.
        return sorted(rows + _compared_versions(changes, others, source, target), key=_subject_of)

    def merge_changed(
        self, rows: Sequence[ComparedSubject], lineages: tuple[Lineage, Lineage]
    ) -> None:
        """Merge the records that the source has changed, or whose changes it has learnt of."""
        names, held = self.names(rows), self.sides(rows)
        _shown, ours, theirs = zip(*held.values(), strict=True)
        self.bases.loaded.read(self.reader.log, [*names.values()], ours, theirs)
        apart = dict(compress(held.items(), self.bases.loaded.differ(ours, theirs)))
        changed = self.find_changed(apart, lineages)
        gone = [subject for subject, sides in apart.items() if sides.theirs is None]
        deletions = self.deletions(self.bases, gone) if gone else {}
        for subject, sides in apart.items():
            name = names[subject]
            if not self.kind(name.space).derived:
                origin = sides.theirs or deletions.get(subject)
                if subject in changed:
                    self.merge_versions(subject, name, sides, changed[subject], origin)
                else:
                    self.take(subject, name, sides, origin)

    def names(self, rows: Sequence[ComparedSubject]) -> dict[int, _RecordName]:
        spaces = self.reader.records.spaces()
        keys = self.bases.loaded.read_keys(self.reader.records, [row[0] for row in rows])
        return {row[0]: _new_tuple(_RecordName, (spaces[row[1]], keys[row[0]])) for row in rows}

    def sides(self, rows: Sequence[ComparedSubject]) -> dict[int, _RecordSides]:
        return {
            subject: _new_tuple(
                _RecordSides, (ours, None if gone else ours, None if theirs_gone else theirs)
            )
            for subject, _space, theirs, theirs_gone, _ends, ours, gone, _theirs_ends in rows
        }

    def find_changed(
        self, apart: Mapping[int, _RecordSides], lineages: tuple[Lineage, Lineage]
    ) -> dict[int, Sequence[Cut]]:
        """Return the records that the target may have changed, too, with what both know of each.

        Most often the target has left a record alone: then the base is what it shows.
        """
        is_known = self.bases.find_undisputed(
            [sides.shown for sides in apart.values()], self.base_known, lineages
        )
        disputed = [each for each, sides in apart.items() if sides.shown not in is_known]
        bases = self.bases.newest_known(disputed, self.base_known)
        changed: dict[int, Sequence[Cut]] = {
            each: bases.get(each, ())
            for each in disputed
            if not _is_base(bases.get(each, ()), apart[each].shown)
        }
        self.bases.load([cut.limit for common in changed.values() for cut in common])
        return changed

    def merge_versions(
        self,
        subject: int,
        name: _RecordName,
        sides: _RecordSides,
        common: Sequence[Cut],
        origin: int | None,
    ) -> None:
        """Merge what both sides have made of a record, over what both know of it."""
        bases = self.bases
        held = (
            bases.side_of(subject, Cut(self.target.id, OPEN_END), sides.ours),
            bases.side_of(subject, Cut(self.source.id, OPEN_END), sides.theirs),
        )
        base = bases.of(subject, name.space, common, self.base_known)
        base = bases.alike(subject, name.space, base, *held)
        self.merge_record(name, base, held, origin)

    def take(
        self, subject: int, name: _RecordName, sides: _RecordSides, origin: int | None
    ) -> None:
        """Take over the source's version of a record that the target has not changed."""
        contents, (space, key) = self.bases.loaded.contents, name
        ours, theirs = contents[sides.ours], contents[sides.theirs]
        if theirs is ABSENT:
            self.write(name, ours, theirs, origin, repeated=sides.theirs, subject=subject)
            return
        # As `write` does with a value: there may be thousands.
        kind, content = self.kind(space), cast("Mapping[str, Any]", theirs)
        assert kind.writes is not None, f"{space.kind} records cannot be merged"
        if kind.validate is not None:
            kind.validate(content)
        self.merge.drafts.append(
            Draft(kind.writes, content, space, key, origin, sides.theirs, subject)
        )
        self.merge.changes.append(RecordDifference(space, key, ours, theirs))

    def deletions(self, bases: _Bases, subjects: Sequence[int]) -> dict[int, int]:
        """Return the versions by which the source has deleted some subjects, or learnt of that."""
        held = bases.deletions(subjects, dict(self.reader.branches.lineage(self.source)))
        learnt = [subject for subject in subjects if subject not in held]
        found = held | bases.deletions(learnt, self.theirs_known)
        return {subject: cut.limit for subject, cut in found.items()}

    def merge_record(
        self,
        name: _RecordName,
        base: Base,
        held: tuple[_Held, _Held],
        origin: int | None,
    ) -> None:
        kind, (ours, theirs) = self.kind(name.space), (cast("Side", each.content) for each in held)
        merged = three_way_merge.three_way(
            base, ours, theirs, sets=kind.set_fields, expiry=kind.expiry
        )
        open_places = [
            each for each in merged.conflicts if not (each.path and each.path[0] in kind.yielding)
        ]
        if open_places:
            self.open.append(_OpenRecord(name, open_places, base, ours, theirs, origin))
            return
        # Where they conflict, the value holds our side: what a conflict in a yielding field is
        # resolved to.
        value = _with_lasting(kind, base, ours, theirs, merged.value)
        if merged.settled or merged.conflicts or not _is_same_side(value, ours):
            self.write(name, ours, value, origin)

    def decide(self) -> None:
        """Apply the decisions to what is open; what has none is a conflict."""
        ids = {record.name.id for record in self.open}
        keys = Counter(record.name.key for record in self.open)
        for record in self.open:
            name = record.name
            # A key alone will do where it can only mean one of them.
            accepted = [name.id]
            if name.key not in ids and keys[name.key] == 1:
                accepted.append(name.key)
            whole = self.decision(accepted)
            if isinstance(whole, Mapping):
                self.conclude(record, _with_value(whole, record.ours, record.theirs))
            else:
                self.decide_places(record, whole or self.by_strategy, ids)

    def decide_places(
        self, record: _OpenRecord, whole: Decision | None, taken: Collection[str]
    ) -> None:
        """Decide a record place by place; what has no decision of its own goes with the whole."""
        name, undecided = record.name, []
        choices: dict[Steps, Choice] = {}
        for each in record.conflicts:
            # Unless some other record is named like the place.
            place = name.place_id(each.path)
            free = place not in taken
            decision = (self.decision([place]) if free else None) or whole
            if decision is None:
                # Under the id of an entry a decided value replaces all of the entry's: a conflict
                # within the value has an id of its place, also where it is the only one.
                in_value = each.path[:1] == ("value",) and len(each.path) > 1
                several = len(record.conflicts) > 1
                within = in_value and name.space.kind == "entry"
                shown = place if free and (within or several) else name.id
                undecided.append(
                    RecordConflict(shown, *name, each.path, each.base, each.ours, each.theirs)
                )
            else:
                choices[each.path] = _choice(decision, each)
        if undecided:
            self.merge.conflicts += undecided
            return
        sets = self.kind(name.space).set_fields
        self.conclude(
            record,
            three_way_merge.resolve(
                record.base, record.ours, record.theirs, choices=choices, sets=sets
            ),
        )

    def conclude(self, record: _OpenRecord, value: Side) -> None:
        self.merge.resolved += len(record.conflicts)
        kind = self.kind(record.name.space)
        value = _with_lasting(kind, record.base, record.ours, record.theirs, value)
        self.write(record.name, record.ours, value, record.origin)

    def decision(self, names: Sequence[str]) -> Decision | None:
        for name in names:
            if name in self.decisions:
                self.used.add(name)
                return self.decisions[name]
        return None

    @property
    def by_strategy(self) -> Decision | None:
        if self.strategy is None:
            return None
        return "source" if self.strategy == "source_wins" else "target"

    def write(
        self,
        name: _RecordName,
        ours: Side,
        value: Side,
        origin: int | None,
        *,
        repeated: int | None = None,
        subject: int | None = None,
    ) -> None:
        """Write the merged value of a record, and report it if it differs.

        A decided conflict is written even if the value stays the same: the new version then knows
        both sides, or the same conflict would come back with the next merge. `repeated` is the
        version of the source with the same content, if it was taken unchanged.
        """
        kind = self.kind(name.space)
        if value is not ABSENT and repeated is None:
            value = _read_times(kind, value)
        content: Any = {} if value is ABSENT else value
        event = kind.deletes if value is ABSENT else kind.writes
        assert event is not None, f"{name.space.kind} records cannot be merged"
        if kind.validate is not None and value is not ABSENT:
            kind.validate(content)
        self.merge.drafts.append(Draft(event, content, *name, origin, repeated, subject))
        if repeated is not None or not _is_same_side(ours, value):
            self.merge.changes.append(RecordDifference(*name, ours, value))

    def copy_stream(self) -> None:
        """Copy the source's events that stand for themselves, each of them once."""
        lineage = self.reader.branches.lineage(self.source)
        gained = _gained_events(self.reader, lineage, self.base_known)
        self.merge.news = self.merge.news or bool(gained)
        for event, first in _missing_events(self.reader, gained, self.ours_known):
            assert event.payload is not None
            self.merge.carried += 1
            content = orjson.loads(event.payload)
            self.merge.drafts.append(
                Draft(event.kind, content, event.space, None, first.limit, event.sequence)
            )

    def kind(self, space: Space) -> RecordKind:
        kind = self.kinds.get(space)
        if kind is None:
            kind = self.kinds[space] = self.reader.kinds.record(space.kind)
        return kind


def _with_lasting(kind: RecordKind, base: Base, ours: Side, theirs: Side, value: Side) -> Side:
    """Return a merged record with the marks that either side has, where both changed it."""
    changed = isinstance(value, dict) and not (
        _is_same_side(base, ours) or _is_same_side(base, theirs)
    )
    if not (kind.lasting and changed):
        return value
    marks = {
        name: side[name]
        for side in (theirs, ours)
        if isinstance(side, dict)
        for name in kind.lasting
        if name in side
    }
    return cast("Side", {**cast("dict[str, Any]", value), **marks})


def _gained_events(reader: Reader, lineage: Lineage, known: Vector) -> list[StreamEvent]:
    """Return the events standing for themselves that a lineage shows beyond what is known."""
    return [
        event
        for cut in reversed(lineage)
        for event in reader.changes.stream_events(cut, known.get(cut.branch, 0))
    ]


def _missing_events(
    reader: Reader, events: Iterable[StreamEvent], known: Vector
) -> Iterator[tuple[StreamEvent, Cut]]:
    """Yield the events that a branch with this knowledge does not hold, with the origin of each.

    A copy names its original event. A branch holds the original, or a copy of it, exactly if its
    knowledge of the original's branch reaches that far. Purged events are never missing.
    """
    for event in events:
        if event.payload is not None:
            first = _first_of(reader, event)
            if known.get(first.branch, 0) < first.limit:
                yield event, first


def _first_of(reader: Reader, event: StreamEvent) -> Cut:
    """Return where an event was first written, also for a copy of it."""
    if event.origin is not None:
        branch = reader.log.branch_of(event.origin)
        # What a transaction wrote is first written where it is committed: no branch ever
        # knows the transaction itself.
        if not is_transaction(reader.branches.by_id(branch).name):
            return Cut(branch, event.origin)
    return Cut(event.branch, event.sequence)


class _Held(NamedTuple):
    """The value of a record on one side, and the versions that it was made from."""

    content: Base
    versions: Callable[[], list[int]]


class _State(NamedTuple):
    """The state of a record on a branch: a version, and all versions that it takes into account."""

    version: Cut
    known: Vector


class _Bases:
    """Finds the base of each record, making a virtual one where several are maximal.

    After criss-cross merges (each of two branches merged the other, and both went on) several
    versions of a record can be common to both sides with none of them superseding the others. They
    are merged pairwise, each pair over a base of its own, which is found in the same way: the
    recursion ends because each step looks at less knowledge.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.loaded = LoadedRecords()
        self._known: dict[tuple[int, int], Vector] = {}
        # For two branches, each up to some point: how far the first knows the second, where it
        # knows all that the second knows.
        self._reach: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}

    def candidates(self, subject: int, known: Vector) -> list[Cut]:
        """Return the newest versions of a subject on each branch that a vector knows, loaded."""
        versions = self.newest_known([subject], known).get(subject, [])
        self.load([cut.limit for cut in versions])
        return versions

    def find_undisputed(
        self, versions: Sequence[int | None], known: Vector, lineages: Iterable[Lineage]
    ) -> Collection[int | None]:
        """Return those of some versions that supersede all others of their record in a vector.

        They lie in some lineages. Checking a candidate takes a fraction of the time of a search.
        """
        wanted = {version for version in versions if version is not None}
        covering = self.covering_branches(known, lineages) if wanted else {}
        if not covering:
            return ()
        doubtful = self._reader.changes.doubtful_versions([*wanted], known, covering)
        return wanted - doubtful

    def covering_branches(self, known: Vector, lineages: Iterable[Lineage]) -> Vector:
        """Return the branches of some lineages that know all that a vector does, up to there.

        The latest version of a record, written on one of them, supersedes all others in the
        vector: what a vector knows of a branch includes what that branch knows itself.
        """
        branches = {cut.branch for lineage in lineages for cut in lineage}
        return {
            branch: known[branch]
            for branch in branches & known.keys()
            if _covers(self.knowledge(branch, known[branch]), known)
        }

    def newest_known(self, subjects: Sequence[int], known: Vector) -> dict[int, list[Cut]]:
        """Return the newest versions of some subjects on each branch that a vector knows.

        Where the latest one supersedes the others it comes alone, so that they need not be read:
        that is so unless branches went apart.
        """
        if not subjects:
            return {}
        found = self._reader.changes.known_versions(subjects, known)
        for subject, versions in found.items():
            if len(versions) > 1:
                latest = max(versions, key=_sequence_of)
                if all(each is latest or self.supersedes(latest, each, known) for each in versions):
                    found[subject] = [latest]
        return found

    def supersedes(self, latest: Cut, version: Cut, known: Vector) -> bool:
        """Whether the branch of one version knows the other, and all that the other's branch knows.

        The knowledge of branches is the same for all records, so it is compared only once.
        """
        branch, other = latest.branch, version.branch
        pair = (branch, known[branch]), (other, known[other])
        reach = self._reach.get(pair)
        if reach is None:
            here, there = (self.knowledge(*place) for place in pair)
            covers = all(here.get(each, 0) >= upto for each, upto in there.items() if each != other)
            reach = self._reach[pair] = here.get(other, 0) if covers else 0
        return reach >= version.limit

    def load(self, sequences: Iterable[int]) -> None:
        """Read some versions, unless they were read before."""
        self.loaded.read_any(self._reader, sequences)

    def alike(self, subject: int, space: Space, base: Base, ours: _Held, theirs: _Held) -> Base:
        """Return the base of two versions; if they expire together, one that expires with them.

        A version with another expiry was discarded by both, so neither was made from it.
        """
        field_name = self._reader.kinds.record(space.kind).expiry
        ends, others, bases = (
            expiry_of(side, field_name) for side in (ours.content, theirs.content, base)
        )
        if ends != others or ends == bases:
            return base
        descent = _Descent(self._reader, subject, self)
        return self.made_from(space, descent, ends, ours.versions(), theirs.versions())

    def made_from(
        self,
        space: Space,
        descent: _Descent,
        ends: int | None,
        ours: Collection[int],
        theirs: Collection[int],
    ) -> Base:
        """Return what the versions of two sides were made from, among those that end at a time."""
        latest = descent.common(ours, theirs, ends)
        self.load(latest)
        kind = self._reader.kinds.record(space.kind)
        value: Base = ABSENT
        for place, sequence in enumerate(latest):
            content = self.content(Cut(0, sequence))
            if place == 0:
                value = content
                continue
            base = self.made_from(space, descent, ends, latest[:place], [sequence])
            value = virtual_base(base, value, content, sets=kind.set_fields, expiry=kind.expiry)
        return value

    def of(self, subject: int, space: Space, candidates: Sequence[Cut], known: Vector) -> Base:
        """Return the base among the newest versions of the branches that a vector knows."""
        if not candidates:
            return ABSENT
        if len(candidates) == 1:
            return self.content(candidates[0])
        # A version stands for its branch up to where that is known: whatever the branch merged
        # after writing it and without changing it, it has taken into account.
        learnt = {cut: self.knowledge(cut.branch, known[cut.branch]) for cut in candidates}
        newest = maximal_versions(learnt)
        if len(newest) == 1:
            return self.content(newest[0])
        return self.virtual(subject, space, self.latest_states(subject, known))

    def latest_states(self, subject: int, known: Vector) -> list[_State]:
        """Return what the branches that a vector knows held of a record, but for what is outdated.

        Knowing more of other records makes a branch no better a base for this one: they are
        compared by the versions of this record alone. A branch that never wrote it counts too:
        it may have weighed the versions of others against each other, and found nothing to write.
        """
        states: dict[Cut, _State] = {}
        held: dict[Cut, Vector] = {}
        for branch, upto in known.items():
            version = self.version_on(subject, branch, upto)
            if version is not None:
                # Named by the branch that held it: several may hold one version.
                place = Cut(branch, version.limit)
                states[place] = _State(version, self.knowledge(branch, upto))
                held[place] = self.versions_within(subject, states[place].known)
        latest = maximal_versions({place: states[place].known for place in states}, held)
        return sorted((states[place] for place in latest), key=lambda state: state.version)

    def side_of(self, subject: int, view: Cut, version: int | None) -> _Held:
        """Return what a branch holds of a record at some point, where that is loaded already."""

        def versions() -> list[int]:
            found = self.version_on(subject, *view)
            return [found.limit] if found else []

        return _Held(self.loaded.contents[version], versions)

    def version_on(self, subject: int, branch: int, upto: int) -> Cut | None:
        """Return the version of a record that a branch showed at some point.

        For a branch that never had the record, but has learnt that others deleted it, this is the
        last of those deletions.
        """
        branches = self._reader.branches
        lineage = branches.lineage(branches.by_id(branch), upto)
        versions = self.versions_within(subject, dict(lineage))
        for each, _ in lineage:
            if each in versions:
                return Cut(each, versions[each])
        return self.deletions([subject], self.knowledge(branch, upto)).get(subject)

    def deletions(self, subjects: Sequence[int], known: Vector) -> dict[int, Cut]:
        """Return the last versions by which some subjects were deleted, as far as is known."""
        found = {}
        versions_known = self._reader.changes.known_versions(subjects, known)
        self.load(cut.limit for versions in versions_known.values() for cut in versions)
        for subject, versions in versions_known.items():
            gone = [cut for cut in versions if self.content(cut) is ABSENT]
            if gone:
                found[subject] = max(gone, key=lambda cut: cut.limit)
        return found

    def virtual(self, subject: int, space: Space, states: Sequence[_State]) -> Base:
        """Merge what several branches held of a record into one base."""
        self.load(state.version.limit for state in states)
        kind = self._reader.kinds.record(space.kind)
        value: Base = self.content(states[0].version)
        so_far = states[0].known
        for place, state in enumerate(states[1:], 1):
            shared = intersection(so_far, state.known)
            older = self.candidates(subject, shared)
            other = self.content(state.version)
            folded = [each.version.limit for each in states[:place]]
            base = self.alike(
                subject,
                space,
                self.of(subject, space, older, shared),
                _Held(value, partial(list, folded)),
                _Held(other, partial(list, [state.version.limit])),
            )
            value = virtual_base(base, value, other, sets=kind.set_fields, expiry=kind.expiry)
            so_far = union(so_far, state.known)
        return value

    def versions_within(self, subject: int, known: Vector) -> Vector:
        """Return the newest version of a subject on each branch that a vector knows."""
        return dict(self._reader.changes.known_versions([subject], known).get(subject, []))

    def knowledge(self, branch: int, sequence: int) -> Vector:
        if (branch, sequence) not in self._known:
            self._known[branch, sequence] = self._reader.branches.knowledge(branch, sequence)
        return self._known[branch, sequence]

    def content(self, cut: Cut) -> Side:
        return self.loaded.contents[cut.limit]


def _covers(knowledge: Vector, known: Vector) -> bool:
    """Whether a branch that knows this much knows all of a vector."""
    return all(knowledge.get(branch, 0) >= upto for branch, upto in known.items())


def _is_base(newest: Sequence[Cut], version: int | None) -> bool:
    """Whether a version, or nothing, is the base among the newest versions of a record."""
    if version is None or len(newest) != 1:
        return version is None and not newest
    return newest[0].limit == version


def _sequence_of(cut: Cut) -> int:
    return cut.limit


class _Descent:
    """What the versions of one record were made from, as far as their contents tell.

    A version that a merge discards, because another one expires later, does not go into the merged
    value, although the branch knows it from then on. So it cannot be the base of two versions that
    both discarded it, and neither can its predecessors.
    """

    def __init__(self, reader: Reader, subject: int, bases: _Bases) -> None:
        self._branches = reader.branches
        self._subject = subject
        self._bases = bases
        self.versions = {each.sequence: each for each in reader.changes.versions_of(subject)}
        self._ancestors: dict[int, frozenset[int]] = {}

    def common(
        self, ours: Collection[int], theirs: Collection[int], expires_at: int | None
    ) -> list[int]:
        """Return the latest versions that both sides were made from and that expire at a time."""
        one, other = (
            frozenset[int]().union(
                *(self.ancestors(each) for each in side if self.expires(each) == expires_at)
            )
            for side in (ours, theirs)
        )
        both = {each for each in one & other if self.expires(each) == expires_at}
        outdated = {older for each in both for older in self.ancestors(each) - {each}}
        return sorted(both - outdated)

    def expires(self, sequence: int) -> int | None:
        return self.versions[sequence].expires_at

    def ancestors(self, sequence: int) -> frozenset[int]:
        """Return all that a version was made from, itself included."""
        if sequence not in self._ancestors:
            above = (self.ancestors(each) for each in self._sources(self.versions[sequence]))
            self._ancestors[sequence] = frozenset({sequence}).union(*above)
        return self._ancestors[sequence]

    def _sources(self, version: VersionOrigin) -> list[int]:
        before, merged = self._before(version), self._merged_from(version)
        sources = [before] if merged is None else [before, merged]
        # Only what expires with it can have gone into what a merge has made of two; nothing lasts.
        alike = [
            each
            for each in sources
            if (self.expires(each) if each is not None else None) == version.expires_at
        ]
        chosen = alike if merged is not None and alike else sources
        return [each for each in chosen if each is not None]

    def _merged_from(self, version: VersionOrigin) -> int | None:
        origin = self.versions.get(version.origin or 0)
        if origin is None or is_transaction(self._branches.by_id(origin.branch).name):
            return None
        return origin.sequence

    def _before(self, version: VersionOrigin) -> int | None:
        """Return the version that a version took the place of on its branch."""
        found = self._bases.version_on(self._subject, version.branch, version.sequence - 1)
        return found.limit if found else None


def _read_times(kind: RecordKind, content: Any) -> Any:
    """Return a record with its times as they are stored; a decision may write them in ISO 8601."""
    read = {}
    for name in kind.times:
        # What is no moment stays, and is refused with the rest of the record.
        with suppress(ValueError):
            if isinstance(content.get(name), str):
                read[name] = moments.from_iso(content[name])
    return {**content, **read} if read else content


def _choice(decision: Decision, conflict: FieldConflict) -> Choice:
    if not isinstance(decision, Mapping):
        return "theirs" if decision == "source" else "ours"
    if conflict.path:
        return Chosen(decision["value"])
    return Chosen(cast("Json", _with_value(decision, conflict.ours, conflict.theirs)))


def _with_value(decision: Mapping[str, Any], ours: Side, theirs: Side) -> Side:
    """Return a record with the value that was decided for it, or some of its fields."""
    kept = ours if isinstance(ours, dict) else theirs
    assert isinstance(kept, dict)
    if "value" in kept:
        return {**kept, "value": decision["value"]}
    if not isinstance(decision["value"], Mapping):
        raise ValidationFailed(
            "Decide a record that is not an entry with an object of some of its fields.",
            field="decisions",
        )
    return {**kept, **decision["value"]}


def _changed_subjects(changes: ChangeReader, learnt: Vector, known: Vector) -> list[int]:
    """Return the subjects that changed in what a branch has learnt beyond what is known.

    Not only in its lineage: where a merge found both sides alike it wrote nothing, and yet the
    branch knows more than before.
    """
    found: set[int] = set()
    for branch, upto in learnt.items():
        after = known.get(branch, 0)
        if upto > after:
            found.update(changes.subjects(Cut(branch, upto), after))
    return sorted(found)


def _compared_versions(
    changes: ChangeReader, subjects: Collection[int], here: Lineage, there: Lineage
) -> list[ComparedSubject]:
    """Return what two lineages show of some subjects, where either shows anything."""
    if not subjects:
        return []
    wanted = sorted(subjects)
    ours, theirs = (changes.shown_versions(each, wanted) for each in (here, there))
    nothing: ShownVersion = (None, None, None)
    return [
        (
            subject,
            (ours.get(subject) or theirs[subject])[0],
            *ours.get(subject, (0, nothing))[1],
            *theirs.get(subject, (0, nothing))[1],
        )
        for subject in ours.keys() | theirs.keys()
    ]


_subject_of = itemgetter(0)


def _knowledge(reader: Reader, view: View) -> Vector:
    return reader.branches.knowledge(view.branch.id, min(view.limit, reader.log.head().sequence))


def _is_same_side(one: Base, other: Base) -> bool:
    """Whether two sides are alike, absence included."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return same(one, other)


def _has_expired(side: Side, expiry: str | None, now: int) -> bool:
    # As `expiry_of`, which would be another call for each of thousands.
    ends = side.get(expiry) if expiry is not None and type(side) is dict else None
    return ends is not None and cast("int", ends) <= now


def _describe(conflict: RecordConflict) -> dict[str, Any]:
    """Return a conflict as callers see it: absent sides are left out."""
    shown: dict[str, Any] = {
        "id": conflict.id,
        "kind": conflict.space.kind,
        "namespace": conflict.space.namespace,
        "key": conflict.key,
        "path": conflict.path,
    }
    sides: Iterable[tuple[str, Any]] = (
        ("base", conflict.base),
        ("ours", conflict.ours),
        ("theirs", conflict.theirs),
    )
    return shown | {name: value for name, value in sides if value is not ABSENT}
