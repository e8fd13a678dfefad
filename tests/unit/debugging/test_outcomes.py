"""What recording an outcome costs others, and what it says about its effect."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.debugging import ranking

LINUX = {"os": "linux", "python": "3.12"}


def test_other_writers_do_not_wait_while_solutions_are_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stratagem.open(str(tmp_path / "s.db"), embedder="none") as db:
        added = db.debugging.add_incident("It fails", ["mend it"], LINUX, True)
        assert added.solution_id
        assert added.incident_id
        rank, written = ranking.rank, []

        def rank_while_another_writes(*given: Any, **more: Any) -> Any:
            writer = threading.Thread(
                target=lambda: written.append(db.memory.store(f"k{len(written)}", 1))
            )
            writer.start()
            writer.join(60)
            assert not writer.is_alive()
            return rank(*given, **more)

        monkeypatch.setattr(ranking, "rank", rank_while_another_writes)
        recorded = db.debugging.record_outcome(added.solution_id, True, LINUX)

    assert recorded.ok
    assert len(written) == 2


def test_the_effect_is_that_of_the_outcome_alone_also_when_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    with stratagem.open(str(tmp_path / "s.db"), embedder="none") as db:
        added = db.debugging.add_incident("It fails", ["mend it"], LINUX, True)
        assert added.solution_id
        assert added.incident_id
        other = db.debugging.add_solution(added.incident_id, ["mend it well"], LINUX)
        first = db.debugging.record_outcome(other.solution_id, True, LINUX, request_id="r1")
        for _ in range(5):
            db.debugging.record_outcome(added.solution_id, True, LINUX)

        again = db.debugging.record_outcome(other.solution_id, True, LINUX, request_id="r1")

    assert again == first
    assert first.effect["reliability_after"] > first.effect["reliability_before"]


@pytest.mark.parametrize("what", ["solution_id", "incident_id"])
def test_an_outcome_of_what_was_retired_promises_nothing(tmp_path: Path, what: str) -> None:
    with stratagem.open(str(tmp_path / "s.db"), embedder="none") as db:
        added = db.debugging.add_incident("It fails", ["mend it"], LINUX, True)
        assert added.solution_id
        retired = getattr(added, what)
        db.debugging.retire_record(retired, "It deletes the data")

        recorded = db.debugging.record_outcome(added.solution_id, True, LINUX)

    assert recorded.note == (
        f"{retired} was retired (It deletes the data): the outcome is kept, but the fix is not "
        "recommended."
    )
    assert recorded.next_action.type == "DONE"
    assert recorded.effect["rank_after"] is None
    assert recorded.effect["of"] == 0


@pytest.mark.parametrize(
    ("asked", "is_named"),
    [
        ("ModuleNotFoundError: No module named 'pandas'", True),
        ("TypeError: cannot read properties of undefined (reading 'map')", False),
    ],
)
def test_the_nearest_incident_is_named_only_where_it_is_near(asked: str, *, is_named: bool) -> None:
    known = "ModuleNotFoundError: No module named 'numpy'"
    with stratagem.open(":memory:", embedder="none") as db:
        db.debugging.add_incident("It fails", ["mend it"], LINUX, True, error_signature=known)

        answer = db.debugging.ranked_solutions(asked, LINUX)

    assert answer.next_action.type == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
    assert bool(answer.note) == is_named
