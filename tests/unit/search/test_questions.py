"""What a query asks for speaks for a text, or against it."""

import pytest

from stratagem.search import questions
from stratagem.search.embedding import StaticEmbedder
from stratagem.search.nearness import Nearness
from stratagem.search.questions import Question, telling_words

EMBEDDER = StaticEmbedder()


def question(text: str) -> Question:
    return Question(text, EMBEDDER.rank)


def objection(query: str, text: str) -> float:
    nearness = Nearness(EMBEDDER, query, EMBEDDER.embed([query])[0])
    return nearness.question.objection(nearness.of_words(text))


@pytest.mark.parametrize(
    ("asked", "answer", "no_answer"),
    [
        ("when does the office open?", "on Mondays", "in Berlin"),
        ("how often is it pruned?", "twice", "carefully"),
        ("in what year was it founded?", "1987", "in Oslo"),
        ("how many hens are there?", "14", "plenty"),
        ("who leads the group?", "Ada Lovelace", "nobody yet"),
        ("tell me who owns it", "#payments", "unknown"),
        ("where is the config?", "/etc/app.toml", "unknown"),
        ("which town is it?", "Bergen", "unknown"),
        ("where do we meet?", "in the hall", "at 9 on Mondays"),
        ("who is on call?", "Priya until Friday", "until Friday"),
        ("why is the port closed?", "because of the audit", "8443"),
    ],
)
def test_the_kind_of_answer_that_is_asked_for_speaks_for_a_text(
    asked: str, answer: str, no_answer: str
) -> None:
    assert question(asked).support(answer) > 0 > question(asked).support(no_answer)


@pytest.mark.parametrize(
    "asked", ["office address", "what is the theme?", "what is read when down"]
)
def test_where_no_kind_is_asked_for_none_is_missed(asked: str) -> None:
    assert question(asked).support("anything") == question(asked).support("14 Mondays in Oslo") == 0


def test_what_is_asked_about_oneself_is_asked_of_a_memory() -> None:
    assert question("what is my theme?").support("dark") > question("what is it?").support("dark")


def test_a_name_that_is_not_there_speaks_against_a_text() -> None:
    with_name = objection("the budget for Brazil", "Brazil: 900")
    without = objection("the budget for Brazil", "budget: 900")

    assert with_name < 2
    assert without > 4


def test_a_number_that_is_not_there_speaks_against_a_text() -> None:
    assert objection("the budget of 1966", "budget 1966: 900") == 0
    assert objection("the budget of 1966", "budget 1967: 900") > 4
    assert objection("the budget of 2 people", "budget: 900") < 4


@pytest.mark.parametrize(
    "query", ["Budget Brazil", "Brazil", "budget of brazil", "what was said. Brazil then"]
)
def test_a_capital_alone_makes_no_name(query: str) -> None:
    assert objection(query, "budget: 900") < 4


def test_rare_words_are_missed_more_than_common_ones() -> None:
    assert objection("sourdough", "oat milk") > objection("recipe", "oat milk") > 0
    assert objection("milk", "oat milk") == 0


def test_names_are_parted_into_words_and_stop_words_left_out() -> None:
    assert telling_words("where is the poolSize of user_db?") == ["pool", "size", "user", "db"]
    assert telling_words("who are you") == ["who", "are", "you"]
    assert telling_words("") == []


@pytest.mark.parametrize("asked", ["", "!!!", "… ?"])
def test_a_query_without_words_asks_for_no_kind_of_answer(asked: str) -> None:
    assert question(asked).support("on Mondays") == 0


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("what iPhone do I have", "I own an iPhone 13"),
        ("who has OPS-4472", "On May 5 OPS-4472 was closed"),
        ("who has OPS-4472", "Ticket ops_4472 2 days later"),
        ("compute_net_total", "call compute net total 2 times"),
        ("phase-1", "phase 1 2026"),
    ],
)
def test_a_name_of_parts_stands_apart_from_the_numbers_around_it(asked: str, text: str) -> None:
    assert not question(asked).misses_code("", text)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("who has OPS-4472", "OPS-44721 was closed"),
        ("who has OPS-4472", "OPS-4472-1 was closed"),
        ("phase-1", "phase 10 and phase-1.5"),
        ("compute_net_total", "compute_net_total2"),
    ],
)
def test_a_name_of_parts_that_goes_on_is_another_one(asked: str, text: str) -> None:
    assert question(asked).misses_code("", text)


@pytest.mark.parametrize(
    "asked", ["who has OPS-4472", "compute_net_total", "who was it on 2026-05-01"]
)
def test_a_long_text_without_what_is_asked_for_is_not_joined(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(questions, "_remove_joints", None)

    assert question(asked).misses_code("", "who has to compute the net of OPS-44 on 2026-05-02")


def test_a_date_is_another_one_only_where_it_stands_by_itself() -> None:
    asked = question("report of 2026-05-01")

    assert not asked.misses_code("", "no date: 12026-05-012")
    assert not asked.misses_code("", "2026-05-01 and 2026-05-02")
    assert asked.misses_code("", "12026-05-012 is not 2026-05-02")


def test_a_name_that_is_a_word_of_its_own_is_no_code() -> None:
    known = Question("what iPhone do I have", {"iphone": 16_156}.get)
    unknown = Question("where is usePhone called", {"iphone": 16_156}.get)

    assert not known.misses_code("", "My phone is a used one with 128 GB")
    assert unknown.misses_code("", "My phone is called each morning")
