"""The pages of a search show every hit once, however long they are and whatever fits on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem, limits
from stratagem.joint_memory import read_both
from stratagem.search import ranking
from tests.postgres import a_workspace
from tests.properties.seeding import seeded

WORDS = [
    "server",
    "backup",
    "invoice",
    "login",
    "cache",
    "queue",
    "token",
    "retry",
    "release",
    "branch",
]
NAMESPACES = ("default", "team", "notes")
KINDS = (
    None,
    ["entry"],
    ["event"],
    ["entry", "event", "concept"],
    ["concept"],
    ["entry", "concept"],
    ["entry", "concept", "incident"],
    ["incident"],
)

Hits = list[tuple[str, int]]
Search = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at few candidates at a time, as a search in a large store does."""
    monkeypatch.setattr(ranking, "WEIGHED_MIN", 6)
    monkeypatch.setattr(ranking, "LEXICAL_DEPTH", 12)
    monkeypatch.setattr(ranking, "SEMANTIC_DEPTH", 8)
    monkeypatch.setattr(ranking, "UNSORTED_MATCHES_MAX", 30)


class Shelf:
    """A database with all kinds of texts, found by few words."""

    def __init__(self, generator: random.Random, db: Stratagem) -> None:
        self.random = generator
        self.db = db
        db.memory.store(items=[self._entry(number) for number in range(60)])
        for number in range(30):
            self._log(number)
        for number in range(20):
            db.memory.store(f"note/{number % 7}", self.words(3, 8), namespace="notes")
        db.memory.fork("trial")
        db.memory.store("note/1", self.words(3, 8), namespace="notes", branch="trial")
        db.knowledge.create_concepts(
            [{"name": f"Concept {word}", "explanation": self.words(5, 20)} for word in WORDS]
        )
        for word in WORDS:
            error = f"{word.title()}Error: {self.words(2, 6)}" if generator.random() < 0.5 else None
            db.debugging.add_incident(
                f"Incident {word} {self.words(1, 4)}",
                self.words(2, 6),
                {"os": "linux"},
                worked=True,
                error_signature=error,
                summary=self.words(2, 150),
                distinct=True,
            )

    def words(self, least: int, most: int) -> str:
        """Return some words."""
        return " ".join(self.random.choices(WORDS, k=self.random.randint(least, most)))

    def _entry(self, number: int) -> Any:
        value = self.words(2, 12)
        if number % 5 == 0:
            # A text of several passages.
            value = "\n\n".join(self.words(40, 120) for _ in range(self.random.randint(2, 9)))
        if number % 7 == 0:
            value = f"I prefer {value}"
        namespace = self.random.choice(NAMESPACES)
        tags = self.random.sample(["red", "blue"], self.random.randrange(3))
        return {"key": f"key/{number}", "value": value, "namespace": namespace, "tags": tags}

    def _log(self, number: int) -> None:
        role = ("user", "assistant")[number % 2]
        data = {"role": role, "content": self.words(2, 30)}
        self.db.memory.log("message", data, session=f"s{number // 10}")

    def query(self) -> dict[str, Any]:
        """Return a search, in any scope."""
        pick = self.random.choice
        options = {
            "query": self.words(1, 3),
            "namespace": pick([None, None, *NAMESPACES]),
            "kinds": pick(KINDS),
            "mode": pick([None, None, "lexical"]),
            "min_score": pick([None, 0, 0.5]),
            "branch": pick([None, None, "trial"]),
            "tags": pick([None, None, ["red"]]),
        }
        if options["kinds"] in (["concept"], ["incident"]):
            # They have neither, and a search for nothing else refuses both.
            options |= {"namespace": None, "tags": None}
        return {name: value for name, value in options.items() if value is not None}


def pages(search: Search, **arguments: Any) -> Iterator[dict[str, Any]]:
    answer = search({**arguments})
    yield answer
    for _ in range(500):
        assert answer["truncated"] == ("next" in answer)
        if "next" not in answer:
            return
        answer = search({**arguments, "cursor": answer["next"]})
        yield answer
    raise AssertionError("the pages have no end")


def places(search: Search, **arguments: Any) -> Hits:
    """Return the hits of all pages in order; none of them is empty but the only one."""
    answers = list(pages(search, **arguments))
    assert all(answer["results"] for answer in answers[1:])
    return [
        (hit.get("owner", ""), hit["version"]) for answer in answers for hit in answer["results"]
    ]


def check(search: Search, generator: random.Random, query: dict[str, Any]) -> None:
    whole = places(search, **query, k=limits.SEARCH_K_MAX)
    assert len(whole) == len(set(whole)), query
    k = generator.choice([1, 2, 3, 7, 10, 20])
    assert places(search, **query, k=k) == whole, (query, k)
    room = generator.choice([500, 1_500, 4_000])
    assert places(search, **query, k=k, max_chars=room) == whole, (query, k, room)


def check_shelf(shelf: Shelf, searches: int) -> None:
    search = partial(shelf.db.call, "strata_search")
    for _ in range(searches):
        check(search, shelf.random, shelf.query())
        words = sorted(set(shelf.words(1, 2).split()))
        found = places(search, query=" ".join(words), mode="lexical", min_score=0, k=9)
        assert _with_words(shelf.db, words) <= {version for _, version in found}


def _with_words(db: Stratagem, words: list[str]) -> set[int]:
    """Return the versions of all entries that have any of some words."""
    return {
        entry.version
        for namespace in NAMESPACES
        for entry in db.memory.list(namespace=namespace, limit=100)
        if set(words) & set(entry.value.split())
    }


def run(shelves: int, searches: int, address: str = "", embedder: str | None = None) -> None:
    with seeded() as number:
        for place in range(shelves):
            path = f"{address}#{a_workspace()}" if address else ":memory:"
            with closing(stratagem.open(path, embedder=embedder)) as db:
                check_shelf(Shelf(random.Random(f"{number}/{place}"), db), searches)


@pytest.mark.parametrize("embedder", [None, "none"])
def test_pages_of_any_length_show_the_same_hits_once(embedder: str | None) -> None:
    run(shelves=1, searches=12, embedder=embedder)


def test_pages_of_a_server_show_the_same_hits_once(postgres_address: str) -> None:
    run(shelves=1, searches=6, address=postgres_address)


def test_pages_of_two_memories_show_the_same_hits_once() -> None:
    with seeded() as number, ExitStack() as stack:
        generator = random.Random(number)
        shelves = [
            Shelf(generator, stack.enter_context(closing(stratagem.open(":memory:"))))
            for _ in range(2)
        ]
        calls = [partial(shelf.db.call, "strata_search") for shelf in shelves]

        for _ in range(8):
            search = partial(_search_both, calls)
            query = shelves[0].query()
            check(search, generator, query)
            both = set(places(search, **query))
            each = [
                {(owner, version) for _, version in places(one, **query)}
                for one, owner in zip(calls, ("project", "personal"), strict=True)
            ]
            assert both == each[0] | each[1]


def _search_both(calls: Sequence[Search], arguments: dict[str, Any]) -> dict[str, Any]:
    return read_both("strata_search", arguments, *calls)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_pages_of_many_searches_show_the_same_hits_once() -> None:
    run(shelves=60, searches=40)
    run(shelves=60, searches=40, embedder="none")
