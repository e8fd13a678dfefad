"""The forms of a word are one term, in the languages that Snowball knows."""

import pytest

from stratagem.search.analysis import terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "runs"),
        ("Москва", "Москве"),
        ("города", "городах"),
        ("Αθήνα", "Αθήνας"),
        ("الكتاب", "كتاب"),
        ("लड़का", "लड़के"),
        ("љубав", "љубави"),
        ("کتاب‌ها", "کتاب"),
    ],
)
def test_two_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert set(terms(one)) & set(terms(other))


# Of the Greek word the rules would leave nothing.
@pytest.mark.parametrize("word", ["київ", "києва", "москва1", "22", "", "東京", "ισεσ"])
def test_what_no_stemmer_knows_stays_as_it_is(word: str) -> None:
    assert set(terms(word)) >= ({word} if word else set())


def test_english_terms_are_those_of_the_english_stemmer() -> None:
    assert terms("Connections connected generally Zürich") == [
        "connect",
        "connect",
        "general",
        "zurich",
    ]
