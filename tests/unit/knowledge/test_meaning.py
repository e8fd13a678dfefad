"""Search by meaning that has to go deep to find concepts that are certain enough."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stratagem
from stratagem import Stratagem

COUNT = 600


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stratagem]:
    path: Path = tmp_path_factory.mktemp("meaning") / "meaning.db"
    with stratagem.open(str(path), durability="fast", embedder="static") as opened:
        for number in range(COUNT):
            opened.knowledge.create_concept(
                f"Harbour {number}",
                "Ships in the harbour.",
                area="Sea" if number % 2 else "Land",
                certainty_score=number % 200 / 10,
            )
        opened.knowledge.create_concept("Anchor", "It holds ships.", certainty_score=95)
        opened.knowledge.create_concept("Computed harbour", "Ships in the harbour.")
        opened.memory.fork("trial")
        yield opened


def found(db: Stratagem, least: float, **options: object) -> list[str]:
    given = {"query": "ships in the harbour", "min_certainty": least, **options}
    return [each["name"] for each in db.call("search_concepts_semantic", given)["results"]]


@pytest.mark.parametrize("branch", ["default", "trial"])
def test_the_few_that_are_certain_are_found_among_many_that_are_more_alike(
    db: Stratagem, branch: str
) -> None:
    assert found(db, 90, branch=branch) == ["Anchor"]
    assert found(db, 60, branch=branch) == ["Computed harbour", "Anchor"]
    assert set(found(db, 19.9, limit=5, branch=branch)) == {
        "Computed harbour", "Anchor", "Harbour 199", "Harbour 399", "Harbour 599",
    }  # fmt: skip
    assert found(db, 99, branch=branch) == []


def test_the_rest_of_the_conditions_still_hold(db: Stratagem) -> None:
    assert set(found(db, 19.8, area="Sea")) == {"Harbour 199", "Harbour 399", "Harbour 599"}
    assert found(db, 60, area="Sea") == []


def test_an_answer_says_that_there_are_more(db: Stratagem) -> None:
    few = db.knowledge.search_concepts_semantic("ships", min_certainty=19, limit=3)
    all_of_them = db.knowledge.search_concepts_semantic("ships", min_certainty=60, limit=2)

    assert (len(few), few.truncated) == (3, True)
    assert (len(all_of_them), all_of_them.truncated) == (2, None)
    assert [each.similarity for each in few] == sorted(
        (each.similarity for each in few), reverse=True
    )
