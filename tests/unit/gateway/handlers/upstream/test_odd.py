"""Servers that break the rules: each hurts itself, and no more than it must."""

from __future__ import annotations

import time

import pytest

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, PermissionDenied
from tests.unit.gateway.handlers.upstream.servers import (
    ODD_SERVER,
    eventually,
    handler_of,
    run_of,
    stdio,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio


async def test_one_odd_tool_does_not_hide_the_others() -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} odd")) as upstreams:
        listed = {tool.handler["tool"]: tool for tool in await upstreams.list_tools("up")}
        notes = "\n".join(upstreams.notes("up"))

    assert set(listed) == {"good", "no_schema", "bad_output", "hid\u200bden\u202e", "天气"}
    assert listed["good"].description == "A good one"
    assert listed["no_schema"].input_schema == {"type": "object"}
    assert listed["bad_output"].output_schema is None
    for words in ("list_schema: its input schema", "larger than", "the name of another", "without"):
        assert words in notes


async def test_nothing_unseen_is_left_in_names_and_descriptions() -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} odd")) as upstreams:
        tools = await upstreams.list_tools("up")
    tool = next(tool for tool in tools if tool.handler["tool"].startswith("hid"))

    assert tool.name.startswith("hidden_")
    assert tool.name.isascii()
    assert tool.title == "Title"
    assert tool.description.startswith("Reads a file.[2Jxxx")
    assert len(tool.description) == limits.TOOL_DESCRIPTION_CHARS_MAX
    assert tool.input_schema["properties"]["description"]["description"] == "path"
    # What has a meaning stays as it is.
    assert tool.input_schema["default"] == "\u200b"
    assert tool.annotations == {"readOnlyHint": True}


async def test_thousands_of_tools_are_taken_up_to_a_bound() -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} many")) as upstreams:
        listed = await upstreams.list_tools("up")

        assert len(listed) == limits.UPSTREAM_TOOLS_MAX
        assert "only the first" in upstreams.notes("up")[-1]
        assert await value_of(upstreams, listed[4321].handler, run_of()) == [1, 2]


@pytest.mark.parametrize("oddity", ["endless", "none"])
async def test_a_list_without_an_end_or_without_a_list_is_empty(oddity: str) -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} {oddity}")) as upstreams:
        assert await upstreams.list_tools("up") == []
        assert await value_of(upstreams, handler_of("up", "good"), run_of()) == [1, 2]


async def test_odd_answers_are_passed_on_as_far_as_they_go() -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} plain")) as upstreams:
        handler = handler_of("up", "good")
        text = await value_of(upstreams, handler, run_of({"answer": "text"}))
        blocks = await value_of(upstreams, handler, run_of({"answer": "blocks"}))
        noise = await value_of(upstreams, handler, run_of({"answer": "noise"}))
        with pytest.raises(ExecutionFailed, match="did not say why") as failed:
            await value_of(upstreams, handler, run_of({"answer": "no_text"}))
        with pytest.raises(ExecutionFailed, match="nobody is there to answer"):
            await value_of(upstreams, handler, run_of({"answer": "asks"}))

    assert failed.value.answered, "the server works, whatever it says of this call"
    assert text == {"content": []}
    assert blocks["content"] == [
        {"type": "unknown", "value": 5},
        {"type": "unknown", "value": {"type": "text"}},
        {"type": "new", "of": [1]},
    ]
    assert noise == [1, 2]


async def test_a_flood_ends_its_connection_and_no_more() -> None:
    async with upstreams_of(
        stdio("bad", script=f"{ODD_SERVER} plain"), stdio("good", script=f"{ODD_SERVER} plain")
    ) as upstreams:
        with pytest.raises(ExecutionFailed, match="a line of over"):
            await value_of(upstreams, handler_of("bad", "good"), run_of({"answer": "flood"}))

        await eventually(lambda: not upstreams.status("bad")["connected"])
        assert await value_of(upstreams, handler_of("good", "good"), run_of()) == [1, 2]
        assert await value_of(upstreams, handler_of("bad", "good"), run_of()) == [1, 2]


async def test_a_server_that_tells_of_changes_all_the_time_is_asked_now_and_then() -> None:
    told: list[str] = []
    async with upstreams_of(
        stdio(script=f"{ODD_SERVER} restless"),
        on_change=lambda _server, listed: told.append(listed[0].description),
    ) as upstreams:
        approved = (await upstreams.list_tools("up"))[0].handler

        await value_of(upstreams, handler_of("up", "good"), run_of({"answer": "restless"}))
        await eventually(lambda: len(told) >= 2)

        assert len(told) <= 20
        with pytest.raises(PermissionDenied, match="changed since"):
            await value_of(upstreams, approved, run_of())


async def test_a_server_that_never_answers_costs_a_call_its_time_and_no_more() -> None:
    start = time.monotonic()
    async with upstreams_of(stdio(script=f"{ODD_SERVER} silent")) as upstreams:
        with pytest.raises(ExecutionTimeout):
            await value_of(upstreams, handler_of("up", "good"), run_of(seconds=0.3))

    # Its process ignores that its input ends, and has to be told.
    assert time.monotonic() - start < 60
