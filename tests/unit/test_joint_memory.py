"""The memory of a project and the person's own, searched as one."""

from functools import partial

import pytest

import stratagem
from stratagem.joint_memory import read_both


def test_a_hit_of_the_one_silences_what_the_other_says_of_having_none() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.store("trip", "the road to Berlin")
        personal.memory.store("budget", "weekly marketing budget of the Berlin office")
        search = partial(
            read_both,
            "strata_search",
            project=partial(project.call, "strata_search"),
            personal=partial(personal.call, "strata_search"),
        )

        found = search(arguments={"query": "weekly budget of the Berlin office", "min_score": 0.9})
        missed = search(arguments={"query": "Berlin in spring", "min_score": 0.9})

    assert [hit["key"] for hit in found["results"]] == ["budget"]
    assert "note" not in found
    assert missed["results"] == []
    assert missed["note"] == "Nearest, but too weak to be a hit: 'trip'; min_score=0 shows it."


@pytest.mark.parametrize("cursor", ["9" * 5_000, "٣", "-1", "next"])
def test_a_cursor_that_no_answer_gave_is_refused(cursor: str) -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        call = partial(db.call, "strata_search")

        with pytest.raises(stratagem.ValidationFailed) as refused:
            read_both("strata_search", {"query": "x", "cursor": cursor}, call, call)

    assert refused.value.details["field"] == "cursor"
