"""Running a pipeline: the machine's calls are made, and each event is recorded before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from stratagem.errors import ExecutionTimeout, StratagemError, ValidationFailed
from stratagem.gateway.pipelines import machine, templates
from stratagem.gateway.pipelines.answers import (
    ItemEnd,
    ItemReport,
    PipelineRun,
    StepFailure,
    StepReport,
)
from stratagem.gateway.pipelines.definition import Pipeline, plan
from stratagem.gateway.pipelines.machine import (
    Item,
    ItemStatus,
    Outcome,
    State,
    StepCall,
    StepEvent,
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
    """How a pipeline ended: each step with its status, and what came out."""

    name: str
    success: bool
    output: Any
    steps: tuple[StepReport, ...]
    error: StepFailure | None

    def answer(self, run_id: str) -> PipelineRun:
        """Return the result as the surfaces show it."""
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
    required: machine.Required | None = None,
) -> PipelineResult:
    """Run a pipeline to its end, or from a state on.

    Each event is recorded before the next call is chosen. What is under way when a step stops
    the pipeline, or when this is cancelled, is cancelled and waited for.

    Raises:
        ValidationFailed: The definition is wrong; nothing was run.
    """
    pipeline = definition if isinstance(definition, Pipeline) else plan(definition)
    state = state or machine.start(pipeline, input_, required)
    under_way: dict[asyncio.Task[StepEvent], None] = {}
    try:
        while not state.ended:
            for call in machine.next_steps(state):
                state = await _recorded(state, call.event("started"), record)
                under_way[asyncio.create_task(_attempt(call, execute))] = None
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            # In the order in which they were begun, so that equal runs leave equal events.
            for task in [task for task in under_way if task in done]:
                del under_way[task]
                if not state.ended:
                    state = await _recorded(state, task.result(), record)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return result_of(state)


def result_of(state: State) -> PipelineResult:
    """Return how a run that has ended ended."""
    steps = [_step_report(outcome) for outcome in state.outcomes]
    left = state.pipeline.steps[len(steps) :]
    steps += [{"id": step.id, "tool": step.tool, "status": "not_run"} for step in left]
    pipeline = state.pipeline
    if state.stopped:
        last = state.outcomes[-1]
        assert last.error is not None
        error: StepFailure = {**last.error, "step": last.step.id}
        return PipelineResult(pipeline.name, False, None, tuple(steps), error)  # noqa: FBT003
    try:
        output = state.previous
        if pipeline.output is not None:
            output = templates.resolve(pipeline.output, state.scope(), field="output")
    except ValidationFailed as fault:
        error = machine.failure(fault)
        return PipelineResult(pipeline.name, False, None, tuple(steps), error)  # noqa: FBT003
    return PipelineResult(pipeline.name, True, output, tuple(steps), None)  # noqa: FBT003


async def _recorded(state: State, event: StepEvent, record: Record) -> State:
    await record(event)
    return machine.apply(state, event)


async def _attempt(call: StepCall, execute: Execute) -> StepEvent:
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
        return call.event("failed", error=machine.failure(late), seconds=clock() - began)
    except StratagemError as error:
        return call.event("failed", error=machine.failure(error), seconds=clock() - began)
    return call.event("finished", result=result, seconds=clock() - began)


def _step_report(outcome: Outcome) -> StepReport:
    items = outcome.items
    report: StepReport = {
        "id": outcome.step.id,
        "tool": outcome.step.tool,
        "status": outcome.status,
        "attempts": sum(item.calls for item in items),
        "duration": round(sum(item.seconds for item in items) * 1000, 3),
    }
    if outcome.status not in {"skipped", "failed"}:
        report["result"] = outcome.result
    if outcome.error is not None:
        report["error"] = outcome.error.copy()
    if outcome.step.for_each is not None:
        report["items"] = [_item_report(item) for item in items]
    return report


def _item_report(item: Item) -> ItemReport:
    report: ItemReport = {
        "status": _ITEM_STATUSES[item.status],
        "attempts": item.calls,
    }
    if item.error is not None:
        report["error"] = item.error.copy()
    return report
