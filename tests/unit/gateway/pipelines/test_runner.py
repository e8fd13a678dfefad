"""Pipelines that run: order, conditions, lists, retries, failures, and going on after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.pipelines import machine
from stratagem.gateway.pipelines.definition import parse_pipeline
from stratagem.gateway.pipelines.machine import StepCall, StepEvent, resume
from stratagem.gateway.pipelines.runner import PipelineResult, run_pipeline
from tests.unit.gateway.handlers.upstream.servers import eventually


class Crash(BaseException):
    """The process ends here."""


def _echo(call: StepCall) -> Any:
    return call.arguments


class Desk:
    """Runs steps for a test: `tools` by name, and keeps what was called and recorded."""

    def __init__(self, tools: dict[str, Callable[[StepCall], Any]] | None = None) -> None:
        self.tools = tools or {}
        self.calls: list[StepCall] = []
        self.events: list[StepEvent] = []
        self.crash_after: int | None = None
        self.at_once = self.at_once_max = 0

    async def execute(self, call: StepCall) -> Any:
        self.calls.append(call)
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            await asyncio.sleep(0)
            return self.tools.get(call.tool, _echo)(call)
        finally:
            self.at_once -= 1

    async def record(self, event: StepEvent) -> None:
        if self.crash_after is not None and len(self.events) >= self.crash_after:
            raise Crash
        self.events.append(StepEvent.of(event.as_json()))


def run(
    definition: dict[str, Any],
    input_: Any = None,
    desk: Desk | None = None,
    required: dict[str, Sequence[str]] | None = None,
) -> PipelineResult:
    desk = desk or Desk()
    needed = lambda tool: (required or {}).get(tool, ())  # noqa: E731
    return asyncio.run(run_pipeline(definition, input_, desk.execute, desk.record, required=needed))


def always(error: Exception) -> Callable[[StepCall], Any]:
    def fail(_call: StepCall) -> Any:
        raise error

    return fail


def failing(times: int) -> Callable[[StepCall], Any]:
    def attempt(call: StepCall) -> Any:
        if call.attempt <= times:
            raise ExecutionFailed("not yet")
        return call.attempt

    return attempt


def statuses(result: PipelineResult) -> list[str]:
    return [step["status"] for step in result.steps]


def test_each_step_sees_the_results_before_it() -> None:
    definition = {
        "name": "greeting",
        "steps": [
            {"id": "who", "tool": "echo", "arguments": {"name": "${{ input.name }}"}},
            {
                "id": "text",
                "tool": "echo",
                "arguments": {"text": "Hello ${{ steps.who.result.name }}"},
            },
            {
                "tool": "echo",
                "arguments": {"both": {"$ref": "[previous.text, steps.who.result.name]"}},
            },
        ],
    }

    result = run(definition, {"name": "Ada"})

    assert result.success
    assert result.output == {"both": ["Hello Ada", "Ada"]}
    assert statuses(result) == ["finished"] * 3
    assert result.answer("run_1")["steps"][1]["result"] == {"text": "Hello Ada"}


def test_a_required_argument_left_out_is_filled_from_the_previous_result() -> None:
    definition = {
        "steps": [
            {"tool": "parse", "arguments": {"code": "x"}},
            {"tool": "analyse", "arguments": {"threshold": 10}},
            {"tool": "report", "arguments": {"ast": "mine"}},
        ]
    }
    desk = Desk({"parse": lambda _: {"ast": [1], "other": 2, "threshold": 3}})

    result = run(definition, {}, desk, {"analyse": ["ast", "threshold", "gone"], "report": ["ast"]})

    assert [call.arguments for call in desk.calls[1:]] == [
        {"threshold": 10, "ast": [1]},
        {"ast": "mine"},
    ]
    assert result.success


def test_before_the_first_result_the_input_is_the_previous_one() -> None:
    desk = Desk()

    run({"steps": [{"tool": "a"}]}, {"x": 1, "y": 2}, desk, {"a": ["x"]})

    assert desk.calls[0].arguments == {"x": 1}


def test_a_step_is_skipped_when_its_condition_does_not_hold() -> None:
    definition = {
        "steps": [
            {"id": "a", "tool": "echo", "arguments": {"n": 1}},
            {"id": "b", "tool": "echo", "arguments": {"n": 2}, "when": "steps.a.result.n > `1`"},
            {
                "id": "c",
                "tool": "echo",
                "arguments": {"n": "${{ previous.n }}"},
                "when": "${{ steps.b.status == 'skipped' }}",
            },
        ]
    }

    result = run(definition)

    assert statuses(result) == ["finished", "skipped", "finished"]
    assert result.output == {"n": 1}


def test_a_list_is_gone_through_in_parallel_with_a_bound_and_results_in_order() -> None:
    definition = {
        "steps": [
            {
                "tool": "double",
                "forEach": "input",
                "concurrency": 3,
                "arguments": {"n": "${{ item }}", "at": "${{ index }}"},
            }
        ],
        "output": {"all": "${{ previous }}"},
    }
    desk = Desk({"double": lambda call: call.arguments["n"] * 2})

    result = run(definition, list(range(20)), desk)

    assert result.output == {"all": [2 * n for n in range(20)]}
    assert desk.at_once_max == 3
    assert [call.arguments["at"] for call in desk.calls] == list(range(20))
    assert len(result.steps[0]["items"]) == 20


def test_an_empty_list_gives_an_empty_list() -> None:
    desk = Desk()

    result = run({"steps": [{"tool": "x", "forEach": "input"}]}, [], desk)

    assert (result.success, result.output, desk.calls) == (True, [], [])


@pytest.mark.parametrize("items", ["text", None, {"a": 1}, list(range(1_001))])
def test_what_is_no_list_or_too_long_a_one_fails_the_step(items: Any) -> None:
    result = run({"steps": [{"id": "s", "tool": "x", "forEach": "input.items"}]}, {"items": items})

    assert not result.success
    assert result.error is not None
    assert (result.error["step"], result.error["field"]) == ("s", "steps[0].forEach")


def test_a_failed_step_stops_the_pipeline() -> None:
    desk = Desk({"bad": always(ExecutionFailed("no luck"))})

    result = run({"steps": [{"tool": "a"}, {"tool": "bad"}, {"tool": "c"}]}, {}, desk)

    assert statuses(result) == ["finished", "failed", "not_run"]
    assert result.error == {"step": "bad", "code": "execution_error", "message": "no luck"}
    assert (result.success, result.output) == (False, None)


def test_retries_are_counted_and_end() -> None:
    steps = [{"tool": "flaky", "retry": {"attempts": 3, "backoff": 1}}]

    twice = run({"steps": steps}, {}, Desk({"flaky": failing(2)}))
    for_good = run({"steps": steps}, {}, Desk({"flaky": failing(3)}))

    assert (twice.output, twice.steps[0]["attempts"]) == (3, 3)
    assert (for_good.success, for_good.steps[0]["attempts"]) == (False, 3)


def test_what_cannot_get_better_is_not_tried_again() -> None:
    desk = Desk({"closed": always(PermissionDenied("no"))})

    run({"steps": [{"tool": "closed", "retry": {"attempts": 5, "backoff": 0}}]}, {}, desk)

    assert len(desk.calls) == 1


def test_the_wait_doubles() -> None:
    pipeline = parse_pipeline({"steps": [{"tool": "t", "retry": {"attempts": 4, "backoff": 500}}]})
    state = machine.start(pipeline, None)
    delays = []
    for _ in range(4):
        (call,) = machine.next_calls(state)
        delays.append(call.delay)
        state = machine.apply(
            machine.apply(state, call.event("started")),
            call.event("failed", error={"code": "execution_error", "message": "no"}),
        )

    assert delays == [0, 0.5, 1, 2]
    assert state.stopped


def test_on_error_continue_goes_on_without_a_result() -> None:
    steps = [
        {"tool": "a", "arguments": {"n": 1}},
        {"id": "bad", "tool": "bad", "onError": "continue"},
        {
            "tool": "c",
            "arguments": {"n": "${{ previous.n }}", "why": "${{ steps.bad.error.code }}"},
        },
    ]

    result = run({"steps": steps}, {}, Desk({"bad": always(ExecutionFailed("x"))}))

    assert result.success
    assert result.output == {"n": 1, "why": "execution_error"}
    assert statuses(result) == ["finished", "failed", "finished"]


def test_on_error_gives_a_value_or_asks_another_tool() -> None:
    steps = [
        {"id": "a", "tool": "bad", "onError": {"fallback": {"why": "${{ error.message }}"}}},
        {
            "id": "b",
            "tool": "bad",
            "onError": {"tool": "good", "arguments": {"why": "${{ error.code }}"}},
        },
        {"id": "c", "tool": "bad", "onError": {"tool": "bad"}},
    ]
    desk = Desk({"bad": always(ExecutionFailed("x"))})

    result = run({"steps": steps}, {}, desk)

    assert result.steps[0]["result"] == {"why": "x"}
    assert result.steps[1]["result"] == {"why": "execution_error"}
    assert statuses(result) == ["recovered", "recovered", "failed"]
    assert [call.key for call in desk.calls] == ["a", "b", "b!", "c", "c!"]


def test_items_fail_each_for_itself() -> None:
    def odd(call: StepCall) -> Any:
        if call.arguments["n"] % 2:
            raise ExecutionFailed("odd")
        return call.arguments["n"]

    each = {"tool": "odd", "forEach": "input", "arguments": {"n": "${{ item }}"}}
    goes_on = run({"steps": [{**each, "onError": "continue"}]}, [0, 1, 2], Desk({"odd": odd}))
    replaced = run(
        {"steps": [{**each, "onError": {"fallback": "${{ item }}?"}}]}, [0, 1], Desk({"odd": odd})
    )
    stops = run({"steps": [{**each, "concurrency": 1}]}, [0, 1, 2], Desk({"odd": odd}))

    assert (goes_on.output, statuses(goes_on)) == ([0, None, 2], ["partial"])
    assert (replaced.output, statuses(replaced)) == ([0, "1?"], ["recovered"])
    assert [item["status"] for item in stops.steps[0]["items"]] == ["finished", "failed", "not_run"]


def test_arguments_that_cannot_be_made_fail_the_step_without_a_call() -> None:
    desk = Desk()
    steps = [
        {
            "tool": "a",
            "arguments": {"t": "x${{ input.gone }}"},
            "retry": {"attempts": 3, "backoff": 0},
        }
    ]

    result = run({"steps": steps}, {}, desk)

    assert desk.calls == []
    assert result.error is not None
    assert result.error["code"] == "validation_error"


def test_a_step_that_takes_too_long_is_stopped() -> None:
    stopped = []

    async def slow(_call: StepCall) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    desk = Desk()
    result = asyncio.run(
        run_pipeline({"steps": [{"tool": "a", "timeout": 20}]}, {}, slow, desk.record)
    )

    assert result.error is not None
    assert (result.error["code"], stopped) == ("timeout", [True])


def test_cancelling_the_pipeline_cancels_its_steps() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def slow(call: StepCall) -> Any:
        begun.append(call.index or 0)
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(call.index or 0)

    async def cancelled() -> None:
        desk = Desk()
        task = asyncio.create_task(
            run_pipeline(
                {"steps": [{"tool": "a", "forEach": "input"}]}, [1, 2, 3], slow, desk.record
            )
        )
        await eventually(lambda: len(begun) == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert sorted(ended) == [0, 1, 2]


def test_an_output_that_cannot_be_made_is_a_failure() -> None:
    result = run({"steps": [{"tool": "a"}], "output": "x${{ previous.gone }}"})

    assert (result.success, result.output) == (False, None)


def test_events_of_another_pipeline_are_refused() -> None:
    with pytest.raises(ValidationFailed, match="does not belong"):
        resume(parse_pipeline({"steps": [{"tool": "a"}]}), {}, [StepEvent("started", "b")])


STEP = st.fixed_dictionaries(
    {"tool": st.sampled_from(["echo", "flaky", "bad", "count"])},
    optional={
        "forEach": st.sampled_from(["input.list", "input.few", "input.none"]),
        "when": st.sampled_from(["input.list", "input.none", "length(previous) > `0`"]),
        "retry": st.builds(lambda n: {"attempts": n, "backoff": 0}, st.integers(1, 3)),
        "onError": st.sampled_from(
            [
                "stop",
                "continue",
                {"fallback": "${{ error.code }}"},
                {"tool": "echo", "arguments": {"e": "${{ error.code }}"}},
            ]
        ),
        "concurrency": st.integers(1, 4),
    },
)
TOOLS: dict[str, Callable[[StepCall], Any]] = {
    "echo": lambda call: dict(call.arguments),
    "flaky": failing(1),
    "bad": always(ExecutionFailed("never")),
    "count": lambda call: [call.step, call.index or 0],
}
INPUT = {"list": [1, 2, 3, 4, 5], "few": ["a"], "none": []}


def seen(result: PipelineResult) -> list[Any]:
    """What a run gives, but for what depends on which items were under way when it stopped."""
    steps = [(step["id"], step["status"], step.get("result")) for step in result.steps]
    return [result.success, result.output, steps]


@settings(max_examples=150)
@given(steps=st.lists(STEP, min_size=1, max_size=4), data=st.data())
def test_going_on_after_a_crash_anywhere_gives_the_same_and_repeats_nothing(
    steps: list[dict[str, Any]], data: st.DataObject
) -> None:
    pipeline = parse_pipeline({"steps": steps})
    through = Desk(TOOLS)
    expected = asyncio.run(run_pipeline(pipeline, INPUT, through.execute, through.record))

    first = Desk(TOOLS)
    first.crash_after = data.draw(st.integers(0, len(through.events)), label="crash after")
    try:
        result = asyncio.run(run_pipeline(pipeline, INPUT, first.execute, first.record))
    except Crash:
        second = Desk(TOOLS)
        state = resume(pipeline, INPUT, first.events)
        result = asyncio.run(run_pipeline(pipeline, INPUT, second.execute, second.record, state))
        ended = {
            (e.step, e.index, e.attempt, e.fallback) for e in first.events if e.kind != "started"
        }
        again = [(c.step, c.index, c.attempt, c.fallback) for c in second.calls]
        begun = {
            (e.step, e.index, e.attempt, e.fallback) for e in first.events if e.kind == "started"
        }
        assert not ended & set(again)
        assert all(
            call.repeated == (key in begun) for call, key in zip(second.calls, again, strict=True)
        )

    assert seen(result) == seen(expected)


@settings(max_examples=50)
@given(steps=st.lists(STEP, min_size=1, max_size=4))
def test_the_events_alone_say_how_a_run_ended(steps: list[dict[str, Any]]) -> None:
    pipeline = parse_pipeline({"steps": steps})
    desk = Desk(TOOLS)
    result = asyncio.run(run_pipeline(pipeline, INPUT, desk.execute, desk.record))

    again = Desk(TOOLS)
    state = resume(pipeline, INPUT, desk.events)
    replayed = asyncio.run(run_pipeline(pipeline, INPUT, again.execute, again.record, state))

    assert again.calls == []
    assert replayed == result
