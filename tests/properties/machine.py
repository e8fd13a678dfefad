"""Random operations on a real memory and on the naive model, compared as they go."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stratagem import Stratagem, StratagemError
from stratagem.answers import plain
from stratagem.bootstrap import Settings, start
from stratagem.errors import MergeConflict, TransactionConflict, ValidationFailed
from stratagem.memory.models import Diff, History
from stratagem.operation import Caller
from stratagem.sdk.generated.memory import MemoryMethods
from stratagem.storage.branch_merge import Strategy
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import SECOND, Clock, salts
from tests.postgres import a_workspace
from tests.properties.model import Difference, Key, Line, Merge, Model, expired

WORDS = ("amber", "birch", "cedar", "drift", "ember")
NAMESPACES = ("n1", "n2")
KEYS = tuple((namespace, key) for namespace in NAMESPACES for key in ("k1", "k2", "k3"))
FIELDS = ("f1", "f2", "f3")

words = st.sampled_from(WORDS)
scalars = st.one_of(words, st.integers(0, 3), st.none(), st.booleans())
objects = st.dictionaries(
    st.sampled_from(FIELDS),
    st.one_of(scalars, st.dictionaries(st.sampled_from(FIELDS), scalars, max_size=2)),
    max_size=3,
)
json_values = st.one_of(objects, objects, scalars, st.lists(words, max_size=2))
keys = st.sampled_from(KEYS)
picks = st.integers(0, 10_000)
tag_sets = st.lists(st.sampled_from(("t1", "t2", "t3")), max_size=2)
strategies: st.SearchStrategy[Strategy | None] = st.sampled_from(
    (None, None, "source_wins", "target_wins")
)


def says(value: Any, word: str) -> bool:
    """Whether a word stands anywhere in a value."""
    if isinstance(value, dict):
        return any(says(each, word) for each in value.values())
    if isinstance(value, list):
        return any(says(each, word) for each in value)
    return bool(value == word)


def exactly(value: Any) -> str:
    """Return a form in which two values are equal only if they hold the same JSON."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{exactly(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(exactly, value)) + "]"
    return repr(value)


class CallsById:
    """A transaction of calls that pass its id, written like a block and like the memory in it."""

    def __init__(self, db: Stratagem) -> None:
        self._db = db
        self._id = ""
        self._over = False

    def store(self, key: str, value: Any, *, namespace: str) -> None:
        given = {"key": key, "value": value, "namespace": namespace, "index": True}
        self._call("strata_kv_put", **given)

    def forget(self, key: str, *, namespace: str) -> SimpleNamespace:
        answer = self._call("strata_kv_delete", key=key, namespace=namespace)
        return SimpleNamespace(deleted=answer["deleted"])

    def recall(self, key: str, *, namespace: str) -> SimpleNamespace | None:
        answer = self._call("strata_kv_get", key=key, namespace=namespace)
        return SimpleNamespace(value=answer["value"]) if answer["found"] else None

    def log(self, label: str, data: Any, *, namespace: str) -> None:
        self._call("strata_event_append", event_type=label, payload=data, namespace=namespace)

    def rollback(self) -> None:
        self._call("strata_txn_rollback")
        self._over = True

    def _call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self._db.call(name, {**arguments, "transaction": self._id})

    def __enter__(self) -> Self:
        self._id = self._db.call("strata_txn_begin", {})["transaction"]
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None and not self._over:
            self._call("strata_txn_commit")


