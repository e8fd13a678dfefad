"""Read models that grew are those that a rebuild makes, after any history.

The state machine of `test_histories` examines each of its histories too; these have what it
leaves out: sessions, several writes in one transaction, purges, and more events than fit a page.
"""

from __future__ import annotations

import random
from datetime import UTC
from pathlib import Path
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
from tests.properties.seeding import seeded

WORDS = ("amber", "birch", "cedar", "drift", "ember", "flint")
NAMESPACES = ("n1", "n2")
KEYS = tuple(f"k{number}" for number in range(8))


class Life:
    """A memory that anything may happen to."""

    def __init__(self, path: str, generator: random.Random) -> None:
        self.random = generator
        self.clock = Clock()
        adapters = Adapters(self.clock, salts())
        settings = Settings(path, durability="fast", embedder="none", adapters=adapters, zone=UTC)
        self.db = Stratagem(start(settings), Caller())
        self.logged: list[int] = []

    @property
    def store(self) -> Any:
        return self.db.runtime.foundation.store

    def branch(self) -> str:
        return self.random.choice([each.name for each in self.db.memory.branches()])

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 5)))

    def item(self) -> dict[str, Any]:
        chance = self.random.random
        item: dict[str, Any] = {"key": self.random.choice(KEYS), "value": self.text()}
        item["namespace"] = self.random.choice(NAMESPACES)
        if chance() < 0.3:
            item["tags"] = self.random.sample(["t1", "t2", "t3"], 2)
        if chance() < 0.2:
            item["ttl"] = self.random.randrange(1, 20)
        if chance() < 0.3:
            item["session"] = self.random.choice(["s1", "s2"])
        if chance() < 0.1:
            item["index"] = False
        return item

    def step(self) -> None:
        self.clock.advance(self.random.random() * 3)
        choices = (
            (30, self.write),
            (25, self.log),
            (10, self.forget),
            (8, self.fork),
            (12, self.merge),
            (4, self.delete_or_restore),
            (2, self.purge),
        )
        weights = [weight for weight, _ in choices]
        self.random.choices([each for _, each in choices], weights)[0]()

    def write(self) -> None:
        items = [self.item() for _ in range(self.random.choice([1, 1, 2, 6]))]
        self.db.memory.store(items=items, branch=self.branch())  # type: ignore[arg-type]

    def log(self) -> None:
        session = self.random.choice([None, "s1", "s2"])
        logged = self.db.memory.log(
            "said",
            self.text(),
            namespace=self.random.choice(NAMESPACES),
            session=session,
            branch=self.branch(),
        )
        self.logged.append(logged.sequence)

    def forget(self) -> None:
        keys = self.random.sample(KEYS, 3)
        self.db.memory.forget(
            keys=keys, namespace=self.random.choice(NAMESPACES), branch=self.branch()
        )

    def fork(self) -> None:
        head = self.store.reader().log.head().sequence
        as_of = self.random.choice([None, f"@{self.random.randrange(1, head + 1)}"])
        if len(self.db.memory.branches()) > 6:
            return
        if self.random.random() < 0.2:
            self.db.memory.create()
        else:
            self.db.memory.fork(branch=self.branch(), as_of=as_of)

    def merge(self) -> None:
        target, source = self.branch(), self.branch()
        strategies: list[Strategy | None] = [None, "source_wins", "target_wins"]
        strategy = self.random.choice(strategies)
        if target == source:
            return
        try:
            self.db.memory.merge(source, branch=target, strategy=strategy)
        except MergeConflict:
            assert strategy is None

    def delete_or_restore(self) -> None:
        name = self.branch()
        if name == "default":
            return
        self.db.memory.delete(name)
        if self.random.random() < 0.7:
            self.db.memory.restore(name)

    def purge(self) -> None:
        if self.random.random() < 0.5 or not self.logged:
            self.db.memory.purge(self.random.choice(KEYS), namespace=self.random.choice(NAMESPACES))
        else:
            self.db.memory.purge(sequence=self.random.choice(self.logged))

    def shown(self) -> list[Any]:
        """Return what can be seen, in the present and at some moments of the past."""
        head = self.store.reader().log.head().sequence
        seen: list[Any] = []
        for branch in sorted(each.name for each in self.db.memory.branches()):
            for as_of in (None, f"@{head // 2}", f"@{head // 3}"):
                for namespace in NAMESPACES:
                    where: dict[str, Any] = {"namespace": namespace, "branch": branch}
                    seen.append(self.db.memory.recall_many(KEYS, as_of=as_of, **where))
                    seen += [
                        self.db.memory.search(word, k=50, as_of=as_of, **where)
                        for word in WORDS[:3]
                    ]
            status = Stratagem(self.db.runtime, Caller(branch=branch)).memory.status()
            seen.append((status.keys, status.events))
        return seen


def run(lives: int, steps: int, folder: Path | None = None, address: str = "") -> None:
    with seeded() as number:
        for place in range(lives):
            path = ":memory:" if folder is None else str(folder / f"{place}.db")
            path = f"{address}#{a_workspace()}" if address else path
            life = Life(path, random.Random(f"{number}/{place}"))
            try:
                for _ in range(steps):
                    life.step()
                assert life.store.examine(lambda *_: None, None) == []
                before = life.shown()
                life.store.rebuild(lambda *_: None)
                assert life.shown() == before
                assert life.store.examine(lambda *_: None, None) == []
            finally:
                life.db.close()


def test_a_rebuild_changes_nothing_after_random_histories() -> None:
    run(lives=4, steps=60)


def test_a_rebuild_changes_nothing_after_a_history_of_several_pages(tmp_path: Path) -> None:
    run(lives=1, steps=700, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_rebuild_changes_nothing_after_many_random_histories(tmp_path: Path) -> None:
    run(lives=150, steps=400, folder=tmp_path)
