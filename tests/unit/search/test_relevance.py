"""How well a hit answers is said without looking at the others."""

import math

import pytest

from stratagem.search.relevance import (
    Coverage,
    likeness,
    likeness_by_nearness,
    score,
    short_likeness,
)

RARITY = {"budget": 1.0, "paris": 2.0, "market": 0.0}


def test_rare_words_cover_more_than_common_ones() -> None:
    assert Coverage(RARITY).of({"paris"}) == 0.5
    assert Coverage(RARITY).of({"market"}) == pytest.approx(1 / 6)
    assert Coverage(RARITY).of(RARITY) == 1.0
    assert Coverage(RARITY).of({"other"}) == 0.0
    assert Coverage({}).of({"paris"}) == 0.0


def test_a_word_of_the_messages_before_counts_half() -> None:
    assert Coverage(RARITY).of((), {"paris"}) == 0.25
    assert Coverage(RARITY).of({"paris"}, {"paris"}) == 0.5


def test_of_a_long_query_some_words_are_enough() -> None:
    long = {str(number): 1.0 for number in range(100)}

    assert Coverage(long).of({str(number) for number in range(6)}) == 1.0


@pytest.mark.parametrize("code", ["e4019", "2.5", "proj123"])
def test_no_words_make_up_for_a_missing_code(code: str) -> None:
    coverage = Coverage({code: 1.0} | {f"word{'x' * number}": 1.0 for number in range(9)})
    words = {f"word{'x' * number}" for number in range(9)}

    assert coverage.of(words) == pytest.approx(5 / 6)
    assert coverage.of({code, *words}) == 1.0


def test_words_and_meaning_add_up_and_stay_below_one() -> None:
    assert score(0.0, likeness(math.nan)) == score(0.0, likeness(0.1)) == 0.0
    assert score(1.0, 0.0) == score(0.0, likeness(0.9)) == 1.0
    assert max(score(0.5, 0.0), score(0.0, 0.5)) < score(0.5, 0.5) < 1.0


def test_an_entry_that_is_no_nearer_than_random_words_is_unlike() -> None:
    assert likeness_by_nearness(-math.inf) == likeness_by_nearness(0.9) == 0.0
    assert (
        0.0
        < likeness_by_nearness(2.0)
        < likeness_by_nearness(4.0)
        < likeness_by_nearness(9.0)
        == 1.0
    )


def test_nearness_alone_is_certain_of_the_same_text_only() -> None:
    likenesses = [short_likeness(near) for near in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 60.0)]

    assert likenesses == sorted(likenesses)
    assert likenesses[0] == 0.0
    assert likenesses[-2:] == [0.75, 0.75]
    assert short_likeness(math.inf) == 1.0
