"""A search in any view finds what a plain filter over that view finds, context included."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

import pytest

from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts
from tests.postgres import a_workspace
from tests.properties.seeding import seeded

WORDS = tuple(f"word{letter}" for letter in "abcdefgh")
NAMESPACES = ("n1", "n2")
TAGS = ("t1", "t2")
CONTEXT_MESSAGES = 2


@dataclass(frozen=True)
class Item:
    """An entry or a logged event, with the words by which it is found."""

    sequence: int
    namespace: str
    tags: frozenset[str]
    said: frozenset[str]
    found_by: frozenset[str]
    session: str | None = None


@dataclass
class Shown:
    """All that one branch shows: entries by name, logged events in order."""

    entries: dict[tuple[str, str], Item] = field(default_factory=dict)
    events: list[Item] = field(default_factory=list)

    def copied(self) -> Shown:
        return Shown(dict(self.entries), list(self.events))

    def context(self, namespace: str, session: str | None) -> frozenset[str]:
        """Return the words of the messages just before, in the same session and namespace."""
        if session is None:
            return frozenset()
        before = [
            each for each in self.events if (each.namespace, each.session) == (namespace, session)
        ]
        return frozenset().union(*(each.said for each in before[-CONTEXT_MESSAGES:]))

    def matching(self, words: set[str] | None, namespace: str | None, tags: set[str]) -> set[int]:
        """Return what is found by any of some words; all that the filters let through if None."""
        everything = [*self.entries.values(), *self.events]
        return {
            each.sequence
            for each in everything
            if words is None or words & each.found_by
            if namespace is None or each.namespace == namespace
            if tags <= each.tags
        }


class Library:
    """Random writes on a few branches, kept as a full copy after each."""

    def __init__(self, generator: random.Random, embedder: str, path: str) -> None:
        self.random = generator
        adapters = Adapters(Clock(), salts())
        settings = Settings(path, embedder=embedder, adapters=adapters, zone=UTC)
        self.db = Stratagem(start(settings), Caller())
        self.copies: list[dict[str, Shown]] = [{}, {"default": Shown()}]

    def write(self) -> None:
        shown = {name: each.copied() for name, each in self.copies[-1].items()}
        branch = self.random.choice(sorted(shown))
        if self.random.random() < 0.12 and len(shown) < 6:
            name = f"b{len(self.copies)}"
            moment = self.random.randrange(self.made(branch), len(self.copies))
            shown[name] = self.copies[moment][branch].copied()
            self.db.memory.fork(name, branch=branch, as_of=f"@{moment}")
        elif self.random.random() < 0.15:
            if not self.forget(shown[branch], branch):
                return
        else:
            self.say(shown[branch], branch)
        self.copies.append(shown)

    def forget(self, shown: Shown, branch: str) -> bool:
        if not shown.entries:
            return False
        namespace, key = self.random.choice(sorted(shown.entries))
        del shown.entries[namespace, key]
        return self.db.memory.forget(key, namespace=namespace, branch=branch).deleted

    def say(self, shown: Shown, branch: str) -> None:
        said = self.random.sample(WORDS, self.random.randrange(1, 4))
        namespace = self.random.choice(NAMESPACES)
        session = self.random.choice([None, "s1", "s2"])
        tags = self.random.sample(TAGS, self.random.randrange(3))
        options: dict[str, Any] = {
            "namespace": namespace,
            "session": session,
            "tags": tags,
            "branch": branch,
        }
        found_by = frozenset(said) | shown.context(namespace, session)
        item = Item(
            len(self.copies), namespace, frozenset(tags), frozenset(said), found_by, session
        )
        if self.random.random() < 0.5:
            key = f"k{self.random.randrange(6)}"
            shown.entries[namespace, key] = item
            self.db.memory.store(key, " ".join(said), **options)
        else:
            shown.events.append(item)
            self.db.memory.log("said", " ".join(said), **options)

    def made(self, branch: str) -> int:
        """Return the moment a branch was made."""
        return next(at for at, copy in enumerate(self.copies) if branch in copy)

    def search(self) -> None:
        branch = self.random.choice(sorted(self.copies[-1]))
        words = set(self.random.sample(WORDS, self.random.randrange(1, 3)))
        namespace = self.random.choice([None, *NAMESPACES])
        tags = set(self.random.sample(TAGS, self.random.randrange(2)))
        moment = self.random.randrange(self.made(branch), len(self.copies))
        as_of = None if moment == len(self.copies) - 1 else f"@{moment}"

        found = self.db.memory.search(
            " ".join(sorted(words)),
            k=50,
            branch=branch,
            as_of=as_of,
            namespace=namespace,
            tags=sorted(tags),
        )

        shown = self.copies[moment][branch]
        expected, allowed = (shown.matching(each, namespace, tags) for each in (words, None))
        versions = [hit.version for hit in found]
        assert len(versions) == len(set(versions))
        assert set(versions) <= (expected if found.mode == "lexical" else allowed)
        if len(versions) < 50:
            assert expected <= set(versions)
        # The order weighs more than the score, which says how well a hit answers by itself.
        assert all(0 <= hit.score <= 1 for hit in found)


def run(libraries: int, writes: int, embedder: str = "none", address: str = "") -> None:
    with seeded() as number:
        for place in range(libraries):
            path = f"{address}#{a_workspace()}" if address else ":memory:"
            library = Library(random.Random(f"{number}/{place}"), embedder, path)
            try:
                for _ in range(writes):
                    library.write()
                    library.search()
            finally:
                library.db.close()


def test_searches_in_random_views_find_what_a_plain_filter_finds() -> None:
    run(libraries=5, writes=80)


def test_searches_by_meaning_find_nothing_that_the_view_does_not_show() -> None:
    run(libraries=2, writes=60, embedder="static")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_searches_in_random_views_find_what_a_plain_filter_finds() -> None:
    run(libraries=300, writes=160)
    run(libraries=100, writes=160, embedder="static")
