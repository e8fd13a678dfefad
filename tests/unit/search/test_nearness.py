"""Entries of a few words are found by questions that share no word with them."""

from collections.abc import Iterator

import pytest

import stratagem
from stratagem.search.embedding import StaticEmbedder
from stratagem.search.nearness import Nearness

SETTINGS = {
    "user/city": "Oslo",
    "replicas": 3,
    "diet": "vegetarian",
    "x17": "Jonas is the landlord",
}


@pytest.fixture(scope="module")
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", embedder="static") as opened:
        for key, value in SETTINGS.items():
            opened.memory.store(key, value)
        yield opened


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("where do I live?", "user/city"),
        ("how many copies of the service run?", "replicas"),
        ("what do I not eat?", "diet"),
        ("who owns my apartment?", "x17"),
    ],
)
def test_a_question_finds_the_entry_that_answers_it(
    db: stratagem.Stratagem, question: str, key: str
) -> None:
    assert key in [hit.key for hit in db.memory.search(question).results]


@pytest.mark.parametrize(
    "question",
    [
        "how do black holes form?",
        "blorptangle vexiquor",
        "who painted the Sistine Chapel?",
        "capital of Mongolia",
        "how many moons does Jupiter have?",
        "recipe for sourdough starter",
    ],
)
def test_a_question_about_something_else_finds_nothing(
    db: stratagem.Stratagem, question: str
) -> None:
    assert db.memory.search(question).results == []


def test_a_logged_fact_is_found_by_a_question_without_its_words() -> None:
    with stratagem.open(":memory:", embedder="static") as opened:
        logged = opened.memory.log("observation", "home city: Oslo").sequence

        assert [hit.sequence for hit in opened.memory.search("where do I live?").results] == [
            logged
        ]
        assert opened.memory.search("how do black holes form?").results == []


@pytest.mark.parametrize("text", ["what is a blorptangle", "aaaa bbbb cccc"])
def test_pieces_of_unknown_words_are_near_to_nothing(text: str) -> None:
    embedder = StaticEmbedder()
    nonsense = Nearness(embedder, text, embedder.embed([text])[0])

    assert nonsense.of_cosine(0.9) == nonsense.of_key("city", "city Oslo") == -float("inf")


def test_entries_that_are_embedded_together_are_as_near_as_each_by_itself() -> None:
    embedder = StaticEmbedder()
    query = "where do the tenants of Jonas live?"
    entries = [(key, f"{key} {value}") for key, value in SETTINGS.items()]

    def ask() -> Nearness:
        return Nearness(embedder, query, embedder.embed([query])[0])

    together = ask()
    together.embed([*entries, (None, "the landlord of Oslo")])

    for key, text in entries:
        assert together.of_key(key, text) == ask().of_key(key, text)
        assert together.of_words(text, key) == ask().of_words(text, key)
    text = "the landlord of Oslo"
    assert together.of_words(text) == ask().of_words(text)


FOREIGN = {
    "备忘/服务器": "生产服务器在法兰克福，备份在斯德哥尔摩",
    "notiz/strasse": "Die Straße zum Rechenzentrum ist wegen Bauarbeiten gesperrt",
    "notiz/umleitung": "Die Straße zum Rechenzentrum ist wegen Bauarbeiten gesperrt. Die Umleitung "
    "führt über die alte Brücke, und die Lieferungen kommen erst am Nachmittag an.",
}


@pytest.mark.parametrize("query", ["the of and", "how do I bake sourdough bread"])
@pytest.mark.parametrize("key", FOREIGN)
def test_a_text_of_unknown_words_is_near_to_nothing(query: str, key: str) -> None:
    with stratagem.open(":memory:", embedder="static") as opened:
        opened.memory.store(key, FOREIGN[key])

        assert opened.memory.search(query).results == []
        assert opened.memory.search(FOREIGN[key][:12]).results


def test_stop_words_alone_find_those_who_have_them() -> None:
    with stratagem.open(":memory:", embedder="static") as opened:
        opened.memory.store("quote", "To be, or not to be")
        opened.memory.store("city", "Oslo")

        found = opened.memory.search("to be or not to be").results

        assert [hit.key for hit in found] == ["quote"]


ERRORS = {
    "errors/E4017": "E4017 means the invoice was already finalised",
    "errors/E4018": "E4018 means the customer is blocked. "
    + "Ask for the credit to be raised. " * 4,
}


def test_a_code_is_not_answered_by_another_one() -> None:
    with stratagem.open(":memory:", embedder="static") as opened:
        for key, value in ERRORS.items():
            opened.memory.store(key, value)

        other = opened.memory.search("what does error code E4019 mean").results
        known = opened.memory.search("what does error code E4018 mean").results

        assert all(hit.score < 0.5 and "**E" not in hit.snippet for hit in other)
        assert known[0].key == "errors/E4018"
        assert known[0].score > 0.9
        assert all(hit.score < 0.5 for hit in known[1:])
        assert opened.memory.search("E4019").results == []


@pytest.mark.parametrize(
    ("text", "asked", "other"),
    [
        ("ticket OPS-4471 is closed", "is ticket OPS-4471 closed?", "is ticket OPS-4472 closed?"),
        ("call compute_net_total first", "computeNetTotal", "compute_tax_total"),
        ("the hook useShoppingCart caches", "use-shopping-cart", "useBillingCart"),
        ("Release on 2026-03-04", "release 2026-03-04", "release 2027-03-04"),
        ("ERR_PAYMENT_DECLINED: card refused", "ERR_PAYMENT_DECLINED", "ERR_PAYMENT_TIMEOUT"),
        ("Staging runs v2.1.0", "2.1", "2.2"),
        ("phase 1 ends in May", "phase-1", "phase-3"),
        ("We moved on 4 March 2027", "when did we move, 2027-03-04?", "GPT-5"),
    ],
)
def test_a_name_of_parts_is_not_answered_by_another_one(text: str, asked: str, other: str) -> None:
    with stratagem.open(":memory:", embedder="static") as opened:
        opened.memory.store("note", text)
        opened.memory.store("food", "Lunch is at noon")

        assert opened.memory.search(asked).results[0].score > 0.7
        assert all(hit.score < 0.6 for hit in opened.memory.search(other).results)


def test_a_long_text_whose_key_is_the_code_is_found_by_its_meaning_as_well() -> None:
    text = (
        "The pump in the cellar was replaced by the supplier after the flood and the invoice was "
        "sent to the office in Bergen together with a warranty."
    )
    with stratagem.open(":memory:", embedder="static") as opened:
        opened.memory.store("OPS-4472", text)
        opened.memory.store("note", f"OPS-4472: {text}")

        found = opened.memory.search("water damage basement repair OPS-4472").results

        by_key, by_text = sorted(found, key=lambda hit: hit.key or "")
        assert by_key.score > by_text.score - 0.1
