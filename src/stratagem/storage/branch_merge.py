"""Diff and merge of two branches.

The algorithm, for a merge of a source into a target:

1. What each branch knows is a vector: for each branch, up to which sequence (`engine.ancestry`).
   What both know is the smaller of each entry. Only what lies beyond it can differ.
2. The subjects that the source's knowledge changed beyond it are the candidates. Where both
   branches show the same value of one, there is nothing to merge.
3. Each of the others gets a base: the version in the common knowledge that no other one in it
   supersedes, or a virtual base made of several (`_Bases`).
4. The three versions are merged field by field (`engine.merge`). Where they conflict, a decision,
   the strategy or else the caller is asked.
5. Events that stand for themselves, which cannot conflict, are copied once each.

Its cost follows the changes, never the size of the database.

The event that records the merge is appended before the merged records (`carry_out`): the target
then knows what the source knows, so that the merged versions count as knowing both sides. Merging
up, syncing down, editing and merging up again then meets no old conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from stratagem.engine import merge as three_way_merge
from stratagem.engine.ancestry import Vector, intersection, maximal_versions, union
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import Branch, Cut, View, is_transaction
from stratagem.engine.merge import ABSENT, Base, Side, virtual_base
from stratagem.engine.paths import Steps
from stratagem.engine.records import RecordKind
from stratagem.engine.values import same
from stratagem.errors import BranchProtected, MergeConflict, ValidationFailed
from stratagem.storage.contract import (
    ChangeReader,
    Reader,
    Record,
    StreamEvent,
    Transaction,
    Version,
)

__all__ = [
    "Decision",
    "MergePlan",
    "RecordConflict",
    "RecordDifference",
    "Strategy",
    "carry_out",
    "compare",
    "plan",
]

Strategy = Literal["source_wins", "target_wins"]
Decision = Literal["source", "target"] | Mapping[str, Any]

# How many conflicts an error lists: it is read by a model, and counted in full beside them.
_CONFLICTS_SHOWN_MAX = 100


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


@dataclass(slots=True)
class RecordDifference:
    """A record that differs: `before` here, `after` there. Absent sides are `ABSENT`."""

    space: Space
    key: str
    before: Any
    after: Any


@dataclass(slots=True)
class MergePlan:
    """What a merge would write, and where it cannot decide."""

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
    now: int,
    strategy: Strategy | None = None,
    decisions: Mapping[str, Decision] | None = None,
) -> MergePlan:
    """Work out a merge of one branch into another, and change nothing.

    What has expired by `now` is not merged, and does not stand in the way.
    """
    if target.id == source.id:
        raise BranchProtected("A branch cannot be merged into itself.", branch=target.name)
    chosen = dict(decisions or {})
    return _Merger(reader, target, source, now=now, strategy=strategy, decisions=chosen).run()


def carry_out(
    transaction: Transaction, target: Branch, source: Branch, merge: MergePlan
) -> int | None:
    """Write a merge that was worked out; return the sequence it is remembered under.

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
    sequence = transaction.branches.record_merge(target, source, merge.vector)
    if merge.drafts:
        transaction.append(target, merge.drafts)
        for kind in transaction.kinds.records.values():
            if kind.settle is not None:
                kind.settle(transaction, target, merge.drafts)
    return sequence


def compare(reader: Reader, here: View, there: View) -> list[RecordDifference]:
    """Return the records in which two views differ, in order of namespace and key."""
    known = intersection(_knowledge(reader, here), _knowledge(reader, there))
    subjects = sorted(
        set(_changed_subjects(reader.changes, here.lineage, known))
        | set(_changed_subjects(reader.changes, there.lineage, known))
    )
    ours, theirs = (
        _visible_records(reader, here, subjects),
        _visible_records(reader, there, subjects),
    )
    changes = []
    for subject in subjects:
        one, other = ours.get(subject), theirs.get(subject)
        record = one or other
        if record is None or reader.kinds.record(record.space.kind).derived:
            continue
        if not _are_alike(one, other):
            changes.append(
                RecordDifference(record.space, record.key, _content(one), _content(other))
            )
    return sorted(changes, key=lambda change: (change.space, change.key))


