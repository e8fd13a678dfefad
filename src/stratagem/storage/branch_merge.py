"""Comparing and merging two branches.

The base is what both branches know (`engine.ancestry`). A merge looks at the subjects the
source changed since then, finds each one's base, and merges the three versions
(`engine.merge`). Its cost follows the changes, never the size of the database.

The target learns what the source knows before the merged records are written, so that
these versions count as knowing both sides: merging up, syncing down, editing and merging
up again then meets no old conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from stratagem.engine import merge as three_way_merge
from stratagem.engine.ancestry import Vector, common, joined, maximal
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import Branch, Cut, View
from stratagem.engine.merge import ABSENT, Base, Side, virtual_base
from stratagem.engine.paths import Steps
from stratagem.engine.records import RecordKind
from stratagem.engine.values import same
from stratagem.errors import BranchProtected, MergeConflict, ValidationFailed
from stratagem.storage.contract import Reader, Record, StreamEvent, Transaction, Version

__all__ = ["Change", "Conflict", "Decision", "Merge", "Strategy", "carry_out", "compare", "plan"]

Strategy = Literal["source_wins", "target_wins"]
Decision = Literal["source", "target"] | Mapping[str, Any]

_GIVEN_UP_AFTER = 100


@dataclass(slots=True)
class Conflict:
    """A place that both branches changed. Absent sides are `ABSENT`."""

    id: str
    space: Space
    key: str
    path: Steps
    base: Any
    ours: Any
    theirs: Any


@dataclass(slots=True)
class Change:
    """A record that differs: `before` here, `after` there. Absent sides are `ABSENT`."""

    space: Space
    key: str
    before: Any
    after: Any


@dataclass(slots=True)
class Merge:
    """What a merge would write, and where it cannot decide."""

    drafts: list[Draft] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
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
) -> Merge:
    """Work out a merge of one branch into another, and change nothing.

    What has expired by `now` is not merged, and does not stand in the way.
    """
    if target.id == source.id:
        raise BranchProtected("A branch cannot be merged into itself.", branch=target.name)
    chosen = dict(decisions or {})
    return _Merging(reader, target, source, now=now, strategy=strategy, decisions=chosen).run()


def carry_out(transaction: Transaction, target: Branch, source: Branch, merge: Merge) -> int | None:
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
            conflicts=[_shown(conflict) for conflict in merge.conflicts[:_GIVEN_UP_AFTER]],
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


def compare(reader: Reader, here: View, there: View) -> list[Change]:
    """Return the records in which two views differ, in order of namespace and key."""
    known = common(_knowledge(reader, here), _knowledge(reader, there))
    subjects = sorted(
        set(_changed(reader, here.lineage, known)) | set(_changed(reader, there.lineage, known))
    )
    ours, theirs = _seen(reader, here, subjects), _seen(reader, there, subjects)
    changes = []
    for subject in subjects:
        one, other = ours.get(subject), theirs.get(subject)
        record = one or other
        if record is None or reader.kinds.record(record.space.kind).derived:
            continue
        if not _alike(one, other):
            changes.append(Change(record.space, record.key, _content(one), _content(other)))
    return sorted(changes, key=lambda change: (change.space, change.key))


class _Open(NamedTuple):
    """A record that both branches changed, waiting for a decision."""

    space: Space
    key: str
    conflicts: list[Conflict]
    base: Base
    ours: Side
    theirs: Side
    yours: Record | None


class _Merging:
    """One merge being worked out."""

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
        self.open: list[_Open] = []
        head = reader.log.head().sequence
        self.ours_known = reader.branches.knowledge(target.id, head)
        self.theirs_known = reader.branches.knowledge(source.id, head)
        self.base_known = common(self.ours_known, self.theirs_known)
        self.used: set[str] = set()
        self.merge = Merge()

    def run(self) -> Merge:
        vector = joined(self.ours_known, self.theirs_known)
        vector.pop(self.target.id, None)
        self.merge.vector = vector
        self.records()
        self.stream()
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

    def records(self) -> None:
        # Not only what lies in its lineage: where a merge found both sides alike it wrote
        # nothing, and yet the source knows more than before.
        learnt = [Cut(branch, upto) for branch, upto in self.theirs_known.items()]
        subjects = _changed(self.reader, learnt, self.base_known)
        self.merge.news = bool(subjects)
        theirs = self.reader.records.current_many(
            self.reader.branches.lineage(self.source), subjects
        )
        ours = self.reader.records.current_many(self.reader.branches.lineage(self.target), subjects)
        apart = [
            subject for subject in subjects if not _alike(ours.get(subject), theirs.get(subject))
        ]
        names = self.reader.records.names(apart)
        known = self.reader.changes.known_versions(apart, self.base_known)
        bases = _Bases(self.reader, self.set_fields, names, self.now)
        bases.load(known)
        for subject in apart:
            yours, mine = theirs.get(subject), ours.get(subject)
            if self.kind(names[subject][0]).derived or _expired(_version(yours), self.now):
                continue
            base = bases.of(subject, known.get(subject, []), self.base_known)
            if _expired(_version(mine), self.now):
                # Nobody sees it any more, so there is nothing to weigh the other side against.
                mine, base = None, ABSENT
            self.record(names[subject], base, mine, yours)
        self.decide()

    def record(
        self, name: tuple[Space, str], base: Base, mine: Record | None, yours: Record | None
    ) -> None:
        space, key = name
        ours, theirs = _content(mine), _content(yours)
        sets = self.set_fields(space)
        merged = three_way_merge.three_way(base, ours, theirs, sets=sets)
        # Where they conflict, the value holds our side.
        yielding = self.kind(space).yielding
        if all(each.path and each.path[0] in yielding for each in merged.conflicts):
            if not same_side(merged.value, ours):
                self.write(space, key, ours, merged.value, yours)
            return
        conflicts = [
            Conflict(_id(space, key), space, key, each.path, each.base, each.ours, each.theirs)
            for each in merged.conflicts
        ]
        self.open.append(_Open(space, key, conflicts, base, ours, theirs, yours))

    def decide(self) -> None:
        """Apply the decisions to what is open; what has none is a conflict."""
        ids = {_id(each.space, each.key) for each in self.open}
        keys = Counter(each.key for each in self.open)
        for each in self.open:
            # A key alone will do where it can only mean one of them.
            names = [_id(each.space, each.key)]
            if each.key not in ids and keys[each.key] == 1:
                names.append(each.key)
            decision = self.decision(names)
            if decision is None:
                self.merge.conflicts += each.conflicts
                continue
            self.merge.resolved += 1
            sets = self.set_fields(each.space)
            value = _decided(decision, each.base, each.ours, each.theirs, sets)
            # Written even where the value stays: the version must know that it was decided.
            self.write(each.space, each.key, each.ours, value, each.yours)

    def decision(self, names: Sequence[str]) -> Decision | None:
        for name in names:
            if name in self.decisions:
                self.used.add(name)
                return self.decisions[name]
        if self.strategy is None:
            return None
        return "source" if self.strategy == "source_wins" else "target"

    def write(self, space: Space, key: str, ours: Side, value: Side, theirs: Record | None) -> None:
        kind = self.kind(space)
        content: Any = {} if value is ABSENT else value
        event = kind.deletes if value is ABSENT else kind.writes
        assert event is not None, f"{space.kind} records cannot be merged"
        if kind.validate is not None and value is not ABSENT:
            kind.validate(content)
        origin = theirs.version.sequence if theirs else None
        self.merge.drafts.append(Draft(event, content, space, key, origin))
        self.merge.changes.append(Change(space, key, ours, value))

    def stream(self) -> None:
        """Carry over the source's events that stand for themselves, each of them once."""
        gained = [
            event
            for cut in reversed(self.reader.branches.lineage(self.source))
            for event in self.reader.changes.stream_events(cut, self.base_known.get(cut.branch, 0))
        ]
        self.merge.news = self.merge.news or bool(gained)
        for event in gained:
            if not self.has(event):
                assert event.payload is not None
                self.merge.carried += 1
                origin = event.origin or event.sequence
                content = orjson.loads(event.payload)
                self.merge.drafts.append(Draft(event.kind, content, event.space, None, origin))

    def has(self, event: StreamEvent) -> bool:
        """Whether the target holds an event already, its own or carried over earlier."""
        if event.payload is None:
            return True
        root = event.origin or event.sequence
        branch = self.reader.log.branch_of(root) if event.origin else event.branch
        return self.ours_known.get(branch, 0) >= root

    def set_fields(self, space: Space) -> frozenset[str]:
        return self.kind(space).set_fields

    def kind(self, space: Space) -> RecordKind:
        return self.reader.kinds.record(space.kind)


