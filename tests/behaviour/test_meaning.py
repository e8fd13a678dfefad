"""Searching by words and by meaning, with the embedder that comes with Stratagem."""

from __future__ import annotations

import pytest

from tests.behaviour.conftest import Call, Opener
from tests.manifest import proves

TEXTS = {
    "dog": "The puppy chased its tail around the garden",
    "money": "Interest rates were raised by the central bank",
    "sea": "Waves broke over the harbour wall all night",
    "code": "The function returns null when the list is empty",
}


@pytest.fixture
def call(opened: Opener) -> Call:
    call = opened(embedder="static")
    for key, text in TEXTS.items():
        call.store(key=key, value=text)
    return call


@proves("meaning:hybrid")
@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("a young hound at play", "dog"),
        ("finance and loans", "money"),
        ("a storm at the coast", "sea"),
    ],
)
def test_a_text_is_found_by_what_it_means(call: Call, query: str, key: str) -> None:
    answer = call.search(query=query)

    assert answer["mode"] == "hybrid"
    assert answer["results"][0]["key"] == key


@proves("meaning:hybrid")
def test_words_still_count(call: Call) -> None:
    call.store(key="serial", value="QX-7731-B")

    assert call.keys("QX-7731-B")[0] == "serial"


@proves("meaning:hybrid")
def test_what_has_the_very_name_comes_before_what_has_its_parts(call: Call) -> None:
    call.store(key="button", value="The Pay button stays grey for gift orders")
    call.store(key="gift", value="Gift orders: the button 'Pay' is disabled")
    call.log(
        event="fix",
        data="The fix is behind the flag gift-pay-button, which is on for one session in ten since "
        "Wednesday morning, for customers who have an account",
    )

    assert call.search(query="gift-pay-button")["results"][0]["kind"] == "event"


@proves("meaning:hybrid")
def test_a_query_of_marks_alone_is_answered(call: Call) -> None:
    call.store(key="shout", value="Oh! No! Help!!!")

    assert call.keys("!!!", min_score=0)[0] == "shout"


@proves("meaning:at-once")
def test_the_newest_write_is_found_by_meaning_at_once(call: Call) -> None:
    call.store(key="new", value="Guitars and drums were heard from the stage")

    assert call.keys("a rock concert")[0] == "new"
    assert call.status()["unembedded"] == 0


@proves("meaning:views")
def test_meaning_is_searched_in_the_same_view_as_words(call: Call) -> None:
    moment = call.status()["head"].split(":")[0]
    call.branch(action="fork", name="trial")
    call.store(key="cat", value="A kitten slept on the sofa", tags=["pet"], namespace="home")
    call.forget(key="dog")
    call.store(key="money", value="Nothing to see here", branch="trial")

    query = "household pets"

    assert set(call.keys(query, k=50)) <= {"cat", "money", "sea", "code"}
    assert "dog" in call.keys(query, k=50, as_of=f"@{moment}")
    assert "cat" not in call.keys(query, k=50, as_of=f"@{moment}")
    assert "cat" not in call.keys(query, k=50, branch="trial")
    assert "dog" in call.keys(query, k=50, branch="trial")
    assert call.keys(query, tags=["pet"]) == ["cat"]
    assert call.keys(query, namespace="home") == ["cat"]


@proves("meaning:views")
def test_a_replaced_text_is_not_found_by_what_it_meant(call: Call) -> None:
    call.store(key="dog", value="Interest on the loan is due")
    call.branch(action="fork", name="trial")
    call.store(key="dog", value="Interest on the other loan", branch="trial")

    for branch in ("default", "trial"):
        (hit,) = [
            hit
            for hit in call.search(query="puppy in the garden", k=50, branch=branch)["results"]
            if hit["key"] == "dog"
        ] or [{"value": "Interest"}]
        assert hit["value"].startswith("Interest")


