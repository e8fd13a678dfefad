"""The words that queries leave out."""

from stratagem.search.analysis import terms
from stratagem.search.stopwords import STOP_WORDS


def test_analysis_leaves_every_stop_word_as_it_is_listed() -> None:
    assert all(terms(word) == [word] for word in STOP_WORDS)


def test_words_that_people_look_for_are_none() -> None:
    assert STOP_WORDS.isdisjoint({"may", "id", "ill", "error", "user", "time", "new"})
