"""The index of tools: what is found, and that it follows changes."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.advice.retrieval.duplicates import difference, group_duplicates
from stratagem.gateway.advice.retrieval.index import Definition, ToolIndex
from stratagem.search.embedding import StaticEmbedder

NUMBER = {"type": "number"}


def tool(name: str, description: str, revision: int = 1, **properties: Any) -> Definition:
    schema = {"type": "object", "properties": properties}
    return Definition(
        name, revision, {"name": name, "description": description, "inputSchema": schema}
    )


@pytest.fixture(params=["words", "meaning"])
def index(request: pytest.FixtureRequest) -> ToolIndex:
    return ToolIndex(StaticEmbedder() if request.param == "meaning" else None)


def found(index: ToolIndex, request: str) -> list[str]:
    return [match.name for match in index.search(request)]


def test_an_empty_index_finds_nothing(index: ToolIndex) -> None:
    assert index.search("weather") == []
    assert index.match("weather", "x") is None


def test_every_field_is_searched(index: ToolIndex) -> None:
    index.update(
        [
            tool("get_weather", "It tells."),
            tool("b", "The forecast of tomorrow."),
            tool("c", "It does.", latitude=NUMBER),
            tool("d", "It does.", x={"type": "string", "description": "Length of the runway."}),
            tool("e", "It does.", x={"type": "string", "enum": ["kelvin"]}),
        ]
    )

    assert found(index, "weather")[0] == "get_weather"
    assert found(index, "forecast")[0] == "b"
    assert found(index, "latitude")[0] == "c"
    assert found(index, "runway")[0] == "d"
    assert found(index, "kelvin")[0] == "e"


def test_only_what_changed_is_looked_at_anew(index: ToolIndex) -> None:
    tools = [tool(f"tool_{number}", f"Job {number}") for number in range(300)]
    assert index.update(tools) == 300
    assert index.update(tools) == 0

    changed = [*tools[1:], tool("tool_0", "Peel potatoes", revision=2)]

    assert index.update(changed) == 2
    assert found(index, "potatoes")[0] == "tool_0"
    assert index.update(tools[1:]) == 1
    assert "tool_0" not in found(index, "potatoes")
    assert len(index) == 299


def test_scores_are_from_0_to_1_and_equal_tools_stand_by_name() -> None:
    index = ToolIndex(None)
    index.update([tool(name, "Weather of a city.") for name in ("c_c", "a_a", "b_b")])

    matches = index.search("weather of a city")

    assert [match.name for match in matches] == ["a_a", "b_b", "c_c"]
    assert all(0 <= match.score <= 1 for match in matches)


@pytest.mark.parametrize("request_", ["", " ", "!!!", "\x00", "🦄" * 2000, "a " * 5000])
def test_odd_requests_do_no_harm(index: ToolIndex, request_: str) -> None:
    index.update([tool("a", "Weather")])

    assert isinstance(index.search(request_), list)


@pytest.mark.parametrize(
    "schema", [None, [], True, {"properties": []}, {"properties": {"a": 1}, "required": "a"}]
)
def test_odd_schemas_do_no_harm(index: ToolIndex, schema: Any) -> None:
    odd = Definition("odd", 1, {"name": "odd", "description": "Odd thing", "inputSchema": schema})

    index.update([odd])

    assert found(index, "odd thing") == ["odd"]


def test_twins_share_their_parameters_and_their_purpose() -> None:
    content = {
        each.name: each.content
        for each in (
            tool("a", "Weather of a city.", city=NUMBER, unit=NUMBER, day=NUMBER),
            tool("b", "Weather of a city.", city=NUMBER, unit=NUMBER),
            tool("c", "Weather of a city.", person=NUMBER),
        )
    }

    groups = group_duplicates(list(content), content.__getitem__, lambda _one, _two: 0.95)
    apart = group_duplicates(list(content), content.__getitem__, lambda _one, _two: 0.5)

    assert groups == {"a": ["a", "b"], "c": ["c"]}
    assert apart == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert difference(content["a"], content["b"]) == {"lacks": ["day"]}


def test_tools_that_are_left_out_take_no_place(index: ToolIndex) -> None:
    index.update([tool(f"weather_{number}", "Weather of a city.") for number in range(100)])
    without = [f"weather_{number}" for number in range(99)]

    assert [match.name for match in index.search("weather", without=without)] == ["weather_99"]


def test_a_tool_that_shares_one_common_word_gets_no_full_marks(index: ToolIndex) -> None:
    index.update(
        [
            tool("list_orders", "List the orders of a customer."),
            tool("cancel_order", "Cancel an order."),
            tool("show_map", "Show a map."),
        ]
    )

    right = index.search("cancel the order")[0]
    # The best of them is no better for being the best.
    far = index.search("show me how to whistle")[0]

    assert right.name == "cancel_order"
    assert far.score < right.score / 2
