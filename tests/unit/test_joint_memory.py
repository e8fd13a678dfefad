"""The memory of a project and the person's own, searched as one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.joint_memory import read_both


def search_of(project: Stratagem, personal: Stratagem) -> Callable[..., dict[str, Any]]:
    """Return what searches two memories as one."""
    return partial(
        read_both,
        "strata_search",
        project=partial(project.call, "strata_search"),
        personal=partial(personal.call, "strata_search"),
    )


def test_a_hit_of_the_one_silences_what_the_other_says_of_having_none() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.store("trip", "the road to Berlin")
        personal.memory.store("budget", "weekly marketing budget of the Berlin office")
        search = search_of(project, personal)

        found = search(arguments={"query": "weekly budget of the Berlin office", "min_score": 0.9})
        missed = search(arguments={"query": "Berlin in spring", "min_score": 0.9})

    assert [hit["key"] for hit in found["results"]] == ["budget"]
    assert "note" not in found
    assert missed["results"] == []
    assert missed["note"] == "Nearest, but too weak to be a hit: 'trip'; min_score=0 shows it."


def test_the_order_of_each_memory_is_kept() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.store("decision/queue", "arq, which replaces Celery for the jobs")
        for said in ("Which job queue shall we use?", "The queue of the bakery", "A job fair"):
            project.memory.log("message", {"role": "user", "content": said}, session="s")
            answer = {"role": "assistant", "content": f"{said[4:10]}: the job queue is Celery."}
            project.memory.log("message", answer, session="s")
        search = search_of(project, personal)
        query = {"query": "which job queue do we use"}
        alone = [hit["version"] for hit in project.call("strata_search", query)["results"]]
        beside_nothing = [hit["version"] for hit in search(arguments=query)["results"]]
        personal.memory.store("queue", "The job queue of the bank")
        both = search(arguments=query)["results"]

    assert len(alone) > 4
    assert beside_nothing == alone
    assert [hit["version"] for hit in both if hit["owner"] == "project"] == alone[: len(both) - 1]


def test_a_name_that_the_one_lacks_is_not_said_to_be_nowhere_where_the_other_has_it() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.store("trip", "the deadline of the project is 15 March")
        search = search_of(project, personal)
        alone = search(arguments={"query": "the deadline of Hermes"})
        personal.memory.store("hermes", "the deadline of Hermes is 3 May")
        there = search(arguments={"query": "the deadline of Hermes"})
        both = search(arguments={"query": "the deadline of Hermes or Zeus for the project"})

    assert alone["note"] == "No text that can be searched has 'Hermes'."
    assert "note" not in there
    assert both["note"] == "No text that can be searched has 'Zeus'."


def test_of_two_that_found_nothing_the_one_counts_that_knows_more() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.store("trip", "the road to Berlin", tags=["travel"])
        personal.memory.store("flat", "Gothenburg", namespace="homes", tags=["home"])
        search = search_of(project, personal)

        misspelt = search(arguments={"query": "Gothenbrug"})
        unknown = search(arguments={"query": "zanzibar"})
        personal.memory.store("key", "the attic", tags=["travel"])
        tagged = search(arguments={"query": "Gothenburg", "tags": ["travel"]})

    assert misspelt["note"] == "Did you mean 'gothenburg'?"
    assert unknown["note"].startswith("Nothing that can be searched matches")
    assert tagged["note"] == "Without `tags` this search finds 'flat' (namespace 'personal/homes')."


def test_pages_cut_to_their_room_show_each_hit_of_both_once_and_give_one_cursor() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        line = "the bearing of the turbine was warm and needs oil. "
        project.memory.store(
            items=[{"key": f"doc/{each}", "value": line * 40 + str(each)} for each in range(45)]
        )
        personal.memory.store("pref", "My favourite turbine is the Kaplan turbine")
        search = search_of(project, personal)

        query = {"query": "turbine bearing oil", "max_chars": 4_000}
        pages = [search(arguments=query)]
        while "next" in pages[-1]:
            pages.append(search(arguments={**query, "cursor": pages[-1]["next"]}))
        past = search(arguments={**query, "cursor": "60+5"})

    hits = [hit["key"] for page in pages for hit in page["results"]]
    assert sorted(hits) == sorted(["pref", *(f"doc/{each}" for each in range(45))])
    assert all(page["results"] for page in pages)
    assert all(page["note"].count("cursor=") == 1 for page in pages[:-1])
    assert all(f"cursor={page['next']!r}" in page["note"] for page in pages[:-1])
    assert "cursor=" not in pages[-1]["note"]
    assert (past["results"], past["ended_at"]) == ([], 46)
    assert past["note"] == "The results end before this cursor: there are 46 hits in all."


@pytest.mark.parametrize(
    "cursor", ["9" * 5_000, "٣", "-1", "next", "10", "1+", "+1", "1+1+1", "1+-1", "1+٣"]
)
def test_a_cursor_that_no_answer_gave_is_refused(cursor: str) -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        call = partial(db.call, "strata_search")

        with pytest.raises(stratagem.ValidationFailed) as refused:
            read_both("strata_search", {"query": "x", "cursor": cursor}, call, call)

    assert refused.value.details["field"] == "cursor"


QUESTION = "How big should the batches be?"


def test_a_reply_that_is_not_on_the_page_is_shown_by_what_it_says() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        reply = "5,000 rows, with a pause of 200 ms between them."
        for role, text in (("user", QUESTION), ("assistant", reply)):
            project.memory.log("message", {"role": role, "text": text}, session="s")
        search = search_of(project, personal)

        query = {"query": "how big should the batches be"}
        first = search(arguments={**query, "k": 1})
        second = search(arguments={**query, "k": 1, "cursor": first["next"]})
        both = search(arguments=query)

    assert first["results"][0]["reply"]["passage"] == reply
    assert "passage" in second["results"][0]["reply_to"]
    assert [hit["sequence"] for hit in both["results"]] == [
        both["results"][0]["sequence"],
        both["results"][0]["reply"]["sequence"],
    ]
    assert "passage" not in both["results"][0]["reply"]


def test_a_hit_of_another_memory_is_not_taken_for_a_reply() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.log("message", {"role": "user", "text": QUESTION}, session="s")
        project.memory.log("message", {"role": "assistant", "text": "5,000 rows."}, session="s")
        personal.memory.log("note", "how to bake bread")
        personal.memory.log("note", "how big the batches of bread should be")

        found = read_both(
            "strata_search",
            {"query": "how big should the batches be", "k": 2},
            partial(project.call, "strata_search"),
            partial(personal.call, "strata_search"),
        )["results"]

    asked, own = sorted(found, key=lambda hit: hit["owner"], reverse=True)
    assert (asked["owner"], own["owner"]) == ("project", "personal")
    assert asked["reply"]["sequence"] == own["sequence"]
    assert asked["reply"]["passage"] == "5,000 rows."


def test_a_question_that_nobody_answered_comes_after_the_hits_of_both_memories() -> None:
    with (
        stratagem.open(":memory:", embedder="none") as project,
        stratagem.open(":memory:", embedder="none") as personal,
    ):
        project.memory.log("message", {"role": "user", "text": QUESTION}, session="s")
        project.memory.store("rows", "Batches have 5,000 rows")
        personal.memory.store("bread", "Batches of bread rise on Fridays")

        found = read_both(
            "strata_search",
            {"query": QUESTION, "min_score": 0},
            partial(project.call, "strata_search"),
            partial(personal.call, "strata_search"),
        )["results"]

    assert [hit.get("lowered") for hit in found] == [None, None, "unanswered"]
    assert found[2]["score"] > found[0]["score"]