class _RecordName(NamedTuple):
    """What tells a record from all others."""

    space: Space
    key: str

    @property
    def id(self) -> str:
        """What a decision about the record is given for: no two records share one."""
        # Up to the first slash it is the namespace, so that one of its own must not look like it.
        namespace = self.space.namespace.replace("%", "%25").replace("/", "%2F")
        place = f"{namespace}/{self.key}"
        return place if self.space.kind == "entry" else f"{self.space.kind}:{place}"


class _OpenRecord(NamedTuple):
    """A record that both branches changed, waiting for a decision."""

    name: _RecordName
    conflicts: list[RecordConflict]
    base: Base
    ours: Side
    theirs: Side
    source_record: Record | None


class _Merger:
    """Works out one merge. "Ours" is the target, "theirs" the source."""

    def __init__(
        self,
        reader: Reader,
        target: Branch,
        source: Branch,
        *,
        now: int,
        strategy: Strategy | None,
        decisions: dict[str, Decision],
    ) -> None:
        self.reader = reader
        self.target = target
        self.source = source
        self.now = now
        self.strategy = strategy
        self.decisions = decisions
        self.open: list[_OpenRecord] = []
        head = reader.log.head().sequence
        self.ours_known = reader.branches.knowledge(target.id, head)
        self.theirs_known = reader.branches.knowledge(source.id, head)
        self.base_known = intersection(self.ours_known, self.theirs_known)
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
            raise ValidationFailed(
                f"No conflict has the id {unused[0]!r}.",
                field="decisions",
                unknown=unused[:20],
                hint="Preview the merge to see its conflicts and their ids.",
            )
        return self.merge

    def merge_records(self) -> None:
        # Not only what lies in its lineage: where a merge found both sides alike it wrote
        # nothing, and yet the source knows more than before.
        learnt = [Cut(branch, upto) for branch, upto in self.theirs_known.items()]
        subjects = _changed_subjects(self.reader.changes, learnt, self.base_known)
        self.merge.news = bool(subjects)
        theirs = self.reader.records.current_many(
            self.reader.branches.lineage(self.source), subjects
        )
        ours = self.reader.records.current_many(self.reader.branches.lineage(self.target), subjects)
        apart = [
            subject
            for subject in subjects
            if not _are_alike(ours.get(subject), theirs.get(subject))
        ]
        names = {
            subject: _RecordName(*name)
            for subject, name in self.reader.records.names(apart).items()
        }
        known = self.reader.changes.known_versions(apart, self.base_known)
        bases = _Bases(self.reader, self.set_fields, names, self.now)
        bases.load(known)
        for subject in apart:
            name, our_record, their_record = names[subject], ours.get(subject), theirs.get(subject)
            if self.kind(name.space).derived or _is_expired(_version(their_record), self.now):
                continue
            base = bases.of(subject, known.get(subject, []), self.base_known)
            if _is_expired(_version(our_record), self.now):
                # No view shows it any more, so there is nothing to weigh the other side against.
                our_record, base = None, ABSENT
            self.merge_record(name, base, our_record, their_record)
        self.decide()

    def merge_record(
        self, name: _RecordName, base: Base, our_record: Record | None, their_record: Record | None
    ) -> None:
        ours, theirs = _content(our_record), _content(their_record)
        merged = three_way_merge.three_way(base, ours, theirs, sets=self.set_fields(name.space))
        # Where they conflict, the value holds our side: what a conflict in a yielding field is
        # to be resolved to.
        yielding = self.kind(name.space).yielding
        if all(each.path and each.path[0] in yielding for each in merged.conflicts):
            if not _is_same_side(merged.value, ours):
                self.write(name, ours, merged.value, their_record)
            return
        conflicts = [
            RecordConflict(name.id, *name, each.path, each.base, each.ours, each.theirs)
            for each in merged.conflicts
        ]
        self.open.append(_OpenRecord(name, conflicts, base, ours, theirs, their_record))

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
            decision = self.decision(accepted)
            if decision is None:
                self.merge.conflicts += record.conflicts
                continue
            self.merge.resolved += 1
            sets = self.set_fields(name.space)
            value = _apply_decision(decision, record.base, record.ours, record.theirs, sets)
            # Written even where the value stays: the version must know that it was decided, or the
            # same conflict would come back with the next merge.
            self.write(name, record.ours, value, record.source_record)

    def decision(self, names: Sequence[str]) -> Decision | None:
        for name in names:
            if name in self.decisions:
                self.used.add(name)
                return self.decisions[name]
        if self.strategy is None:
            return None
        return "source" if self.strategy == "source_wins" else "target"

    def write(
        self, name: _RecordName, ours: Side, value: Side, their_record: Record | None
    ) -> None:
        kind = self.kind(name.space)
        content: Any = {} if value is ABSENT else value
        event = kind.deletes if value is ABSENT else kind.writes
        assert event is not None, f"{name.space.kind} records cannot be merged"
        if kind.validate is not None and value is not ABSENT:
            kind.validate(content)
        origin = their_record.version.sequence if their_record else None
        self.merge.drafts.append(Draft(event, content, *name, origin))
        self.merge.changes.append(RecordDifference(*name, ours, value))

    def copy_stream(self) -> None:
        """Copy the source's events that stand for themselves, each of them once."""
        gained = [
            event
            for cut in reversed(self.reader.branches.lineage(self.source))
            for event in self.reader.changes.stream_events(cut, self.base_known.get(cut.branch, 0))
        ]
        self.merge.news = self.merge.news or bool(gained)
        for event in gained:
            if not self.is_on_target(event):
                assert event.payload is not None
                self.merge.carried += 1
                origin = self.first_of(event).limit
                content = orjson.loads(event.payload)
                self.merge.drafts.append(Draft(event.kind, content, event.space, None, origin))

    def is_on_target(self, event: StreamEvent) -> bool:
        """Whether the target holds an event already, its own or copied earlier."""
        if event.payload is None:
            # It was purged: there is nothing to copy.
            return True
        # A copy names the event it was first made from. The target holds that, or a copy of it,
        # exactly if it knows the branch that it was written to that far.
        first = self.first_of(event)
        return self.ours_known.get(first.branch, 0) >= first.limit

    def first_of(self, event: StreamEvent) -> Cut:
        """Return where the event was first written that this one is, or is a copy of."""
        if event.origin is not None:
            branch = self.reader.log.branch_of(event.origin)
            # What a transaction wrote is first written where it is committed: no branch ever
            # knows the transaction itself.
            if not is_transaction(self.reader.branches.by_id(branch).name):
                return Cut(branch, event.origin)
        return Cut(event.branch, event.sequence)

    def set_fields(self, space: Space) -> frozenset[str]:
        return self.kind(space).set_fields

    def kind(self, space: Space) -> RecordKind:
        return self.reader.kinds.record(space.kind)


