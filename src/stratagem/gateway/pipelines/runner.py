"""Runs a pipeline: makes the calls and records each event before it is applied."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionTimeout, StratagemError, ValidationFailed
from stratagem.gateway.pipelines import machine, templates
from stratagem.gateway.pipelines.answers import (
    ItemEnd,
    ItemReport,
    PipelineRun,
    StepFailure,
    StepReport,
)
from stratagem.gateway.pipelines.definition import Pipeline, parse_pipeline
from stratagem.gateway.pipelines.machine import (
    ItemState,
    ItemStatus,
    State,
    StepCall,
    StepEvent,
    StepResult,
)

__all__ = ["Execute", "PipelineResult", "Record", "result_of", "run_pipeline"]

Execute: TypeAlias = Callable[[StepCall], Awaitable[Any]]
Record: TypeAlias = Callable[[StepEvent], Awaitable[None]]

_ITEM_STATUSES: Final[Mapping[ItemStatus, ItemEnd]] = {
    "waiting": "not_run",
    "running": "not_run",
    "finished": "finished",
    "recovered": "recovered",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The result of a pipeline run: its output, and each step with its status."""

    name: str
    success: bool
    output: Any
    steps: tuple[StepReport, ...]
    error: StepFailure | None

    def answer(self, run_id: str) -> PipelineRun:
        """Return the result in the form of the interface."""
        return {
            "runId": run_id,
            "name": self.name,
            "success": self.success,
            "output": self.output,
            "steps": list(self.steps),
            "error": self.error,
        }


async def run_pipeline(
    definition: Pipeline | Mapping[str, Any],
    input_: Any,
    execute: Execute,
    record: Record,
    state: State | None = None,
    *,
    required: machine.RequiredArguments | None = None,
) -> PipelineResult:
    """Run a pipeline to its end, from the start or from a given state.

    Each event is recorded before the next call is chosen. When a step stops the pipeline, or this
    is cancelled, running calls are cancelled and awaited.

    Raises:
        ValidationFailed: The definition is wrong; nothing was run.
    """
    pipeline = definition if isinstance(definition, Pipeline) else parse_pipeline(definition)
    state = state or machine.start(pipeline, input_, required)
    under_way: dict[asyncio.Task[StepEvent], None] = {}
    try:
        while not state.ended:
            for call in machine.next_calls(state):
                state = await _record_event(state, call.event("started"), record)
                under_way[asyncio.create_task(_make_call(call, execute))] = None
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            # In the order in which they began, so that equal runs record equal events.
            for task in [task for task in under_way if task in done]:
                del under_way[task]
                if not state.ended:
                    state = await _record_event(state, task.result(), record)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return result_of(state)


def result_of(state: State) -> PipelineResult:
    """Return the result of a run that is over."""
    steps = [_step_report(step_result) for step_result in state.step_results]
    left = state.pipeline.steps[len(steps) :]
    steps += [{"id": step.id, "tool": step.tool, "status": "not_run"} for step in left]
    pipeline = state.pipeline
    if state.stopped:
        last = state.step_results[-1]
        assert last.error is not None
        error: StepFailure = {**last.error, "step": last.step.id}
        return PipelineResult(pipeline.name, False, None, tuple(steps), error)  # noqa: FBT003
    try:
        output = state.previous
        if pipeline.output is not None:
            output = templates.resolve(pipeline.output, state.scope(), field="output")
    except ValidationFailed as fault:
        error = machine.failure_of(fault)
        return PipelineResult(pipeline.name, False, None, tuple(steps), error)  # noqa: FBT003
    return PipelineResult(pipeline.name, True, output, tuple(steps), None)  # noqa: FBT003


async def _record_event(state: State, event: StepEvent, record: Record) -> State:
    await record(event)
    return machine.apply(state, event)


async def _make_call(call: StepCall, execute: Execute) -> StepEvent:
    if call.delay:
        await asyncio.sleep(call.delay)
    clock = asyncio.get_running_loop().time
    began = clock()
    limit = asyncio.timeout(call.timeout)
    try:
        async with limit:
            result = await execute(call)
    except TimeoutError:
        if not limit.expired():
            raise
        late = ExecutionTimeout(f"The step {call.step!r} took longer than {call.timeout} s.")
        return call.event("failed", error=machine.failure_of(late), seconds=clock() - began)
    except StratagemError as error:
        return call.event("failed", error=machine.failure_of(error), seconds=clock() - began)
    return call.event("finished", result=result, seconds=clock() - began)


def _step_report(step_result: StepResult) -> StepReport:
    items = step_result.items
    report: StepReport = {
        "id": step_result.step.id,
        "tool": step_result.step.tool,
        "status": step_result.status,
        "attempts": sum(item.calls for item in items),
        "duration": round(sum(item.seconds for item in items) * 1000, 3),
    }
    if step_result.status not in {"skipped", "failed"}:
        report["result"] = step_result.result
    if step_result.error is not None:
        report["error"] = step_result.error.copy()
    if step_result.step.for_each is not None:
        report["items"] = [_item_report(item) for item in items]
    return report


def _item_report(item: ItemState) -> ItemReport:
    report: ItemReport = {
        "status": _ITEM_STATUSES[item.status],
        "attempts": item.calls,
    }
    if item.error is not None:
        report["error"] = item.error.copy()
    return report
