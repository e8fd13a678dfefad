"""A search ends where everything that is left is too weak to be a hit, and says what else there is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import stratagem
from stratagem import Stratagem, limits
from stratagem.operation import Caller
from stratagem.search.relevance import Coverage
from stratagem.surfaces.cli.output import shell_words

_BATCH = 500


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Stratagem]:
    with stratagem.open(tmp_path / "memory.db", durability="fast", embedder="none") as db:
        yield db


def _store_notes(db: Stratagem, count: int) -> None:
    for begin in range(0, count, _BATCH):
        numbers = range(begin, min(begin + _BATCH, count))
        db.memory.store(items=[{"key": f"n/{each}", "value": f"note x{each}"} for each in numbers])


def test_matches_beyond_many_weak_ones_are_not_read(
    db: Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEARCH_WEAK_MAX", 40)
    judged = _count_judged(monkeypatch)
    _store_notes(db, 1_000)

    found = db.memory.search("note x471", min_score=0.9)

    assert [hit.key for hit in found] == ["n/471"]
    assert len(judged) < 150


def test_hits_behind_some_weak_matches_are_found(db: Stratagem) -> None:
    _store_notes(db, 600)

    found = db.memory.search("note", k=50, min_score=0.2)

    assert len(found) == 50
    assert found.truncated


def _count_judged(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    judged: list[frozenset[str]] = []
    cover = Coverage.of

    def count(self: Coverage, present: Collection[str], context: Collection[str] = ()) -> float:
        judged.append(frozenset(present))
        return cover(self, present, context)

    monkeypatch.setattr(Coverage, "of", count)
    return judged


def test_kinds_are_named_to_those_who_may_search_them() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.call("create_concept", {"name": "Relief valve", "explanation": "It opens at 8 bar."})
        callers = (
            Caller("a"),
            Caller("a", toolsets=frozenset({"memory", "knowledge"})),
            Caller("a", toolsets=frozenset({"memory"})),
            Caller("a", scopes=frozenset({"memory:read"})),
        )
        notes = [
            db.runtime.call("strata_search", {"query": "relief valve"}, caller)["note"]
            for caller in callers
        ]

    assert ["kinds" in note for note in notes] == [True, True, False, False]
    assert shell_words(notes[0]) == "There are concepts that match: --kinds concept searches them."