class _Bases:
    """Finds the base of each record, making a virtual one where several are maximal.

    After criss-cross merges (each of two branches merged the other, and both went on) several
    versions of a record can be common to both sides with none of them superseding the others. They
    are merged pairwise, each pair over a base of its own, which is found in the same way: the
    recursion ends because each step looks at less knowledge.
    """

    def __init__(
        self,
        reader: Reader,
        set_fields: Callable[[Space], frozenset[str]],
        names: Mapping[int, _RecordName],
        now: int,
    ) -> None:
        self._reader = reader
        self._set_fields = set_fields
        self._names = names
        self._now = now
        self._versions: dict[int, Version] = {}
        self._known: dict[tuple[int, int], Vector] = {}

    def load(self, candidates: Mapping[int, Sequence[Cut]]) -> None:
        wanted = {cut.limit for cuts in candidates.values() for cut in cuts} - set(self._versions)
        self._versions |= self._reader.log.versions(sorted(wanted))

    def of(self, subject: int, candidates: Sequence[Cut], known: Vector) -> Base:
        """Return the base among the newest versions of the branches that a vector knows."""
        # A version stands for its branch up to where that is known: whatever the branch merged
        # after writing it and without changing it, it has taken into account.
        learnt = {
            live: self.knowledge(cut.branch, known[cut.branch])
            for cut in candidates
            if (live := self.last_live(subject, cut)) is not None
        }
        newest = maximal_versions(learnt)
        if not newest:
            return ABSENT
        if len(newest) > 1:
            # Knowing more of other records makes a branch no better a base for this one: compare
            # again by the versions of this record alone.
            held = {cut: self.versions_within(subject, learnt[cut]) for cut in newest}
            newest = sorted(maximal_versions({cut: learnt[cut] for cut in newest}, held))
        value: Base = self.content(newest[0])
        so_far = learnt[newest[0]]
        for version in newest[1:]:
            shared = intersection(so_far, learnt[version])
            older = self._reader.changes.known_versions([subject], shared)
            self.load(older)
            base = self.of(subject, older.get(subject, []), shared)
            sets = self._set_fields(self._names[subject].space)
            value = virtual_base(base, value, self.content(version), sets=sets)
            so_far = union(so_far, learnt[version])
        return value

    def last_live(self, subject: int, cut: Cut) -> Cut | None:
        """Return a version, or the last one before it on its branch that has not expired.

        What expires before it is merged is never merged, so it cannot be what both have.
        """
        while _is_expired(self._versions[cut.limit], self._now):
            older = self._reader.changes.known_versions([subject], {cut.branch: cut.limit - 1})
            self.load(older)
            if subject not in older:
                return None
            cut = older[subject][0]
        return cut

    def versions_within(self, subject: int, known: Vector) -> Vector:
        """Return the newest version of a subject on each branch that a vector knows."""
        return dict(self._reader.changes.known_versions([subject], known).get(subject, []))

    def knowledge(self, branch: int, sequence: int) -> Vector:
        if (branch, sequence) not in self._known:
            self._known[branch, sequence] = self._reader.branches.knowledge(branch, sequence)
        return self._known[branch, sequence]

    def content(self, cut: Cut) -> Side:
        version = self._versions[cut.limit]
        if version.payload is None or version.kind in self._reader.kinds.deletions:
            return ABSENT
        content: Side = orjson.loads(version.payload)
        return content


