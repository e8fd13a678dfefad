"""Merging one record from two sides."""

import copy
import pickle
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.engine.merge import (
    ABSENT,
    AMBIGUOUS,
    Base,
    FieldConflict,
    Merged,
    Side,
    changed_places,
    resolve,
    three_way,
    virtual_base,
)
from stratagem.engine.paths import get
from stratagem.engine.values import Json, same

TAGS = frozenset({"tags"})

SCALARS = st.sampled_from([None, True, 0, 1, 1.0, "x", "y"])
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
TAG_LISTS = st.lists(st.sampled_from("pqr"), unique=True)
RECORDS = st.just(ABSENT) | st.fixed_dictionaries(
    {"value": JSON}, optional={"tags": TAG_LISTS, "note": SCALARS}
)
BASES = (
    RECORDS
    | st.just(AMBIGUOUS)
    | st.builds(lambda name: {"value": {name: AMBIGUOUS}}, st.sampled_from("abc"))
)


def holds_ambiguity(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(holds_ambiguity, value.values()))
    return value is AMBIGUOUS


def nested(depth: int, leaf: Json) -> Json:
    value = leaf
    for _ in range(depth):
        value = {"in": value}
    return value


def test_edits_of_different_fields_are_joined() -> None:
    base: Json = {"a": 1, "b": {"c": 2, "d": 3}}

    merged = three_way(base, {"a": 9, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 2, "d": 8}})

    assert merged == Merged({"a": 9, "b": {"c": 2, "d": 8}}, ())


def test_fields_added_and_deleted_by_one_side_are_taken() -> None:
    merged = three_way({"a": 1, "b": 2}, {"a": 1, "c": 3}, {"b": 2, "d": 4})

    assert merged == Merged({"c": 3, "d": 4}, ())


def test_keys_stand_in_our_order_then_in_theirs() -> None:
    merged = three_way({"m": 1}, {"z": 1, "m": 1, "a": 1}, {"y": 1, "m": 1, "b": 1})

    assert list(cast("dict[str, Json]", merged.value)) == ["z", "m", "a", "y", "b"]


def test_edits_of_one_field_conflict_there_and_keep_ours() -> None:
    merged = three_way({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 3, "c": 5}})

    assert merged.conflicts == (FieldConflict(("a", "b"), 1, 2, 3),)
    assert merged.value == {"a": {"b": 2, "c": 5}}


def test_equal_edits_do_not_conflict() -> None:
    merged = three_way({"a": 1}, {"a": {"x": [2], "y": 1}}, {"a": {"y": 1, "x": [2]}})

    assert merged == Merged({"a": {"x": [2], "y": 1}}, ())


@pytest.mark.parametrize(("ours", "theirs"), [(1.0, True), (2, 2.0), ("1", 1)])
def test_values_that_json_keeps_apart_conflict(ours: Json, theirs: Json) -> None:
    assert three_way({"a": 0}, {"a": ours}, {"a": theirs}).conflicts


def test_arrays_are_atomic() -> None:
    merged = three_way({"a": [1, 2]}, {"a": [1, 2, 3]}, {"a": [0, 1, 2]})

    assert merged.conflicts == (FieldConflict(("a",), [1, 2], [1, 2, 3], [0, 1, 2]),)


def test_deleting_a_record_that_the_other_side_edited_conflicts() -> None:
    assert three_way({"a": 1}, ABSENT, {"a": 2}).conflicts == (
        FieldConflict((), {"a": 1}, ABSENT, {"a": 2}),
    )
    assert three_way({"a": 1}, ABSENT, {"a": 1}) == Merged(ABSENT, ())
    assert three_way({"a": 1}, ABSENT, ABSENT) == Merged(ABSENT, ())


def test_deleting_a_field_that_the_other_side_edited_conflicts() -> None:
    merged = three_way({"a": {"b": 1}, "k": 0}, {"k": 0}, {"a": {"b": 2}, "k": 0})

    assert merged.conflicts == (FieldConflict(("a",), {"b": 1}, ABSENT, {"b": 2}),)
    assert merged.value == {"k": 0}


