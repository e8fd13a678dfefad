"""The counts of the hierarchy are kept, and never older than what their reader could see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stratagem
from stratagem.knowledge import concept_lists
from stratagem.knowledge.records import ConceptRecords
from stratagem.search.state_cache import StateCache


def areas(db: stratagem.Stratagem, **view: str) -> dict[str, int]:
    return {area.name: area.concept_count for area in db.knowledge.list_hierarchy(**view).areas}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was counted: the branch, each time that the database was asked."""
    asked: list[str] = []
    count = concept_lists.counts

    def counting(book: ConceptRecords, at: int | None = None) -> list[tuple[tuple[str, ...], int]]:
        asked.append(book.view.branch.name)
        return count(book, at)

    monkeypatch.setattr(concept_lists, "counts", counting)
    return asked


def test_it_is_counted_once_until_something_is_written(tmp_path: Path, counted: list[str]) -> None:
    with stratagem.open(str(tmp_path / "k.db"), embedder="none") as db:
        db.knowledge.create_concept("C", "e", area="A")
        for _ in range(3):
            assert areas(db) == {"A": 1}
        assert counted == ["default"]
        db.knowledge.create_concept("D", "e", area="B")
        assert areas(db) == {"A": 1, "B": 1}
        assert counted == ["default"] * 2


def test_what_another_process_writes_is_seen_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "k.db")
    with (
        stratagem.open(path, embedder="none") as ours,
        stratagem.open(path, embedder="none") as other,
    ):
        ours.knowledge.create_concept("C", "e", area="A")
        assert areas(ours) == areas(other) == {"A": 1}
        concept_id = other.knowledge.create_concept("D", "e", area="B").concept_id
        assert areas(ours) == areas(other) == {"A": 1, "B": 1}
        other.knowledge.delete_concept(concept_id)
        assert areas(ours) == {"A": 1}


def test_branches_and_moments_are_kept_apart(tmp_path: Path, counted: list[str]) -> None:
    with stratagem.open(str(tmp_path / "k.db"), embedder="none") as db:
        version = db.knowledge.create_concept("C", "e", area="A").version
        db.memory.fork("trial")
        db.knowledge.create_concept("D", "e", area="B", branch="trial")
        for _ in range(2):
            assert areas(db) == {"A": 1}
            assert areas(db, branch="trial") == {"A": 1, "B": 1}
        assert areas(db, branch="trial", as_of=f"@{version}") == {"A": 1}
        assert counted == ["default", "trial", "trial"]


def test_changing_an_answer_changes_no_other(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "k.db"), embedder="none") as db:
        db.knowledge.create_concept("C", "e", area="A")
        db.knowledge.list_hierarchy().areas.clear()

        assert areas(db) == {"A": 1}


def test_only_so_much_is_kept() -> None:
    cache = StateCache()
    made: list[int] = []

    def make(number: int) -> Callable[[], int]:
        def made_now() -> int:
            made.append(number)
            return number

        return made_now

    for number in range(40):
        assert cache.get(number, 1, make(number)) == number
    assert cache.get(39, 1, make(39)) == 39
    assert cache.get(0, 1, make(0)) == 0

    assert made == [*range(40), 0]