class _Bases:
    """Finds the base of each record, making a virtual one where several are maximal."""

    def __init__(
        self, reader: Reader, set_fields: Any, names: Mapping[int, tuple[Space, str]], now: int
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
            standing: self.knowledge(cut.branch, known[cut.branch])
            for cut in candidates
            if (standing := self.standing(subject, cut)) is not None
        }
        newest = maximal(learnt)
        if not newest:
            return ABSENT
        if len(newest) > 1:
            held = {cut: self.held(subject, learnt[cut]) for cut in newest}
            newest = sorted(maximal({cut: learnt[cut] for cut in newest}, held))
        value: Base = self.content(newest[0])
        so_far = learnt[newest[0]]
        for version in newest[1:]:
            shared = common(so_far, learnt[version])
            older = self._reader.changes.known_versions([subject], shared)
            self.load(older)
            base = self.of(subject, older.get(subject, []), shared)
            sets = self._set_fields(self._names[subject][0])
            value = virtual_base(base, value, self.content(version), sets=sets)
            so_far = joined(so_far, learnt[version])
        return value

    def standing(self, subject: int, cut: Cut) -> Cut | None:
        """Return a version, or the last one before it on its branch that has not expired.

        What expires before it is merged is never merged, so it cannot be what both have.
        """
        while _expired(self._versions[cut.limit], self._now):
            older = self._reader.changes.known_versions([subject], {cut.branch: cut.limit - 1})
            self.load(older)
            if subject not in older:
                return None
            cut = older[subject][0]
        return cut

    def held(self, subject: int, known: Vector) -> Vector:
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