def test_replacing_an_object_conflicts_with_an_edit_in_it_as_a_whole() -> None:
    merged = three_way({"a": {"b": 1}}, {"a": "text"}, {"a": {"b": 1, "c": 2}})

    assert merged.conflicts == (FieldConflict(("a",), {"b": 1}, "text", {"b": 1, "c": 2}),)


def test_replacing_a_scalar_by_two_different_objects_conflicts_as_a_whole() -> None:
    assert three_way({"a": 0}, {"a": {"b": 1}}, {"a": {"c": 1}}).conflicts == (
        FieldConflict(("a",), 0, {"b": 1}, {"c": 1}),
    )


def test_an_object_that_both_sides_added_is_merged_field_by_field() -> None:
    merged = three_way({}, {"s": {"a": 1, "c": 1}}, {"s": {"b": 2, "c": 2}})

    assert merged.value == {"s": {"a": 1, "c": 1, "b": 2}}
    assert merged.conflicts == (FieldConflict(("s", "c"), ABSENT, 1, 2),)


def test_a_record_that_both_sides_created_is_merged_the_same_way() -> None:
    merged = three_way(ABSENT, {"v": 1, "tags": ["x"]}, {"v": 1, "tags": ["y"]}, sets=TAGS)

    assert merged == Merged({"v": 1, "tags": ["x", "y"]}, ())
    assert three_way(ABSENT, "one", "two").conflicts == (FieldConflict((), ABSENT, "one", "two"),)


def test_sets_take_the_additions_and_removals_of_both_sides() -> None:
    merged = three_way(
        {"tags": ["a", "b", "c"]}, {"tags": ["z", "b", "c"]}, {"tags": ["a", "c", "d"]}, sets=TAGS
    )

    assert merged == Merged({"tags": ["c", "d", "z"]}, ())


def test_a_set_that_lost_all_its_members_is_gone_if_a_side_dropped_it() -> None:
    base: Json = {"tags": ["a", "b"]}

    assert three_way(base, {}, {"tags": ["b"]}, sets=TAGS).value == {}
    assert three_way(base, {"tags": ["a"]}, {"tags": ["b"]}, sets=TAGS).value == {"tags": []}
    assert three_way(base, {}, {"tags": ["b", "c"]}, sets=TAGS).value == {"tags": ["c"]}


def test_sets_lie_at_the_top_and_hold_texts_or_they_are_plain_arrays() -> None:
    deep = three_way({"v": {"tags": []}}, {"v": {"tags": ["a"]}}, {"v": {"tags": ["b"]}}, sets=TAGS)
    mixed = three_way({"tags": []}, {"tags": ["a"]}, {"tags": [1]}, sets=TAGS)
    scalar = three_way({"tags": []}, {"tags": ["a"]}, {"tags": "b"}, sets=TAGS)

    assert [merged.conflicts[0].path for merged in (deep, mixed, scalar)] == [
        ("v", "tags"),
        ("tags",),
        ("tags",),
    ]


def test_resolving_takes_a_side_only_where_they_conflict() -> None:
    base: Json = {"a": 1, "b": 1, "c": 1}
    ours: Json = {"a": 2, "b": 2, "c": 1}
    theirs: Json = {"a": 3, "b": 1, "c": 4}

    assert resolve(base, ours, theirs, prefer="ours") == {"a": 2, "b": 2, "c": 4}
    assert resolve(base, ours, theirs, prefer="theirs") == {"a": 3, "b": 2, "c": 4}


def test_resolving_can_delete() -> None:
    base: Json = {"a": 1, "b": 1}

    assert resolve(base, ABSENT, {"a": 2, "b": 1}, prefer="ours") is ABSENT
    assert resolve(base, {"a": 2, "b": 1}, {"b": 1}, prefer="theirs") == {"b": 1}
    assert resolve(base, {"b": 1}, {"a": 2, "b": 1}, prefer="theirs") == {"b": 1, "a": 2}


