"""Entries that expire, merged in every order: what comes of it never depends on that."""

from __future__ import annotations

import random
from datetime import UTC
from itertools import permutations
from typing import Any

from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.errors import MergeConflict
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts
from tests.properties.seeding import seeded

REPLICAS = ("a", "b", "c")
CONFLICT = "a conflict of lasting versions"


class Scene:
    """Three replicas of one entry, each changed for itself; then they are merged."""

    def __init__(self, generator: random.Random) -> None:
        self.random = generator
        self.clock = Clock()
        adapters = Adapters(self.clock, salts())
        settings = Settings(":memory:", embedder="none", adapters=adapters, zone=UTC)
        self.db = Stratagem(start(settings), Caller())
        self.memory = self.db.memory
        self.memory.store("q", {"v": 0, "w": 0, "x": 0}, ttl=generator.choice((None, None, 50)))
        self.memory.fork("base")
        for name in REPLICAS:
            self.memory.fork(name, branch="base")
        for _ in range(generator.randrange(2, 6)):
            self.change(generator.choice(REPLICAS))

    def change(self, branch: str) -> None:
        """Change the entry on a branch: whole, in one field, or away with it."""
        self.clock.now += 1
        number, roll = self.random.randrange(1, 4), self.random.random()
        if roll < 0.15:
            self.memory.forget("q", branch=branch)
        elif roll < 0.5:
            path = "$." + self.random.choice("vwx")
            self.memory.store("q", number, path=path, branch=branch)
        else:
            value = {"v": 0, "w": 0, "x": 0, self.random.choice("vwx"): number}
            ttl = self.random.choice((None, 10, 100, 1000))
            self.memory.store("q", value, branch=branch, ttl=ttl)

    def show(self, branch: str) -> Any:
        entry = self.memory.recall("q", branch=branch)
        return (entry.value, entry.expires) if entry else None

    def merge_in_order(self, order: tuple[str, ...]) -> Any:
        """Merge the replicas into a copy of the base, one after the other."""
        target = "into-" + "".join(order)
        self.memory.fork(target, branch="base")
        return self.merge_all([(source, target) for source in order], target)

    def merge_crosswise(self, turn: int) -> Any:
        """Let copies of the replicas merge each other at random; then all know all."""
        copies = [f"{name}{turn}" for name in REPLICAS]
        for name, copied in zip(REPLICAS, copies, strict=True):
            self.memory.fork(copied, branch=name)
        crossings = self.random.randrange(2, 6)
        pairs = [self.random.choice(list(permutations(copies, 2))) for _ in range(crossings)]
        hub, *others = copies
        pairs += [(other, hub) for other in others]
        shown = self.merge_all(pairs, hub)
        if shown != CONFLICT:
            assert self.merge_all([(hub, other) for other in others], hub) == shown
            for other in others:
                assert self.show(other) == shown
        return shown

    def merge_all(self, pairs: list[tuple[str, str]], shown: str) -> Any:
        try:
            for source, target in pairs:
                self.memory.merge(source, branch=target)
        except MergeConflict:
            return CONFLICT
        return self.show(shown)

    def outcomes(self, crossings: int) -> list[Any]:
        results = [self.merge_in_order(order) for order in permutations(REPLICAS)]
        return results + [self.merge_crosswise(turn) for turn in range(crossings)]


def test_entries_that_expire_are_merged_alike_in_every_order() -> None:
    conflicts = 0
    with seeded() as number:
        for place in range(25):
            scene = Scene(random.Random(f"{number}/{place}"))
            try:
                outcomes = scene.outcomes(crossings=3)
                assert all(each == outcomes[0] for each in outcomes), (place, outcomes)
                conflicts += CONFLICT in outcomes
            finally:
                scene.db.close()

    assert conflicts < 15
