from __future__ import annotations

import pytest

from stratagem.engine.ancestry import Vector, intersection, maximal_versions, union
from stratagem.engine.lineage import Cut

A, B, C = Cut(1, 10), Cut(2, 20), Cut(3, 30)


def test_what_both_know_is_the_smaller_of_each_entry() -> None:
    assert intersection({1: 5, 2: 9, 3: 1}, {1: 7, 2: 4, 4: 2}) == {1: 5, 2: 4}
    assert intersection({1: 5}, {}) == {}


def test_what_either_knows_is_the_larger_of_each_entry() -> None:
    one: Vector = {1: 5, 2: 9}

    assert union(one, {1: 7, 3: 2}) == {1: 7, 2: 9, 3: 2}
    assert one == {1: 5, 2: 9}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, []),
        ({A: {1: 15}}, [A]),
        ({A: {1: 15}, B: {1: 10, 2: 25}}, [B]),
        ({A: {1: 15}, B: {1: 9, 2: 25}}, [A, B]),
        ({A: {1: 15}, B: {1: 15, 2: 25}, C: {2: 25, 1: 15, 3: 30}}, [C]),
        ({A: {1: 15}, B: {2: 25}, C: {1: 15, 3: 30}}, [B, C]),
    ],
    ids=["none", "one", "known", "too early", "a chain", "two of three"],
)
def test_a_version_that_another_ones_branch_knows_is_superseded(
    known: dict[Cut, Vector], expected: list[Cut]
) -> None:
    assert sorted(maximal_versions(known)) == expected


def test_an_older_version_can_supersede_a_newer_one() -> None:
    assert maximal_versions({A: {1: 40, 2: 20}, B: {2: 25}}) == [A]


def test_a_version_whose_branch_learnt_more_since_is_not_superseded() -> None:
    known = {A: {1: 15, 3: 5}, B: {1: 10, 2: 25}}

    assert sorted(maximal_versions(known)) == [A, B]


def test_what_was_learnt_counts_only_where_it_is_about_the_record() -> None:
    known = {A: {1: 15, 3: 5}, B: {1: 10, 2: 25}}

    assert maximal_versions(known, {A: {1: 10}, B: {1: 10, 2: 20}}) == [B]


def test_of_two_versions_that_know_each_other_the_later_stands() -> None:
    known = {A: {1: 50, 2: 50}, B: {1: 50, 2: 50}}

    assert maximal_versions(known) == [B]
