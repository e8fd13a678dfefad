"""How the scores of words and of meaning become one."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.search import ranking
from stratagem.search.ranking import fuse, selective_terms

NAN = float("nan")
SCORE = st.floats(0, 100, allow_nan=False)
COSINE = st.one_of(st.floats(-1, 1), st.just(NAN))
CANDIDATES = st.lists(st.tuples(SCORE, COSINE), max_size=30)


def fused(bm25: Sequence[float], cosine: Sequence[float]) -> list[float]:
    scores = fuse(np.array(bm25, np.float64), np.array(cosine, np.float32))
    return [float(score) for score in scores]


def test_the_best_in_words_and_meaning_scores_one() -> None:
    assert fused([4.0, 2.0], [0.8, 0.4]) == [1.0, 0.5]


def test_words_alone_decide_where_there_is_no_vector_at_all() -> None:
    assert fused([4.0, 1.0, 0.0], [NAN, NAN, NAN]) == [1.0, 0.25, 0.0]


def test_meaning_alone_decides_where_no_word_matched() -> None:
    near, far, opposite = fused([0.0, 0.0, 0.0], [0.6, 0.3, -0.5])

    assert near > far > opposite == 0.0


def test_a_candidate_without_a_vector_is_neither_favoured_nor_punished() -> None:
    low, unknown, high = fused([2.0, 2.0, 2.0], [0.2, NAN, 0.8])

    assert low < unknown < high


def test_a_candidate_without_a_vector_or_a_word_scores_nothing() -> None:
    assert fused([0.0, 0.0], [0.5, NAN])[1] == 0.0


def test_nothing_to_rank_is_no_error() -> None:
    assert fused([], []) == []


def test_a_negative_cosine_counts_as_none() -> None:
    assert fused([1.0, 1.0], [-0.9, -0.1]) == fused([1.0, 1.0], [0.0, 0.0])


@given(CANDIDATES)
def test_scores_lie_between_nothing_and_one(candidates: list[tuple[float, float]]) -> None:
    scores = fused([bm25 for bm25, _ in candidates], [cosine for _, cosine in candidates])

    assert len(scores) == len(candidates)
    assert all(0.0 <= score <= 1.0 for score in scores)


@given(CANDIDATES, st.floats(0.5, 50), st.integers(0, 29))
def test_more_shared_words_never_lower_a_score(
    candidates: list[tuple[float, float]], more: float, chosen: int
) -> None:
    known = [(bm25, 0.0 if np.isnan(cosine) else cosine) for bm25, cosine in candidates]
    if not known:
        return
    bm25, cosine = [list(each) for each in zip(*known, strict=True)]
    at = chosen % len(known)

    before = fused(bm25, cosine)[at]
    bm25[at] += more
    after = fused(bm25, cosine)[at]

    assert after >= before - 1e-12


@given(CANDIDATES)
def test_also_rans_change_no_score(candidates: list[tuple[float, float]]) -> None:
    bm25 = [9.0, *(score for score, _ in candidates)]
    cosine = [0.9, *(0.0 if np.isnan(each) else each for _, each in candidates)]

    assert fused(bm25, cosine) == fused([*bm25, 0.0], [*cosine, -0.3])[:-1]


def test_the_fields_are_weighed_title_body_context() -> None:
    title, body, context = ranking.FIELD_WEIGHTS

    assert title > body > context > 0


def test_common_terms_are_not_asked_for() -> None:
    counts = {"carolin": 600, "paint": 12, "unheard": 0}

    assert selective_terms(["carolin", "paint", "unheard"], counts, 1_000) == ["paint", "unheard"]


@pytest.mark.parametrize("counts", [{"carolin": 600}, {"carolin": 600, "unheard": 0}])
def test_common_terms_are_asked_for_when_no_other_is_in_any_text(counts: dict[str, int]) -> None:
    assert selective_terms(["carolin", "unheard"], counts, 1_000) == ["carolin", "unheard"]


def test_in_a_small_collection_nothing_is_common() -> None:
    assert selective_terms(["red", "car"], {"red": 9, "car": 1}, 10) == ["red", "car"]