class Histories(RuleBasedStateMachine):
    """One random history, in a file of its own or in a workspace of a server."""

    address: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.workspace = a_workspace()
        self.clock = Clock()
        self.folder = Path(tempfile.mkdtemp(prefix="stratagem-history-"))
        self.db = self.open()
        self.model = Model(self.clock.now)
        self.names = 0
        self.brief = False

    def open(self) -> Stratagem:
        runtime = start(
            Settings(
                self.address or str(self.folder / "m.db"),
                workspace=self.workspace,
                durability="fast",
                embedder="none",
                adapters=Adapters(self.clock, salts()),
                zone=UTC,
            )
        )
        return Stratagem(runtime, Caller())

    def teardown(self) -> None:
        try:
            findings = self.db.runtime.foundation.store.examine(lambda *_: None, None)
            assert findings == []
        finally:
            self.db.close()
            shutil.rmtree(self.folder)

    @property
    def memory(self) -> MemoryMethods:
        return self.db.memory

    def line(self, pick: int) -> Line:
        return self.model.live[pick % len(self.model.live)]

    def moment(self, pick: int) -> tuple[str | int | None, int, int]:
        """Return a moment as it is asked for, the sequence it means, and its time."""
        kind, pick = pick % 3, pick // 3
        if kind == 0:
            return None, self.model.sequence, self.clock.now
        if kind == 1:
            wanted = pick % self.model.sequence + 1
            return f"@{wanted}", *self.model.end_of(wanted)
        first, last = self.model.times[0][1], max(self.clock.now, self.model.times[-1][1])
        time = first + pick * 7_919 % max(last - first, 1)
        return time, *self.model.place_of(time, self.clock.now)

    # --- writes

    @initialize(pick=picks)
    def begin(self, pick: int) -> None:
        self.clock.advance(pick % 5)

    @rule(pick=picks, key=keys, value=json_values, tags=tag_sets, ttl=st.sampled_from([0, 0, 5]))
    def store(self, pick: int, key: Key, value: Any, tags: list[str], ttl: int) -> None:
        line = self.line(pick)
        if ttl:
            # Two that end in one microsecond are the same to the last bit: nobody writes such two.
            self.clock.now += 1
        there = key in line.now().shown(self.clock.now)
        content = {"value": value}
        if tags:
            content["tags"] = sorted(set(tags))
        if ttl:
            content["expires_at"] = self.clock.now + ttl * SECOND
            self.brief = True

        answer = self.memory.store(
            key[1], value, namespace=key[0], branch=line.name, tags=tags, ttl=ttl or None
        )

        self.model.write(line, key, content, self.clock.now)
        assert answer.version == self.model.sequence
        assert answer.status == ("updated" if there else "created")

    @rule(
        pick=picks,
        key=keys,
        value=scalars,
        path=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2),
    )
    def store_at_path(self, pick: int, key: Key, value: Any, path: list[str]) -> None:
        line = self.line(pick)
        node = line.now().shown(self.clock.now).get(key)
        content: dict[str, Any] = dict(node.content or {}) if node else {"value": {}}
        changed = _changed_at(content["value"], path, value)
        dotted = "$." + ".".join(path)

        try:
            self.memory.store(key[1], value, namespace=key[0], branch=line.name, path=dotted)
        except ValidationFailed:
            assert changed is ...
            return

        assert changed is not ...
        self.model.write(line, key, {**content, "value": changed}, self.clock.now)

    @rule(pick=picks, key=keys, off=st.integers(-1, 1))
    def compare_and_set(self, pick: int, key: Key, off: int) -> None:
        line = self.line(pick)
        node = line.now().shown(self.clock.now).get(key)
        version = node.sequence if node else 0
        if version + off < 0:
            return

        try:
            self.memory.store(
                key[1], "set", namespace=key[0], branch=line.name, expected_version=version + off
            )
        except StratagemError as error:
            assert error.code == "version_conflict"
            assert off != 0
            assert error.details["version"] == version
            return

        assert off == 0
        self.model.write(line, key, {"value": "set"}, self.clock.now)

    @rule(pick=picks, key=keys)
    def forget(self, pick: int, key: Key) -> None:
        line = self.line(pick)
        there = key in line.now().shown(self.clock.now)

        answer = self.memory.forget(key[1], namespace=key[0], branch=line.name)

        assert answer.deleted == there
        if there:
            self.model.write(line, key, None, self.clock.now)

    @rule(pick=picks, namespace=st.sampled_from(NAMESPACES))
    def delete_namespace(self, pick: int, namespace: str) -> None:
        line = self.line(pick)
        shown = line.now().shown(self.clock.now)
        gone = [key for key in shown if key[0] == namespace]

        answer = self.memory.delete_namespace(namespace, branch=line.name)

        assert answer.deleted == len(gone)
        assert answer.events == sum(each.namespace == namespace for each in line.now().log)
        self.model.write_all(line, dict.fromkeys(gone), self.clock.now)
        assert answer.version == (self.model.sequence if gone else None)

    @rule(pick=picks, when=picks, namespace=st.sampled_from(NAMESPACES))
    def restore_namespace(self, pick: int, when: int, namespace: str) -> None:
        line = self.line(pick)
        as_of, sequence, time = self.moment(when)
        if as_of is None:
            return
        past = line.state(sequence).shown(time)
        held = {key: node for key, node in past.items() if key[0] == namespace}
        shown = line.now().shown(self.clock.now)
        lost = {
            key: node.content
            for key, node in held.items()
            if key not in shown and node.content and not expired(node.content, self.clock.now)
        }

        answer = self.memory.restore_namespace(namespace, as_of, branch=line.name)

        assert answer.restored == len(lost)
        assert answer.kept == sum(key in shown for key in held)
        self.model.write_all(line, lost, self.clock.now)
        assert answer.version == (self.model.sequence if lost else None)

    @rule(pick=picks, data=json_values, namespace=st.sampled_from(NAMESPACES))
    def log(self, pick: int, data: Any, namespace: str) -> None:
        line = self.line(pick)

        answer = self.memory.log("label", data, namespace=namespace, branch=line.name)

        self.model.log(line, "label", data, namespace, self.clock.now)
        assert answer.sequence == self.model.sequence

    @rule(seconds=st.integers(1, 7))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    # Where a clock that was set back makes an expired entry live again, all bets are off.
    @precondition(lambda self: not self.brief)
    @precondition(lambda self: self.clock.now > self.model.times[0][1] + 20 * SECOND)
    @rule(seconds=st.integers(1, 10))
    def clock_set_back(self, seconds: int) -> None:
        self.clock.advance(-seconds)

    # --- branches

    @precondition(lambda self: len(self.model.live) < 5)
    @rule(pick=picks, when=picks)
    def fork(self, pick: int, when: int) -> None:
        line = self.line(pick)
        as_of, sequence, _time = self.moment(when)
        name = self.new_name()

        answer = self.memory.fork(name, branch=line.name, as_of=as_of)

        assert answer.forked_at == sequence
        self.model.fork(name, line, sequence, self.clock.now)

    @precondition(lambda self: len(self.model.live) < 5)
    @rule()
    def create(self) -> None:
        name = self.new_name()
        self.memory.create(name)
        self.model.fork(name, None, 0, self.clock.now)

    def new_name(self) -> str:
        """Return a name, now and then one that a deleted branch had."""
        self.names += 1
        gone = [line.name for line in self.model.lines if line.deleted is not None]
        free = [name for name in gone if name not in {line.name for line in self.model.live}]
        return free[0] if free and self.names % 3 == 0 else f"b{self.names}"

    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        line = self.line(pick)
        if line.name != "default":
            self.memory.delete(line.name)
            self.model.delete(line, self.clock.now)

    @precondition(lambda self: any(line.deleted is not None for line in self.model.lines))
    @rule(pick=picks)
    def restore(self, pick: int) -> None:
        gone = [line for line in self.model.lines if line.deleted is not None]
        line = gone[pick % len(gone)]
        # By the moment at which it was made, or the one of its name that was deleted last.
        as_of = f"@{line.id}" if pick % 3 == 0 else None
        name = line.name
        if as_of is None:
            line = max(
                (each for each in gone if each.name == name), key=lambda each: each.deleted or 0
            )
        if name not in {live.name for live in self.model.live}:
            self.memory.restore(name, as_of=as_of)
            self.model.restore(line, self.clock.now)
        elif len(self.model.live) < 5:
            # The name was used again: it comes back under another.
            self.names += 1
            self.memory.restore(f"b{self.names}", source=name, as_of=as_of)
            self.model.fork(f"b{self.names}", line, self.model.sequence, self.clock.now)

    def transaction(
        self, pick: int, writes: list[tuple[str, Key, Any]], ending: str, *, by_id: bool = False
    ) -> None:
        """Write some records together: kept, thrown away, or refused as one changed meanwhile.

        `by_id`: by calls that pass the id of a transaction, and not in a block.
        """
        line, model = self.line(pick), self.model
        own = Stratagem(self.db.runtime, Caller(branch=line.name))
        written: dict[Key, dict[str, Any] | None] = {}
        conflict = pytest.raises(TransactionConflict) if ending == "contest" else nullcontext()
        with conflict, CallsById(own) if by_id else own.transaction() as block:
            memory: Any = block if isinstance(block, CallsById) else own.memory
            model.commit(1, self.clock.now)
            for write in writes:
                self.write_within(memory, line, write, written)
            memory.log("within", ending, namespace="n1")
            model.commit(1, self.clock.now)
            if ending == "contest":
                self.store(pick, next(iter(written)), "meanwhile", [], 0)
            if ending == "roll back":
                block.rollback()
        if ending == "commit":
            events = [("within", ending, "n1")]
            model.end_transaction(line, written, events, self.clock.now)
        else:
            model.commit(1, self.clock.now)

    def write_within(
        self,
        memory: MemoryMethods | CallsById,
        line: Line,
        write: tuple[str, Key, Any],
        written: dict[Key, dict[str, Any] | None],
    ) -> None:
        """Store or forget one entry within a transaction, which then sees it."""
        what, key, value = write
        shown = line.now().shown(self.clock.now)
        there = written[key] is not None if key in written else key in shown
        if what == "forget":
            assert memory.forget(key[1], namespace=key[0]).deleted == there
            if not there:
                return
        else:
            memory.store(key[1], value, namespace=key[0])
        # The last write of a record decides its place, but what is deleted comes last.
        written.pop(key, None)
        written[key] = None if what == "forget" else {"value": value}
        self.model.write_hidden(key, self.clock.now)
        entry = memory.recall(key[1], namespace=key[0])
        assert (entry is None) == (what == "forget")
        assert entry is None or exactly(entry.value) == exactly(value)

    @precondition(lambda self: len(self.model.live) > 1)
    @rule(one=picks, other=picks, strategy=strategies, decided=st.booleans(), side=picks)
    def merge(
        self,
        one: int,
        other: int,
        strategy: Strategy | None,
        decided: bool,
        side: int,
    ) -> None:
        target, source = self.line(one), self.line(other)
        if target is source:
            return
        plan = self.preview(target, source, strategy)
        decisions: dict[Key, Any] = {}
        if plan.conflicts and decided:
            choices: list[Any] = ["source", "target", {"value": {"f1": "amber"}}]
            for place, (key, conflicts) in enumerate(plan.conflicts.items()):
                if side % 2:
                    decisions[key] = choices[(side + place) % 3]
                else:
                    decisions[key] = {
                        path: choices[(side + place + turn) % 3]
                        for turn, path in enumerate(conflicts)
                        if path
                    } or choices[(side + place) % 2]
        self.merge_lines(target, source, strategy, decisions)

    def preview(self, target: Line, source: Line, strategy: Strategy | None) -> Merge:
        """Preview a merge, and hold it against the model and the diff."""
        plan = self.model.plan(target, source, strategy)
        preview = self.memory.merge(
            source.name, branch=target.name, strategy=strategy, preview=True
        )
        diff = self.memory.diff(source.name, branch=target.name)

        assert_same_conflicts(preview.conflicts, plan)
        assert preview.events == diff.events == len(plan.carried)
        shown = self.model.shown_changes(target, plan, self.clock.now)
        assert preview.merged == len(shown)
        sides = {(each.namespace, each.key): each for each in diff.results}
        changed = {(each.namespace, each.key): each for each in preview.results}
        assert {key for key, each in changed.items() if sides[key].side == "ours"} == set()
        for key, each in sides.items():
            if each.side == "theirs":
                assert exactly([changed[key].before, changed[key].after]) == exactly(
                    [each.before, each.after]
                )
        return plan

    def merge_lines(
        self,
        target: Line,
        source: Line,
        strategy: Strategy | None,
        decisions: dict[Key, Any] | None = None,
    ) -> None:
        """Merge in the memory and in the model, and hold the answers against each other."""
        plan = self.model.plan(target, source, strategy, decisions)
        changes = self.model.shown_changes(target, plan, self.clock.now)
        try:
            answer = self.memory.merge(
                source.name,
                branch=target.name,
                strategy=strategy,
                decisions=as_decisions(decisions or {}),
            )
        except MergeConflict as error:
            assert error.details["conflict_count"] == sum(map(len, plan.conflicts.values()))
            assert plan.conflicts
            return

        assert not plan.conflicts
        assert answer.resolved == plan.resolved
        assert answer.events == len(plan.carried)
        shown = [
            (change.namespace, change.key, exactly([change.before, change.after]))
            for change in answer.results
        ]
        assert shown == [
            (*key, exactly([before and before["value"], after and after["value"]]))
            for key, before, after in changes
        ]
        if answer.version is None:
            assert not plan.written
            assert not plan.carried
        else:
            self.model.merge(target, source, plan, self.clock.now)
            assert answer.version == self.model.sequence - len(plan.written) - len(plan.carried)

    @rule(key=keys)
    def purge(self, key: Key) -> None:
        erased = self.memory.purge(key[1], namespace=key[0])

        assert erased == self.model.purge(key, self.clock.now)

    @rule(pick=picks)
    def purge_event(self, pick: int) -> None:
        logged = self.line(pick).now().log
        if not logged:
            return
        event = logged[pick % len(logged)]

        self.memory.purge(sequence=event.sequence)

        self.model.purge_event(event.root, self.clock.now)

    def sync_everything(self) -> None:
        """Merge all branches into the first and that into all: then they show the same."""
        hub, *others = self.model.live
        for line in others:
            self.merge_lines(hub, line, "source_wins")
        for line in others:
            assert self.preview(line, hub, None).conflicts == {}
            self.merge_lines(line, hub, None)
            for diff in (
                self.memory.diff(line.name, branch=hub.name),
                self.memory.diff(hub.name, branch=line.name),
            ):
                assert (diff.results, diff.events, diff.ours_events) == ([], 0, 0)
        for line in self.model.live:
            self.recall_at(line, None, self.model.sequence, self.clock.now)
            assert self.shown(line) == self.shown(hub)

    def shown(self, line: Line) -> list[str]:
        """Return what a branch shows of each entry, without the version it shows."""
        entries = [
            self.memory.recall(key, namespace=namespace, branch=line.name)
            for namespace, key in KEYS
        ]
        return [
            exactly([entry.value, entry.tags, entry.expires] if entry else None)
            for entry in entries
        ]

    # --- reads

    @rule(pick=picks, when=picks)
    def recall_everything(self, pick: int, when: int) -> None:
        self.recall_at(self.line(pick), *self.moment(when))

    def recall_at(self, line: Line, as_of: str | int | None, sequence: int, time: int) -> None:
        """Recall every key on a branch at a moment, and hold it against the model."""
        shown = line.state(sequence).shown(time)
        for namespace, key in KEYS:
            entry = self.memory.recall(key, namespace=namespace, branch=line.name, as_of=as_of)
            node = shown.get((namespace, key))
            if node is None or node.content is None:
                assert entry is None
            else:
                assert entry is not None
                assert exactly(entry.value) == exactly(node.content["value"])
                assert entry.version == node.sequence
                assert entry.tags == node.content.get("tags", [])
                assert (entry.expires is None) == ("expires_at" not in node.content)

    @rule(pick=picks, when=picks, by_key=st.booleans(), tag=st.sampled_from((None, "t1")))
    def list_everything(self, pick: int, when: int, by_key: bool, tag: str | None) -> None:
        line = self.line(pick)
        as_of, sequence, time = self.moment(when)
        state = line.state(sequence)
        for namespace in NAMESPACES:
            expected = [
                (node.sequence, key[1])
                for key, node in state.shown(time).items()
                if key[0] == namespace
                and (tag is None or tag in (node.content or {}).get("tags", []))
            ]
            listed = self.pages(
                self.memory.list,
                namespace=namespace,
                branch=line.name,
                as_of=as_of,
                tags=[tag] if tag else None,
                order="key" if by_key else "newest",
            )
            order = sorted(expected, key=itemgetter(1)) if by_key else sorted(expected)[::-1]
            assert [(each.version, each.key) for each in listed] == order
            logged = self.pages(
                self.memory.events,
                namespace=namespace,
                branch=line.name,
                as_of=as_of,
                order="oldest" if by_key else "newest",
            )
            events = [each.sequence for each in state.log if each.namespace == namespace]
            assert [each.sequence for each in logged] == (events if by_key else events[::-1])
        counted = self.memory.namespaces(branch=line.name, as_of=as_of)
        assert {each.name: (each.entries, each.events) for each in counted} == {
            namespace: counts
            for namespace in NAMESPACES
            if (counts := state.counts(namespace, time)) != (0, 0)
        }

    def pages(self, read: Callable[..., Any], **given: Any) -> list[Any]:
        """Read a list page by page."""
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = read(**given, limit=2, cursor=cursor)
            found += page
            cursor = page.next
            if cursor is None:
                return found

    @rule(pick=picks, when=picks, key=keys)
    def read_history(self, pick: int, when: int, key: Key) -> None:
        line = self.line(pick)
        as_of, sequence, _time = self.moment(when)

        found = []
        cursor: str | None = None
        while True:
            page = self.memory.history(
                key[1], namespace=key[0], branch=line.name, as_of=as_of, limit=3, cursor=cursor
            )
            assert isinstance(page, History)
            found += [(each.version, each.deleted, exactly(each.value)) for each in page]
            cursor = page.next
            if cursor is None:
                break

        versions = line.state(sequence).history.get(key, [])
        assert found == [
            (version, content is None, exactly(content["value"] if content else None))
            for version, content in reversed(versions)
        ]

    @rule(pick=picks, when=picks, word=words, tag=st.sampled_from((None, None, "t1")))
    def search(self, pick: int, when: int, word: str, tag: str | None) -> None:
        line = self.line(pick)
        as_of, sequence, time = self.moment(when)
        state = line.state(sequence)

        hits = self.memory.search(
            word, k=50, branch=line.name, as_of=as_of, tags=[tag] if tag else None
        )

        entries = {(hit.namespace, hit.key, hit.version) for hit in hits if hit.kind == "entry"}
        assert entries == {
            (*key, node.sequence)
            for key, node in state.shown(time).items()
            if node.content is not None and says(node.content["value"], word)
            if tag is None or tag in node.content.get("tags", [])
        }
        events = {hit.sequence for hit in hits if hit.kind == "event"}
        assert len(hits) < 50
        assert events == {
            each.sequence for each in state.log if says(each.data, word) and tag is None
        }

    @rule(one=picks, other=picks, when=picks)
    def diff(self, one: int, other: int, when: int) -> None:
        here, there = self.line(one), self.line(other)
        as_of, sequence, time = self.moment(when)

        answer = self.memory.diff(there.name, branch=here.name, as_of=as_of)

        ours, theirs = here.state(sequence), there.state(sequence)
        assert answer.events == self.model.missing_events(ours, theirs)
        assert answer.ours_events == self.model.missing_events(theirs, ours)
        assert_same_differences(answer, self.model.differences(ours, theirs, time))

    @rule(one=picks, other=picks, when=picks, then=picks)
    def compare(self, one: int, other: int, when: int, then: int) -> None:
        here, there = self.line(one), self.line(other)
        as_of, sequence, time = self.moment(when)
        other_as_of, other_sequence, other_time = self.moment(then)

        def compare(**listed: Any) -> Diff:
            return self.memory.compare(
                there.name,
                branch=here.name,
                as_of=as_of,
                compare_as_of=other_as_of,
                **listed,
            )

        answer = compare()
        page = compare(side="ours", limit=2, offset=1)

        states = here.state(sequence), there.state(other_sequence)
        expected = self.model.differences(*states, time, other_time)
        assert_same_differences(answer, expected)
        listed = [each for each in answer.results if each.side != "theirs"]
        assert exactly([plain(each) for each in page.results]) == exactly(
            [plain(each) for each in listed[1:3]]
        )
        assert page.ours == answer.ours

    @invariant()
    def status_is_true(self) -> None:
        line = self.model.live[-1]
        status = Stratagem(self.db.runtime, Caller(branch=line.name)).memory.status()

        assert int(status.head.split(":")[0]) == self.model.sequence
        assert status.branches == len(self.model.live)
        assert status.keys == len(line.now().shown(self.clock.now))
        assert status.events == len(line.now().log)

    # --- upkeep

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.db = self.open()

    @rule()
    def rebuild(self) -> None:
        self.db.runtime.foundation.store.rebuild(lambda *_: None)


