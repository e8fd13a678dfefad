"""Python functions as tools: what their hints say, how they are run, and how they are stopped."""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from stratagem.errors import ExecutionFailed, MissingRequired, ToolNotFound, ValidationFailed
from stratagem.gateway.definitions.contract import ProgressReport, Run
from stratagem.gateway.definitions.schemas import Schema, check
from stratagem.gateway.handlers.python import PythonRunner, describe_function, tool
from stratagem.gateway.handlers.threads import Threads
from tests.unit.gateway.attempts import attempt
from tests.unit.gateway.handlers.upstream.servers import eventually


def call(function: Any, arguments: Mapping[str, Any] | None = None) -> Any:
    async def once() -> Any:
        runner = PythonRunner()
        made = runner.add(function)
        return await runner.run({"type": "python", "name": made.name}, attempt(arguments or {}))

    return asyncio.run(once())


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Place(BaseModel):
    name: str
    at: Point
    tags: list[str] = []


def everything(
    city: str,
    days: Annotated[int, "How many days", Field(ge=1, le=14)] = 3,
    units: Literal["metric", "imperial"] = "metric",
    colour: Colour = Colour.RED,
    since: date | None = None,
    place: Place | None = None,
    pair: tuple[int, int] = (1, 2),
) -> dict[str, Any]:
    """Tell the weather.

    It is made up, but the same for everybody.

    Args:
        city: Which city,
            in any language.
        days (int): Not shown, as the annotation says it.
        place: Where exactly.

    Returns:
        The weather.
    """
    return {
        "city": city,
        "days": days,
        "units": units,
        "colour": colour,
        "since": since,
        "place": place,
        "pair": pair,
    }


def test_the_schema_comes_from_hints_and_docstring() -> None:
    definition = describe_function(everything).definition

    properties = definition["inputSchema"]["properties"]
    check(definition["inputSchema"], field="inputSchema")
    assert definition["name"] == "everything"
    assert definition["description"] == "Tell the weather."
    assert definition["longDescription"] == "It is made up, but the same for everybody."
    assert definition["inputSchema"]["required"] == ["city"]
    assert definition["inputSchema"]["additionalProperties"] is False
    assert properties["city"] == {"type": "string", "description": "Which city, in any language."}
    assert properties["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 14,
        "default": 3,
        "description": "How many days",
    }
    assert properties["units"]["enum"] == ["metric", "imperial"]
    assert properties["place"]["description"] == "Where exactly."


def test_arguments_become_what_the_hints_say() -> None:
    result = call(
        everything,
        {
            "city": "Oslo",
            "colour": "blue",
            "since": "2026-03-01",
            "place": {"name": "Home", "at": {"x": 1}},
            "pair": [3, 4],
        },
    )

    assert result == {
        "city": "Oslo",
        "days": 3,
        "units": "metric",
        "colour": "blue",
        "since": "2026-03-01",
        "place": {"name": "Home", "at": {"x": 1, "y": 0}, "tags": []},
        "pair": [3, 4],
    }