def _apply_decision(
    decision: Decision, base: Base, ours: Side, theirs: Side, sets: frozenset[str]
) -> Side:
    if isinstance(decision, Mapping):
        kept = ours if isinstance(ours, dict) else theirs
        assert isinstance(kept, dict)
        if "value" in kept:
            return {**kept, "value": decision["value"]}
        if not isinstance(decision["value"], Mapping):
            raise ValidationFailed(
                "A record that is no entry is decided by an object with some of its fields.",
                field="decisions",
            )
        return {**kept, **decision["value"]}
    prefer: Literal["ours", "theirs"] = "theirs" if decision == "source" else "ours"
    return three_way_merge.resolve(base, ours, theirs, prefer=prefer, sets=sets)


def _changed_subjects(
    changes: ChangeReader, cuts: Iterable[Cut], known: Mapping[int, int]
) -> list[int]:
    """Return the subjects that some branches changed beyond what is known of them."""
    found: set[int] = set()
    for cut in cuts:
        found.update(changes.subjects(cut, known.get(cut.branch, 0)))
    return sorted(found)


def _visible_records(reader: Reader, view: View, subjects: Sequence[int]) -> dict[int, Record]:
    """Return the records of some subjects that a view shows: none that have expired in it."""
    records = reader.records.current_many(view.lineage, subjects)
    seen = reader.records.visible_among(
        view, [record.version.sequence for record in records.values()]
    )
    return {
        subject: record for subject, record in records.items() if record.version.sequence in seen
    }


def _knowledge(reader: Reader, view: View) -> Vector:
    return reader.branches.knowledge(view.branch.id, min(view.limit, reader.log.head().sequence))


def _are_alike(one: Record | None, other: Record | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.version.sequence == other.version.sequence:
        return True
    if one.version.payload == other.version.payload:
        return True
    return same(_content(one), _content(other))


def _is_same_side(one: Side, other: Side) -> bool:
    """Whether two sides are alike, absence included."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return same(one, other)


def _content(record: Record | None) -> Side:
    if record is None or record.version.payload is None:
        return ABSENT
    content: Side = orjson.loads(record.version.payload)
    return content


def _is_expired(version: Version | None, now: int) -> bool:
    """Whether a version has expired: that is no change, and no view shows it any more."""
    if version is None or b'"expires_at"' not in (version.payload or b""):
        return False
    content = orjson.loads(version.payload or b"")
    expires_at = content.get("expires_at") if isinstance(content, dict) else None
    return isinstance(expires_at, int) and expires_at <= now


def _version(record: Record | None) -> Version | None:
    return record.version if record else None


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
