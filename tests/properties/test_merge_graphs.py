"""Branches that merge each other in every order, criss-cross included, against the reference."""

from __future__ import annotations

import random
from datetime import UTC
from typing import Any

import pytest

from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.errors import MergeConflict
from stratagem.operation import Caller
from stratagem.storage.branch_merge import Strategy
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts
from tests.postgres import a_workspace
from tests.properties.machine import exactly
from tests.properties.model import Key, Line, Model
from tests.properties.seeding import seeded

KEY: Key = ("default", "k")
BRANCHES = ("default", "b1", "b2", "b3")


class Graph:
    """Four branches with one entry each, in a real memory and in the model."""

    def __init__(self, generator: random.Random, path: str) -> None:
        self.random = generator
        self.clock = Clock()
        adapters = Adapters(self.clock, salts())
        self.db = Stratagem(
            start(Settings(path, embedder="none", adapters=adapters, zone=UTC)), Caller()
        )
        self.model = Model(self.clock.now)
        self.merges = self.conflicts = 0
        self.edit(self.line("default"))
        for name in BRANCHES[1:]:
            parent = generator.choice(self.model.live)
            self.db.memory.fork(name, branch=parent.name)
            self.model.fork(name, parent, self.model.sequence, self.clock.now)

    def line(self, name: str) -> Line:
        return next(line for line in self.model.live if line.name == name)

    def step(self) -> None:
        target, source = self.random.sample(self.model.live, 2)
        choice = self.random.random()
        if choice < 0.45:
            self.edit(target)
        elif choice < 0.5:
            self.forget(target)
        else:
            self.merge(target, source)

    def edit(self, line: Line) -> None:
        node = line.now().entries.get(KEY)
        old = node.content["value"] if node and node.content else {}
        value: Any = dict(old) if isinstance(old, dict) else {}
        name = self.random.choice("abc")
        roll = self.random.random()
        if roll < 0.15:
            value.pop(name, None)
        elif roll < 0.3:
            value[name] = {self.random.choice("xy"): self.random.randrange(3)}
        else:
            value[name] = self.random.randrange(4)
        content: dict[str, Any] = {"value": value}
        if tags := sorted(self.random.sample(["p", "q", "r"], self.random.randrange(3))):
            content["tags"] = tags
        self.db.memory.store("k", value, branch=line.name, tags=tags)
        self.model.write(line, KEY, content, self.clock.now)

    def forget(self, line: Line) -> None:
        if self.db.memory.forget("k", branch=line.name).deleted:
            self.model.write(line, KEY, None, self.clock.now)

    def merge(self, target: Line, source: Line) -> None:
        strategies: list[Strategy | None] = [None, None, None, "source_wins", "target_wins"]
        strategy = self.random.choice(strategies)
        plan = self.model.plan(target, source, strategy)
        self.merges += 1
        try:
            answer = self.db.memory.merge(
                source.name,
                branch=target.name,
                strategy=strategy,
            )
        except MergeConflict as error:
            self.conflicts += 1
            assert error.details["conflict_count"] == len(plan.conflicts.get(KEY, []))
            return
        assert not plan.conflicts
        if answer.version is not None:
            self.model.merge(target, source, plan, self.clock.now)
        else:
            assert not plan.written
        self.compare(target)

    def compare(self, line: Line) -> None:
        entry = self.db.memory.recall("k", branch=line.name)
        node = line.now().entries.get(KEY)
        content = node.content if node else None
        if content is None:
            assert entry is None
        else:
            assert entry is not None
            assert exactly(entry.value) == exactly(content["value"])
            assert entry.tags == content.get("tags", [])


def run(graphs: int, steps: int, address: str = "") -> tuple[int, int]:
    merges = conflicts = 0
    with seeded() as number:
        for place in range(graphs):
            path = f"{address}#{a_workspace()}" if address else ":memory:"
            graph = Graph(random.Random(f"{number}/{place}"), path)
            try:
                for _ in range(steps):
                    graph.step()
                findings = graph.db.runtime.foundation.store.examine(lambda *_: None, None)
                assert findings == []
            finally:
                graph.db.close()
            merges += graph.merges
            conflicts += graph.conflicts
    return merges, conflicts


def test_random_merges_of_four_branches_agree_with_the_reference() -> None:
    merges, conflicts = run(graphs=12, steps=60)

    assert merges > 200
    assert 0 < conflicts < merges


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_merges_of_four_branches_agree_with_the_reference() -> None:
    run(graphs=3_000, steps=80)