def _changed_at(value: Any, path: list[str], new: Any) -> Any:
    """Return a value with one place changed; `...` where the path leads nowhere."""
    if not isinstance(value, dict):
        return ...
    name, rest = path[0], path[1:]
    inner = _changed_at(value.get(name, {}), rest, new) if rest else new
    return ... if inner is ... else {**value, name: inner}


def as_decisions(decisions: dict[Key, Any]) -> dict[str, Any]:
    """Return decisions as a caller writes them: for a record, or for each place of it."""
    written = {}
    for (namespace, key), decision in decisions.items():
        if isinstance(decision, dict) and "value" not in decision:
            for path, each in decision.items():
                written[f"{namespace}/{key}#{'.'.join(('$', *path[1:]))}"] = each
        else:
            written[f"{namespace}/{key}"] = decision
    return written


def assert_same_differences(answer: Diff, expected: dict[Key, Difference]) -> None:
    shown = {
        (change.namespace, change.key): exactly([change.side, change.before, change.after])
        for change in answer.results
    }
    assert shown == {
        key: exactly([each.side, each.before, each.after]) for key, each in expected.items()
    }
    for change in answer.results:
        places = {
            {"value": ".".join(("$", *path[1:])), "expires_at": "expires"}.get(path[0], path[0]): by
            for path, by in expected[change.namespace, change.key].places.items()
        }
        assert (change.changed_by or {}) == places
    sides = [each.side for each in expected.values()]
    assert answer.added + answer.removed + answer.changed == sides.count("theirs")
    assert (answer.ours, answer.both) == (sides.count("ours"), sides.count("both"))


def assert_same_conflicts(shown: list[Any], plan: Merge) -> None:
    found = {(conflict.namespace, conflict.key) for conflict in shown}
    assert found == set(plan.conflicts)
    assert len(shown) == sum(map(len, plan.conflicts.values()))