@pytest.mark.parametrize(
    ("arguments", "error", "field"),
    [
        ({}, MissingRequired, "city"),
        ({"city": 5}, ValidationFailed, "city"),
        ({"city": "x", "days": "3"}, ValidationFailed, "days"),
        ({"city": "x", "days": 99}, ValidationFailed, "days"),
        ({"city": "x", "dayz": 3}, ValidationFailed, "dayz"),
        ({"city": "x", "place": {"name": "a", "at": {"y": 1}}}, MissingRequired, "place.at.x"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    arguments: Any, error: type[Exception], field: str
) -> None:
    with pytest.raises(error) as refused:
        call(everything, arguments)

    assert refused.value.details["field"] == field  # type: ignore[attr-defined]


def test_the_decorator_leaves_the_function_a_function() -> None:
    @tool
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    @tool(name="triple", description="Three times.", tags=["maths"], configuration={"cache": True})
    def other(n: int) -> int:
        return 3 * n

    assert double(4) == 8
    assert other(n=4) == 12
    assert describe_function(double).definition == {
        "name": "double",
        "description": "Double a number.",
        "inputSchema": describe_function(double).input_schema,
        "outputSchema": {"type": "integer"},
    }
    definition = describe_function(other).definition
    assert (definition["name"], definition["tags"]) == ("triple", ["maths"])
    assert definition["configuration"] == {"cache": True}
    assert call(other, {"n": 2}) == 6


def test_names_that_models_use_themselves_can_be_parameters() -> None:
    def odd(json: int, schema: int, copy: int, model_config: int = 1, _private: int = 2) -> int:
        return json + schema + copy + model_config + _private

    assert call(odd, {"json": 1, "schema": 2, "copy": 3}) == 9
    assert set(describe_function(odd).input_schema["properties"]) == {
        "json",
        "schema",
        "copy",
        "model_config",
        "_private",
    }


def test_parameters_by_position_only_and_by_name_only() -> None:
    def both(a: int, /, b: int, *, c: int = 3) -> list[int]:
        return [a, b, c]

    assert call(both, {"a": 1, "b": 2}) == [1, 2, 3]


def test_rest_docstrings_and_callable_objects() -> None:
    class Adder:
        __name__ = "adder"

        def __call__(self, n: int) -> int:
            return n + 1

    def rest(n: int) -> int:
        """Do it.

        :param n: the number
        :return: more of it
        """
        return n

    assert call(Adder(), {"n": 1}) == 2
    assert describe_function(rest).input_schema["properties"]["n"]["description"] == "the number"
    assert describe_function(rest).long_description == ""


def test_the_output_schema_is_what_results_look_like() -> None:
    def where() -> Place:
        return Place(name="Home", at=Point(1))

    schema = describe_function(where).output_schema
    result = call(where)

    assert schema is not None
    assert Schema(schema).accepts(result)
    assert result == {"name": "Home", "at": {"x": 1, "y": 0}, "tags": []}


def takes_anything(*everything: int) -> None: ...
def takes_any_name(**everything: int) -> None: ...
def yields() -> Iterator[int]:
    yield 1


def takes_a_thread(thread: threading.Thread) -> None: ...


@pytest.mark.parametrize(
    "function", [takes_anything, takes_any_name, yields, takes_a_thread, 5, "x"]
)
def test_what_cannot_be_a_tool_is_refused(function: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        describe_function(function)

    assert refused.value.details["field"] == "handler.callable"


def test_a_coroutine_runs_on_the_loop_and_a_function_does_not() -> None:
    async def here() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    def elsewhere() -> str:
        return threading.current_thread().name

    assert call(here) == threading.main_thread().name
    assert call(elsewhere) == "tool-t"


def test_the_attempt_and_the_progress_are_given_and_are_no_arguments() -> None:
    reports: list[Any] = []

    def work(n: int, run: Run, report: ProgressReport | None = None) -> str:
        assert report is not None
        report(0.5, "half")
        run.progress(1, "done")
        return f"{run.execution_id} {n}"

    async def once() -> Any:
        runner = PythonRunner()
        runner.add(work)
        given = attempt({"n": 1}, lambda done, words: reports.append((done, words)))
        return await runner.run({"type": "python", "name": "work"}, given)

    assert set(describe_function(work).input_schema["properties"]) == {"n"}
    assert asyncio.run(once()) == "e1 1"
    assert reports == [(0.5, "half"), (1, "done")]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(kind: str) -> None:
    errors: dict[str, BaseException] = {
        "value": ValueError("bad luck"),
        "exit": SystemExit(3),
        "stop": StopIteration(1),
        "interrupt": KeyboardInterrupt(),
        "long": RuntimeError("x" * 100_000),
        "odd": Unspeakable(),
    }
    raise errors[kind]


async def raising_later(kind: str) -> None:
    if kind == "cancel":
        raise asyncio.CancelledError
    raising(kind)


@pytest.mark.parametrize("function", [raising, raising_later])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("value", "ValueError: bad luck"),
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("long", "RuntimeError: xxx"),
        ("odd", "Unspeakable"),
    ],
)
def test_an_exception_is_told_by_type_and_message(function: Any, kind: str, message: str) -> None:
    with pytest.raises(ExecutionFailed) as failed:
        call(function, {"kind": kind})

    assert failed.value.message.startswith(message)
    assert len(failed.value.message) < 2_100
    assert "Traceback" not in str(failed.value.envelope())


def test_the_odd_ones_of_each_kind() -> None:
    with pytest.raises(ExecutionFailed, match="StopIteration"):
        call(raising, {"kind": "stop"})
    with pytest.raises(ExecutionFailed, match="CancelledError"):
        call(raising_later, {"kind": "cancel"})


def test_an_error_of_ours_passes_as_it_is() -> None:
    def strict(n: int) -> None:
        raise ValidationFailed("`n` is odd.", field="n")

    with pytest.raises(ValidationFailed, match="`n` is odd."):
        call(strict, {"n": 1})


def holds_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def test_a_result_that_is_no_json_is_a_failure() -> None:
    for result in (object(), float("nan"), 2**70, {1: threading.Lock()}, "\ud800"):

        def give(result: Any = result) -> Any:
            return result

        function: Any = lambda give=give: give()  # noqa: E731
        function.__name__ = "give"
        function.__signature__ = inspect.Signature()
        with pytest.raises(ExecutionFailed, match="not JSON"):
            call(function)
    with pytest.raises(ExecutionFailed, match="not JSON"):
        call(holds_itself)


def test_a_result_that_lies_about_its_type_is_given_as_it_is() -> None:
    def liar() -> int:
        return "text"  # type: ignore[return-value]

    assert call(liar) == "text"


async def stop(runner: PythonRunner, name: str, begun: threading.Event) -> None:
    """Call a function, and cancel the call once it has begun."""
    call = asyncio.create_task(runner.run({"type": "python", "name": name}, attempt({})))
    assert await asyncio.to_thread(begun.wait, 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(60):
            await call


def test_a_function_that_never_ends_is_stopped() -> None:
    progress = {"count": 0}
    spinning, obstinate = threading.Event(), threading.Event()

    def spin() -> None:
        spinning.set()
        while True:
            progress["count"] += 1

    def stubborn() -> None:
        caught = 0
        while True:
            try:
                obstinate.set()
                while True:
                    time.sleep(0.001)
            except BaseException:
                caught += 1
                if caught > 2:
                    raise

    async def both() -> None:
        runner = PythonRunner(Threads(grace_seconds=60))
        runner.add(spin)
        runner.add(stubborn)
        await stop(runner, "spin", spinning)
        await stop(runner, "stubborn", obstinate)
        assert runner.threads_abandoned == 0

    asyncio.run(both())
    count = progress["count"]
    time.sleep(0.02)
    assert count == progress["count"] > 0


def test_a_thread_that_cannot_be_stopped_is_counted_and_the_number_is_bounded() -> None:
    reading, writing = os.pipe()
    begun = threading.Event()

    def stuck() -> None:
        # Waits in C, where no exception arrives; one that came just before does not count.
        while True:
            with suppress(SystemExit):
                begun.set()
                os.read(reading, 1)
                return

    async def many() -> None:
        runner = PythonRunner(Threads(threads_max=4, abandoned_max=2, grace_seconds=0.06))
        runner.add(stuck)
        for _ in range(2):
            begun.clear()
            await stop(runner, "stuck", begun)
        assert runner.threads_abandoned == 2
        with pytest.raises(ExecutionFailed, match="hang") as refused:
            await runner.run({"type": "python", "name": "stuck"}, attempt({}))
        assert refused.value.safe
        os.close(writing)
        await eventually(lambda: runner.threads_abandoned == 0)

    asyncio.run(many())
    os.close(reading)


def test_no_more_threads_run_at_once_than_are_allowed() -> None:
    running = {"now": 0, "most": 0}
    guard, go_on = threading.Lock(), threading.Event()

    def work() -> None:
        with guard:
            running["now"] += 1
            running["most"] = max(running.values())
        go_on.wait(60)
        with guard:
            running["now"] -= 1

    async def many() -> None:
        runner = PythonRunner(Threads(threads_max=3))
        runner.add(work)
        handler = {"type": "python", "name": "work"}
        calls = asyncio.gather(*(runner.run(handler, attempt({})) for _ in range(12)))
        await eventually(lambda: running["now"] >= 3)
        # A moment in which more of them could begin.
        await asyncio.sleep(0.02)
        go_on.set()
        await calls

    asyncio.run(many())

    assert running["most"] == 3


def test_a_coroutine_is_cancelled() -> None:
    ended = []
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(True)

    async def once() -> None:
        runner = PythonRunner()
        runner.add(wait)
        await stop(runner, "wait", begun)

    asyncio.run(once())

    assert ended == [True]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with entry points, as pip would leave it."""
    (tmp_path / "weather_tools.py").write_text(
        "from stratagem.gateway.handlers.python import tool\n"
        "@tool(tags=['weather'])\n"
        "def forecast(city: str) -> str:\n"
        "    'Tell the weather.'\n"
        "    return f'rain in {city}'\n"
        "class Deep:\n"
        "    @staticmethod\n"
        "    def inner(n: int) -> int:\n"
        "        return n + 1\n"
    )
    (tmp_path / "broken_tools.py").write_text("raise RuntimeError('not today')\n")
    info = tmp_path / "weather_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weather-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[stratagem.tools]\nforecast = weather_tools:forecast\nbroken = broken_tools:gone\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    for name in ("weather_tools", "broken_tools"):
        sys.modules.pop(name, None)


def test_entry_points_are_checked_without_importing_them(installed: None) -> None:
    runner = PythonRunner()

    warnings = runner.check({"type": "python", "name": "forecast"})

    assert warnings == []
    assert "weather_tools" not in sys.modules
    assert runner.find({"type": "python", "name": "forecast"}).options == {"tags": ["weather"]}


def test_entry_points_and_places_are_run_when_they_are_called(installed: None) -> None:
    async def once() -> None:
        runner = PythonRunner()
        forecast = {"type": "python", "name": "forecast"}
        assert await runner.run(forecast, attempt({"city": "Bergen"})) == "rain in Bergen"
        inner = {"type": "python", "callable": "weather_tools:Deep.inner"}
        assert await runner.run(inner, attempt({"n": 1})) == 2
        with pytest.raises(ExecutionFailed, match="RuntimeError: not today") as failed:
            await runner.run({"type": "python", "name": "broken"}, attempt({}))
        assert failed.value.safe
        with pytest.raises(ExecutionFailed, match="ModuleNotFoundError"):
            await runner.run({"type": "python", "callable": "no_such_module:f"}, attempt({}))
        with pytest.raises(ToolNotFound):
            await runner.run({"type": "python", "name": "nobody"}, attempt({}))
        await runner.close()

    asyncio.run(once())


@pytest.mark.parametrize(
    "handler",
    [
        {},
        {"name": "a", "callable": "b:c"},
        {"callable": "no_colon"},
        {"callable": "os:system; rm"},
        {"callable": 3},
        {"name": 3},
    ],
)
def test_a_wrong_handler_is_refused(handler: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed) as refused:
        PythonRunner().check({"type": "python", **handler})

    assert refused.value.details["field"].startswith("handler")


def test_a_handler_for_what_is_not_there_yet_is_a_warning() -> None:
    runner = PythonRunner()

    assert runner.check({"type": "python", "name": "later"}) == [
        "No function named 'later' was added here yet."
    ]
    assert runner.check({"type": "python", "callable": "package.module:function"}) == []