def _decided(
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


def _changed(reader: Reader, cuts: Iterable[Cut], known: Mapping[int, int]) -> list[int]:
    """Return the subjects that some branches changed beyond what is known of them."""
    found: set[int] = set()
    for cut in cuts:
        found.update(reader.changes.subjects(cut, known.get(cut.branch, 0)))
    return sorted(found)


def _seen(reader: Reader, view: View, subjects: Sequence[int]) -> dict[int, Record]:
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


def _alike(one: Record | None, other: Record | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.version.sequence == other.version.sequence:
        return True
    if one.version.payload == other.version.payload:
        return True
    return same(_content(one), _content(other))


def same_side(one: Side, other: Side) -> bool:
    """Whether two sides are alike, absence included."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return same(one, other)


def _content(record: Record | None) -> Side:
    if record is None or record.version.payload is None:
        return ABSENT
    content: Side = orjson.loads(record.version.payload)
    return content


def _expired(version: Version | None, now: int) -> bool:
    """Whether a version has expired: that is no change, and no view shows it any more."""
    if version is None or b'"expires_at"' not in (version.payload or b""):
        return False
    content = orjson.loads(version.payload or b"")
    expires_at = content.get("expires_at") if isinstance(content, dict) else None
    return isinstance(expires_at, int) and expires_at <= now


def _version(record: Record | None) -> Version | None:
    return record.version if record else None


def _id(space: Space, key: str) -> str:
    """Return what a decision about a record is given for: no two records share one."""
    # Up to the first slash it is the namespace, so that one of its own must not look like it.
    namespace = space.namespace.replace("%", "%25").replace("/", "%2F")
    return f"{namespace}/{key}" if space.kind == "entry" else f"{space.kind}:{namespace}/{key}"


def _shown(conflict: Conflict) -> dict[str, Any]:
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