def test_a_virtual_base_is_ambiguous_where_its_candidates_conflict() -> None:
    made = virtual_base({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 4})

    assert isinstance(made, dict)
    assert made["a"] is AMBIGUOUS
    assert made["b"] == 4


def test_an_ambiguous_place_conflicts_unless_the_sides_agree() -> None:
    base: Base = {"a": AMBIGUOUS, "b": 4}

    assert three_way(base, {"a": 2, "b": 4}, {"a": 2, "b": 5}) == Merged({"a": 2, "b": 5}, ())
    merged = three_way(base, {"a": 2, "b": 4}, {"a": 3, "b": 4})
    assert merged.conflicts == (FieldConflict(("a",), ABSENT, 2, 3),)
    assert three_way(base, {"a": 2}, {"b": 4}).conflicts == (
        FieldConflict(("a",), ABSENT, 2, ABSENT),
    )


def test_under_an_ambiguous_object_only_the_differing_fields_conflict() -> None:
    merged = three_way({"a": AMBIGUOUS}, {"a": {"x": 1, "y": 1}}, {"a": {"x": 1, "z": 1}})

    assert [conflict.path for conflict in merged.conflicts] == [("a", "y"), ("a", "z")]


def test_a_base_is_shown_without_its_ambiguous_places() -> None:
    merged = three_way({"a": {"x": AMBIGUOUS, "y": [1]}}, {}, {"a": {"x": 1, "y": [1]}})

    assert merged.conflicts == (FieldConflict(("a",), {"y": [1]}, ABSENT, {"x": 1, "y": [1]}),)


def test_virtual_bases_can_be_folded_into_one() -> None:
    base: Json = {"a": 1, "b": 1}
    doubtful = virtual_base(base, {"a": 2, "b": 1}, {"a": 3, "b": 1})

    folded = virtual_base(base, doubtful, {"a": 1, "b": 7})
    gone = virtual_base(doubtful, doubtful, ABSENT)

    assert isinstance(folded, dict)
    assert folded["a"] is AMBIGUOUS
    assert folded["b"] == 7
    assert gone is AMBIGUOUS


def test_ambiguity_differs_even_from_itself() -> None:
    assert AMBIGUOUS != AMBIGUOUS  # noqa: PLR0124
    assert ABSENT == ABSENT  # noqa: PLR0124
    assert len({ABSENT, AMBIGUOUS}) == 2
    assert pickle.loads(pickle.dumps(ABSENT)) is copy.deepcopy(ABSENT) is ABSENT  # noqa: S301


def test_documents_at_the_depth_limit_merge() -> None:
    depth = limits.VALUE_DEPTH_MAX
    base, ours, theirs = (nested(depth, {"a": a, "b": b}) for a, b in ((0, 0), (1, 0), (0, 2)))

    merged = three_way(base, ours, theirs)

    assert merged == Merged(nested(depth, {"a": 1, "b": 2}), ())


@given(RECORDS, RECORDS)
def test_a_change_of_one_side_only_is_taken_whole(base: Side, changed: Side) -> None:
    for merged in (
        three_way(base, base, changed, sets=TAGS),
        three_way(base, changed, base, sets=TAGS),
        three_way(base, changed, changed, sets=TAGS),
    ):
        assert same(merged.value, changed)
        assert not merged.conflicts


@given(BASES, RECORDS)
def test_sides_that_agree_never_conflict(base: Base, side: Side) -> None:
    assert same(three_way(base, side, side, sets=TAGS).value, side)


@given(BASES, RECORDS, RECORDS)
def test_swapping_the_sides_swaps_the_conflicts(base: Base, ours: Side, theirs: Side) -> None:
    one = {item.path: item for item in three_way(base, ours, theirs, sets=TAGS).conflicts}
    other = {item.path: item for item in three_way(base, theirs, ours, sets=TAGS).conflicts}

    assert one.keys() == other.keys()
    for path, conflict in one.items():
        assert same(conflict.ours, other[path].theirs)
        assert same(conflict.theirs, other[path].ours)
        assert same(conflict.base, other[path].base)


