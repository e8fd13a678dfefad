"""How likely two descriptions are about the same problem."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.engine.relevance import (
    SAME_HEADLINE_MIN,
    TRY_MIN,
    Description,
    HeadWord,
    compare,
    may_reach,
    prose_relevance,
    title_share,
    title_weight,
)

shares = st.floats(0, 1)
names = st.sampled_from(["numpy", "pandas", "users_pkey", "e0502", "5432"])
words = st.sampled_from(["module", "named", "found", "cannot", "open"])


def described(names: list[str], words: list[str], text: str = "") -> Description:
    head = [HeadWord(each, frozenset({each}), is_name=True) for each in names]
    head += [HeadWord(each, frozenset({each}), is_name=False) for each in words]
    said = [*names, *words, *text.split()]
    return Description([head] if head else [], " ".join(said), str.split)


heads = st.builds(
    described,
    st.lists(names, max_size=3, unique=True),
    st.lists(words, max_size=4, unique=True),
)


def test_another_name_in_the_same_words_is_another_problem() -> None:
    found = compare(
        described(["pandas"], ["module", "named"]), described(["numpy"], ["module", "named"]), 0.72
    )

    # Two fifths of each head are there: −5 + 0.8 + 1.6 − 2 + 1.44.
    assert found.relevance == pytest.approx(1 / (1 + math.exp(3.16)))
    assert found.shared_words == ("module", "named")
    assert (found.asked_only, found.known_only) == (("pandas",), ("numpy",))


def test_the_same_words_are_the_same_problem_but_never_for_certain() -> None:
    both = described(["numpy"], ["module", "named"])

    assert compare(both, both, 1.0).relevance == pytest.approx(1 / (1 + math.exp(-3)))
    assert compare(both, both, 9.0).relevance == SAME_HEADLINE_MIN


def test_one_name_alone_is_no_whole_head() -> None:
    codec = described(["codec"], [])
    asked = described(["codec"], ["decode", "byte", "position"])

    found = compare(asked, codec, 0.1)

    # Three quarters of what a head has at least are there: −5 + 2 · 3/6 + 4 · 3/4 + 0.2.
    assert found.relevance == pytest.approx(1 / (1 + math.exp(0.8)))
    assert found.relevance < TRY_MIN


def test_a_part_of_a_name_is_another_name_and_a_part_of_a_word_is_not() -> None:
    torchvision = described(["torchvision"], ["reconnecting"])

    found = compare(described(["torch"], ["connect"]), torchvision, 0.0)

    assert found.shared_words == ("connect",)
    assert found.asked_only == ("torch",)


def test_a_number_is_found_whole_only() -> None:
    assert compare(described(["137"], []), described(["1370"], []), 0.0).shared_words == ()


def test_what_has_no_head_is_nothing_that_is_known() -> None:
    assert compare(described([], []), described(["numpy"], []), 1.0).relevance == 0.0


@given(heads, heads, shares)
def test_a_relevance_is_a_probability_below_certainty(
    one: Description, other: Description, cosine: float
) -> None:
    assert 0 <= compare(one, other, cosine).relevance <= SAME_HEADLINE_MIN


@given(heads, heads, shares, shares)
def test_nearer_in_meaning_is_at_least_as_likely(
    one: Description, other: Description, cosine: float, more: float
) -> None:
    low, high = sorted((cosine, more))

    assert compare(one, other, low).relevance <= compare(one, other, high).relevance


@given(heads, heads)
def test_an_unknown_meaning_is_as_near_as_the_words(one: Description, other: Description) -> None:
    unknown = compare(one, other, math.nan).relevance

    assert compare(one, other, 0.0).relevance <= unknown <= compare(one, other, 1.0).relevance


@given(heads, heads, shares | st.just(math.nan))
def test_what_a_comparison_gives_may_be_reached(
    one: Description, other: Description, cosine: float
) -> None:
    assert may_reach(compare(one, other, cosine).relevance, one, other, cosine)


def test_other_names_tell_that_a_problem_is_hardly_the_one_asked_about() -> None:
    asked = described(["pandas"], ["module", "named"])

    assert not may_reach(0.1, asked, described(["numpy"], ["module", "named"]), 0.5)
    assert may_reach(0.1, asked, described(["pandas"], ["cannot", "open"]), 0.5)


def test_a_text_without_the_beginning_of_a_term_is_not_analysed() -> None:
    analysed: list[str] = []

    def analyse(text: str) -> list[str]:
        analysed.append(text)
        return text.replace("-", "").lower().split()

    name = HeadWord("e0502", frozenset({"e0502"}), is_name=False, beginnings=("e050",))

    assert not Description([], "E0-411 at line 5", analyse).has(name)
    assert not analysed
    assert Description([], "E0-502 at line 5", analyse).has(name)
    # What stands for a letter outside of ASCII is known to the analysis alone.
    assert not Description([], "é", analyse).has(name)
    assert len(analysed) == 2


@given(shares, shares, shares)
def test_prose_is_likelier_by_its_title_and_by_its_lead(
    title: float, gap: float, more: float
) -> None:
    low, high = sorted((gap, more))

    assert prose_relevance(title, low) <= prose_relevance(title, high) <= 0.95
    assert prose_relevance(0.0, gap) < TRY_MIN


def test_a_title_that_was_asked_about_whole_is_as_likely_as_not() -> None:
    assert prose_relevance(1.0, 0.0) == 0.5
    assert prose_relevance(1.0, 5.0) == pytest.approx(1 / (1 + math.exp(-1.2)))


def test_rare_words_of_a_title_count_more() -> None:
    rarity = {"kubelet": 3.0, "error": 1.0}

    assert title_share(rarity, frozenset({"kubelet"}), rarity) == 0.75
    assert title_share(rarity, frozenset({"error"}), rarity) == 0.25
    assert title_share([], frozenset({"error"}), rarity) == 0.0


def test_a_brief_title_counts_as_the_share_of_the_line_that_it_is() -> None:
    assert title_weight({"tests", "fail"}, frozenset({"tests", "fail"})) == 1.0
    assert title_weight({"tests", "fail"}, frozenset({"tests", "fail", "database", "cart"})) == 0.5
    assert title_weight({"tests", "fail", "cart"}, frozenset({"tests", "cart"})) == 1.0
    assert title_weight({"docker"}, frozenset()) == 0.0
    assert title_weight({"build", "fail", "ci"}, {"gradle", "build", "fail"}, {"fail"}) == 0.5