@proves("meaning:score")
def test_scores_lie_between_zero_and_one_and_fall(call: Call) -> None:
    for query in ("puppy", "a young hound", "bank function harbour"):
        scores = [hit["score"] for hit in call.search(query=query, k=50)["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


@proves("meaning:reopen")
def test_vectors_are_kept_when_the_database_is_opened_again(opened: Opener, call: Call) -> None:
    before = call.keys("a young hound at play", k=50)

    again = opened(embedder="static")

    assert again.status()["unembedded"] == 0
    assert again.keys("a young hound at play", k=50) == before


@proves("meaning:later")
def test_what_was_written_without_an_embedder_is_embedded_when_there_is_one(
    opened: Opener,
) -> None:
    plain = opened(embedder="none")
    for key, text in TEXTS.items():
        plain.store(key=key, value=text)
    assert plain.search(query="a young hound at play")["mode"] == "lexical"

    answer = opened(embedder="static").search(query="a young hound at play")

    assert answer["mode"] == "hybrid"
    assert answer["results"][0]["key"] == "dog"


@proves("meaning:purge")
def test_what_was_purged_is_not_found_by_meaning(call: Call) -> None:
    call.purge(key="dog")

    assert "dog" not in call.keys("a young hound at play", k=50)


@proves("meaning:message")
@pytest.mark.parametrize("session", [None, "chat"])
def test_a_short_message_is_found_with_and_without_a_session(
    opened: Opener, session: str | None
) -> None:
    call = opened(embedder="static")
    for said in ("I moved to Bergen last week.", "The tests are green again."):
        call.log(event="message", data={"role": "user", "content": said}, session=session)

    answer = call.search(query="where do I live?")

    assert [hit["value"]["content"] for hit in answer["results"]] == [
        "I moved to Bergen last week."
    ]


@proves("meaning:said")
@pytest.mark.parametrize("field", ["text", "content", "message", "body"])
def test_a_message_is_found_by_what_was_said(opened: Opener, field: str) -> None:
    call = opened(embedder="static")
    for said in ("Hi", "My job title is data engineer", "A joke about penguins"):
        call.log(event="turn", data={"role": "user", field: said, "model": "m-7"}, session="s")

    for query in ("role", "user", "assistant", field):
        assert call.search(query=query)["results"] == []
    found = call.search(query="job title")["results"]
    assert found[0]["value"][field] == "My job title is data engineer"
    assert found[0]["snippet"].startswith("My **job** **title** is data engineer")
    assert len(call.search(query="m-7")["results"]) == 3


@proves("meaning:user")
@pytest.mark.parametrize(
    ("own", "about_the_user"),
    [
        ("where do I live?", "where does the user live?"),
        ("what is my job?", "what is the user's job?"),
        ("what is my job?", "What is the user’s job?"),
    ],
)
def test_a_question_about_the_user_is_one_by_the_user(
    opened: Opener, own: str, about_the_user: str
) -> None:
    call = opened(embedder="static")
    call.store(key="home", value="I moved to Bergen last week")
    call.store(key="work", value="data engineer at a bank")
    call.store(key="coffee", value="espresso without sugar")
    expected = call.keys(own)

    assert expected
    assert call.keys(about_the_user)[0] == expected[0]


# Of two languages, each once below and once above the length of a short text.
SPANISH = "El taller de la bicicleta es el de la calle Mayor."
FRENCH = "Le garage de la voiture est celui de la place du marché."
IN_OTHER_WORDS = {
    "short Spanish": (SPANISH, "¿cuál es el color de la puerta?", "¿dónde está el taller?"),
    "long Spanish": (
        f"{SPANISH} Abre de lunes a viernes, y los sábados solo por la mañana si no es fiesta.",
        "¿cuál es el color de la puerta?",
        "¿dónde está el taller?",
    ),
    "short French": (FRENCH, "quelle est la couleur de la porte ?", "où est le garage ?"),
    "long French": (
        f"{FRENCH} Il est ouvert du lundi au vendredi, et le samedi matin sauf les jours fériés.",
        "quelle est la couleur de la porte ?",
        "où est le garage ?",
    ),
}


@proves("meaning:languages")
@pytest.mark.parametrize(
    ("text", "unanswered", "answered"), IN_OTHER_WORDS.values(), ids=IN_OTHER_WORDS
)
def test_two_texts_in_another_language_are_not_alike_by_its_function_words(
    opened: Opener, text: str, unanswered: str, answered: str
) -> None:
    call = opened(embedder="static")
    call.store(key="k1", value=text)
    call.log(event="note", data=text)

    assert call.search(query=unanswered)["results"] == []
    assert len(call.search(query=answered)["results"]) == 2


@proves("search:near-words")
@pytest.mark.parametrize("query", ["recipe for banana bread", "score of the match"])
def test_a_word_that_is_spelled_right_is_not_taken_for_another(opened: Opener, query: str) -> None:
    call = opened(embedder="static")
    call.store(key="k", value="we read in the store every march, and retire the branch")

    assert "Did you mean" not in call.search(query=query).get("note", "")
    assert "Did you mean 'branch'?" in call.search(query="brnach")["note"]


@proves("search:absent-names")
def test_other_words_do_not_make_up_for_a_name_that_a_short_text_lacks(opened: Opener) -> None:
    call = opened(embedder="static")
    call.store(key="project/atlas/deadline", value="Beta on 15 March, no later")
    call.store(key="project/search/engine", value="Typesense")
    call.store(key="project/billing/provider", value="Stripe")

    (right, *_) = call.search(query="deadline of project Atlas")["results"]
    answer = call.search(query="deadline of project Hermes")

    assert right["score"] > 0.9
    assert answer["results"][0]["score"] < 0.75
    assert answer["note"] == "No text that can be searched has 'Hermes'."
    assert "'zyxomma'" in call.search(query="deadline of the zyxomma project")["note"]
