"""A memory as one would first write it: a full copy of everything after each transaction.

It knows nothing of logs, lineages, knowledge or read models, and answers the same questions.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.properties.reference import Node, changed_by, equal, merged, places_changed

Key = tuple[str, str]


@dataclass(frozen=True)
class Happening:
    """A logged event on a branch; `root` is the sequence it was first written at."""

    sequence: int
    root: int
    label: str
    data: Any
    namespace: str


@dataclass
class State:
    """All that one branch shows."""

    entries: dict[Key, Node] = field(default_factory=dict)
    history: dict[Key, list[tuple[int, dict[str, Any] | None]]] = field(default_factory=dict)
    log: list[Happening] = field(default_factory=list)

    def copied(self) -> State:
        return State(
            dict(self.entries),
            {key: list(versions) for key, versions in self.history.items()},
            list(self.log),
        )

    def put(self, key: Key, node: Node) -> None:
        self.entries[key] = node
        self.history.setdefault(key, []).append((node.sequence, node.content))

    def shown(self, time: int) -> dict[Key, Node]:
        """Return the entries that are there and have not expired by a time."""
        return {
            key: node
            for key, node in self.entries.items()
            if node.content is not None and not expired(node.content, time)
        }

    def counts(self, namespace: str, time: int) -> tuple[int, int]:
        """Return how many entries and logged events a namespace shows at a time."""
        entries = sum(key[0] == namespace for key in self.shown(time))
        return entries, sum(each.namespace == namespace for each in self.log)


@dataclass
class Line:
    """A branch. `states` are full copies, each with the sequence from which on it held."""

    id: int
    name: str
    parent: Line | None = None
    fork: int = 0
    deleted: int | None = None
    states: list[tuple[int, State]] = field(default_factory=list)

    def state(self, sequence: int) -> State:
        """Return what the branch showed at a sequence, or would have before it was made."""
        for since, state in reversed(self.states):
            if since <= sequence:
                return state
        if self.parent is None:
            return State()
        return self.parent.state(min(self.fork, sequence))

    def now(self) -> State:
        return self.states[-1][1]


@dataclass
class Merge:
    """What a merge would do."""

    written: list[tuple[Key, dict[str, Any] | None]] = field(default_factory=list)
    known: list[tuple[Key, Node]] = field(default_factory=list)
    carried: list[Happening] = field(default_factory=list)
    conflicts: dict[Key, list[tuple[str, ...]]] = field(default_factory=dict)
    resolved: int = 0


@dataclass
class Difference:
    """An entry that two views show differently: whose change it is, and the values.

    `places`: of one that both changed, which of them changed which place.
    """

    side: str
    before: Any
    after: Any
    places: dict[tuple[str, ...], str]


def expired(content: dict[str, Any], time: int) -> bool:
    """Whether nobody is shown a version any more."""
    return "expires_at" in content and content["expires_at"] <= time


class Model:
    """The naive memory. Every write ends with `commit`."""

    def __init__(self, now: int) -> None:
        self.sequence = 1
        # The last sequence of each transaction, its recorded time, and what the clock said.
        self.times = [(1, now, now)]
        default = Line(1, "default", states=[(1, State())])
        self.lines = [default]
        # The order in which keys were first written; one that was purged begins anew.
        self.subjects: dict[Key, int] = {}
        # The versions that transactions wrote for themselves, which no branch ever shows.
        self.hidden: dict[Key, set[int]] = {}

    @property
    def live(self) -> list[Line]:
        return [line for line in self.lines if line.deleted is None]

    def place_of(self, time: int, clock: int) -> tuple[int, int]:
        """Return where the log stood at a time, and what the clock said then."""
        for end, at, wall in self.times:
            if at == time:
                return end, wall
        ahead = [
            (wall, end)
            for end, at, wall in self.times
            if at - wall > 1_000_000 and wall <= time < at and time <= clock
        ]
        if ahead:
            return max(ahead)[1], time
        return max((end for end, at, _ in self.times if at <= time), default=0), time

    def end_of(self, sequence: int) -> tuple[int, int]:
        """Return the end of the transaction that an event is in, and what the clock said."""
        return next((end, wall) for end, _, wall in self.times if end >= sequence)

    def commit(self, events: int, clock: int) -> None:
        at = max(clock, self.times[-1][1] + 1)
        self.sequence += events
        self.times.append((self.sequence, at, clock))

    def change(self, line: Line) -> State:
        """Begin a change of a branch: return the copy to change."""
        state = line.now().copied()
        line.states.append((self.sequence + 1, state))
        return state

    def write(self, line: Line, key: Key, content: dict[str, Any] | None, clock: int) -> None:
        state = self.change(line)
        self.subjects.setdefault(key, self.sequence)
        before = state.entries.get(key)
        parents = (before,) if before else ()
        state.put(key, Node(copy.deepcopy(content), line.id, self.sequence + 1, parents))
        self.commit(1, clock)

    def write_all(
        self, line: Line, written: Mapping[Key, dict[str, Any] | None], clock: int
    ) -> None:
        """Write some entries in one transaction, in the order of their keys."""
        if not written:
            return
        state = self.change(line)
        for place, key in enumerate(sorted(written), 1):
            self.subjects.setdefault(key, self.sequence)
            before = state.entries.get(key)
            content = copy.deepcopy(written[key])
            parents = (before,) if before else ()
            state.put(key, Node(content, line.id, self.sequence + place, parents))
        self.commit(len(written), clock)

    def write_hidden(self, key: Key, clock: int) -> None:
        """Note a write within a transaction, which only that sees."""
        self.subjects.setdefault(key, self.sequence)
        self.hidden.setdefault(key, set()).add(self.sequence + 1)
        self.commit(1, clock)

    def end_transaction(
        self, line: Line, written: dict[Key, dict[str, Any] | None], events: list[Any], clock: int
    ) -> None:
        """Write what a transaction has done, records first, and end it."""
        state = self.change(line)
        sequence = self.sequence
        for key, content in written.items():
            before = state.entries.get(key)
            if content is None and (before is None or before.content is None):
                # Stored and forgotten again: the branch never had it.
                continue
            sequence += 1
            node = Node(copy.deepcopy(content), line.id, sequence, (before,) if before else ())
            state.put(key, node)
        for label, data, namespace in events:
            sequence += 1
            state.log.append(Happening(sequence, sequence, label, data, namespace))
        self.commit(sequence - self.sequence + 1, clock)

    def log(self, line: Line, label: str, data: Any, namespace: str, clock: int) -> None:
        state = self.change(line)
        sequence = self.sequence + 1
        state.log.append(Happening(sequence, sequence, label, data, namespace))
        self.commit(1, clock)

    def fork(self, name: str, parent: Line | None, at: int, clock: int) -> Line:
        state = parent.state(at).copied() if parent else State()
        line = Line(self.sequence + 1, name, parent, at, states=[(self.sequence + 1, state)])
        self.lines.append(line)
        self.commit(1, clock)
        return line

    def delete(self, line: Line, clock: int) -> None:
        self.commit(1, clock)
        line.deleted = self.sequence

    def restore(self, line: Line, clock: int) -> None:
        self.commit(1, clock)
        line.deleted = None

    def plan(
        self,
        target: Line,
        source: Line,
        strategy: str | None = None,
        decisions: dict[Key, Any] | None = None,
    ) -> Merge:
        """Return what a merge would do; a decision is one for the record, or one for each path."""
        plan = Merge()
        ours, theirs = target.now(), source.now()
        decided: list[tuple[Key, dict[str, Any] | None]] = []
        for key in sorted(self.subjects, key=lambda key: self.subjects[key]):
            mine, yours = ours.entries.get(key), theirs.entries.get(key)
            if yours is None or (mine and yours in mine.ancestors):
                continue
            if mine and yours.versions <= mine.versions:
                plan.known.append((key, yours))
                continue
            decision = (decisions or {}).get(key) or strategy
            decided += self._plan_entry(plan, key, mine, yours, decision)
        plan.written += decided
        held = {each.root for each in ours.log}
        plan.carried = [each for each in theirs.log if each.root not in held]
        return plan

    def _plan_entry(
        self, plan: Merge, key: Key, mine: Node | None, yours: Node, decision: Any
    ) -> list[tuple[Key, dict[str, Any] | None]]:
        """Plan what needs no decision; return what was decided."""
        content = mine.content if mine else None
        outcome = merged(mine, yours)
        if not outcome.conflicts:
            if outcome.settled or not _same(outcome.content, content):
                plan.written.append((key, outcome.content))
            else:
                plan.known.append((key, yours))
            return []
        if decision is None:
            plan.conflicts[key] = outcome.conflicts
            return []
        plan.resolved += len(outcome.conflicts)
        if isinstance(decision, dict) and "value" in decision:
            kept = content if content is not None else yours.content
            return [(key, {**(kept or {}), "value": decision["value"]})]
        return [(key, merged(mine, yours, _choices(decision)).content)]

    def shown_changes(
        self, target: Line, plan: Merge, time: int
    ) -> list[tuple[Key, dict[str, Any] | None, dict[str, Any] | None]]:
        """Return what a merge changes for whoever looks at a time."""
        entries = target.now().entries
        changes = []
        for key, content in plan.written:
            node = entries.get(key)
            held = node.content if node else None
            before, after = (
                None if side is None or expired(side, time) else side for side in (held, content)
            )
            if not _same(held, content) and (before is not None or after is not None):
                changes.append((key, before, after))
        return changes

    def merge(self, target: Line, source: Line, plan: Merge, clock: int) -> None:
        """Carry a plan out: one event for the merge, then one for each change."""
        theirs = source.now()
        state = self.change(target)
        sequence = self.sequence + 1
        for key, content in plan.written:
            sequence += 1
            parents = tuple(
                node for node in (state.entries.get(key), theirs.entries.get(key)) if node
            )
            state.put(key, Node(copy.deepcopy(content), target.id, sequence, parents))
        for key, yours in plan.known:
            mine = state.entries.get(key)
            parents = tuple(node for node in (mine, yours) if node)
            # Nothing was written: the version stays, and knows now what it was compared with.
            state.entries[key] = Node(
                mine.content if mine else None,
                mine.branch if mine else target.id,
                mine.sequence if mine else 0,
                parents,
                made_from=(_origin(mine, yours),),
            )
        for each in plan.carried:
            sequence += 1
            state.log.append(Happening(sequence, each.root, each.label, each.data, each.namespace))
        self.commit(sequence - self.sequence, clock)

    def differences(
        self, here: State, there: State, time: int, there_time: int | None = None
    ) -> dict[Key, Difference]:
        """Return the entries that two views show differently."""
        ours = here.shown(time)
        theirs = there.shown(time if there_time is None else there_time)
        found = {}
        for key in {*ours, *theirs}:
            one, other = (side[key].content if key in side else None for side in (ours, theirs))
            if not _same(one, other):
                side = changed_by(here.entries.get(key), there.entries.get(key))
                values = (one and one["value"], other and other["value"])
                places = {}
                if side == "both" and one is not None and other is not None:
                    places = places_changed(ours[key], theirs[key])
                before, after = reversed(values) if side == "ours" else values
                found[key] = Difference(side, before, after, places)
        return found

    def missing_events(self, here: State, there: State) -> int:
        """Return how many logged events one state has and another has not."""
        held = {each.root for each in here.log}
        return sum(each.root not in held for each in there.log)

    def purge(self, key: Key, clock: int) -> int:
        """Erase an entry from every branch and every moment; return how many versions it had."""
        versions = self.hidden.pop(key, set())
        for line in self.lines:
            for _since, state in line.states:
                versions |= {sequence for sequence, _ in state.history.pop(key, [])}
                state.entries.pop(key, None)
        if versions:
            del self.subjects[key]
            self.commit(1, clock)
        return len(versions)

    def purge_event(self, root: int, clock: int) -> None:
        """Erase a logged event, and the copies that merges made of it."""
        for line in self.lines:
            for _since, state in line.states:
                state.log = [each for each in state.log if each.root != root]
        self.commit(1, clock)


def _choices(decision: Any) -> Any:
    """Return a decision, or one for each path, in the words of the reference."""
    if isinstance(decision, dict):
        return {
            path: each if isinstance(each, dict) else _choices(each)
            for path, each in decision.items()
        }
    return "theirs" if decision in {"source", "source_wins"} else "ours"


def _same(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    return one is other if one is None or other is None else equal(one, other)


def _origin(mine: Node | None, yours: Node) -> Node:
    """Return what a version that a merge left alone comes from.

    A branch that never had the entry is where the last one left it that deleted it.
    """
    if mine is None:
        return yours
    was_only_heard_of = mine.sequence == 0
    return yours if was_only_heard_of and _last_write(yours) > _last_write(mine) else mine


def _last_write(node: Node) -> int:
    return max(sequence for _branch, sequence in node.versions)
