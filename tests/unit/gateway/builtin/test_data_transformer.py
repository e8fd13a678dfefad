"""Data transformations: each step, their order, and what they refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway.builtin import data_transformer
from stratagem.gateway.builtin.data_transformer import transform_data
from tests.unit.gateway.attempts import attempt

PEOPLE = [
    {"name": "Ada", "age": 36, "city": "London"},
    {"name": "Bo", "age": 28, "city": "Oslo"},
    {"name": "Cy", "age": None, "city": "Oslo"},
]


def apply(data: Any, *operations: dict[str, Any]) -> Any:
    return transform_data({"data": data, "operations": list(operations)})["result"]


@pytest.mark.parametrize(
    ("data", "operation", "result"),
    [
        (PEOPLE, {"op": "pick", "path": "[*].name"}, ["Ada", "Bo", "Cy"]),
        (PEOPLE, {"op": "pick", "path": "$[0].name"}, "Ada"),
        (PEOPLE, {"op": "pick", "path": "age", "each": True}, [36, 28, None]),
        (PEOPLE, {"op": "filter", "where": "city == 'Oslo' && age"}, [PEOPLE[1]]),
        (PEOPLE, {"op": "sort", "by": [{"path": "age"}]}, [PEOPLE[2], PEOPLE[1], PEOPLE[0]]),
        (
            PEOPLE,
            {"op": "sort", "by": [{"path": "city", "order": "descending"}, {"path": "name"}]},
            [PEOPLE[1], PEOPLE[2], PEOPLE[0]],
        ),
        (
            [3, "a", None, True, [1], {"x": 1}, 1.5],
            {"op": "sort"},
            [None, True, 1.5, 3, "a", [1], {"x": 1}],
        ),
        ([1, 2], {"op": "sort", "order": "descending"}, [2, 1]),
        (PEOPLE[1:], {"op": "group", "by": "city"}, [{"key": "Oslo", "items": PEOPLE[1:]}]),
        (
            [{"k": 1}, {"k": 1.0}, {"k": "1"}],
            {"op": "group", "by": "k"},
            [
                {"key": 1, "items": [{"k": 1}]},
                {"key": 1.0, "items": [{"k": 1.0}]},
                {"key": "1", "items": [{"k": "1"}]},
            ],
        ),
        (
            PEOPLE,
            {
                "op": "aggregate",
                "metrics": {
                    "n": {"metric": "count"},
                    "ages": {"metric": "count", "path": "age"},
                    "mean": {"metric": "mean", "path": "age"},
                },
            },
            {"n": 3, "ages": 2, "mean": 32.0},
        ),
        (
            [4, 1, 1],
            {
                "op": "aggregate",
                "metrics": {
                    m: {"metric": m}
                    for m in ("sum", "median", "min", "max", "first", "last", "list", "distinct")
                },
            },
            {
                "sum": 6,
                "median": 1,
                "min": 1,
                "max": 4,
                "first": 4,
                "last": 1,
                "list": [4, 1, 1],
                "distinct": [4, 1],
            },
        ),
        (
            [],
            {
                "op": "aggregate",
                "metrics": {m: {"metric": m} for m in ("sum", "mean", "min", "first", "count")},
            },
            {"sum": 0, "mean": None, "min": None, "first": None, "count": 0},
        ),
        ([0.1] * 10, {"op": "aggregate", "metrics": {"s": {"metric": "sum"}}}, {"s": 1.0}),
        ({"a": 1, "b": 2}, {"op": "rename", "names": {"a": "b", "b": "a"}}, {"b": 1, "a": 2}),
        (
            PEOPLE[:1],
            {"op": "select", "fields": ["city", "gone", "name"]},
            [{"city": "London", "name": "Ada"}],
        ),
        (PEOPLE[:1], {"op": "omit", "fields": ["age"]}, [{"name": "Ada", "city": "London"}]),
        (
            {"a": {"b": [1, {"c": 2}], "e": {}}, "f": None},
            {"op": "flatten"},
            {"a.b.0": 1, "a.b.1.c": 2, "a.e": {}, "f": None},
        ),
        ({"a/b": 1, "a/c/0": 2}, {"op": "unflatten", "separator": "/"}, {"a": {"b": 1, "c": [2]}}),
        (
            {"a": {"x": 1}, "b": 1},
            {"op": "merge", "with": {"a": {"y": 2}, "b": 3}},
            {"a": {"x": 1, "y": 2}, "b": 3},
        ),
        ([{"a": {"x": 1}}, {"a": {"y": 2}}], {"op": "merge", "deep": False}, {"a": {"y": 2}}),
        (
            [1, 2, 1, {"a": 1, "b": 2}, {"b": 2, "a": 1}],
            {"op": "deduplicate"},
            [1, 2, {"a": 1, "b": 2}],
        ),
        (PEOPLE, {"op": "deduplicate", "by": "city"}, PEOPLE[:2]),
        ([1, 2, 3, 4], {"op": "limit", "count": 2, "skip": 1}, [2, 3]),
    ],
)
def test_a_step_gives(data: Any, operation: dict[str, Any], result: Any) -> None:
    assert apply(data, operation) == result


def test_steps_follow_one_another_and_leave_the_data_alone() -> None:
    data = [{"n": {"v": 2}}, {"n": {"v": 1}}]

    result = apply(
        data,
        {"op": "flatten"},
        {"op": "rename", "names": {"n.v": "value"}},
        {"op": "sort", "by": [{"path": "value"}]},
        {"op": "limit", "count": 1},
    )

    assert result == [{"value": 1}]
    assert data == [{"n": {"v": 2}}, {"n": {"v": 1}}]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"data": []}, "operations"),
        ({"operations": [{"op": "flatten"}]}, "data"),
        ({"data": [], "operations": []}, "operations"),
        ({"data": [], "operations": [{"op": "explode"}]}, "operations[0]"),
        ({"data": [], "operations": [{"op": "limit", "count": -1}]}, "operations[0]"),
        ({"data": {}, "operations": [{"op": "filter", "where": "a"}]}, "operations[0]"),
        ({"data": [1], "operations": [{"op": "filter", "where": "a["}]}, "operations[0].where"),
        ({"data": [1], "operations": [{"op": "pick", "path": "sum(@[0])"}]}, "operations[0].path"),
        ({"data": [1], "operations": [{"op": "rename", "names": {"a": "b"}}]}, "operations[0]"),
        (
            {"data": {"a": 1, "b": 2}, "operations": [{"op": "rename", "names": {"a": "b"}}]},
            "operations[0].names",
        ),
        ({"data": {"a": 1, "a.b": 2}, "operations": [{"op": "unflatten"}]}, "operations[0]"),
        ({"data": {"a.b": 1, "a": 2}, "operations": [{"op": "unflatten"}]}, "operations[0]"),
        ({"data": {".".join("a" * 100): 1}, "operations": [{"op": "unflatten"}]}, "operations[0]"),
        ({"data": [1, 2], "operations": [{"op": "merge"}]}, "operations[0]"),
        (
            {
                "data": ["a"],
                "operations": [{"op": "aggregate", "metrics": {"s": {"metric": "sum"}}}],
            },
            "operations[0].metrics.s",
        ),
        (
            {
                "data": [1e308] * 3,
                "operations": [{"op": "aggregate", "metrics": {"s": {"metric": "sum"}}}],
            },
            "operations[0].metrics.s",
        ),
        (
            {
                "data": [2**63] * 4,
                "operations": [{"op": "aggregate", "metrics": {"s": {"metric": "sum"}}}],
            },
            "operations[0]",
        ),
        ({"data": float("nan"), "operations": [{"op": "flatten"}]}, "data"),
        (
            {"data": [[0]], "operations": [{"op": "pick", "path": "|".join(["[@, @][]"] * 40)}]},
            "operations[0].path",
        ),
    ],
)
def test_a_step_that_cannot_be_applied_is_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(StratagemError) as refused:
        transform_data(arguments)

    assert refused.value.details["field"].startswith(field)


def test_many_elements_share_the_work_of_one_expression() -> None:
    with pytest.raises(ValidationFailed, match="more work"):
        apply([[0] * 200] * 2_000, {"op": "pick", "each": True, "path": "|".join(["[@, @][]"] * 8)})


def test_it_runs_away_from_the_event_loop() -> None:
    arguments = {"data": PEOPLE, "operations": [{"op": "pick", "path": "[0].name"}]}

    assert asyncio.run(data_transformer.run(arguments, attempt())) == {"result": "Ada"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON, max_size=4))
def test_unflatten_undoes_flatten(data: dict[str, Any]) -> None:
    assert apply(data, {"op": "flatten"}, {"op": "unflatten"}) == data


@given(st.lists(JSON, max_size=8))
def test_any_list_can_be_sorted_and_freed_of_doubles(data: list[Any]) -> None:
    once = apply(data, {"op": "sort"})

    assert apply(once[::-1], {"op": "sort"}) == once
    assert apply(once, {"op": "deduplicate"}) == apply(
        once, {"op": "deduplicate"}, {"op": "deduplicate"}
    )
