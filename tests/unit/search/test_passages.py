"""Long texts are parted where sentences end, and nothing is lost between the parts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.search.passages import parts, span_of

SENTENCE = "The ferry leaves the harbour at nine in the morning. "


def test_a_short_text_is_one_passage() -> None:
    assert parts("short") == [(0, 5)]
    assert parts("") == [(0, 0)]


def test_a_long_text_is_parted_between_sentences() -> None:
    text = SENTENCE * 40

    passages = [text[begin:end] for begin, end in parts(text)]

    assert len(passages) > 2
    assert all(passage.startswith("The ferry") for passage in passages)


def test_the_longest_text_has_no_more_passages_than_a_store_can_number() -> None:
    found = parts(SENTENCE * (limits.SEARCHED_CHARS_MAX // len(SENTENCE) + 1))

    assert len(found) == limits.PASSAGES_MAX
    assert found[-1][1] == limits.SEARCHED_CHARS_MAX


def test_a_passage_that_is_not_there_is_the_first() -> None:
    assert span_of("short", 7) == (0, 5)


@given(st.text("ab .\n", max_size=3_000))
def test_passages_follow_one_another_without_gaps(text: str) -> None:
    found = parts(text)

    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(end == begin for (_, end), (begin, _) in pairwise(found))
