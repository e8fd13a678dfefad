"""What a client that shows a model only the text of an answer lets it know."""

from __future__ import annotations

import re

import stratagem
from stratagem import operations
from tests.manifest import proves


def text_of(db: stratagem.Stratagem, name: str, **arguments: object) -> str:
    return operations.find(name).summarise(db.call(name, arguments))


@proves("search:words")
def test_the_text_of_a_search_shows_the_passage_the_namespace_and_the_way_on() -> None:
    filler = "This paragraph talks about parking and badges, at length. " * 30
    with stratagem.open(":memory:", embedder="none") as db:
        db.call("strata_branch", {"action": "create", "name": "trial"})
        for number in range(3):
            db.call(
                "strata_store",
                {
                    "key": f"handbook{number}",
                    "value": f"{filler} The network is called Otter-5G. {filler}",
                    "namespace": "office",
                    "ttl": "7d",
                    "branch": "trial",
                },
            )

        text = text_of(db, "strata_search", query="network", branch="trial", k=2)

    assert text.count("Otter-5G") == 2
    assert "handbook2 (entry, namespace 'office'" in text
    assert "expires 20" in text
    assert "on branch 'trial'" in text
    assert "cursor='2'" in text
    assert "strata_recall" in text


def test_the_text_of_other_answers_says_where_and_until_when() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        stored = text_of(db, "strata_store", key="k", value=1, namespace="office")
        recalled = text_of(db, "strata_recall", keys=["k", "gone"], namespace="office")
        db.call("strata_store", {"key": "rule", "value": "I prefer short answers"})
        status = text_of(db, "strata_status")

    assert "namespace 'office'" in stored
    assert "namespace 'office'" in recalled
    assert "'gone'" in recalled
    assert "I prefer short answers" in status


def test_a_search_by_words_blames_no_missing_embedder() -> None:
    with stratagem.open(":memory:", embedder="static") as db:
        db.call("strata_store", {"key": "home", "value": "Я живу в Москве"})

        text = text_of(db, "strata_search", query="Москва")

    assert "1. home" in text
    assert "found by words only" in text
    assert "embedder" not in text


def test_a_search_without_a_hit_names_the_nearest_and_lists_nothing() -> None:
    with stratagem.open(":memory:", embedder="static") as db:
        db.call("strata_store", {"key": "novel", "value": "The Salt Road", "namespace": "books"})

        answer = db.call("strata_search", {"query": "budget for the road to Rome", "min_score": 1})

    assert answer["results"] == []
    assert answer["note"] == (
        "Nearest, but too weak to be a hit: 'novel' (namespace 'books'); min_score=0 shows it."
    )


@proves("search:words")
def test_a_hit_names_its_session_and_the_time_zone_of_its_time() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.call("strata_log", {"event": "note", "data": "the otter swims", "session": "zoo"})
        db.call("strata_store", {"key": "otter", "value": "swims on its back"})

        found = text_of(db, "strata_search", query="otter swims")
        listed = text_of(db, "strata_recall")

    assert re.search(r"@2 note \(event, session 'zoo', 1.00, \d{4}-\d\d-\d\dT\d\d:\d\dZ,", found)
    assert re.search(r"otter = swims on its back \(\d{4}-\d\d-\d\dT\d\d:\d\dZ,", listed)


def test_a_preview_with_conflicts_does_not_say_that_anything_would_be_merged_as_it_is() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("city", "Oslo")
        db.memory.fork("trial")
        db.memory.store("city", "Bergen", branch="trial")
        db.memory.store("town", "Voss", branch="trial")
        db.memory.store("city", "Tromsø")

        text = text_of(db, "strata_branch", action="merge", source="trial", preview=True)

    assert "Nothing is merged before each conflict below is decided" in text
    assert "conflict default/city at $" in text