@given(BASES, RECORDS, RECORDS)
def test_preferring_a_side_is_the_same_from_either_side(
    base: Base, ours: Side, theirs: Side
) -> None:
    one = resolve(base, ours, theirs, prefer="ours", sets=TAGS)
    other = resolve(base, theirs, ours, prefer="theirs", sets=TAGS)

    assert same(one, other)
    assert same(one, three_way(base, ours, theirs, sets=TAGS).value)


@given(
    st.dictionaries(st.sampled_from("abcdef"), JSON),
    st.dictionaries(st.sampled_from("abc"), JSON | st.just(ABSENT)),
    st.dictionaries(st.sampled_from("def"), JSON | st.just(ABSENT)),
)
def test_edits_of_disjoint_fields_are_all_there(
    base: dict[str, Json], ours: dict[str, Side], theirs: dict[str, Side]
) -> None:
    def edited(*edits: dict[str, Side]) -> Json:
        after: dict[str, Any] = dict(base)
        for edit in edits:
            after |= edit
        return {name: value for name, value in after.items() if value is not ABSENT}

    merged = three_way(base, edited(ours), edited(theirs))

    assert not merged.conflicts
    assert same(merged.value, edited(ours, theirs))


@given(RECORDS, RECORDS, RECORDS)
def test_every_change_is_in_the_value_or_among_the_conflicts(
    base: Side, ours: Side, theirs: Side
) -> None:
    merged = three_way(base, ours, theirs)
    conflicting = {conflict.path for conflict in merged.conflicts}

    def check(base: Side, side: Side, other: Side, path: tuple[str, ...]) -> None:
        if path in conflicting or same(base, side):
            return
        if isinstance(side, dict) and isinstance(other, dict) and isinstance(base, dict):
            for name in {*base, *side}:
                check(
                    base.get(name, ABSENT),
                    side.get(name, ABSENT),
                    other.get(name, ABSENT),
                    (*path, name),
                )
        elif not (isinstance(side, dict) and isinstance(other, dict)):
            found, value = (False, None) if merged.value is ABSENT else get(merged.value, path)
            assert same(value if found else ABSENT, side)

    check(base, ours, theirs, ())
    check(base, theirs, ours, ())


@given(BASES, BASES, BASES, RECORDS, RECORDS)
def test_ambiguity_never_shows(
    base: Base, one: Base, other: Base, ours: Side, theirs: Side
) -> None:
    made = virtual_base(base, one, other, sets=TAGS)

    merged = three_way(made, ours, theirs, sets=TAGS)

    assert not holds_ambiguity(merged.value)
    assert not any(holds_ambiguity(conflict.base) for conflict in merged.conflicts)


@given(RECORDS, RECORDS, RECORDS, RECORDS)
def test_a_virtual_base_is_ambiguous_exactly_where_a_merge_conflicts(
    base: Side, one: Side, other: Side, side: Side
) -> None:
    made = virtual_base(base, one, other, sets=TAGS)
    merged = three_way(base, one, other, sets=TAGS)

    assert holds_ambiguity(made) is bool(merged.conflicts)
    if not merged.conflicts:
        assert same(made, merged.value)
    assert same(three_way(made, side, side, sets=TAGS).value, side)


@given(BASES, RECORDS, RECORDS)
def test_nothing_given_is_changed(base: Base, ours: Side, theirs: Side) -> None:
    before = repr((base, ours, theirs))

    three_way(base, ours, theirs, sets=TAGS)
    resolve(base, ours, theirs, prefer="theirs", sets=TAGS)
    virtual_base(base, ours, theirs, sets=TAGS)

    assert repr((base, ours, theirs)) == before


@given(BASES, RECORDS, RECORDS)
def test_the_places_that_both_changed_are_those_that_a_merge_asks_about(
    base: Base, ours: Side, theirs: Side
) -> None:
    places = changed_places(base, ours, theirs)
    merged = three_way(base, ours, theirs)

    assert bool(places) is not same(ours, theirs)
    assert {path for path, side in places.items() if side == "both"} == {
        conflict.path for conflict in merged.conflicts
    }
